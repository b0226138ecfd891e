"use strict";
// All pages work without this script. It checks documents while they are written, and updates states as they change.

const WAIT = 500;
const COLUMNS = ["Where", "Value", "Rule"];

function listProblems(problems, most) {
  const parts = document.createDocumentFragment();
  const count = document.createElement("p");
  count.className = "wrong";
  count.textContent = `${problems.length} problem${problems.length === 1 ? "" : "s"}`;
  const table = document.createElement("table");
  table.className = "stacked";
  const head = table.createTHead().insertRow();
  for (const name of COLUMNS) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = name;
    head.append(cell);
  }
  const body = table.createTBody();
  for (const problem of problems.slice(0, most)) {
    const row = body.insertRow();
    const contents = [problem.pointer || "the document", problem.value, problem.rule];
    contents.forEach((text, index) => {
      const cell = row.insertCell();
      cell.dataset.label = COLUMNS[index];
      const inside = document.createElement(index < 2 ? "code" : "span");
      inside.textContent = text;
      cell.append(inside);
      if (index) cell.className = "text";
    });
  }
  const region = document.createElement("div");
  region.className = "wide";
  region.tabIndex = 0;
  region.setAttribute("role", "region");
  region.setAttribute("aria-label", "Problems");
  region.append(table);
  parts.append(count, region);
  if (problems.length > most) {
    const more = document.createElement("p");
    more.textContent = `and ${problems.length - most} more`;
    parts.append(more);
  }
  return parts;
}

function say(verdict, style, text) {
  const line = document.createElement("p");
  line.className = style;
  line.textContent = text;
  verdict.replaceChildren(line);
}

function watchForm(form) {
  const text = form.elements.namedItem("document");
  const file = form.elements.namedItem("file");
  const verdict = document.getElementById("verdict");
  let timer = 0;
  let latest = 0;

  async function check() {
    const number = ++latest;
    if (!file.files.length && !text.value.trim()) {
      verdict.replaceChildren();
      return;
    }
    if (file.files.length && text.value.trim()) {
      say(verdict, "wrong", "Choose a file or paste a document, not both.");
      return;
    }
    say(verdict, "", "Checking …");
    let content, answer, result;
    try {
      content = file.files.length ? await file.files[0].arrayBuffer() : text.value;
    } catch {
      if (number === latest) say(verdict, "wrong", "The file was changed or moved after you chose it. Choose it again.");
      return;
    }
    try {
      answer = await fetch(form.dataset.validate, { method: "POST", body: content, credentials: "same-origin" });
      result = await answer.json();
    } catch {
      if (number === latest) say(verdict, "wrong", "The document cannot be checked, because the portal does not answer.");
      return;
    }
    // This answer is about an earlier text.
    if (number !== latest) return;
    if (!answer.ok) say(verdict, "wrong", result.error);
    else if (result.valid) say(verdict, "right", `Valid. It is not submitted yet. ${result.remark}`);
    else verdict.replaceChildren(listProblems(result.problems, Number(verdict.dataset.shown)));
  }

  function soon() {
    clearTimeout(timer);
    timer = setTimeout(check, WAIT);
  }

  // Browsers restore the content of a form when the user goes back to it; an example is there from the beginning.
  window.addEventListener("pageshow", () => {
    if (!verdict.textContent.trim()) soon();
  });
  text.addEventListener("input", soon);
  file.addEventListener("change", soon);
  // Otherwise browsers would not report that the user chose the same file again after a change.
  file.addEventListener("click", () => {
    file.value = "";
  });
}

function states(live) {
  return [...live.querySelectorAll("[data-state]")].map((each) => each.dataset.state);
}

// Screen readers announce only the changes, and the focus stays.
function replace(live, next) {
  const before = new Set(states(live));
  const changed = states(next).filter((each) => !before.has(each));
  const focusable = "a, summary, [tabindex]";
  const index = [...live.querySelectorAll(focusable)].indexOf(document.activeElement);
  live.replaceChildren(...next.childNodes);
  if (index >= 0) live.querySelectorAll(focusable)[index]?.focus();
  if (changed.length) document.getElementById("said").textContent = changed.join(". ");
}

function watchState(live) {
  const seconds = Number(live.dataset.refresh);
  setTimeout(async () => {
    let next = null;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin" });
      if (answer.ok) next = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("live");
    } catch {
      // The next request may succeed.
    }
    if (next === null) {
      watchState(live);
      return;
    }
    if (next.innerHTML !== live.innerHTML) replace(live, next);
    if (next.dataset.refresh) watchState(live);
  }, seconds * 1000);
}

for (const form of document.querySelectorAll("form[data-validate]")) watchForm(form);
for (const live of document.querySelectorAll("[data-refresh]")) watchState(live);
