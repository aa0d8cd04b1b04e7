// Where the nodes of a graph are drawn.
//
// Networks are long and thin: 2,000 nodes under each other are an endless line. So
// the graph is cut where few values cross, and the stretches stand side by side, like columns of a
// newspaper. layers.js places the nodes of a column; edges between columns run in the gaps.

const NODE_HEIGHT = 38;
const ROW_GAP = 26;
const NODE_GAP = 18;
const COLUMN_GAP = 64;
const ROUNDING = 8; // of the corners of edges between columns
const MOST_IN_COLUMN = 200; // nodes
const FEWEST_ROWS = 6;
const MANY_VERTICES = 1000; // they are placed once, for an estimated size

// Returns vertices (graph inputs, operators, graph outputs) and the edges between them. Nodes that
// only widen a constant have none: they are folded into what reads them, by the tensor they make.
function graphOf(subgraph) {
  const vertices = [], edges = [], maker = new Map(), folded = new Map();
  const add = (vertex) => vertices.push({ ...vertex, id: vertices.length, from: [], to: [] }) - 1;
  const connect = (tensor, target) => {
    const source = maker.get(tensor);
    if (source === undefined || vertices[target].from.includes(source)) return;
    edges.push({ source, target, tensor });
    vertices[source].to.push(target);
    vertices[target].from.push(source);
  };
  for (const tensor of subgraph.inputs) {
    if (tensor >= 0) maker.set(tensor, add({ kind: "input", tensor }));
  }
  const first = vertices.length;
  subgraph.nodes.forEach((node, index) => {
    const id = node.is_constant ? null : add({ kind: "node", node, index });
    for (const tensor of node.outputs) id === null ? folded.set(tensor, { node, index }) : maker.set(tensor, id);
  });
  for (const { id, node } of vertices.slice(first)) {
    for (const tensor of node.inputs) connect(tensor, id);
  }
  for (const tensor of subgraph.outputs) {
    if (tensor >= 0) connect(tensor, add({ kind: "output", tensor }));
  }
  return { vertices, edges, folded };
}

// Returns ids such that each comes after what it reads, and soon before what reads it.
function inOrder(vertices) {
  const order = [], seen = new Uint8Array(vertices.length);
  const visit = (root) => {
    const stack = [root];
    while (stack.length) {
      const id = stack[stack.length - 1];
      if (seen[id]) {
        stack.pop();
        if (seen[id] === 1) order.push(id);
        seen[id] = 2;
      } else {
        seen[id] = 1;
        for (const source of [...vertices[id].from].reverse()) if (!seen[source]) stack.push(source);
      }
    }
  };
  for (const { id, to } of vertices) if (!to.length) visit(id);
  for (const { id } of vertices) if (!seen[id]) visit(id); // in circles, which no good model has
  return order;
}

// Returns how many edges cross from before each position of the order to after it.
function crossingsAt(order, edges) {
  const position = new Int32Array(order.length);
  order.forEach((id, i) => { position[id] = i; });
  const change = new Int32Array(order.length + 2);
  for (const { source, target } of edges) {
    change[position[source] + 1] += 1;
    change[position[target] + 1] -= 1;
  }
  for (let i = 1; i < change.length; i++) change[i] += change[i - 1];
  return change;
}

// Returns the order cut into columns of about so many rows, each cut where few edges cross.
function cutIntoColumns(order, vertices, crossings, rows) {
  const columns = [], column = new Int32Array(vertices.length).fill(-1);
  const depth = new Int32Array(vertices.length);
  for (let start = 0; start < order.length;) {
    let deepest = 0, best = -1, i = start;
    for (; i < order.length && i - start < MOST_IN_COLUMN; i++) {
      const id = order[i];
      const above = vertices[id].from.filter((source) => column[source] === columns.length);
      depth[id] = 1 + Math.max(0, ...above.map((source) => depth[source]));
      column[id] = columns.length;
      deepest = Math.max(deepest, depth[id]);
      if (deepest > 1.25 * rows) break;
      const isFewer = best < 0 || crossings[i + 1] <= crossings[best];
      if (deepest >= 0.75 * rows && isFewer) best = i + 1;
    }
    const end = i === order.length ? i : best > start ? best : Math.max(i, start + 1);
    for (let j = end; j <= i && j < order.length; j++) column[order[j]] = -1;
    columns.push(order.slice(start, end));
    start = end;
  }
  return { columns, column, depth };
}

// Returns about how large the drawing is, without placing anything.
function estimated({ vertices, edges }, rows, width) {
  const order = inOrder(vertices);
  const { columns, depth } = cutIntoColumns(order, vertices, crossingsAt(order, edges), rows);
  let across = COLUMN_GAP, deepest = 0;
  for (const ids of columns) {
    const layers = [];
    for (const id of ids) layers[depth[id]] = (layers[depth[id]] ?? 0) + 1;
    across += Math.max(...layers.filter(Boolean)) * (width + NODE_GAP) + COLUMN_GAP;
    deepest = Math.max(deepest, layers.length);
  }
  return { width: across, height: (deepest + 4) * (NODE_HEIGHT + ROW_GAP) };
}

// Gives every vertex x and y (its middle) and every edge a path; returns the drawing's size.
function placed(graph, rows, width) {
  const { vertices, edges } = graph;
  const order = inOrder(vertices);
  const { columns, column } = cutIntoColumns(order, vertices, crossingsAt(order, edges), rows);
  const inside = columns.map(() => []), between = [];
  for (const edge of edges) {
    const here = column[edge.source];
    if (here === column[edge.target]) inside[here].push(edge);
    else between.push(edge);
  }
  const gaps = [0]; // the middle of the gap left of each column, and right of the last
  let left = COLUMN_GAP / 2, height = 0;
  columns.forEach((ids, i) => {
    const size = placeColumn(ids, vertices, inside[i], left, width);
    left += size.width + COLUMN_GAP;
    height = Math.max(height, size.height);
    gaps.push(left - COLUMN_GAP / 2);
  });
  between.forEach((edge, i) => {
    edge.path = rounded(aroundColumns(edge, i, vertices, column, gaps));
  });
  return { left: 0, top: -ROW_GAP * 3, width: left - COLUMN_GAP / 2, height: height + ROW_GAP * 4 };
}

// Returns the corners of an edge that leaves its column: through the gap between two rows into the
// gap between columns, over the columns between where there are some, and down to its target.
function aroundColumns({ source, target }, number, vertices, column, gaps) {
  const from = vertices[source], to = vertices[target];
  const lane = (number % 7 - 3) * 5; // so that neighbours do not hide each other
  const leave = from.y + NODE_HEIGHT / 2 + ROW_GAP * 0.4;
  const arrive = to.y - NODE_HEIGHT / 2 - ROW_GAP * 0.6;
  const out = gaps[column[source] + 1] + lane, into = gaps[column[target]] + lane;
  const over = out === into ? [] : [[out, -ROW_GAP * 1.6 + lane * 1.6], [into, -ROW_GAP * 1.6 + lane * 1.6]];
  return [
    [from.x, from.y + NODE_HEIGHT / 2], [from.x, leave], [out, leave],
    ...over, [into, arrive], [to.x, arrive], [to.x, to.y - NODE_HEIGHT / 2],
  ];
}

// Returns the path through corners, each of them rounded.
function rounded(points) {
  const path = d3.path();
  path.moveTo(...points[0]);
  for (let i = 1; i + 1 < points.length; i++) path.arcTo(...points[i], ...points[i + 1], radius(points, i));
  path.lineTo(...points[points.length - 1]);
  return path.toString();
}

// Half of the shorter neighbour, so that two corners do not overlap.
function radius(points, i) {
  const length = ([x0, y0], [x1, y1]) => Math.hypot(x1 - x0, y1 - y0);
  return Math.min(ROUNDING, length(points[i - 1], points[i]) / 2, length(points[i], points[i + 1]) / 2);
}

// Lays a graph out so that it fills a window of the given width to height.
function layOut(graph, aspect, width) {
  const area = graph.vertices.length * (width + COLUMN_GAP) * 1.2 * (NODE_HEIGHT + ROW_GAP);
  const height = Math.sqrt(area / aspect);
  let rows = Math.max(FEWEST_ROWS, height / (NODE_HEIGHT + ROW_GAP));
  const isLarge = graph.vertices.length > MANY_VERTICES;
  const box = (isLarge ? estimated : placed)(graph, rows, width);
  const off = box.width / box.height / aspect;
  const isFar = off > 1.4 || off < 0.7; // branches made columns wider, or the guess was too wide
  if (isFar) rows = Math.max(FEWEST_ROWS, rows * Math.sqrt(off));
  return isFar || isLarge ? placed(graph, rows, width) : box;
}
