/** Tips of the marks in charts, on hover, focus and tap; arrow keys move from mark to mark. */
const words = new WeakMap();

/** Shows the lines of a text beside a box, inside the window. */
function tip(text, box) {
  const element = document.getElementById("tip");
  const lines = text.split("\n").map((line, index) => {
    const part = document.createElement(index ? "span" : "b");
    part.textContent = line;
    return part;
  });
  element.replaceChildren(...lines);
  element.hidden = false;
  const { width, height } = element.getBoundingClientRect();
  const left = Math.min(Math.max(8, box.left), innerWidth - width - 8);
  const below = box.bottom + 12;
  const top = below + height < innerHeight ? below : Math.max(8, box.top - height - 12);
  element.style.transform = `translate(${Math.max(8, left)}px, ${top}px)`;
}

function noTip() {
  document.getElementById("tip").hidden = true;
}

/** Shows the tip of the focused mark, which moves with it when the page scrolls. */
function focusTip() {
  const mark = document.activeElement;
  if (words.has(mark) && mark.matches(":focus-visible")) tip(words.get(mark), mark.getBoundingClientRect());
  else noTip();
}

function at(event) {
  return { left: event.clientX + 12, top: event.clientY, bottom: event.clientY };
}

/** Replaces titles of marks by accessible names, because browsers show titles as a second tip. */
function takeTitles(root) {
  for (const title of root.querySelectorAll("svg title")) {
    const mark = title.parentNode;
    words.set(mark, title.textContent);
    if (mark.classList.contains("mark")) {
      mark.setAttribute("aria-label", title.textContent.replaceAll("\n", ", "));
      mark.setAttribute("role", mark.matches(SELECTABLE) ? "button" : "img");
      mark.setAttribute("tabindex", "-1");
    }
    title.remove();
  }
}

function said(event) {
  const mark = event.target.closest?.(".mark, .column");
  return mark && (words.has(mark) ? mark : mark.closest(".mark"));
}

function firstStops(root) {
  for (const chart of root.querySelectorAll(".marks")) chart.querySelector(".mark")?.setAttribute("tabindex", "0");
}

function step(event) {
  const mark = event.target.closest?.(".mark");
  const marks = mark && [...mark.closest(".marks").querySelectorAll(".mark")];
  const place = marks?.indexOf(mark);
  const to = {
    ArrowRight: place + 1, ArrowDown: place + 1, ArrowLeft: place - 1, ArrowUp: place - 1,
    Home: 0, End: marks?.length - 1,
  }[event.key];
  if (!mark || to === undefined) return;
  event.preventDefault();
  const next = marks[to];
  if (!next) return;
  mark.setAttribute("tabindex", "-1");
  next.setAttribute("tabindex", "0");
  next.focus();
}

function marks() {
  takeTitles(document);
  firstStops(document);
  document.addEventListener("pointermove", (event) => {
    const mark = said(event);
    if (mark) tip(words.get(mark), at(event));
    else noTip();
  });
  document.addEventListener("pointerleave", noTip);
  document.addEventListener("click", (event) => {
    const mark = said(event);
    if (mark) tip(words.get(mark), at(event));
  });
  document.addEventListener("focusin", focusTip);
  document.addEventListener("focusout", noTip);
  addEventListener("scroll", focusTip, { passive: true, capture: true });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") noTip();
    step(event);
  });
}
