"use strict";
// Sorting of every table, and filtering of the one that a field names. The page is complete without it.
function compare(left, right) {
  const numbers = [Number(left), Number(right)];
  if (!numbers.some(Number.isNaN)) return numbers[0] - numbers[1];
  return left.localeCompare(right, "en", { numeric: true });
}

function sortBy(table, index) {
  const heads = Array.from(table.tHead.rows[0].cells);
  const descending = heads[index].ariaSort === "ascending";
  for (const head of heads) head.ariaSort = "none";
  heads[index].ariaSort = descending ? "descending" : "ascending";
  const value = (row) => row.cells[index].dataset.value ?? row.cells[index].textContent;
  const rows = Array.from(table.tBodies[0].rows);
  rows.sort((a, b) => {
    const missing = (value(a) === "") - (value(b) === "");
    return missing || (descending ? -1 : 1) * compare(value(a), value(b)); // what is missing stays last
  });
  table.tBodies[0].append(...rows);
}

function narrow(filter) {
  const rows = Array.from(document.getElementById(filter.dataset.table).tBodies[0].rows);
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
    shown += !row.hidden;
  }
  document.getElementById("count").textContent = `${shown} of ${rows.length}`;
}

for (const table of document.querySelectorAll("table")) {
  if (table.tBodies[0].rows.length < 2) continue;
  Array.from(table.tHead.rows[0].cells).forEach((head, index) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sortBy(table, index));
    head.append(button);
    head.ariaSort = "none";
  });
}
for (const filter of document.querySelectorAll("input[data-table]")) {
  filter.addEventListener("input", () => narrow(filter));
  narrow(filter);
}
