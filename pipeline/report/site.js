// Dark and light, tables that sort, charts that are loaded when they come into view. Every page works without.
"use strict";

const sandglass = { charts: {}, chart(name, specification) { this.charts[name] = specification; } };

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
      const body = table.tBodies[0];
      const keyed = [...body.rows].map((row) => [key(row, column), row]);
      // What is empty stays last either way.
      keyed.sort(([a], [b]) => (a === null || b === null ? compare(a, b) : sign * compare(a, b)));
      body.append(...keyed.map(([, row]) => row));
    });
  });
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
  await vegaEmbed(chart, sandglass.charts[name], {
    mode: "vega-lite", renderer: "svg", actions: false, loader: { load: refuse, sanitize: refuse },
  });
  const svg = chart.querySelector("svg");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", image.alt);
  image.replaceWith(chart);
  box.dataset.drawn = "";
}

document.addEventListener("DOMContentLoaded", () => {
  addThemeButton();
  document.querySelectorAll("table.sortable").forEach(makeSortable);
  // Not before somebody points at it or tabs to it: who only reads loads neither Vega nor the data of the charts.
  document.querySelectorAll("[data-chart]").forEach((box) => {
    const begin = () => {
      box.removeEventListener("pointerenter", begin);
      box.removeEventListener("focusin", begin);
      draw(box).catch(console.error);
    };
    box.addEventListener("pointerenter", begin);
    box.addEventListener("focusin", begin);
  });
});
