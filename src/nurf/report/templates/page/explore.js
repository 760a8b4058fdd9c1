const at = (y, k) => (several ? y[k] : y);

// The band of one output: 1.645 standard deviations, or estimated errors if those are not in the page.
function band(x, k) {
  if (hasStd) return several ? interval(x)[k] : interval(x);
  const { error } = DATA.outputs[k], y = at(value(x), k);
  return error === null ? [null, null] : [y - 1.645 * error, y + 1.645 * error];
}

// The axis of an output over the values of the samples and others, and bands: on a logarithmic axis, bands that reach
// zero end a little below the values, as in the slices of nurf.plots.
function outputAxis(k, others, bands = []) {
  const { low, high, kind, unit } = DATA.outputs[k], floor = kind === "log" ? low / 3 : -Infinity;
  const seen = [...others, ...bands.map((y) => Math.max(y, floor))].filter((y) => Number.isFinite(y) && (kind !== "log" || y > 0));
  return { kind, unit, low: seen.reduce((a, b) => Math.min(a, b), low), high: seen.reduce((a, b) => Math.max(a, b), high) };
}

function aboutBands() {
  if (hasStd) return "Bands extend 1.645 standard deviations of a new measurement to both sides, and contain nine of ten values. ";
  if (DATA.outputs.some(({ error }) => error === null)) return "There are too few samples for bands. ";
  return "Bands extend 1.645 estimated errors to both sides, the same everywhere, as the standard deviation takes too much memory for a page. ";
}

let newest = 0;

// Work in pieces of a few milliseconds, given up when newer work begins.
function work(steps, done = () => {}) {
  const mine = ++newest;
  const go = () => {
    const end = performance.now() + 12;
    while (mine === newest) {
      const { done: finished, value: result } = steps.next();
      if (finished) return done(result);
      if (performance.now() > end) return setTimeout(go);
    }
  };
  go();
}

function explore(section) {
  const point = DATA.inputs.map(({ start }) => start);
  let output = 0;
  const ends = DATA.outputs.map(() => []); // of the bands that were drawn last
  const status = element("p", { class: "status quiet", role: "status" });
  const table = element("table"), code = element("pre", { class: "code", tabindex: 0 });
  const controls = DATA.inputs.map(({ name }, j) => control(name, j));
  const slices = DATA.shown.map((j) => new Slice(j, moved));
  const map = DATA.inputs.length > 1 ? new HeatMap(moved) : null;

  function control(name, j) {
    const slider = element("input", { type: "range", min: 0, max: 1000, step: 1, id: `input-${j}` });
    const field = element("input", { type: "number", step: "any", "aria-label": `${name}: number` });
    slider.addEventListener("input", () => moved([[j, INPUT_AXES[j].at(slider.value / 1000)]]));
    field.addEventListener("input", () => field.value !== "" && moved([[j, Number(field.value)]], field));
    field.addEventListener("change", () => refreshControls());
    return { slider, field, row: element("div", { class: "control" }, element("label", { for: slider.id, title: name }, name), slider, field) };
  }

  function moved(changes, source) {
    for (const [j, x] of changes) point[j] = x;
    status.textContent = "";
    refresh(source);
  }

  function refreshControls(source) {
    controls.forEach(({ slider, field }, j) => {
      slider.value = Math.round(1000 * INPUT_AXES[j].place(point[j]));
      slider.setAttribute("aria-valuetext", show(point[j]));
      if (field !== source) field.value = Number(point[j].toPrecision(5));
    });
  }

  function refresh(source) {
    refreshControls(source);
    try {
      value(point);
    } catch (error) {
      status.textContent = error.message;
      return;
    }
    const outside = DATA.inputs.filter(({ low, high }, j) => point[j] < low || point[j] > high).map(({ name }) => short(name));
    if (outside.length) status.textContent = `Outside the range of the samples: ${outside.join(", ")}.`;
    table.replaceChildren(...resultRows());
    code.textContent = python();
    work(redraw());
  }

  function resultRows() {
    const [y, g] = valueAndGradient(point).map((each) => (several ? each : [each]));
    const bands = y.map((_, k) => band(point, k));
    const row = (label, numbers) => element("tr", {}, element("th", { scope: "row" }, label), ...numbers.map((x) => element("td", { class: "number" }, show(x, 6))));
    const head = element("tr", {}, element("td"), ...DATA.outputs.map(({ name }) => element("th", { scope: "col", class: "number" }, name)));
    const slopes = DATA.inputs.map(({ name }, j) => row(`∂/∂ ${name}`, g.map((each) => each[j])));
    return [
      element("thead", {}, head),
      element("tbody", {}, row("value", y), row("90% band, low", bands.map(([low]) => low)), row("90% band, high", bands.map(([, high]) => high)), ...slopes),
    ];
  }

  function* redraw() {
    const values = [];
    for (const slice of slices) {
      values.push(...slice.values(point, output));
      yield;
    }
    const draw = () => {
      const up = new Axis(outputAxis(output, values, ends[output])).padded();
      for (const slice of slices) slice.draw(point, output, up);
      return up;
    };
    draw();
    yield;
    if (map) yield* map.draw(point, output);
    const found = [];
    for (const slice of slices) found.push(...(yield* slice.bands(point, output)));
    ends[output] = found;
    const up = draw();
    for (const slice of slices) slice.drawBand(up);
    section.dataset.drawn = String(Number(section.dataset.drawn ?? 0) + 1);
  }

  function find(sign) {
    const k = output, word = sign > 0 ? "Minimum" : "Maximum", { name } = DATA.outputs[k];
    status.textContent = `Searching for the ${word.toLowerCase()} of ${name} …`;
    work(optimum([...point], k, sign), ({ x, value: found, starts, close }) => {
      moved(x.map((number, j) => [j, number]));
      const [low, high] = band(x, k);
      const sure = low === null ? "" : `, 90% band ${show(low)} to ${show(high)}`;
      status.textContent = `${word} of ${name} in the range of the samples: ${show(found, 6)}${sure}. ${close} of ${starts} searches ended there.`;
    });
  }

  function python() {
    const text = JSON.stringify, numbers = `[[${point.map((x) => (Object.is(x, -0) ? 0 : x)).join(", ")}]]`;
    const load = `model = nurf.load(${text(DATA.title)})`;
    const lines = DATA.frame
      ? ["import nurf", "import pandas as pd", "", load, `X = pd.DataFrame(${numbers}, columns=${text(DATA.inputs.map(({ name }) => name))})`]
      : ["import nurf", "", load, `X = ${numbers}`];
    return [...lines, "model.predict(X, return_std=True)", "model.predict_gradient(X)"].join("\n");
  }

  async function copy() {
    try {
      await navigator.clipboard.writeText(python());
      status.textContent = "Copied.";
    } catch {
      getSelection().selectAllChildren(code);
      status.textContent = "The browser does not let the page copy: the code is selected, press Ctrl+C.";
    }
    code.parentElement.open = true;
  }

  function saveSlices() {
    const names = DATA.inputs.map(({ name }) => name), { name } = DATA.outputs[output];
    const rows = slices.flatMap((slice) => slice.along(point, POINTS).map(([, x]) => [names[slice.j], ...x, at(value(x), output), ...band(x, output)]));
    saveText("slices.csv", csv([["along", ...names, name, `${name} low`, `${name} high`], ...rows]), "text/csv");
  }

  function choice(label, options, chosen, change) {
    const select = element("select", {}, ...options.map((name, i) => element("option", { value: i }, name)));
    select.value = chosen;
    select.addEventListener("change", () => change(Number(select.value)));
    return element("label", { class: "choice" }, label, select);
  }

  const names = DATA.inputs.map(({ name }) => name), outputNames = DATA.outputs.map(({ name }) => name);
  const start = () => moved(DATA.inputs.map((each, j) => [j, each.start]));
  const buttons = element("div", { class: "buttons" });
  if (outputNames.length > 1) buttons.append(choice("Output", outputNames, 0, (k) => ((output = k), refresh())));
  buttons.append(button("Find the minimum", () => find(1)), button("Find the maximum", () => find(-1)), button("Mean of the samples", start));
  buttons.append(button("Copy as Python", copy), button("Slices as CSV", saveSlices));
  const left = element("div", { class: "controls", role: "group", "aria-label": "Inputs" }, ...controls.map(({ row }) => row));
  const right = element("div", { class: "scroll results" }, table);
  section.append(element("div", { class: "explore" }, left, element("div", {}, right)), buttons, status);
  section.append(element("details", {}, element("summary", {}, "Python"), code));
  const pictures = element("div", { class: "pictures" }, ...slices.map(({ figure }) => element("div", {}, figure)));
  if (map) {
    map.pair = DATA.pair;
    const set = (i) => (j) => ((map.pair = map.pair.map((other, l) => (l === i ? j : other === j ? map.pair[i] : other))), again());
    const again = () => (choices.replaceChildren(...both()), refresh());
    const both = () => ["Across", "Up"].map((label, i) => choice(label, names, map.pair[i], set(i)));
    const choices = element("div", { class: "buttons" }, ...both());
    pictures.append(element("div", {}, map.figure, choices));
  }
  section.append(pictures);
  document.getElementById("bands").textContent = aboutBands();
  section.hidden = false;
  document.querySelector('nav a[href="#explore"]').hidden = false;
  refresh();
}
