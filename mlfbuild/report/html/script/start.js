theme();
marks();
selection();
tables();
chooser(labels);
treemaps();
let waiting;
addEventListener("resize", () => {
  clearTimeout(waiting);
  waiting = setTimeout(labels, 100);
});
