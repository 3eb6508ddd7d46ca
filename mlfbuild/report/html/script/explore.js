/** Plots the points of the table by two figures that are chosen, and joins the best of them. */
function plot() {
  const svg = document.querySelector("svg.scatter");
  if (!svg) return;
  const { width, height } = svg.viewBox.baseVal;
  const [across, down] = ["across", "down"].map((id) => document.getElementById(id));
  const points = [...svg.querySelectorAll("a")].map((link) => {
    const row = document.getElementById(link.getAttribute("href").slice(1));
    return { link, row, dot: link.querySelector("path") };
  });
  const say = (id, text) => { document.getElementById(id).textContent = text; };

  /** Places the points along one figure, and returns the texts of its ends. */
  const scale = (select, length, name) => {
    const column = select.selectedIndex;
    const numbers = points.map((point) => Number(point.row.dataset[select.value]));
    const [least, most] = [Math.min(...numbers), Math.max(...numbers)];
    const sign = select.selectedOptions[0].hasAttribute("data-more") ? -1 : 1;
    points.forEach((point, index) => {
      point[name] = (length * (numbers[index] - least)) / (most - least || 1);
      point[`${name}Cost`] = sign * numbers[index];
    });
    const texts = (value) => points[numbers.indexOf(value)].row.querySelectorAll("td.n")[column].textContent;
    const title = select.selectedOptions[0].textContent;
    return [`${title} ${texts(least)}`, `${title} ${texts(most)}`];
  };

  const draw = () => {
    const [left, right] = scale(across, width, "x");
    const [bottom, top] = scale(down, height, "y");
    for (const [id, text] of Object.entries({ left, right, bottom, top })) say(id, text);
    points.sort((a, b) => a.xCost - b.xCost || a.yCost - b.yCost);
    let least = Infinity;
    let line = "";
    for (const point of points) {
      const place = `${point.x.toFixed(1)} ${(height - point.y).toFixed(1)}`;
      point.dot.setAttribute("d", `M${place}h0`);
      if (point.yCost < least) {
        line += `${line ? "L" : "M"}${place}`;
        least = point.yCost;
      }
    }
    document.getElementById("best").setAttribute("d", line);
  };

  const lead = (event) => {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    const now = points.findIndex((point) => point.link === event.target.closest("a"));
    if (!step || now < 0) return;
    event.preventDefault();
    const ordered = [...points].sort((a, b) => a.x - b.x || a.y - b.y);
    const place = ordered.indexOf(points[now]) + step;
    ordered[(place + ordered.length) % ordered.length].link.focus();
  };

  for (const select of [across, down]) select.addEventListener("change", draw);
  for (const { link } of points) {
    for (const event of ["focus", "mouseenter"]) link.addEventListener(event, () => say("about", link.getAttribute("aria-label")));
  }
  svg.addEventListener("keydown", lead);
  across.closest("p").hidden = false;
  draw();
}

theme();
tables();
plot();
