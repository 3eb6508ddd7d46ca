/** Sorts tables by a column: numbers first in descending, words in ascending order; the footer does not move. */
function valueOf(cell, numeric) {
  const text = cell.textContent.trim();
  if (!numeric) return text;
  const number = Number.parseFloat(text.replaceAll(",", "").replace("−", "-"));
  return Number.isNaN(number) ? Number.NEGATIVE_INFINITY : number;
}

function sortBy(table, column, ascending) {
  const body = table.tBodies[0];
  const numeric = table.tHead.rows[0].cells[column].classList.contains("n");
  const rows = [...body.rows].map((row) => ({ row, value: valueOf(row.cells[column], numeric) }));
  const compare = numeric ? (a, b) => a.value - b.value : (a, b) => a.value.localeCompare(b.value);
  rows.sort((a, b) => (ascending ? compare(a, b) : compare(b, a)));
  body.append(...rows.map((each) => each.row));
}

function sortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const first = head.classList.contains("n") && head.textContent !== "#" ? "descending" : "ascending";
      const other = first === "ascending" ? "descending" : "ascending";
      const order = head.getAttribute("aria-sort") === first ? other : first;
      for (const each of heads) each.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", order);
      sortBy(table, column, order === "ascending");
    });
  });
}

function tables() {
  document.querySelectorAll("table.sortable").forEach(sortable);
}
