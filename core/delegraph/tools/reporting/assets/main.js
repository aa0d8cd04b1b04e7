// Puts the page together: the head, then a section for each part that the data has.

const report = JSON.parse(document.getElementById("data").textContent);

function head() {
  const pairs = [["file", size(report.bytes)], ["constants", size(report.constant_bytes)], ...figures(),
    ["nodes", nodeCount()]];
  if (report.subgraphs.length > 1) pairs.push(["subgraphs", `${report.subgraphs.length}`]);
  pairs.push(...ends("input"), ...ends("output"));
  if (report.description) pairs.push(["description", report.description]);
  return [h("h1", {}, report.model), h("p", { class: "summary" }, report.summary),
    report.problem ? h("div", { class: "problem", role: "alert" }, report.problem.map((line) => h("p", {}, line))) : null,
    facts(pairs)].filter(Boolean);
}

// Number of nodes, without those that make constants once, which are told apart.
function nodeCount() {
  const computed = computedNodes(report).length, once = report.subgraphs.reduce((sum, s) => sum + s.nodes.length, -computed);
  return computed.toLocaleString("en") + (once ? `; ${count(once, "constant")}, computed once` : "");
}

// Parameters, arithmetic and quantization, as `inspect` has them.
function figures() {
  const found = [["parameters", report.parameters], ["MACs", report.macs]].filter(([, n]) => n)
    .map(([word, n]) => [word, (word === "MACs" && report.macs_are_least ? "at least " : "") + amount(n)]);
  return report.quantization ? [...found, ["quantization", report.quantization]] : found;
}

const amount = (n) => {
  const power = Math.min(3, Math.floor(Math.log10(n) / 3));
  return power ? `${(n / 1000 ** power).toFixed(1)} ${" kMG"[power]}` : `${n}`;
};

const MOST_ENDS = 4; // inputs or outputs in the head; a language model has dozens

// Name, type and shape of the inputs or outputs of the subgraph that is shown first.
function ends(word) {
  const { [`${word}s`]: indices, tensors } = report.subgraphs[report.signatures.find((s) => s.name === report.signature)?.subgraph ?? 0];
  const name = (i) => tensors[i].name || `tensor ${i}`, short = shortNames(indices.map(name));
  const told = indices.slice(0, MOST_ENDS).map((i) => [h("bdi", {}, named(name(i), short)), ` ${tensors[i].type} ${shapeOf(tensors[i])}`]);
  const rest = indices.length - told.length;
  return indices.length ? [[indices.length > 1 ? `${word}s` : word, [...told.flatMap((each, i) => (i ? ["; ", ...each] : each)), rest > 0 ? `; ${rest} more` : ""]]] : [];
}

// Stretches of the plan in execution order; a partition shows its nodes in the graph.
function partitionSection(view, go) {
  const several = report.subgraphs.length > 1;
  const who = (stage) => holder(report, stage);
  const columns = [
    several ? { title: "subgraph", value: (s) => s.subgraph, isNumber: true } : null,
    { title: "partition", value: (s) => s.partition ?? -1, isNumber: true, cell: (s) => partitionName(report, s) },
    { title: "runs on", value: who, class: "nowrap", cell: (s) => [h("span", { class: `swatch ${s.is_unresolved ? "unresolved" : colourOf(report, s.delegate)}` }), who(s)] },
    { title: "count", value: (s) => s.nodes.length, isNumber: true },
    { title: "nodes", class: "wide", value: (s) => s.nodes[0], cell: (s) => nodesLink(s, view, go) },
    ...["input", "output", "constant"].map((word) => ({
      title: { input: "in", output: "out", constant: "constants" }[word], isNumber: true,
      value: (s) => s[`${word}_bytes`] ?? -1, cell: (s) => partitionName(report, s) === "-" ? "-" : size(s[`${word}_bytes`]) })),
    { title: "operators", value: (s) => s.ops },
  ].filter(Boolean);
  const crossing = report.crossings.reduce((sum, c) => sum + (c.bytes ?? 0), 0);
  const told = report.crossings.length
    ? h("p", {}, `${count(report.crossings.length, "tensor")} to or from a delegate, ${size(crossing)} ${report.subgraphs.length > 1 ? "if each subgraph runs once" : "an invoke"}.`) : null;
  return h("section", { id: "partitions" }, h("h2", {}, "Partitions"), told, table("In execution order", columns, report.stages));
}

// The placement of each signature, where a model has several.
function signatureSection(view, go) {
  if (report.signatures.length < 2) return null;
  const columns = [
    { title: "name", value: (s) => s.name, class: "nowrap",
      cell: (s) => h("button", { type: "button", class: "link", click: () => go(s.subgraph) }, s.name) },
    { title: "subgraph", value: (s) => s.subgraph, isNumber: true },
    { title: "placement", value: (s) => s.summary, class: "wide" },
  ];
  return h("section", { id: "signatures" }, h("h2", {}, "Signatures"), table("By signature", columns, report.signatures));
}

function refusalSection() {
  if (!report.refusals.length) return null;
  const several = report.subgraphs.length > 1;
  const columns = [
    { title: "delegate", value: (r) => r.delegate },
    several ? { title: "subgraph", value: (r) => r.subgraph, isNumber: true } : null,
    { title: "operators", value: (r) => r.ops },
    { title: "reason", value: (r) => r.reason, class: "wide", isReason: true },
    { title: "count", value: (r) => r.nodes.length, isNumber: true },
    { title: "nodes", class: "wide", value: (r) => r.nodes[0], cell: (r) => numbers(r.nodes) },
    report.refusals.some((r) => r.macs || r.macs_are_least) ? { title: "MACs", value: (r) => r.macs, isNumber: true,
      cell: (r) => (r.macs_are_least && !r.macs ? "?" : (r.macs_are_least ? "at least " : "") + r.macs.toLocaleString("en")) } : null,
    { title: "runs on", value: (r) => r.runs_on.join(", ") },
  ].filter(Boolean);
  return h("section", { id: "left" }, h("h2", {}, "Why not"), table("What delegates left, and why", columns, report.refusals));
}

function main() {
  document.getElementById("head").append(...head());
  const { section, view, go } = graphSection(report);
  view.open_subgraph = go;
  const address = location.hash;
  const sections = [section, besideSection(report, view, go), signatureSection(view, go), partitionSection(view, go), refusalSection(), timeSection(view, go), verdictSection(), memorySection(), differenceSection(view, go)].filter(Boolean);
  document.getElementById("head").append(h("nav", { "aria-label": "Parts" }, sections.map((s) =>
    h("a", { href: `#${s.id}` }, s.querySelector("h2").textContent))));
  document.getElementById("main").replaceChildren(...sections);
  document.getElementById("foot").append(`${report.made_by}, ${report.made_at.replace("T", " ").replace("+00:00", " UTC")}. ${report.setup}`);
  go(report.signatures.find((s) => s.name === report.signature)?.subgraph ?? 0);
  openAddress(address, report, view, go);
  view.linked = showAddress;
  window.addEventListener("hashchange", () => openAddress(location.hash, report, view, go));
}

// Puts the selected node into the address, to be copied; a notebook's frame has none.
function showAddress(address) {
  try {
    history.replaceState(null, "", address);
  } catch (error) {
    if (error.name !== "SecurityError") throw error;
  }
}

main();
