// The panel beside the graph: what there is to say of the selected node.

function showDetails(panel, report, view, vertex) {
  if (vertex === null) {
    panel.replaceChildren(h("p", { class: "muted" }, "Select a node to see its tensors, options, and who runs it."));
    return;
  }
  const parts = vertex.kind === "node" ? nodeDetails(report, view, vertex) : tensorDetails(view, vertex);
  panel.replaceChildren(...parts);
  panel.scrollTop = 0;
}

function nodeDetails(report, view, { node, index }) {
  const who = runner(report, node);
  return [
    h("h3", {}, h("span", { class: `swatch ${colourOf(report, node.delegate)}` }), node.op),
    facts([["node", h("a", { href: addressOf(view.number, index), title: "Link to this node" }, `${index}`)], ["version", `${node.version}`], ["runs on", who], ...measured(report, view.number, index)]),
    ...Object.entries(node.reasons ?? {}).map(([delegate, reason]) =>
      h("p", { class: "reason" }, h("strong", {}, `Not ${delegate}: `), reason)),
    ...(node.calls ?? []).filter((number) => report.subgraphs[number]).map((number) =>
      h("p", {}, h("button", { type: "button", class: "link", click: () => view.open_subgraph(number) }, `Open subgraph ${number}`))),
    node.options ? h("h4", {}, "Options") : null,
    node.options ? facts(Object.entries(node.options)) : null,
    h("h4", {}, "Inputs"), ...tensors(view, node.inputs, "from"),
    h("h4", {}, "Outputs"), ...tensors(view, node.outputs, "to"),
  ].filter(Boolean);
}

function tensorDetails(view, { kind, tensor }) {
  return [h("h3", {}, kind === "input" ? "Input of the graph" : "Output of the graph"), ...tensors(view, [tensor], kind === "input" ? "to" : "from")];
}

const facts = (pairs) => h("dl", {}, pairs.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));

// Each tensor with what makes or reads it; those are buttons that lead there.
function tensors(view, indices, direction) {
  const list = indices.map((index) => {
    const tensor = view.subgraph.tensors[index];
    if (!tensor) return h("li", { class: "muted" }, "absent");
    return h("li", {}, h("bdi", { class: "name" }, tensor.name || "(no name)"),
      h("span", { class: "muted" }, describe(tensor, index)), ...quantized(tensor), ...widened(view, index), links(view, index, direction));
  });
  return [list.length ? h("ul", { class: "tensors" }, list) : h("p", { class: "muted" }, "none")];
}

function describe(tensor, index) {
  const kind = ["constant", "variable", "sparse"].filter((word) => tensor[`is_${word}`]).join(" ");
  const signature = tensor.signature ? `, declared ${tensor.signature.join("×")}` : "";
  return `${index}: ${tensor.type} ${shapeOf(tensor)}${signature}, ${size(tensor.bytes)}${kind ? `, ${kind}` : ""}`;
}

// What a tensor is made of, once, by a node that is not drawn.
function widened(view, index) {
  const { node, index: number } = view.graph.folded.get(index) ?? {};
  return node ? [h("span", { class: "muted" }, `made once by node ${number}, ${node.op}, of ${node.inputs.map((t) => describe(view.subgraph.tensors[t], t))}`)] : [];
}

function quantized({ scale, zero_point, scales, axis }) {
  if (scale === undefined) return [];
  const more = scales ? `, first of ${scales} along axis ${axis}` : "";
  return [h("span", { class: "muted" }, `scale ${Number(scale.toPrecision(6))}, zero point ${zero_point}${more}`)];
}

function links(view, tensor, direction) {
  const others = view.graph.vertices.filter(({ kind, node }) => kind === "node"
    && (direction === "from" ? node.outputs : node.inputs).includes(tensor));
  return h("span", { class: "links" }, others.map((other) => h("button", {
    type: "button", class: "link", click: () => view.open(other) }, `${direction} ${other.index} ${other.node.op}`)));
}

// What was measured of a node, as pairs.
function measured(report, subgraph, index) {
  return heats(report).flatMap(({ word, of, shown }) => {
    const value = of(subgraph, index);
    return value === undefined ? [] : [[word, shown(value)]];
  });
}

const extent = (values) => values.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, -Infinity]);

const FAINTEST = 0.15; // share of the colour that the least measured value has

// The measurements that a node can be coloured by: of a node, in words, and as 0 (none) to 1. The
// lowest and highest value, and how a value is written, are for the legend.
function heats(report) {
  const found = [];
  if (report.profile) {
    const times = nodeTimes(report.profile), [low, high] = extent([...times.values()].map((t) => t.seconds));
    if (times.size) found.push({ word: "time", scale: "by the square root", ends: [{ seconds: low }, { seconds: high }],
      told: ({ seconds: time }) => `${seconds(time)} a run`, of: (subgraph, index) => times.get(`${subgraph} ${index}`),
      shown: ({ seconds: time, share, where, count: together }) =>
        `${seconds(time)}, ${(100 * share).toFixed(1)} % ${where}${together > 1 ? `, with ${together - 1} more` : ""}`,
      share: ({ seconds: time }) => FAINTEST + (1 - FAINTEST) * Math.sqrt(high ? time / high : 0) });
  }
  if (report.differences) {
    const noises = new Map();
    for (const layer of report.differences.layers) {
      const way = own(layer), key = `${layer.subgraph} ${layer.node}`;
      if (!isKnown(way)) continue;
      const before = noises.get(key) ?? { noise: 0, isOff: false };
      noises.set(key, { noise: Math.max(before.noise, noiseOf(way)), isOff: before.isOff || way.is_off !== false && noiseOf(way) > 0 });
    }
    const [low, high] = extent([...noises.values()].map(({ noise }) => noise)), isAnyOff = [...noises.values()].some(({ isOff }) => isOff);
    if (noises.size) found.push({ word: "difference", scale: "by the logarithm; palest within the numerics profile",
      ends: [{ noise: low, isOff: false }, { noise: high, isOff: isAnyOff }],
      told: ({ noise }) => `noise ${noise === Infinity ? "∞" : figure(noise)}`, of: (subgraph, index) => noises.get(`${subgraph} ${index}`),
      shown: ({ noise }) => noise === Infinity ? "infinite noise" : `noise ${figure(noise)}`,
      share: ({ noise, isOff }) => noise > 0 ? (isOff ? Math.min(1, Math.max(2 * FAINTEST, 1 + Math.log10(noise) / 6)) : FAINTEST) : 0 });
  }
  return found;
}

// Each node's time, with its share of the section; nodes that are timed together have it together.
// What a delegate tells of its inside is finer than the time of its partition.
function nodeTimes({ sections }) {
  const times = new Map();
  for (const section of [...sections].sort((a, b) => a.is_inside - b.is_inside)) {
    const where = inSection(section).split(" (")[0]; // without the subgraph's name
    for (const { subgraph, nodes, seconds: time, share } of section.nodes) {
      for (const node of nodes) times.set(`${subgraph} ${node}`, { seconds: time, share, where, count: nodes.length });
    }
  }
  return times;
}
