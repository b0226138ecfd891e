"use strict";
// All pages work without this: here documents are checked while they are written, and states are shown as they change.

const WAIT = 500;
const COLUMNS = ["Where", "What stands there", "Rule"];

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
    contents.forEach((text, place) => {
      const cell = row.insertCell();
      cell.dataset.label = COLUMNS[place];
      const inside = document.createElement(place < 2 ? "code" : "span");
      inside.textContent = text;
      cell.append(inside);
      if (place) cell.className = "text";
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
    const asked = ++latest;
    if (!file.files.length && !text.value.trim()) {
      verdict.replaceChildren();
      return;
    }
    if (file.files.length && text.value.trim()) {
      say(verdict, "wrong", "Choose a file or paste a document, not both.");
      return;
    }
    say(verdict, "", "Checking …");
    let content, answer, found;
    try {
      content = file.files.length ? await file.files[0].arrayBuffer() : text.value;
    } catch {
      if (asked === latest) say(verdict, "wrong", "The file was changed or moved since it was chosen; choose it again.");
      return;
    }
    try {
      answer = await fetch(form.dataset.validate, { method: "POST", body: content, credentials: "same-origin" });
      found = await answer.json();
    } catch {
      if (asked === latest) say(verdict, "wrong", "The document cannot be checked: the portal does not answer.");
      return;
    }
    // An answer about a text that has been changed meanwhile.
    if (asked !== latest) return;
    if (!answer.ok) say(verdict, "wrong", found.error);
    else if (found.valid) say(verdict, "right", "Valid. It is not handed in yet.");
    else verdict.replaceChildren(listProblems(found.problems, Number(verdict.dataset.shown)));
  }

  function soon() {
    clearTimeout(timer);
    timer = setTimeout(check, WAIT);
  }

  // Browsers put back what was in a form that is gone back to; an example is in it from the beginning.
  window.addEventListener("pageshow", () => {
    if (!verdict.textContent.trim()) soon();
  });
  text.addEventListener("input", soon);
  file.addEventListener("change", soon);
  // Else browsers would not tell that the same file, changed meanwhile, is chosen again.
  file.addEventListener("click", () => {
    file.value = "";
  });
}

function states(live) {
  return [...live.querySelectorAll("[data-state]")].map((each) => each.dataset.state);
}

// Who reads by ear is told what has changed alone, and nobody loses the place at which they are.
function replace(live, next) {
  const before = new Set(states(live));
  const changed = states(next).filter((each) => !before.has(each));
  const places = "a, summary, [tabindex]";
  const place = [...live.querySelectorAll(places)].indexOf(document.activeElement);
  live.replaceChildren(...next.childNodes);
  if (place >= 0) live.querySelectorAll(places)[place]?.focus();
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
      // The next time it may answer.
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
