// Cells that a spreadsheet would compute become texts.
function cell(text) {
  const number = text.trim() !== "" && Number.isFinite(Number(text));
  const safe = !number && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

const csv = (rows) => rows.map((row) => row.map((text) => cell(String(text))).join(",")).join("\r\n") + "\r\n";

function download(name, blob) {
  const url = URL.createObjectURL(blob);
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

const saveText = (name, text, type) => download(name, new Blob([text], { type: `${type};charset=utf-8` }));
const fileName = (label, suffix) => `${label.replace(/[^\p{L}\p{N}]+/gu, "_").slice(0, 60) || "report"}.${suffix}`;

// A picture that stands alone: colours of the page become numbers.
function alone(picture, ground) {
  const copy = picture.cloneNode(true), style = getComputedStyle(document.body);
  const [, , width, height] = picture.getAttribute("viewBox").split(/[ ,]+/).map(Number);
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.setAttribute("fill", "currentColor");
  copy.setAttribute("font-family", "system-ui, sans-serif");
  if (ground) copy.prepend(shape("rect", { width: "100%", height: "100%", fill: "var(--raised)" }));
  const text = new XMLSerializer().serializeToString(copy);
  const plain = text.replace(/var\((--[\w-]+)\)/g, (_, name) => style.getPropertyValue(name).trim());
  return { text: plain.replaceAll("currentColor", style.color), width, height };
}

async function savePng(picture, name) {
  const { text, width, height } = alone(picture, true), image = new Image(), scale = 1600 / width;
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = element("canvas", { width: 1600, height: Math.round(height * scale) });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => download(name, blob), "image/png");
}

function withDownloads(figure) {
  const picture = figure.querySelector("svg"), label = figure.getAttribute("aria-label");
  if (!picture) return;
  const svg = () => saveText(fileName(label, "svg"), alone(picture, false).text, "image/svg+xml");
  const png = () => savePng(picture, fileName(label, "png"));
  const tools = element("div", { class: "tools" });
  tools.append(button("SVG", svg, { "aria-label": `${label}: download as SVG` }));
  tools.append(button("PNG", png, { "aria-label": `${label}: download as PNG` }));
  const place = element("div");
  figure.replaceWith(place);
  place.append(figure, tools);
}

function withCsv(table) {
  const section = table.closest("section"), label = section?.querySelector("h2")?.textContent ?? "table";
  const rows = () => [...table.rows].map((row) => [...row.cells].map((each) => each.textContent));
  const save = () => saveText(fileName(label, "csv"), csv(rows()), "text/csv");
  table.parentElement.after(element("div", { class: "tools" }, button("CSV", save, { "aria-label": `${label}: download as CSV` })));
}
