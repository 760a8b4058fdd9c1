"use strict";

const all = (selector, root = document) => [...root.querySelectorAll(selector)];

// The theme: the system's until the reader chooses; choosing the system's again forgets the choice.
{
  const key = "nurf-report-theme";
  const root = document.documentElement;
  const button = document.querySelector(".theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const preferred = () => (system.matches ? "dark" : "light");
  const current = () => root.dataset.theme ?? preferred();
  const show = () => button.setAttribute("aria-pressed", String(current() === "dark"));
  button.addEventListener("click", () => {
    const theme = current() === "dark" ? "light" : "dark";
    const own = theme !== preferred();
    if (own) root.dataset.theme = theme;
    else delete root.dataset.theme;
    try {
      if (own) localStorage.setItem(key, theme);
      else localStorage.removeItem(key);
    } catch { /* no storage: the choice lasts as long as the page */ }
    show();
  });
  system.addEventListener("change", show);
  show();
}

// The contents: folded on narrow screens; the entry of the section in view is marked.
{
  const contents = document.querySelector(".contents");
  const wide = matchMedia("(min-width: 68rem)");
  wide.addEventListener("change", () => { contents.open = wide.matches; });
  const links = new Map(all("a", contents).map((link) => [decodeURIComponent(link.hash.slice(1)), link]));
  contents.addEventListener("click", (event) => {
    if (event.target.closest("a") && !wide.matches) contents.open = false;
  });
  const inView = new Set();
  const sections = all("main > section");
  const observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) inView[isIntersecting ? "add" : "delete"](target);
    const first = sections.find((section) => inView.has(section));
    if (!first) return;
    for (const [id, link] of links) {
      if (id === first.id) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }, { rootMargin: "-15% 0px -60% 0px" });
  for (const section of sections) observer.observe(section);
}

// The checklist: all claims, or those with one outcome.
{
  const buttons = all(".choices button");
  const claims = all(".claims .claim");
  for (const button of buttons) {
    button.addEventListener("click", () => {
      const { verdict } = button.dataset;
      for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
      for (const claim of claims) claim.hidden = verdict !== "" && claim.dataset.verdict !== verdict;
      document.querySelector(".nothing").hidden = claims.some((claim) => !claim.hidden);
    });
  }
}

// Tables: sorted by a click on a header, filtered by case and method.
{
  const collator = new Intl.Collator("en", { numeric: true });
  const sortBy = (table, header) => {
    const descending = header.getAttribute("aria-sort") === "ascending";
    const sign = descending ? -1 : 1;
    const column = header.cellIndex;
    const numeric = header.dataset.type === "number";
    const read = (row) => {
      const cell = row.cells[column];
      return numeric ? Number(cell.dataset.value) : cell.textContent;
    };
    const empty = (value) => value === "";
    const compare = (a, b) => {
      if (empty(a) || empty(b)) return empty(a) - empty(b); // last, up and down
      return sign * (numeric ? a - b || 0 : collator.compare(a, b));
    };
    const keyed = [...table.tBodies[0].rows].map((row) => [read(row), row]);
    keyed.sort(([a], [b]) => compare(a, b));
    table.tBodies[0].append(...keyed.map(([, row]) => row));
    for (const other of all("th[aria-sort]", table)) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", descending ? "descending" : "ascending");
  };
  for (const box of all(".comparisons")) {
    const table = box.querySelector("table");
    const rows = [...table.tBodies[0].rows];
    const filters = all("[data-filter]", box);
    for (const header of all("th", table)) {
      header.querySelector(".sort").addEventListener("click", () => sortBy(table, header));
    }
    const filter = () => {
      for (const row of rows) {
        row.hidden = filters.some(({ value, dataset }) => value !== "" && row.dataset[dataset.filter] !== value);
      }
      const shown = rows.filter((row) => !row.hidden).length;
      box.querySelector(".shown").textContent = `${shown} of ${rows.length} rows`;
    };
    for (const select of filters) select.addEventListener("change", filter);
    if (filters.some(({ value }) => value !== "")) filter(); // some browsers keep the choice over a reload
  }
}

// The viewer: a modal dialog, so that Escape and the return of the focus are the browser's.
{
  const viewer = document.querySelector(".viewer");
  const pictures = all(".picture");
  const stage = viewer.querySelector(".stage");
  let place = 0;
  const show = (index) => {
    place = (index + pictures.length) % pictures.length;
    const source = pictures[place].querySelector("img");
    const image = stage.querySelector("img");
    image.src = source.src;
    image.alt = source.alt;
    stage.scrollTo(0, 0);
    viewer.querySelector("#viewer-title").textContent = source.alt;
    viewer.querySelector(".viewer-place").textContent = `${place + 1} of ${pictures.length}`;
    viewer.querySelector(".viewer-caption").textContent =
      pictures[place].closest("figure").querySelector("figcaption").textContent;
  };
  pictures.forEach((picture, index) => picture.addEventListener("click", () => {
    show(index);
    viewer.showModal();
  }));
  viewer.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    show(place + step);
  });
  viewer.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button?.dataset.move) show(place + Number(button.dataset.move));
    else if (button || event.target === viewer) viewer.close(); // the dialog itself is hit only on its backdrop
  });
}

// Paper cannot unfold: print with everything open.
{
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = all("details.comparisons:not([open])");
    for (const details of folded) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of folded) details.open = false;
  });
}
