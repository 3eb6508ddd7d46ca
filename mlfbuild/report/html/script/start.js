theme();
marks();
selection();
tables();
treemaps();
chooser(labels);
let waiting;
addEventListener("resize", () => {
  clearTimeout(waiting);
  waiting = setTimeout(labels, 100);
});
