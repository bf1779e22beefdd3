// Dark and light, tables that sort, charts on demand, the search. Every page works without.
"use strict";

const sandglass = {
  charts: {}, found: [],
  chart(name, specification, columns) {
    const rows = ([key, of]) => [key, Array.isArray(of) ? of : rowsOf(of)];
    this.charts[name] = { ...specification, datasets: Object.fromEntries(Object.entries(columns).map(rows)) };
  },
  items(found) { this.found = found; },
  // Numbers in [0, 1) that repeat with the seed, for what a page draws: mulberry32.
  random: (seed) => () => {
    seed = (seed + 0x6D2B79F5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  },
};

// Of a table by columns, as a script of a chart has it: values, or the different ones and the place of each among them.
function rowsOf(columns) {
  const listed = Object.entries(columns).map(([name, [of, at]]) => [name, at ? at.map((place) => of[place]) : of]);
  return listed[0][1].map((_, row) => Object.fromEntries(listed.map(([name, values]) => [name, values[row]])));
}

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

// What the site has no file of: a picture of pixels, and the specification, which pages draw from. Made when asked for.
function addSaved(place, suffix, words, address) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = words;
  button.addEventListener("click", async () => {
    const link = document.createElement("a");
    const name = place.closest("figure").querySelector("[data-chart]").dataset.chart;
    link.href = await address(name);
    link.download = `${name.split("/").pop()}.${suffix}`;
    link.click();
    button.dataset.saved = link.download;
  });
  place.append(", ", button);
}

function addSavedFiles(place, view) {
  addSaved(place, "png", "PNG", async () => (await view()).toImageURL("png", 2));
  addSaved(place, "vl.json", "Vega-Lite", async (name) => {
    await load(`${name}.js`);
    const text = JSON.stringify(sandglass.charts[name]);
    return URL.createObjectURL(new Blob([text], { type: "application/json" }));
  });
}

// --- the search: words by their beginnings, spelt British or American, one letter wrong; numbers whole ---

const PAUSE = 250;  // ms without a letter until the query stands in the address
const SHOWN = 50, TYPO_FROM = 5; // letters of a word that may have one wrong
const SAME = { positional: "position", encoding: "code", attend: "attention", generalise: "generalize" };

function stem(word) {
  if (/\d/.test(word)) return word;
  const american = word.replace(/isation/, "ization").replace(/is(e|ed|es|ing|er)$/, "iz$1").replace(/our(s|ed|ing)?$/, "or$1");
  const one = american.length > 3 ? american.replace(/ies$/, "y").replace(/([^sui])s$/, "$1") : american;
  return SAME[one] ?? one;
}

function tokens(text) {
  const plain = text.toLowerCase().normalize("NFKD").replace(/\p{M}/gu, "").replaceAll("−", "-");
  return (plain.match(/\d+(?:\.\d+)?|[\p{L}\d]+/gu) ?? []).map(stem);
}

// Whether one letter added, left out, changed or swapped with its neighbour makes a of b.
function isNear(a, b) {
  if (Math.abs(a.length - b.length) > 1) return false;
  let i = 0;
  while (i < a.length && a[i] === b[i]) i += 1;
  const [c, d] = [a.slice(i), b.slice(i)];
  return c.slice(1) === d.slice(1) || c === d.slice(1) || c.slice(1) === d
    || (c[0] === d[1] && c[1] === d[0] && c.slice(2) === d.slice(2));
}

// Of each item by number the words of its title and all its words; of each word the items that have it.
function indexed(items) {
  const index = new Map();
  const titles = items.map((item, number) => {
    const title = new Set(tokens(item.title));
    for (const word of [...title, ...tokens(`${item.words} ${item.study} ${item.kind}`)]) {
      if (!index.has(word)) index.set(word, new Set());
      index.get(word).add(number);
    }
    return title;
  });
  return { index, titles };
}

// The words of the index that a word of the query stands for, with what each is worth.
function meant(word, index) {
  if (/^\d/.test(word)) return index.has(word) ? [[word, 3]] : [];
  const known = [...index.keys()];
  const begun = known.filter((each) => each.startsWith(word)).map((each) => [each, each === word ? 3 : 2]);
  if (begun.length || word.length < TYPO_FROM) return begun;
  return known.filter((each) => isNear(word, each) || isNear(word, each.slice(0, word.length))).map((each) => [each, 1]);
}

function search(items, query, verdicts) {
  const { index, titles } = sandglass.index ??= indexed(items);
  const isWanted = (item) => !verdicts.length || verdicts.includes(item.verdict);
  let scores = new Map(items.map((_, number) => [number, 0]));
  for (const word of tokens(query)) {
    const found = new Map();
    for (const [each, worth] of meant(word, index)) {
      for (const number of index.get(each)) {
        const score = worth * (titles[number].has(each) ? 4 : 1);
        if (scores.has(number)) found.set(number, Math.max(found.get(number) ?? 0, score));
      }
    }
    scores = new Map([...found].map(([number, score]) => [number, scores.get(number) + score]));
  }
  return [...scores].filter(([number]) => isWanted(items[number])).sort(([i, a], [j, b]) => b - a || i - j)
    .map(([number]) => items[number]);
}

function line(item) {
  const row = document.createElement("li"), link = document.createElement("a");
  const about = document.createElement("span");
  link.href = item.address;
  link.textContent = item.title;
  about.className = "note";
  about.textContent = [item.kind, item.study && `study ${item.study}`].filter(Boolean).join(", ");
  row.append(link, " ", about);
  if (item.verdict) {
    const badge = document.createElement("span");
    badge.className = `badge ${item.verdict.replaceAll(" ", "-")}`;
    badge.textContent = item.verdict;
    row.append(" ", badge);
  }
  return row;
}

// What is asked for stands in the address, so that it can be sent to others and Back finds it again.
function asked() {
  const parts = new URLSearchParams(/^#(q|v)=/.test(location.hash) ? location.hash.slice(1) : "");
  return { query: parts.get("q") ?? "", verdicts: (parts.get("v") ?? "").split(",").filter(Boolean) };
}

function address(query, verdicts) {
  const parts = new URLSearchParams();
  if (query.trim()) parts.set("q", query.trim());
  if (verdicts.length) parts.set("v", verdicts.join(","));
  return `${parts}` ? `#${parts}` : "";
}

function addSearch(form) {
  const query = form.querySelector("#query"), boxes = [...form.querySelectorAll("[name=verdict]")];
  const list = form.querySelector("#found"), count = form.querySelector("#count");
  const show = async () => {
    const verdicts = boxes.filter((box) => box.checked).map((box) => box.value);
    document.querySelectorAll("[data-verdict]").forEach((chip) => {
      chip.hidden = verdicts.length > 0 && !verdicts.includes(chip.dataset.verdict);
    });
    // Who asks for a verdict sees the claims that have it; else they are as the reader left them.
    if (verdicts.length) document.querySelectorAll("details:has([data-verdict])").forEach((box) => { box.open = true; });
    await load("search.js");
    const isAsked = query.value.trim() !== "" || verdicts.length > 0;
    const items = isAsked ? search(sandglass.found, query.value, verdicts) : [];
    list.replaceChildren(...items.slice(0, SHOWN).map(line));
    const more = items.length > SHOWN ? `, the first ${SHOWN} of them here` : "";
    count.textContent = isAsked ? `${items.length || "nothing"} found${more}` : "";
  };
  const restore = () => {
    const wanted = asked();
    if (!wanted.query && !wanted.verdicts.length) return;
    query.value = wanted.query;
    boxes.forEach((box) => { box.checked = wanted.verdicts.includes(box.value); });
    show().then(() => form.scrollIntoView()).catch(console.error);
  };
  const keep = () => {
    const verdicts = boxes.filter((box) => box.checked).map((box) => box.value);
    history.replaceState(null, "", address(query.value, verdicts) || location.pathname);
  };
  let pause;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => {
    clearTimeout(pause);
    pause = setTimeout(() => { pause = 0; keep(); }, PAUSE);  // not at each letter: browsers refuse more than 200 changes in 30 s
    show().catch(console.error);
  });
  addEventListener("pagehide", () => { if (pause) keep(); });
  form.hidden = false;
  addEventListener("hashchange", restore);
  addEventListener("pageshow", restore);
}

// Every page has a box that leads to the search of the overview.
function addSearchBox() {
  const form = document.createElement("form"), box = document.createElement("input");
  form.id = "find";
  form.setAttribute("role", "search");
  box.type = "search";
  box.placeholder = "Search";
  box.setAttribute("aria-label", "Search all studies");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    location.href = `${document.body.dataset.root}index.html${address(box.value, [])}`;
  });
  form.append(box);
  document.querySelector("header.site nav").append(form);
}

// --- of many sections or rows those of the studies that are ticked; of none ticked all ---

function addFilter(box) {
  const choices = [...box.querySelectorAll("input")];
  const show = () => {
    const wanted = choices.filter((choice) => choice.checked).map((choice) => choice.value);
    document.querySelectorAll(box.dataset.filters).forEach((each) => {
      each.hidden = wanted.length > 0 && !wanted.includes(each.dataset.study);
    });
  };
  box.addEventListener("input", show);
  show(); // boxes that the browser kept ticked
}

// --- what is folded opens where a link leads into it or to what it belongs to ---

function openTarget() {
  const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  const folded = [...target.querySelectorAll(":scope > details")];
  for (let box = target.closest("details"); box; box = box.parentElement.closest("details")) folded.push(box);
  if (folded.every((box) => box.open)) return;
  folded.forEach((box) => { box.open = true; });
  target.scrollIntoView();
}

// --- a word of a study shows its explanation when it is pointed at or tabbed to; without a script its link leads there ---

function addExplanations(terms) {
  if (!terms.length) return;
  const box = document.createElement("div");
  box.id = "explanation";
  box.hidden = true;
  box.setAttribute("aria-hidden", "true"); // read out by aria-describedby of the word
  document.body.append(box);
  let shown = null, leaving;
  const hide = () => { box.hidden = true; shown = null; };
  const leave = () => { leaving = setTimeout(hide, 150); }; // time to move onto the explanation
  const show = (term) => {
    clearTimeout(leaving);
    const text = document.getElementById(term.hash.slice(1));
    if (!text || shown === term) return;
    shown = term;
    box.replaceChildren(...[...text.cloneNode(true).childNodes]);
    box.querySelectorAll("a").forEach((link) => link.replaceWith(...link.childNodes));
    place();
  };
  const place = () => {
    if (!shown) return;
    box.hidden = false;
    const at = shown.getClientRects()[0], own = box.getBoundingClientRect();
    const left = Math.max(8, Math.min(at.left, document.documentElement.clientWidth - own.width - 8));
    const above = at.top - own.height - 6;
    box.style.left = `${left}px`;
    box.style.top = `${above > 8 ? above : at.bottom + 6}px`;
  };
  terms.forEach((term) => {
    term.addEventListener("pointerenter", () => show(term));
    term.addEventListener("pointerleave", leave);
    term.addEventListener("focus", () => show(term));
    term.addEventListener("blur", hide);
    term.addEventListener("click", (event) => { if (event.pointerType === "touch") event.preventDefault(); });
  });
  box.addEventListener("pointerenter", () => clearTimeout(leaving));
  box.addEventListener("pointerleave", leave);
  addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
  addEventListener("scroll", place, { passive: true }); // to tab to a word may scroll
}

document.addEventListener("DOMContentLoaded", () => {
  if (!document.querySelector("form#search")) addSearchBox();
  addThemeButton();
  openTarget();
  addEventListener("hashchange", openTarget);
  document.querySelectorAll("table.sortable").forEach(makeSortable);
  document.querySelectorAll("form#search").forEach(addSearch);
  document.querySelectorAll("[data-filters]").forEach(addFilter);
  document.querySelectorAll(".toc details").forEach(foldContents);
  addExplanations([...document.querySelectorAll("a.term")]);
  addEventListener("click", (event) => { // to where one is already: no change of the address
    if (event.target.closest?.('a[href^="#"]')?.hash === location.hash) openTarget();
  });
  // Not before somebody points at it or tabs to it: who only reads loads neither Vega nor the data of the charts.
  document.querySelectorAll("[data-chart]").forEach((box) => {
    let view;
    const begin = () => view ??= draw(box);
    const show = () => begin().catch(console.error);
    box.addEventListener("pointerenter", show, { once: true });
    box.addEventListener("focusin", show, { once: true });
    box.closest("figure").querySelectorAll(".saved").forEach((place) => addSavedFiles(place, begin));
  });
});
