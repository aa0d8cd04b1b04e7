// The drawing of the graph: zoom, search, keys. Its nodes are elements with a name for a screen
// reader; one at a time is in the order of the Tab key, arrows go on from there.

const FAR = 0.45; // zoom below which texts, too small to read, are left out
const FARTHEST = 0.25; // zoom below which nodes have no text at all; up to FAR, a brief one
const MOST_LETTERS = 24;
const BRIEF_LETTER = 13; // width of a letter of a brief text
const DELEGATE_COLOURS = 8;
const MANY_EDGES = 1000; // they are joined until their arrows can be seen
const PAUSE = 150; // ms after the first picture, before each vertex gets an element

const svg = (name, attributes = {}, ...children) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null) element.setAttribute(key, value);
  element.append(...children);
  return element;
};

const shortened = (text, most) => (text.length <= most ? text : `${text.slice(0, most - 1)}…`);
const shapeOf = (tensor) => (tensor.shape.length ? tensor.shape.join("×") : "scalar");

// The class that colours a delegate; its position among those applied says which.
const colourOf = (report, delegate) => {
  if (delegate === null || delegate === undefined) return "host";
  return `d${(report.palette ?? report.delegates).indexOf(delegate) % DELEGATE_COLOURS}`;
};

// Who runs a node, in words.
function runner(report, node) {
  if (node.is_unresolved) return "nothing";
  if (node.delegate === undefined) return report.host;
  return node.delegate === report.default_delegate ? `${node.delegate}, by default` : `${node.delegate}, partition ${node.partition}`;
}

// The name of a partition; "-" where the default delegate has what those asked for left.
function partitionName(report, { delegate, partition }) {
  const isRest = delegate === report.default_delegate && report.delegates.some((name) => name !== delegate);
  return isRest || (partition ?? null) === null ? "-" : `P${partition}`;
}

class GraphView {
  constructor(report, panel) {
    this.report = report;
    this.panel = panel;
    this.status = h("output", { class: "status", "aria-live": "polite" });
    this.canvas = svg("svg", { class: "graph", role: "application", "aria-label":
      "Graph. Arrow down and up follow values, left and right go in order, Enter shows a node." });
    this.world = svg("g");
    this.canvas.append(arrowHead(), this.world);
    this.zoom = d3.zoom().scaleExtent([0.01, 4]).filter(isZoomGesture)
      .on("zoom", ({ transform }) => this.moved(transform));
    d3.select(this.canvas).call(this.zoom).on("dblclick.zoom", null);
    this.canvas.addEventListener("keydown", (event) => this.keyed(event));
    this.canvas.addEventListener("click", (event) => this.clicked(event));
    window.addEventListener("resize", () => this.moved(d3.zoomTransform(this.canvas)));
    window.addEventListener("beforeprint", () => this.show(this.box));
    window.addEventListener("afterprint", () => this.show(null));
    this.matches = [];
    this.heat = null;
    this.selected = null;
    this.linked = () => {};
    this.followers = [];
  }

  // Draws a subgraph and shows all of it.
  draw(number) {
    this.number = number;
    this.subgraph = this.report.subgraphs[number];
    this.graph = graphOf(this.subgraph);
    this.labels = shortNames(this.graph.vertices.map((v) => this.label(v)), MOST_LETTERS);
    const longest = Math.max(0, ...[...this.labels.values()].map((label) => label.length));
    this.width = Math.min(224, Math.max(132, 8.4 * longest + 52));
    const seen = this.seen();
    this.box = layOut(this.graph, seen.width / seen.height, this.width);
    this.areJoined = this.graph.edges.length > MANY_EDGES;
    this.edges = svg("g", { class: "edges" }, ...(this.areJoined ? this.joined() : this.graph.edges.map((edge) => this.edge(edge))));
    this.isOutlined = this.graph.vertices.length > MANY_VERTICES;
    const blank = (rx) => svg("g", { role: "button", tabindex: -1 }, svg("rect", { width: this.width, height: NODE_HEIGHT, rx }));
    this.blank = { node: blank(6), end: blank(NODE_HEIGHT / 2) }; // copies are made sooner than elements
    this.nodes = svg("g", { class: "nodes" }, ...(this.isOutlined ? this.outlines() : this.graph.vertices.map((v) => this.vertex(v))));
    this.fit(seen); // before the page changes: asked for a size then, browsers place all of it first
    this.world.replaceChildren(this.edges, this.nodes);
    this.current = null;
    if (this.heat) this.colourBy(this.heat);
    this.select(null);
    if (this.isOutlined) requestAnimationFrame(() => setTimeout(() => this.furnish(), PAUSE));
    else this.focusable(this.first());
  }

  first() {
    return this.graph.vertices.find((v) => v.kind === "node") ?? this.graph.vertices[0];
  }

  // The size of the canvas in pixels.
  seen() {
    return { width: this.canvas.clientWidth || 1200, height: this.canvas.clientHeight || 640 };
  }

  label({ kind, node, tensor }) {
    return kind === "node" ? node.op : `${kind}: ${this.subgraph.tensors[tensor].name}`;
  }

  vertex(vertex) {
    const { kind, node, index } = vertex;
    const tensor = this.subgraph.tensors[kind === "node" ? node.outputs.find((t) => t >= 0) : vertex.tensor];
    const label = this.label(vertex), shape = tensor ? `${shapeOf(tensor)} ${tensor.type}` : "";
    const isNode = kind === "node", width = this.width;
    const who = isNode ? runner(this.report, node) : "";
    vertex.element = this.blank[isNode ? "node" : "end"].cloneNode(true);
    vertex.element.setAttribute("class", `vertex ${this.look(vertex)}`);
    vertex.element.setAttribute("data-id", vertex.id);
    vertex.element.setAttribute("transform", `translate(${point(vertex.x - width / 2, vertex.y - NODE_HEIGHT / 2)})`);
    vertex.element.setAttribute("aria-label", isNode ? `node ${index}, ${label}, ${who}` : `${label}, ${shape}`);
    vertex.lettering = () => {
      const texts = [["op", 12, 16, this.labels.get(label)], ["shape", 12, 30, shortened(shape, MOST_LETTERS + 2)]];
      if (isNode) texts.push(["index", width - 8, 16, `${index}`]);
      const part = isNode ? partitionName(this.report, node) : "-";
      if (part !== "-") texts.push(["part", width - 8, 30, part]);
      return texts;
    };
    vertex.brief = () => (isNode ? [["brief", 8, 27, shortened(`${index} ${label}`, Math.floor((width - 12) / BRIEF_LETTER))]] : []);
    return vertex.element;
  }

  // The classes by which a vertex is drawn.
  look({ kind, node }) {
    if (kind !== "node") return kind;
    return `node ${colourOf(this.report, node.delegate)}${node.is_unresolved ? " unresolved" : ""}`;
  }

  // All vertices as one path for each look, for the first picture: thousands of elements take longer.
  outlines() {
    const looks = new Map(), width = this.width;
    for (const vertex of this.graph.vertices) {
      const look = this.look(vertex), corner = point(vertex.x - width / 2, vertex.y - NODE_HEIGHT / 2);
      looks.set(look, `${looks.get(look) ?? ""}M${corner}h${width}v${NODE_HEIGHT}h${-width}z`);
    }
    return [...looks].map(([look, d]) => svg("g", { class: `outlines ${look}` }, svg("path", { d })));
  }

  // Gives each vertex an element of its own, for the pointer, keys and screen readers.
  furnish() {
    if (!this.isOutlined) return;
    this.isOutlined = false;
    this.nodes.replaceChildren(...this.graph.vertices.map((v) => this.vertex(v)));
    if (!this.current) this.focusable(this.first());
  }

  // Letters the vertices of a part of the drawing, for the zoom: texts of thousands would take long to place.
  letter({ left, top, right, bottom }, kind = "lettering") {
    for (const vertex of this.graph.vertices) {
      const { x, y } = vertex;
      if (!vertex[kind] || x <= left - this.width || x >= right + this.width || y <= top - NODE_HEIGHT || y >= bottom + NODE_HEIGHT) continue;
      vertex.element.append(...vertex[kind]().map(([name, x, y, text]) => svg("text", { class: name, x, y }, text)));
      vertex[kind] = null;
    }
  }

  edge(edge) {
    edge.element = svg("path", { d: edge.path, class: this.isCrossing(edge) ? "crossing" : null, "marker-end": "url(#arrow)" });
    return edge.element;
  }

  // Whether an edge enters or leaves a partition that has a number.
  isCrossing({ source, target }) {
    const [from, to] = [source, target].map((id) => partitionName(this.report, this.graph.vertices[id].node ?? {}));
    return from !== to;
  }

  // All edges as two paths: thousands of elements would take long to place.
  joined() {
    const paths = { plain: [], crossing: [] };
    for (const edge of this.graph.edges) paths[this.isCrossing(edge) ? "crossing" : "plain"].push(edge.path);
    return Object.entries(paths).map(([name, parts]) => svg("path", { d: parts.join(""), class: name }));
  }

  // Gives each edge an element and an arrow of its own.
  separate() {
    if (!this.areJoined) return;
    this.areJoined = false;
    this.edges.replaceChildren(...this.graph.edges.map((edge) => edge.element ?? this.edge(edge)));
  }

  // Colours nodes by a measurement; null: by who runs them.
  colourBy(heat) {
    this.furnish();
    this.heat = heat;
    this.canvas.classList.toggle("heated", heat !== null);
    for (const { kind, index, element } of this.graph.vertices) {
      const value = heat && kind === "node" ? heat.of(this.number, index) : undefined;
      element.style.setProperty("--heat", `${Math.round(100 * (value === undefined ? 0 : heat.share(value)))}%`);
      element.classList.toggle("unmeasured", heat !== null && value === undefined);
    }
  }

  // -- what is seen of it ------------------------------------------------------------------------

  moved(transform) {
    this.world.setAttribute("transform", transform);
    this.canvas.classList.toggle("far", transform.k < FAR);
    if (transform.k < FARTHEST || !this.graph) return;
    const { width, height } = this.seen();
    const isFar = transform.k < FAR;
    this.furnish();
    if (!isFar) this.separate();
    const [left, top] = transform.invert([0, 0]), [right, bottom] = transform.invert([width, height]);
    this.letter({ left, top, right, bottom }, isFar ? "brief" : "lettering");
  }

  fit(seen = this.seen()) {
    const { left, top, width, height } = this.box;
    const scale = Math.min(1.2, seen.width / width, seen.height / height) * 0.98;
    const x = (seen.width - width * scale) / 2 - left * scale;
    const y = (seen.height - height * scale) / 2 - top * scale;
    this.moveTo(d3.zoomIdentity.translate(x, y).scale(scale));
  }

  moveTo(transform) {
    d3.select(this.canvas).call(this.zoom.transform, transform);
  }

  zoomBy(factor) {
    d3.select(this.canvas).call(this.zoom.scaleBy, factor);
  }

  // Shows a node in the middle, large enough to be read, unless it is well to be seen already.
  bring({ x, y }) {
    const { width, height } = this.seen(), now = d3.zoomTransform(this.canvas);
    const [seenX, seenY] = now.apply([x, y]);
    const isSeen = seenX > 80 && seenX < width - 80 && seenY > 30 && seenY < height - 30;
    if (isSeen && now.k >= FAR) return;
    const scale = Math.max(now.k, 0.9);
    this.moveTo(d3.zoomIdentity.translate(width / 2 - x * scale, height / 2 - y * scale).scale(scale));
  }

  // Shows all of the drawing at any size, as on paper; null goes back to what was seen.
  show(box) {
    if (box === null) {
      this.canvas.removeAttribute("viewBox");
      this.moved(d3.zoomTransform(this.canvas));
      return;
    }
    this.furnish();
    this.separate();
    this.letter({ left: -Infinity, top: -Infinity, right: Infinity, bottom: Infinity });
    this.canvas.setAttribute("viewBox", [box.left, box.top, box.width, box.height].join(" "));
    this.world.removeAttribute("transform");
    this.canvas.classList.remove("far");
  }

  // -- choosing nodes ------------------------------------------------------------------------------

  clicked(event) {
    this.furnish();
    const element = document.elementFromPoint(event.clientX, event.clientY)?.closest(".vertex");
    const vertex = element ? this.graph.vertices[Number(element.dataset.id)] : null;
    this.select(vertex);
    if (vertex) this.focusable(vertex).focus({ preventScroll: true });
  }

  // Shows a vertex in the panel, and the edges to and from it; null shows none.
  select(vertex) {
    if (vertex) this.furnish();
    this.selected?.element.classList.remove("selected");
    for (const edge of this.graph.edges) {
      const isOn = vertex !== null && (edge.source === vertex.id || edge.target === vertex.id);
      if (isOn && !edge.element) this.edges.append(this.edge(edge));
      edge.element?.classList.toggle("on", isOn);
    }
    this.selected = vertex;
    vertex?.element.classList.add("selected");
    this.panel(this, vertex);
    if (vertex?.kind === "node") this.linked(addressOf(this.number, vertex.index));
  }

  // Selects, shows and focuses a vertex.
  open(vertex) {
    this.select(vertex);
    this.bring(vertex);
    this.focusable(vertex).focus({ preventScroll: true });
  }

  // Opens a node; one that is folded has no vertex, so what reads it is opened.
  openNode(index) {
    const nodes = this.graph.vertices.filter((v) => v.kind === "node"), made = this.subgraph.nodes[index].outputs;
    const vertex = nodes.find((v) => v.index === index) ?? nodes.find(({ node }) => node.inputs.some((t) => made.includes(t)));
    if (vertex) this.open(vertex);
  }

  // Marks nodes, and brings the first unless all is to be seen.
  mark(nodes, isBrought = true) {
    const wanted = new Set(nodes);
    this.search(nodes.length ? (v) => v.kind === "node" && wanted.has(v.index) : null);
    if (this.matches.length && isBrought) this.bring(this.matches[0]);
  }

  focusable(vertex) {
    if (!vertex) return null;
    this.furnish();
    this.current?.element.setAttribute("tabindex", -1);
    this.current = vertex;
    vertex.element.setAttribute("tabindex", 0);
    return vertex.element;
  }

  keyed(event) {
    const step = { ArrowDown: () => this.along("to"), ArrowUp: () => this.along("from"),
      ArrowLeft: () => this.beside(-1), ArrowRight: () => this.beside(1),
      Home: () => this.graph.vertices[0], End: () => this.graph.vertices.at(-1) }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey || !this.current) return;
    if (step) {
      const next = step() ?? this.current;
      this.bring(next);
      this.focusable(next).focus({ preventScroll: true });
    } else if (event.key === "Enter" || event.key === " ") this.select(this.current);
    else if (event.key === "+" || event.key === "=") this.zoomBy(1.3);
    else if (event.key === "-") this.zoomBy(1 / 1.3);
    else if (event.key === "0") this.fit();
    else return;
    event.preventDefault();
  }

  along(direction) {
    return this.graph.vertices[this.current[direction][0]];
  }

  beside(step) {
    return this.graph.vertices[this.current.id + step];
  }

  // -- search -------------------------------------------------------------------------------------

  // Marks the vertices for which *isWanted* holds; null marks none and shows all as usual.
  search(isWanted) {
    const { vertices } = this.graph;
    this.matches = isWanted ? vertices.filter(isWanted) : [];
    this.found = -1;
    this.canvas.classList.toggle("searching", isWanted !== null);
    const found = new Set(this.matches);
    if (isWanted) this.furnish();
    if (!this.isOutlined) for (const vertex of vertices) vertex.element.classList.toggle("match", found.has(vertex));
    this.status.textContent = isWanted ? `${this.matches.length} of ${vertices.length}` : "";
  }

  searchText(text) {
    const wanted = text.trim().toLowerCase();
    this.search(wanted ? (vertex) => this.words(vertex).includes(wanted) : null);
    if (this.matches.length) this.bring(this.matches[0]);
  }

  // What the search looks at.
  words({ kind, node, index, tensor }) {
    const { tensors } = this.subgraph;
    if (kind !== "node") return `${kind} ${tensors[tensor].name}`.toLowerCase();
    const widened = node.inputs.flatMap((t) => this.graph.folded.get(t)?.node.inputs ?? []);
    const names = [...node.inputs, ...widened, ...node.outputs].map((t) => tensors[t]?.name ?? "");
    const reasons = Object.values(node.reasons ?? {});
    return [node.op, index, runner(this.report, node), ...names, ...reasons].join("\n").toLowerCase();
  }

  nextMatch(step) {
    if (!this.matches.length) return;
    this.found = (this.found + step + this.matches.length) % this.matches.length;
    const vertex = this.matches[this.found];
    this.select(vertex);
    this.bring(vertex);
    this.focusable(vertex);
    this.status.textContent = `${this.found + 1} of ${this.matches.length}`;
  }
}

// The wheel scrolls the page, as everywhere; with Ctrl, or two fingers, it zooms.
const isZoomGesture = (event) => (event.type === "wheel" ? event.ctrlKey || event.metaKey : !event.button);

const arrowHead = () => svg("defs", {}, svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4,
  markerWidth: 7, markerHeight: 7, markerUnits: "userSpaceOnUse", orient: "auto" }, svg("path", { d: "M0,0L8,4L0,8z" })));

// Returns the section of the graph: tools, drawing, panel.
function graphSection(report) {
  const panel = h("aside", { class: "panel", "aria-label": "Node", "aria-live": "polite" });
  const view = new GraphView(report, (shown, vertex) => showDetails(panel, report, shown, vertex));
  const search = h("input", { type: "search", id: "search", placeholder: "Search  /", "aria-label":
    "Search operators, tensors, numbers, delegates, reasons", input: () => view.searchText(search.value) });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") view.nextMatch(event.shiftKey ? -1 : 1);
  });
  const subgraphs = h("select", { "aria-label": "Subgraph", change: () => go(Number(subgraphs.value)) },
    report.subgraphs.map(({ name, nodes }, i) => h("option", { value: i }, `${i} ${shortened(name, 30)} (${nodes.length})`)));
  const go = (number) => {
    subgraphs.value = number;
    view.draw(number);
    for (const draw of view.followers) draw(number);
    view.searchText(search.value);
  };
  const measurements = heats(report);
  const keys = h("div", {}, legend(report));
  const recolour = () => {
    const heat = measurements[Number(colours.value)] ?? null;
    view.colourBy(heat);
    keys.replaceChildren(heat ? ramp(heat) : legend(report));
  };
  const colours = h("select", { "aria-label": "Colour", change: recolour },
    h("option", { value: -1 }, "who runs it"), measurements.map(({ word }, i) => h("option", { value: i }, word)));
  const button = (text, label, click) => h("button", { type: "button", "aria-label": label, title: label, click }, text);
  const tools = h("div", { class: "tools" }, search, view.status,
    report.subgraphs.length > 1 ? h("label", {}, "Subgraph ", subgraphs) : null,
    measurements.length ? h("label", {}, "Colour ", colours) : null,
    h("span", { class: "buttons" }, button("−", "Zoom out", () => view.zoomBy(1 / 1.5)),
      button("+", "Zoom in", () => view.zoomBy(1.5)), button("Fit", "Show all", () => view.fit())));
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.matches("input, select, textarea");
    if (event.key === "/" && !isTyping) {
      search.focus();
      event.preventDefault();
    } else if (event.key === "Escape") {
      search.value = "";
      view.search(null);
      view.select(null);
      if (event.target === search) view.current?.element.focus({ preventScroll: true });
    }
  });
  const hint = h("p", { class: "hint" }, "Drag to move, Ctrl and the wheel to zoom. ", h("kbd", {}, "/"), " searches, ",
    h("kbd", {}, "↓"), " ", h("kbd", {}, "↑"), " follow values, ", h("kbd", {}, "Enter"), " shows a node, ", h("kbd", {}, "Esc"), " ends it.");
  const section = h("section", { id: "graph" }, h("h2", {}, "Graph"), tools, keys,
    h("div", { class: "stage" }, view.canvas, panel), hint);
  return { section, view, go };
}

// The end of the address that opens the page at a node.
const addressOf = (subgraph, index) => `#node-${subgraph ? `${subgraph}.` : ""}${index}`;

// Opens the node that the end of an address names, if it does and there is one.
function openAddress(address, report, view, go) {
  const [, subgraph = "0", index] = /^#node-(?:(\d+)\.)?(\d+)$/.exec(address) ?? [];
  if (!report.subgraphs[subgraph]?.nodes[index]) return;
  if (view.number !== Number(subgraph)) go(Number(subgraph));
  view.openNode(Number(index));
  view.canvas.scrollIntoView({ block: "nearest" });
}

// The colours of a measurement, from its lowest value to its highest.
function ramp({ word, ends: [low, high], told, share, scale }) {
  const bar = h("span", { class: "ramp" }), percent = (value) => `${Math.round(100 * share(value))}%`;
  bar.style.setProperty("--low", percent(low));
  bar.style.setProperty("--high", percent(high));
  return h("ul", { class: "legend" }, h("li", {}, `${word}: ${told(low)} `, bar, told(high) !== told(low) ? ` ${told(high)}` : "", h("span", { class: "muted" }, ` ${scale}`)),
    h("li", { class: "muted" }, "pale: not measured"));
}

const MOST_PARTITIONS = 30; // letters of the legend

// The nodes that run each time: all but those that make a constant once.
const computedNodes = ({ subgraphs }) => subgraphs.flatMap((s) => s.nodes).filter((node) => !node.is_constant);

// Who has which colour, with the number of nodes and of their partitions, which prints without colours show.
function legend(report) {
  const taken = new Map(), parts = new Map();
  for (const node of computedNodes(report)) {
    const who = holder(report, node);
    taken.set(who, (taken.get(who) ?? 0) + 1);
    if (partitionName(report, node) !== "-") parts.set(who, (parts.get(who) ?? new Set()).add(node.partition));
  }
  const told = (name) => (parts.has(name) ? `, ${shortened(numbers(parts.get(name)).replace(/\d+/g, "P$&"), MOST_PARTITIONS)}` : "");
  const entry = (name, colour, note) => h("li", {}, h("span", { class: `swatch ${colour}` }),
    `${name} `, h("span", { class: "muted" }, `${count(taken.get(name) ?? 0, "node")}${told(name)}${note ? `; ${note}` : ""}`));
  return h("ul", { class: "legend" }, report.delegates.map((d) => entry(d, colourOf(report, d), report.notes[d])),
    taken.has(report.host) || !report.delegates.length ? entry(report.host, "host") : null,
    taken.has("nothing") ? entry("nothing", "unresolved") : null,
    report.crossings.length ? h("li", {}, h("span", { class: "swatch crossing" }), "to or from a delegate") : null);
}
