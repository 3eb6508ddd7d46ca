/** Hides labels of charts that do not fit the visible part of their mark; reads all sizes before it writes, to be fast. */
function labels() {
  const found = [...document.querySelectorAll(".plot .mark text")].filter((text) => text.closest(".plot").clientWidth);
  const fits = found.map((text) => {
    const { width, height } = text.parentNode.getBoundingClientRect();
    return text.getComputedTextLength() + 10 <= width * text.dataset.clear && height >= 13;
  });
  found.forEach((text, index) => text.setAttribute("visibility", fits[index] ? "visible" : "hidden"));
}
