/* Ranks titles first: Sphinx gives a page the score of its best word, so any title with one of the words would win. */
var Scorer = {
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
  score: ([page, , , , score, , kind]) => {
    const words = (new URLSearchParams(location.search).get("q") || "").toLowerCase().split(/\W+/).filter(Boolean);
    const hasAll = (title) => words.every((word) => title.toLowerCase().includes(word));
    const index = Search._index;
    const file = index.docnames.indexOf(page);
    const sections = Object.entries(index.alltitles).filter(([, places]) => places.some(([at]) => at === file));
    if (words.length && hasAll(index.titles[file])) return score + 200;
    if (words.length && sections.some(([title]) => hasAll(title))) return score + 100;
    return kind === "title" ? score + 50 : score;
  },
};
