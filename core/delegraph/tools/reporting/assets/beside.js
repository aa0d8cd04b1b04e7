// Two placements of the model beside each other: the same drawing twice, coloured by each.

// Returns the data of the other placement, with nodes as those of the page.
function otherPlacement(report) {
  const { beside } = report;
  const subgraphs = report.subgraphs.map((subgraph, i) => ({ ...subgraph,
    nodes: subgraph.nodes.map(({ delegate, partition, is_unresolved, reasons, ...node }, j) => ({ ...node, ...beside.nodes[i][j] })) }));
  const palette = [...new Set([...report.delegates, ...beside.delegates])]; // one colour a delegate
  return { ...report, ...beside, subgraphs, palette };
}

// Returns the nodes that run on one delegate here and on another there.
function movedNodes(report, other) {
  return report.subgraphs.flatMap(({ nodes }, subgraph) => nodes.flatMap((node, index) => {
    const there = other.subgraphs[subgraph].nodes[index];
    return node.is_constant || holder(report, node) === holder(other, there) ? [] : [{ subgraph, index, op: node.op, node, there }];
  }));
}

const holder = (report, node) => (node.is_unresolved ? "nothing" : node.delegate ?? report.host);

function besideSection(report, view, go) {
  if (!report.beside) return null;
  const other = otherPlacement(report), moved = movedNodes(report, other);
  const views = [report, other].map((shown) => new GraphView(shown, () => {}));
  const drawings = h("div", { class: "pair" }, views.map((shown, i) => h("div", {}, h("h3", {}, [report, other][i].setup),
    h("p", { class: "muted" }, [report, other][i].summary), legend([report, other][i]), shown.canvas)));
  views.forEach((shown, i) => shown.zoom.on("zoom.together", ({ transform, sourceEvent }) => {
    if (sourceEvent) views[1 - i].moveTo(transform);
  }));
  const draw = (number) => views.forEach((shown) => {
    shown.draw(number);
    shown.mark(moved.filter((m) => m.subgraph === number).map((m) => m.index), false);
  });
  view.followers.push(draw);
  // Reasons why a node is not, as on the other side, on its delegate; that side may lack the delegate.
  const why = (shown, mine, theirs) => (m) => [...Object.entries(m[mine].reasons ?? {}).map(([name, reason]) => `${name}: ${reason}`),
    ...[m[theirs].delegate].filter((name) => name && !shown.delegates.includes(name)).map((name) => `${name}: not applied`)].join("; ");
  const side = (shown, mine) => ({ title: mine === "node" ? "runs here on" : "there on", class: "nowrap",
    value: (m) => runner(shown, m[mine]), cell: (m) => [h("span", { class: `swatch ${m[mine].is_unresolved ? "unresolved" : colourOf(shown, m[mine].delegate)}` }), runner(shown, m[mine])] });
  const columns = [
    { title: "node", isNumber: true, value: (m) => m.index, cell: (m) => nodeLink(m.subgraph, m.index, view, go) },
    { title: "operator", value: (m) => m.op }, side(report, "node"), side(other, "there"),
    { title: "why not here", class: "wide", isReason: true, value: why(report, "node", "there") },
    { title: "why not there", class: "wide", isReason: true, value: why(other, "there", "node") },
  ];
  return h("section", { id: "beside" }, h("h2", {}, "Beside"),
    h("p", {}, moved.length ? `${count(moved.length, "node")} of ${computedNodes(report).length} run on something else; they are marked.` : "Every node runs on the same in both."),
    drawings, moved.length ? table("What runs on something else", columns, moved) : null);
}
