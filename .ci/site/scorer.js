// How the search of the site orders its results: pages that teach come before pages that list,
// and decisions come last.
var Scorer = {
  score: ([docname, , , , score]) => {
    const folder = docname.includes("/") ? docname.split("/")[0] : "";
    if (folder === "decisions" || docname === "benchmarks" || docname === "contributing-tests") return score / 100;
    if (folder === "reference" || ["rules", "commands", "conformance", "parity"].includes(docname)) return score / 2;
    return score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
