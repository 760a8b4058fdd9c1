const SVG = "http://www.w3.org/2000/svg";

function filled(node, attributes, children) {
  for (const [name, given] of Object.entries(attributes)) node.setAttribute(name, given);
  node.append(...children);
  return node;
}

// Elements are made of names and texts, never of markup: names of inputs cannot become elements.
const element = (name, attributes = {}, ...children) => filled(document.createElement(name), attributes, children);
const shape = (name, attributes = {}, ...children) =>
  filled(document.createElementNS(SVG, name), attributes, children);

function button(label, act, attributes = {}) {
  const made = element("button", { type: "button", ...attributes }, label);
  made.addEventListener("click", act);
  return made;
}

// The beginning and the end of a name.
function short(name, most = 22) {
  const end = Math.floor(most / 3);
  return name.length > most ? `${name.slice(0, most - 1 - end)}…${name.slice(-end)}` : name;
}

// The texts of the ticks of an axis: powers of ten for all of them, or for none.
function tickTexts(ticks) {
  const sizes = ticks.map(Math.abs).filter((size) => size > 0);
  const powers = Math.min(...sizes) < 1e-3 || Math.max(...sizes) >= 1e6;
  return ticks.map((tick) => (powers && tick !== 0 ? tick.toExponential().replace("e+", "e") : String(tick)));
}

function show(x, digits = 5) {
  if (x === null || !Number.isFinite(x)) return "–";
  const size = Math.abs(x);
  return size !== 0 && (size < 1e-4 || size >= 1e7) ? Number(x.toPrecision(digits - 1)).toExponential() : String(Number(x.toPrecision(digits)));
}
