/** Selects an operator or a tensor on click, in all charts and tables, with the tensors or operators it is connected to. */
const SELECTABLE = ".network [data-operator], .network [data-tensor]";

function clear(network) {
  for (const element of network.querySelectorAll(".selected")) element.classList.remove("selected");
  network.classList.remove("dimmed");
  delete network.dataset.selected;
  document.getElementById("chosen").hidden = true;
}

function markAll(network, selector) {
  for (const element of network.querySelectorAll(selector)) element.classList.add("selected");
}

/** Marks an operator with its tensors, or a tensor with the operators that write and read it. */
function select(network, { operator, tensor }) {
  if (operator !== undefined) {
    markAll(network, `[data-operator="${operator}"]`);
    const { reads, writes } = network.querySelector(`tr[data-operator="${operator}"]`).dataset;
    for (const index of `${reads} ${writes}`.split(" ").filter(Boolean)) markAll(network, `[data-tensor="${index}"]`);
  } else {
    markAll(network, `[data-tensor="${tensor}"]`);
    markAll(network, `[data-reads~="${tensor}"], [data-writes~="${tensor}"]`);
  }
  network.classList.add("dimmed");
}

/** Shows the selection in a line at the bottom of the window, with buttons that scroll to it in each chart. */
function say(network, { operator, tensor }) {
  const row = network.querySelector(operator === undefined
    ? `tr[data-tensor="${tensor}"]` : `tr[data-operator="${operator}"]`);
  const [number, name] = row.cells;
  const line = document.getElementById("chosen");
  line.querySelector("b").textContent = `${number.textContent} ${(name.querySelector("b, code")).textContent}`;
  line.querySelector("small").textContent = name.querySelector("small")?.textContent || "";
  const about = operator !== undefined && network.querySelector(`[data-about="${operator}"]`);
  line.querySelector(".nodes").replaceChildren(...(about ? about.cloneNode(true).children : []));
  line.hidden = false;
}

function toggle(element) {
  const network = element.closest(".network");
  const key = JSON.stringify({ operator: element.dataset.operator, tensor: element.dataset.tensor });
  const again = network.dataset.selected === key;
  document.querySelectorAll(".network[data-selected]").forEach(clear);
  if (again) return;
  network.dataset.selected = key;
  select(network, element.dataset);
  say(network, element.dataset);
}

function go(where) {
  const network = document.querySelector(".network[data-selected]");
  const selected = network?.querySelector(`${where} .selected`);
  selected?.closest("details")?.setAttribute("open", "");
  // Chromium scrolls to a wrong position for elements inside SVG.
  (selected?.closest(".chart, .block") || selected)?.scrollIntoView({ block: "center" });
}

function selection() {
  document.addEventListener("click", (event) => {
    const element = event.target.closest?.(SELECTABLE);
    if (element) toggle(element);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") document.querySelectorAll(".network[data-selected]").forEach(clear);
    const element = event.target.closest?.(SELECTABLE);
    if (!element || (event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    toggle(element);
  });
  for (const button of document.querySelectorAll("#chosen button")) {
    button.addEventListener("click", () => {
      if (button.value) go(button.value);
      else document.querySelectorAll(".network[data-selected]").forEach(clear);
    });
  }
}
