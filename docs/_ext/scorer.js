/* Ranks titles first: Sphinx gives a page the score of its best word, so any title with one of the words would win. */
const stemOf = (word) => new Stemmer().stemWord(word);
const stemsOf = (text) => text.toLowerCase().split(/\W+/).filter((word) => word && !stopwords.has(word)).map(stemOf);
/* The square: a title with one of two words says little. */
const share = (title, words) => {
  const stems = new Set(stemsOf(title));
  return (words.filter((word) => stems.has(word)).length / Math.max(words.length, 1)) ** 2;
};
/* Sphinx's index has no frequencies, but the text of excerpts has: pages that mention the words often come before others. */
const texts = {};
const textOf = (file) => {
  const html = typeof EXCERPTS === "undefined" ? "" : EXCERPTS[file] || "";
  return (texts[file] ??= html.replace(/<[^>]*>/g, " ").replace(/\s+/g, " ").toLowerCase());
};
const often = (file, text) => Math.log2(textOf(file).split(text).length);
const LATER = { changelog: 300, index: 60, architecture: 80, contributing: 80 };
var Scorer = {
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
  score: ([page, , , , score, , kind]) => {
    const query = (new URLSearchParams(location.search).get("q") || "").toLowerCase().trim();
    const words = stemsOf(query);
    const index = Search._index;
    const number = index.docnames.indexOf(page);
    const sections = Object.entries(index.alltitles).filter(([, places]) => places.some(([at]) => at === number));
    const inPage = share(index.titles[number], words);
    const inSection = Math.max(0, ...sections.map(([title]) => share(title, words)));
    const later = LATER[page] || (page.startsWith("reference/") ? 80 : 0);
    const mentions = words.reduce((sum, word) => sum + often(`${page}.html`, word), 0) / Math.max(words.length, 1);
    const phrase = query ? often(`${page}.html`, query) : 0;
    const title = kind === "title" ? 50 : 0;
    return score + 200 * inPage + 150 * inSection + title + 4 * mentions + 12 * phrase - later;
  },
};
/* The stem of a synonym is that of the word for both, as in the index. */
const English = Stemmer;
window.Stemmer = function () {
  const english = new English();
  this.stemWord = (word) => english.stemWord(SYNONYMS[word] || word);
};
/* A browser fetches nothing from file:, so the text of excerpts comes from excerpts.js. */
const remote = window.fetch;
window.fetch = (url, ...rest) => {
  const page = String(url).replace(/^(\.\/)+/, "");
  const here = location.protocol === "file:" && typeof EXCERPTS !== "undefined" && EXCERPTS[page];
  return here ? Promise.resolve(new Response(here)) : remote(url, ...rest);
};
