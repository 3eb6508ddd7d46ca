/** A click on an operator, wherever it is drawn, marks it everywhere, with the tensors that it reads and writes. */
function numbers(text) {
  return (text || "").split(" ").filter((part) => part);
}

function clear(network) {
  for (const element of network.querySelectorAll(".selected")) element.classList.remove("selected");
  for (const row of network.querySelectorAll("tr[aria-selected]")) row.removeAttribute("aria-selected");
  network.classList.remove("dimmed");
  delete network.dataset.selected;
}

function mark(network, selector) {
  for (const element of network.querySelectorAll(selector)) {
    element.classList.add("selected");
    if (element.tagName === "TR") element.setAttribute("aria-selected", "true");
  }
}

function select(network, operator) {
  const row = network.querySelector(`tr[data-operator="${operator}"]`);
  mark(network, `[data-operator="${operator}"]`);
  for (const tensor of [...numbers(row.dataset.reads), ...numbers(row.dataset.writes)]) {
    mark(network, `[data-tensor="${tensor}"]`);
  }
  network.classList.add("dimmed");
  network.dataset.selected = operator;
}

function toggle(element) {
  const network = element.closest(".network");
  const operator = element.dataset.operator;
  const again = network.dataset.selected === operator;
  clear(network);
  if (!again) select(network, operator);
}

function selection() {
  document.addEventListener("click", (event) => {
    const element = event.target.closest?.("[data-operator]");
    if (element?.closest(".network")) toggle(element);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") document.querySelectorAll(".network").forEach(clear);
    const element = event.target.closest?.("[data-operator]");
    if (!element || (event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    toggle(element);
  });
}
