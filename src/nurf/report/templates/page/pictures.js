const PANEL = { width: 320, height: 224, left: 68, right: 16, top: 10, bottom: 38 };
const TICK_WIDTH = 48, DIGIT_WIDTH = 7.5; // of the texts
const POINTS = 81, BAND_POINTS = 41, PIXELS = 44;
const VIRIDIS = ["#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725"];

function colour(share) {
  const place = Math.min(1, Math.max(0, share)) * (VIRIDIS.length - 1), i = Math.min(VIRIDIS.length - 2, Math.floor(place));
  const rgb = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
  const [a, b] = [rgb(VIRIDIS[i]), rgb(VIRIDIS[i + 1])];
  return a.map((v, c) => Math.round(v + (place - i) * (b[c] - v)));
}

let panelCount = 0;

// Axes in an SVG picture; pressed(x, y) is called with shares of the axes where the pointer is pressed or drawn.
class Panel {
  constructor(label, pressed, right = PANEL.right) {
    this.inner = { width: PANEL.width - PANEL.left - right, height: PANEL.height - PANEL.top - PANEL.bottom };
    const { inner } = this, id = `clip-${panelCount++}`;
    this.back = shape("g", { "clip-path": `url(#${id})` });
    this.frame = shape("g", { class: "frame" });
    this.front = shape("g", { "clip-path": `url(#${id}-marks)` });
    const box = shape("rect", { x: PANEL.left, y: PANEL.top, ...inner });
    const larger = { x: PANEL.left - 6, y: PANEL.top - 6, width: inner.width + 12, height: inner.height + 12 };
    const marks = shape("clipPath", { id: `${id}-marks` }, shape("rect", larger)); // for marks on the edges
    this.svg = shape("svg", { class: "plot live", viewBox: `0 0 ${PANEL.width} ${PANEL.height}`, "aria-hidden": "true", "font-size": 11 });
    this.svg.append(shape("defs", {}, shape("clipPath", { id }, box), marks), this.back, this.frame, this.front);
    this.figure = element("figure", { role: "img", "aria-label": label });
    this.figure.append(element("figcaption", {}, label), this.svg);
    const move = (event) => {
      if (!(event.buttons & 1)) return;
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
      const shares = [(at.x - PANEL.left) / inner.width, 1 - (at.y - PANEL.top) / inner.height];
      pressed(...shares.map((share) => Math.min(1, Math.max(0, share))));
      event.preventDefault();
    };
    this.svg.addEventListener("pointerdown", move);
    this.svg.addEventListener("pointermove", move);
  }
  x(share) {
    return PANEL.left + share * this.inner.width;
  }
  y(share) {
    return PANEL.top + (1 - Math.min(9, Math.max(-9, share))) * this.inner.height;
  }
  line(places, extra = "") {
    return "M" + places.map(([x, y]) => `${this.x(x).toFixed(2)},${this.y(y).toFixed(2)}`).join("L") + extra;
  }
  drawFrame(across, up, labels) {
    const { width, height } = this.inner, [left, bottom] = [PANEL.left, PANEL.top + height];
    const parts = [shape("rect", { x: left, y: PANEL.top, width, height, fill: "none", stroke: "currentColor", "stroke-opacity": 0.5 })];
    const text = (x, y, content, anchor, more = {}) => shape("text", { x, y, "text-anchor": anchor, fill: "currentColor", ...more }, content);
    const room = (ticks) => Math.max(...tickTexts(ticks).map((each) => each.length)) * DIGIT_WIDTH * ticks.length < width;
    const ticks = [5, 4, 3].map((count) => across.ticks(count)).find(room) ?? across.ticks(2);
    tickTexts(ticks).forEach((content, i) => {
      const x = this.x(across.place(ticks[i]));
      parts.push(shape("path", { d: `M${x},${bottom}v4`, stroke: "currentColor" }), text(x, bottom + 15, content, "middle"));
    });
    const heights = up.ticks(6);
    tickTexts(heights).forEach((content, i) => {
      const y = this.y(up.place(heights[i]));
      const narrower = content.length * DIGIT_WIDTH > 1.2 * TICK_WIDTH ? { textLength: TICK_WIDTH, lengthAdjust: "spacingAndGlyphs" } : {};
      parts.push(shape("path", { d: `M${left},${y}h-4`, stroke: "currentColor" }), text(left - 6, y + 4, content, "end", { class: "tick", ...narrower }));
    });
    parts.push(text(left + width / 2, PANEL.height - 6, short(labels[0], 36), "middle"));
    parts.push(text(0, 0, short(labels[1], 28), "middle", { class: "up", transform: `translate(11 ${PANEL.top + height / 2}) rotate(-90)` }));
    this.frame.replaceChildren(...parts);
  }
}

// How opaque a sample is that is not in the slice: as in the slices of nurf.plots.
function opacity(x, point, shown) {
  let sum = 0;
  DATA.inputs.forEach(({ deviation }, j) => {
    if (!shown.includes(j) && deviation > 0) sum += ((x[j] - point[j]) / deviation) ** 2;
  });
  return Math.max(0.1, Math.exp(-sum / Math.max(1, 2 * (DATA.inputs.length - shown.length)))).toFixed(2);
}

class Slice extends Panel {
  constructor(j, moved) {
    super(`along ${DATA.inputs[j].name}`, (x) => moved([[j, INPUT_AXES[j].at(x)]]));
    this.j = j;
  }
  along(point, count) {
    return Array.from({ length: count }, (_, i) => {
      const share = i / (count - 1), x = [...point];
      x[this.j] = INPUT_AXES[this.j].at(share);
      return [share, x];
    });
  }
  values(point, k) {
    this.curve = this.along(point, POINTS).map(([share, x]) => [share, at(value(x), k)]);
    return this.curve.map(([, y]) => y);
  }
  draw(point, k, up) {
    const { j } = this, axis = INPUT_AXES[j], here = this.x(axis.place(point[j]));
    this.drawFrame(axis, up, [DATA.inputs[j].name, DATA.outputs[k].name]);
    const dots = DATA.samples.filter(({ y }) => y[k] !== null).map(({ x, y }) =>
      shape("circle", { cx: this.x(axis.place(x[j])), cy: this.y(up.place(y[k])), r: 2, fill: "currentColor", opacity: opacity(x, point, [j]) }));
    const d = this.line(this.curve.map(([share, y]) => [share, up.place(y)]));
    this.back.replaceChildren();
    this.front.replaceChildren(
      shape("path", { d: `M${here},${PANEL.top}v${this.inner.height}`, stroke: "currentColor", "stroke-dasharray": "3 3", "stroke-opacity": 0.6 }),
      ...dots,
      shape("path", { d, fill: "none", stroke: "var(--series)", "stroke-width": 2 }),
      shape("circle", { cx: here, cy: this.y(up.place(at(value(point), k))), r: 4.5, fill: "var(--series)", stroke: "var(--raised)" }),
    );
  }
  *bands(point, k) {
    this.ends = [];
    for (const [share, x] of this.along(point, BAND_POINTS)) {
      this.ends.push([share, band(x, k)]);
      yield;
    }
    return this.ends.flatMap(([, pair]) => pair).filter((y) => y !== null);
  }
  drawBand(up) {
    if (this.ends.some(([, pair]) => pair.some((y) => y === null))) return;
    const upper = this.ends.map(([share, [, high]]) => [share, up.place(high)]);
    const lower = this.ends.map(([share, [low]]) => [share, up.place(low)]).reverse();
    this.back.replaceChildren(shape("path", { d: this.line([...upper, ...lower], "Z"), fill: "var(--series)", "fill-opacity": 0.22 }));
  }
}

class HeatMap extends Panel {
  constructor(moved) {
    super("heat map", (x, y) => moved(this.pair.map((j, i) => [j, INPUT_AXES[j].at([x, y][i])])), 64);
    this.pair = [0, 1];
    this.canvas = element("canvas", { width: PIXELS, height: PIXELS });
  }
  *draw(point, k) {
    const [a, b] = this.pair, heights = [], output = outputAxis(k, []);
    for (let row = 0; row < PIXELS; row++) {
      for (let column = 0; column < PIXELS; column++) {
        const x = [...point];
        x[a] = INPUT_AXES[a].at((column + 0.5) / PIXELS);
        x[b] = INPUT_AXES[b].at(1 - (row + 0.5) / PIXELS);
        heights.push(at(value(x), k));
      }
      yield;
    }
    const axis = new Axis({ ...output, low: Math.min(...heights), high: Math.max(...heights) });
    const context = this.canvas.getContext("2d"), image = context.createImageData(PIXELS, PIXELS);
    heights.forEach((y, i) => image.data.set([...colour(axis.place(y)), 255], 4 * i));
    context.putImageData(image, 0, 0);
    const { width, height } = this.inner;
    this.figure.firstChild.textContent = `heat map of ${DATA.outputs[k].name}`;
    this.drawFrame(INPUT_AXES[a], INPUT_AXES[b], [DATA.inputs[a].name, DATA.inputs[b].name]);
    const href = this.canvas.toDataURL("image/png");
    this.back.replaceChildren(shape("image", { x: PANEL.left, y: PANEL.top, width, height, href, preserveAspectRatio: "none" }));
    const dots = DATA.samples.map(({ x }) =>
      shape("circle", { cx: this.x(INPUT_AXES[a].place(x[a])), cy: this.y(INPUT_AXES[b].place(x[b])), r: 2, fill: "#000", stroke: "#fff", "stroke-width": 0.4, opacity: opacity(x, point, [a, b]) }));
    const [cx, cy] = [this.x(INPUT_AXES[a].place(point[a])), this.y(INPUT_AXES[b].place(point[b]))];
    const cross = shape("path", { d: `M${cx - 8},${cy}h16M${cx},${cy - 8}v16`, stroke: "#fff", "stroke-width": 4 });
    const inner = shape("path", { d: `M${cx - 8},${cy}h16M${cx},${cy - 8}v16`, stroke: "#d55e00", "stroke-width": 2 });
    this.front.replaceChildren(...dots, cross, inner);
    this.drawLegend(axis);
  }
  drawLegend(axis) {
    const left = PANEL.left + this.inner.width + 8, n = 24, step = this.inner.height / n;
    for (let i = 0; i < n; i++) {
      const fill = `rgb(${colour((i + 0.5) / n)})`;
      this.frame.append(shape("rect", { x: left, y: PANEL.top + this.inner.height - (i + 1) * step, width: 10, height: step + 0.3, fill }));
    }
    const ticks = axis.ticks(4);
    tickTexts(ticks).forEach((content, i) =>
      this.frame.append(shape("text", { x: left + 13, y: this.y(axis.place(ticks[i])) + 4, fill: "currentColor", "font-size": 10 }, content)));
  }
}
