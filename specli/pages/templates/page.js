"use strict";
// One stop of the Tab key for each table of rounds, arrow keys within it; facts of the token that
// has the focus or the pointer.
const tip = document.getElementById("tip");
const tokensOf = (row) => [...row.querySelectorAll(".tok")];

function show(token) {
  tip.replaceChildren();
  const head = document.createElement("div");
  head.append(token.children[1].textContent, token.querySelector("bdi").cloneNode(true));
  tip.append(head);
  for (const [name, value] of [["drafter", token.dataset.q], ["target", token.dataset.p]]) {
    if (value === undefined) continue;
    const meter = document.createElement("div"), bar = document.createElement("span");
    meter.className = "meter";
    bar.style.setProperty("--v", value);
    meter.append(name, bar);
    tip.append(meter);
  }
  const facts = document.createElement("ul");
  for (const fact of token.querySelector(".more").textContent.split(", ").slice(1)) {
    facts.append(Object.assign(document.createElement("li"), { textContent: fact }));
  }
  tip.append(facts);
  tip.hidden = false;
  const at = token.getBoundingClientRect(), box = tip.getBoundingClientRect();
  const width = document.documentElement.clientWidth;
  const below = at.bottom + box.height + 8 < window.innerHeight;
  tip.style.left = `${scrollX + Math.max(8, Math.min(at.left, width - box.width - 8))}px`;
  tip.style.top = `${scrollY + (below ? at.bottom + 6 : at.top - box.height - 6)}px`;
}

function hide() {
  const held = document.activeElement;
  if (held && held.matches("td.tok")) show(held);
  else tip.hidden = true;
}

function go(token) {
  if (!token) return;
  token.scrollIntoView({ block: "nearest" });
  token.focus({ preventScroll: true });
}

function target(event, token) {
  const row = token.parentElement, rows = [...row.parentElement.children];
  const tokens = tokensOf(row), column = tokens.indexOf(token), at = rows.indexOf(row);
  const rowAt = (i) => tokensOf(rows[Math.max(0, Math.min(rows.length - 1, i))]);
  const across = (i) => { const some = rowAt(i); return some[Math.min(column, some.length - 1)]; };
  const rejected = () => [...row.parentElement.querySelectorAll(".rejected")];
  const follows = (other) => token.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING;
  switch (event.key) {
    case "ArrowRight": return tokens[column + 1] || (at + 1 < rows.length ? rowAt(at + 1)[0] : null);
    case "ArrowLeft": return tokens[column - 1] || (at ? rowAt(at - 1).at(-1) : null);
    case "ArrowDown": return across(at + 1);
    case "ArrowUp": return across(at - 1);
    case "PageDown": return across(at + 10);
    case "PageUp": return across(at - 10);
    case "Home": return event.ctrlKey ? rowAt(0)[0] : tokens[0];
    case "End": return event.ctrlKey ? rowAt(rows.length - 1).at(-1) : tokens.at(-1);
    case "n": return rejected().find(follows);
    case "p": return rejected().reverse().find((other) => other !== token && !follows(other));
    default: return undefined;
  }
}

for (const table of document.querySelectorAll(".rounds")) {
  const first = table.querySelector("td.tok");
  if (first) first.tabIndex = 0;
  table.addEventListener("focusin", (event) => {
    const token = event.target.closest("td.tok");
    if (!token) return;
    table.querySelector('td.tok[tabindex="0"]').tabIndex = -1;
    token.tabIndex = 0;
    show(token);
  });
  table.addEventListener("focusout", () => { tip.hidden = true; });
  table.addEventListener("mouseover", (event) => {
    const token = event.target.closest("td.tok");
    if (token) show(token); else hide();
  });
  table.addEventListener("mouseleave", hide);
  table.addEventListener("keydown", (event) => {
    const token = event.target.closest("td.tok");
    if (!token || event.altKey || event.metaKey || (event.ctrlKey && !/^(Home|End)$/.test(event.key))) return;
    if (event.key === "Escape") { tip.hidden = true; return; }
    const next = target(event, token);
    if (next === undefined) return;
    event.preventDefault();
    go(next);
  });
}

for (const section of document.querySelectorAll("section")) {
  const rows = section.querySelectorAll(".rounds tbody tr");
  const toRow = (row) => {
    if (!row) return;
    row.scrollIntoView({ block: "center" });
    go(tokensOf(row)[0]);
  };
  section.querySelector(".answer").addEventListener("click", (event) => {
    const piece = event.target.closest("[data-r]");
    if (piece && getSelection().isCollapsed) toRow(rows[piece.dataset.r - 1]);
  });
  const chart = section.querySelector(".chart");
  chart.addEventListener("click", (event) => {
    const box = chart.getBoundingClientRect();
    const at = (event.clientX - box.left) / box.width * chart.dataset.total;
    toRow([...rows].filter((row) => row.dataset.s <= at).at(-1));
  });
}
