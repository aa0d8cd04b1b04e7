// Where the nodes of one column are drawn: in layers, each node below all that it reads.
//
// As Sugiyama has it: layers by the longest path, places for edges that pass a layer, an order by
// the middle of neighbours, then x as near to neighbours as the others of the layer allow. Sweeps
// are few, so that time stays linear: a page with 5,000 nodes has to open at once.
//
// Source: K. Sugiyama, S. Tagawa, M. Toda, Methods for visual understanding of hierarchical system
// structures (1981); places in a layer are an isotonic regression, by pooling adjacent violators.

const SWEEPS = 4;
const MOST_BENDS = 2000; // in a column; edges beyond these are drawn straight

// Places the nodes of one column, with its left upper corner at (left, 0); returns its size.
function placeColumn(ids, vertices, edges, left, width) {
  const cells = new Map(ids.map((id) => [id, { id, size: width, rank: 0, up: [], down: [], x: 0 }]));
  const layers = layered(cells, edges);
  for (let sweep = 0; sweep < SWEEPS; sweep++) sortLayers(layers, sweep % 2 === 0);
  layers.forEach(pack);
  for (let sweep = 0; sweep < SWEEPS; sweep++) moveLayers(layers, sweep % 2 === 0 ? ["up"] : ["down"]);
  moveLayers(layers, ["up", "down"]);
  const all = layers.flat();
  const start = Math.min(...all.map((cell) => cell.x - cell.size / 2));
  const end = Math.max(...all.map((cell) => cell.x + cell.size / 2));
  for (const cell of all) {
    cell.x += left - start;
    cell.y = cell.rank * (NODE_HEIGHT + ROW_GAP) + NODE_HEIGHT / 2;
    if (cell.id !== undefined) Object.assign(vertices[cell.id], { x: cell.x, y: cell.y });
  }
  for (const edge of edges) edge.path = alongCells(edge.cells);
  return { width: end - start, height: layers.length * (NODE_HEIGHT + ROW_GAP) };
}

// Gives every cell its rank and neighbours, and every edge its cells; returns the layers.
function layered(cells, edges) {
  const inside = edges.map((edge) => [edge, cells.get(edge.source), cells.get(edge.target)]);
  const from = new Map(), to = new Map();
  for (const cell of cells.values()) {
    from.set(cell, []);
    to.set(cell, []);
  }
  for (const [, source, target] of inside) {
    from.get(target).push(source);
    to.get(source).push(target);
  }
  for (const cell of cells.values()) cell.rank = 1 + Math.max(-1, ...from.get(cell).map((s) => s.rank));
  for (const cell of cells.values()) { // what reads nothing here stands beside what it is for
    if (!from.get(cell).length && to.get(cell).length) cell.rank = Math.max(0, Math.min(...to.get(cell).map((t) => t.rank)) - 1);
  }
  const layers = [];
  const add = (cell) => (layers[cell.rank] ??= []).push(cell);
  for (const cell of cells.values()) add(cell);
  let bends = 0;
  for (const [edge, source, target] of inside) {
    edge.cells = [source];
    const isTooLong = (bends += Math.max(0, target.rank - source.rank - 1)) > MOST_BENDS;
    for (let rank = source.rank + 1; rank < target.rank && !isTooLong; rank++) {
      const bend = { size: 0, rank, up: [], down: [], x: 0 };
      add(bend);
      edge.cells.push(bend);
    }
    edge.cells.push(target);
    if (target.rank <= source.rank || isTooLong) continue; // in a circle, which no good model has
    for (let i = 1; i < edge.cells.length; i++) {
      edge.cells[i].up.push(edge.cells[i - 1]);
      edge.cells[i - 1].down.push(edge.cells[i]);
    }
  }
  return layers;
}

// The mean of a number of the cells, which has the name *key*.
function middle(cells, key) {
  let sum = 0;
  for (const cell of cells) sum += cell[key];
  return sum / cells.length;
}

// Sorts each layer by the middle of the neighbours above, or below.
function sortLayers(layers, isDown) {
  for (const layer of layers) layer.forEach((cell, i) => { cell.place = i; });
  for (const layer of isDown ? layers : [...layers].reverse()) {
    if (layer.length < 2) continue;
    for (const cell of layer) {
      const near = isDown ? cell.up : cell.down;
      cell.key = near.length ? middle(near, "place") : cell.place;
    }
    layer.sort((a, b) => a.key - b.key);
    layer.forEach((cell, i) => { cell.place = i; });
  }
}

const apart = (a, b) => (a.size + b.size) / 2 + NODE_GAP;

function pack(layer) {
  layer.forEach((cell, i) => { cell.x = i ? layer[i - 1].x + apart(layer[i - 1], cell) : 0; });
}

// Moves the cells of each layer as near to their neighbours' middles as their distances allow.
function moveLayers(layers, sides) {
  for (const layer of sides[0] === "down" ? [...layers].reverse() : layers) {
    const blocks = []; // of cells that touch: the mean of where they would be, and the first cell
    let offset = 0;
    layer.forEach((cell, first) => {
      offset += first ? apart(layer[first - 1], cell) : 0;
      cell.offset = offset;
      const near = sides.length > 1 ? [...cell.up, ...cell.down] : cell[sides[0]];
      const block = { x: (near.length ? middle(near, "x") : cell.x) - offset, weight: 1, first };
      while (blocks.length && blocks.at(-1).x >= block.x) {
        const last = blocks.pop(), weight = last.weight + block.weight;
        block.x = (last.x * last.weight + block.x * block.weight) / weight;
        block.weight = weight;
        block.first = last.first;
      }
      blocks.push(block);
    });
    blocks.forEach(({ x, first }, i) => {
      const end = blocks[i + 1]?.first ?? layer.length;
      for (let j = first; j < end; j++) layer[j].x = x + layer[j].offset;
    });
  }
}

const point = (x, y) => `${Math.round(10 * x) / 10},${Math.round(10 * y) / 10}`;

// Returns the path of an edge: curves between layers, straight beside the nodes that it passes.
function alongCells(cells) {
  const half = NODE_HEIGHT / 2;
  let path = `M${point(cells[0].x, cells[0].y + half)}`;
  for (let i = 1; i < cells.length; i++) {
    const [from, to] = [cells[i - 1], cells[i]];
    if (i > 1) path += `L${point(from.x, from.y + half)}`;
    const between = (from.y + to.y) / 2, end = point(to.x, to.y - half);
    path += from.x === to.x ? `L${end}` : `C${point(from.x, between)} ${point(to.x, between)} ${end}`;
  }
  return path;
}
