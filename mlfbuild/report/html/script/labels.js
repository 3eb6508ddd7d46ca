/** Hides labels of charts where they do not fit into what they name; widths are those of the layout, in one pass. */
function labels() {
  const found = [...document.querySelectorAll(".plot .mark text")].filter((text) => text.closest(".plot").clientWidth);
  const fits = found.map((text) => {
    const { width, height } = text.parentNode.getBoundingClientRect();
    return text.getComputedTextLength() + 10 <= width && height >= 13;
  });
  found.forEach((text, index) => text.setAttribute("visibility", fits[index] ? "visible" : "hidden"));
}
