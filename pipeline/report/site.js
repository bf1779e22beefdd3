// Dark and light, tables that sort, charts on demand, the search of the overview. Every page works without.
"use strict";

const sandglass = {
  charts: {}, found: [],
  chart(name, specification) { this.charts[name] = specification; },
  items(found) { this.found = found; },
};

// --- dark and light: as the system says, until the reader says otherwise ---

const THEME = "sandglass-theme";
const remembered = (() => { try { return localStorage.getItem(THEME); } catch { return null; } })();
if (remembered) document.documentElement.dataset.theme = remembered;

function addThemeButton() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const button = document.createElement("button");
  const isDark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const show = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`);
  };
  button.type = "button";
  button.id = "theme";
  button.addEventListener("click", () => {
    const chosen = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = chosen;
    try { localStorage.setItem(THEME, chosen); } catch { /* a page from disk may have no storage */ }
    show();
  });
  system.addEventListener("change", show);
  show();
  document.querySelector("header.site nav").append(button);
}

// --- tables: a button in every header, three states as aria-sort says ---

function key(row, column) {
  const cell = row.cells[column];
  const text = (cell.dataset.sort ?? cell.textContent).trim();
  const number = Number(text.replaceAll("−", "-"));
  return text === "" ? null : Number.isNaN(number) ? text : number;
}

function compare(a, b) {
  if (a === null || b === null) return (a === null) - (b === null);
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

function makeSortable(table) {
  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((header, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    button.addEventListener("click", () => {
      const direction = header.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
      headers.forEach((other) => other.removeAttribute("aria-sort"));
      header.setAttribute("aria-sort", direction);
      const sign = direction === "ascending" ? 1 : -1;
      for (const body of table.tBodies) { // each below its own head
        const keyed = [...body.rows].filter((row) => row.className !== "head").map((row) => [key(row, column), row]);
        // What is empty stays last either way.
        keyed.sort(([a], [b]) => (a === null || b === null ? compare(a, b) : sign * compare(a, b)));
        body.append(...keyed.map(([, row]) => row));
      }
    });
  });
}

// --- contents: where they lie above the text they are folded, until somebody asks, and after a choice ---

function foldContents(box) {
  const narrow = matchMedia("(max-width: 79.99rem)");
  const fit = () => { box.open = !narrow.matches; };
  narrow.addEventListener("change", fit);
  box.addEventListener("click", (event) => { if (narrow.matches && event.target.closest("a")) box.open = false; });
  fit();
}

// --- charts: the image stays until the chart stands, and for good if that fails ---

const loading = {};

function load(source) {
  return loading[source] ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = document.body.dataset.root + source;
    script.onload = done;
    script.onerror = () => failed(new Error(`${source} cannot be loaded`));
    document.head.append(script);
  });
}

async function draw(box) {
  const name = box.dataset.chart, image = box.querySelector("img");
  await Promise.all([load("vega.js"), load(`${name}.js`)]);
  const chart = document.createElement("div");
  const refuse = () => Promise.reject(new Error("charts load nothing"));
  const { view } = await vegaEmbed(chart, sandglass.charts[name], {
    mode: "vega-lite", renderer: "svg", actions: false, loader: { load: refuse, sanitize: refuse },
  });
  const svg = chart.querySelector("svg");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", image.alt);
  image.replaceWith(chart);
  box.dataset.drawn = "";
  return view;
}

// A picture of pixels, drawn here when somebody asks for it: it takes no room on disk.
function addPictureLink(place, view) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "PNG";
  button.addEventListener("click", async () => {
    const link = document.createElement("a");
    link.href = await (await view()).toImageURL("png", 2);
    link.download = `${place.closest("figure").querySelector("[data-chart]").dataset.chart.split("/").pop()}.png`;
    link.click();
    button.dataset.saved = link.download;
  });
  place.append(", ", button);
}

// --- the search of the overview ---

const SHOWN = 50;

function plain(text) {
  return text.toLowerCase().normalize("NFKD").replace(/\p{M}/gu, "");
}

function rank(item, words) {
  const title = plain(item.title);
  return words.every((word) => title.includes(word)) ? 0 : 1;
}

function search(items, query, verdicts) {
  const words = plain(query).split(/\s+/).filter(Boolean);
  const wanted = items.filter((item) => {
    if (verdicts.length && !verdicts.includes(item.verdict)) return false;
    const text = plain(`${item.title} ${item.words} ${item.study} ${item.kind}`);
    return words.every((word) => text.includes(word));
  });
  return wanted.map((item, i) => [rank(item, words), i, item]).sort(([a, i], [b, j]) => a - b || i - j)
    .map(([, , item]) => item);
}

function line(item) {
  const row = document.createElement("li"), link = document.createElement("a");
  const about = document.createElement("span");
  link.href = item.address;
  link.textContent = item.title;
  about.className = "note";
  about.textContent = `${item.kind}, study ${item.study}`;
  row.append(link, " ", about);
  if (item.verdict) {
    const badge = document.createElement("span");
    badge.className = `badge ${item.verdict.replaceAll(" ", "-")}`;
    badge.textContent = item.verdict;
    row.append(" ", badge);
  }
  return row;
}

function addSearch(form) {
  const query = form.querySelector("#query"), boxes = [...form.querySelectorAll("[name=verdict]")];
  const list = form.querySelector("#found"), count = form.querySelector("#count");
  const show = async () => {
    const verdicts = boxes.filter((box) => box.checked).map((box) => box.value);
    document.querySelectorAll("[data-verdict]").forEach((chip) => {
      chip.hidden = verdicts.length > 0 && !verdicts.includes(chip.dataset.verdict);
    });
    await load("search.js");
    const asked = query.value.trim() !== "" || verdicts.length > 0;
    const items = asked ? search(sandglass.found, query.value, verdicts) : [];
    list.replaceChildren(...items.slice(0, SHOWN).map(line));
    const more = items.length > SHOWN ? `, the first ${SHOWN} of them here` : "";
    count.textContent = asked ? `${items.length || "nothing"} found${more}` : "";
  };
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => show().catch(console.error));
  form.hidden = false;
  if (query.value || boxes.some((box) => box.checked)) show().catch(console.error); // kept by the browser
}

document.addEventListener("DOMContentLoaded", () => {
  addThemeButton();
  document.querySelectorAll("table.sortable").forEach(makeSortable);
  document.querySelectorAll("form#search").forEach(addSearch);
  document.querySelectorAll(".toc details").forEach(foldContents);
  // Not before somebody points at it or tabs to it: who only reads loads neither Vega nor the data of the charts.
  document.querySelectorAll("[data-chart]").forEach((box) => {
    let view;
    const begin = () => view ??= draw(box);
    const show = () => begin().catch(console.error);
    box.addEventListener("pointerenter", show, { once: true });
    box.addEventListener("focusin", show, { once: true });
    box.closest("figure").querySelectorAll(".png").forEach((place) => addPictureLink(place, begin));
  });
});
