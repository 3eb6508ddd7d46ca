/** Hides the images of the table that do not have all words of the filter. */
function filter() {
  const field = document.getElementById("filter");
  const rows = [...document.querySelectorAll("#images table tbody")][0].rows;
  const texts = new Map([...rows].map((row) => [row, row.cells[0].textContent.toLowerCase()]));
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/);
    for (const [row, text] of texts) row.hidden = !words.every((word) => text.includes(word));
  });
  field.closest("p").hidden = texts.size < 10;
}

theme();
tables();
filter();
chooser(() => {});
