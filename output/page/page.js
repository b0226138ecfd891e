"use strict";
const content = JSON.parse(document.getElementById("content").textContent);
const boxes = [...document.querySelectorAll("#legend [name=method]")];
const inTables = document.getElementById("in-tables");
const filter = document.getElementById("filter");
const views = [];

const chosen = () => boxes.filter((box) => box.checked).map((box) => Number(box.value));

function rowsOf(csv) {
  const [header, ...lines] = csv.trim().split("\n").map((line) => line.split(","));
  return lines.map((cells) => Object.fromEntries(header.map((name, i) => [name, cells[i] === "" ? null : Number(cells[i])])));
}

async function draw(place) {
  place.dataset.begun = "";
  const figure = content.figures[place.dataset.figure];
  const spec = structuredClone(content.charts[figure.chart]);
  const values = { labels: content.methods, shown: chosen(), names_width: Math.min(220, place.clientWidth * 0.4), ...figure.values };
  for (const parameter of spec.params) if (parameter.name in values) parameter.value = values[parameter.name];
  spec.height = figure.height;
  spec.datasets = { [figure.chart]: rowsOf(figure.data) };
  // Interpreted expressions need no eval, which the page's policy forbids.
  const drawn = await vegaEmbed(place, spec, { actions: false, renderer: "svg", config: content.config, ast: true });
  views.push(drawn.view);
  // Chosen while it was drawn.
  await show(drawn.view);
}

const show = (view) => view.signal("shown", chosen()).runAsync();

// Charts in a closed setting wait until it is opened.
async function drawAll() {
  const places = [...document.querySelectorAll(".chart:not([data-begun])")].filter((place) => !place.closest("details:not([open]), [hidden]"));
  const distance = (place) => Math.abs(place.getBoundingClientRect().top);
  places.sort((one, other) => distance(one) - distance(other));
  for (const place of places) {
    if ("begun" in place.dataset) continue;
    await draw(place);
    // The page stays usable meanwhile.
    await new Promise((resolve) => setTimeout(resolve));
  }
  document.body.dataset.drawn = views.length;
}

function choose(numbers) {
  for (const box of boxes) box.checked = numbers.includes(Number(box.value));
  showMethods();
}

function showMethods() {
  views.forEach(show);
  for (const row of document.querySelectorAll("tr[data-method]")) row.hidden = inTables.checked && !chosen().includes(Number(row.dataset.method));
}

const settings = () => [...document.querySelectorAll("details.part")];

function openSetting() {
  const setting = location.hash && document.querySelector(location.hash)?.closest("details");
  if (!setting) return;
  setting.open = true;
  setting.scrollIntoView();
}

// How many columns of a table are beyond the right edge.
function hint(box) {
  const edge = box.getBoundingClientRect().right;
  const hidden = [...box.querySelectorAll("thead th")].filter((cell) => cell.getBoundingClientRect().right > edge + 1).length;
  if (hidden) box.dataset.more = `${hidden} more column${hidden > 1 ? "s" : ""}: scroll to the right →`;
  else delete box.dataset.more;
}

function showSettings() {
  const words = filter.value.toLowerCase().split(/\s+/);
  for (const part of document.querySelectorAll("[data-setting]")) {
    const name = part.dataset.setting.toLowerCase();
    part.hidden = !words.every((word) => name.includes(word));
    if (filter.value.trim() && !part.hidden && part.matches("details")) part.open = true;
  }
  // Rows that lead to a setting.
  const links = [...document.querySelectorAll("tbody a[href^='#setting-']")];
  for (const link of links) link.closest("tr").hidden = document.querySelector(link.hash).closest(".part").hidden;
  const found = settings().filter((part) => !part.hidden).length;
  document.querySelector("output").textContent = filter.value.trim() ? `${found} of ${settings().length} settings, by: ${filter.value.trim()}` : "";
  // Charts take the width of what was hidden.
  window.dispatchEvent(new Event("resize"));
  drawAll();
}

function sort(header) {
  const body = header.closest("table").tBodies[0];
  const descending = header.getAttribute("aria-sort") === "ascending";
  const column = header.cellIndex;
  const keys = new Map([...body.rows].map((row) => [row, key(row.cells[column])]));
  const order = (one, other) => compare(keys.get(one), keys.get(other), descending ? -1 : 1);
  for (const other of header.parentElement.cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", descending ? "descending" : "ascending");
  body.append(...[...body.rows].sort(order));
}

function key(cell) {
  const text = cell.textContent;
  if (cell.matches("th, .words")) return text;
  // A number stands first, before its interval; digits are grouped by commas.
  const number = parseFloat(text.replace(/(\d),(?=\d{3})/g, "$1"));
  return Number.isNaN(number) ? (text === "–" ? null : text) : number;
}

function compare(one, other, sign) {
  // What is missing stands last either way.
  if (one === null || other === null) return (one === null) - (other === null);
  return sign * (typeof one === "number" && typeof other === "number" ? one - other : String(one).localeCompare(String(other), "en", { numeric: true }));
}

document.addEventListener("click", (event) => {
  const header = event.target.closest("thead th");
  if (header) sort(header);
  const choice = event.target.dataset.choice;
  if (choice) choose(choice === "all" ? boxes.map((box) => Number(box.value)) : content.shown);
  if (event.target.matches(".more")) event.target.setAttribute("aria-expanded", event.target.parentElement.classList.toggle("all"));
  const fold = event.target.dataset.fold;
  if (fold !== undefined) for (const part of settings()) part.open = fold === "open";
});
// A closed setting opens for a link to it and for print, and is drawn when it is seen.
for (const part of settings()) part.addEventListener("toggle", drawAll);
window.addEventListener("hashchange", openSetting);
window.addEventListener("beforeprint", () => document.querySelectorAll("details.part, details.definitions").forEach((part) => { part.open = true; }));
const watcher = new ResizeObserver((entries) => entries.forEach((entry) => hint(entry.target)));
for (const box of document.querySelectorAll(".wide")) {
  watcher.observe(box);
  box.addEventListener("scroll", () => hint(box), { passive: true });
}
openSetting();
for (const box of [...boxes, inTables]) box?.addEventListener("change", showMethods);
filter?.addEventListener("input", showSettings);
filter?.form.addEventListener("submit", (event) => event.preventDefault());
drawAll();
