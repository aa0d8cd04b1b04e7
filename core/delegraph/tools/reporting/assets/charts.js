// The sections of what was measured, each with a drawing and its figures as a table.

const MARGIN = { left: 70, right: 14, top: 14, bottom: 40 };
const ROOM_FOR_TEXT = 14; // pixels of a box that has its operator's name in it

const seconds = (value) => {
  if (value === null || value === undefined) return "-";
  const [factor, unit] = value < 1e-3 ? [1e6, "µs"] : value < 1 ? [1e3, "ms"] : [1, "s"];
  return `${Number((value * factor).toPrecision(4))} ${unit}`;
};

const whole = (value) => (Number.isInteger(value) ? value.toLocaleString("en") : "");

// A drawing that is made again when its width changes: texts keep their size.
function drawing(label, draw) {
  const figure = h("figure", { role: "img", "aria-label": label });
  let drawn = 0;
  const show = () => {
    const width = figure.clientWidth;
    if (!width || width === drawn) return;
    drawn = width;
    figure.replaceChildren(draw(width));
  };
  new ResizeObserver(show).observe(figure);
  figure.redraw = () => {
    drawn = 0;
    show();
  };
  return figure;
}

// The ground of a chart: axes, the title of the one across, and a group to draw in.
function chart(width, height, x, y, title, formats) {
  const inner = [MARGIN.left, width - MARGIN.right, height - MARGIN.bottom, MARGIN.top];
  x.range([inner[0], inner[1]]);
  y.range([inner[2], inner[3]]);
  const root = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, width: "100%" });
  const across = svg("g", { class: "axis", transform: `translate(0,${inner[2]})` });
  const up = svg("g", { class: "axis", transform: `translate(${inner[0]},0)` });
  d3.select(across).call(d3.axisBottom(x).ticks(Math.max(2, width / 90)).tickFormat(formats.x).tickSizeOuter(0));
  d3.select(up).call(d3.axisLeft(y).ticks(5).tickFormat(formats.y).tickSizeOuter(0).tickSizeInner(inner[0] - inner[1]));
  const plot = svg("g");
  root.append(up, across, plot,
    svg("text", { class: "title", x: inner[1], y: height - 6, "text-anchor": "end" }, title));
  return { root, plot };
}

const key = (entries) => h("ul", { class: "legend" }, entries.map(([colour, text]) =>
  h("li", {}, h("span", { class: `swatch ${colour}` }), text)));

// -- memory -------------------------------------------------------------------------------------

function memorySection() {
  const memory = report.memory;
  if (!memory) return null;
  const core = memory.without_delegates;
  const parts = memory.not_counted.length ? [["As it runs, without the memory inside partitions", memory], core ? ["Core alone", core] : null].filter(Boolean) : [["", memory]];
  const arenas = [
    { title: "", value: ([name]) => name },
    { title: "tensors", value: ([, m]) => add(subgraphs(m), (s) => s.tensors.length), isNumber: true },
    { title: "arena", value: ([, m]) => total(m), cell: ([, m]) => total(m).toLocaleString("en"), isNumber: true },
    { title: "variables", value: ([, m]) => add(subgraphs(m), (s) => s.persistent_bytes), isNumber: true },
  ];
  const told = memory.not_counted.length ? [h("p", {}, `As it runs: + memory of ${memory.not_counted.join(" and ")} inside the partitions, not counted. `,
    core ? "Core alone: without delegates." : "Without delegates the model cannot run."), table("Bytes, with delegates and without", arenas, parts)] : null;
  return h("section", { id: "memory" }, h("h2", {}, "Memory"), told,
    parts.map(([name, each]) => [subgraphTable(name, each), memoryPart(partName(name, each), largest(each))]));
}

// The subgraphs that run: each has an arena of its own.
const subgraphs = (memory) => [memory, ...memory.subgraphs];

const add = (items, of) => items.reduce((sum, item) => sum + of(item), 0);

// Bytes of all arenas as the interpreter plans them.
const total = (memory) => memory.bytes_by_planner[memory.planners[0].planner];

// The subgraph with the largest arena, whose plan is drawn.
const largest = (memory) => subgraphs(memory).reduce((most, m) => m.planners[0].bytes > most.planners[0].bytes ? m : most);

const partName = (name, memory) => memory.subgraphs.length
  ? `${name ? `${name}, s` : "S"}ubgraph ${largest(memory).subgraph}, which has the largest arena` : name;

function subgraphTable(name, memory) {
  const told = memory.unknown ? h("p", {}, `At least ${total(memory).toLocaleString("en")} bytes: ${memory.unknown}.`) : null;
  if (!memory.subgraphs.length) return told;
  const planner = memory.planners[0].planner;
  return [told, table(`${name ? `${name}: ` : ""}${total(memory).toLocaleString("en")} bytes in the arenas of all subgraphs that run, by planner ${planner}`, [
    { title: "subgraph", value: (m) => m.subgraph, isNumber: true },
    { title: "name", value: (m) => m.name, class: "wide" },
    { title: "run by", value: (m) => m.run_by.join(", "), class: "wide" },
    { title: "bytes", value: (m) => m.planners[0].bytes, cell: (m) => m.planners[0].bytes.toLocaleString("en"), isNumber: true },
  ], subgraphs(memory))];
}

// The plans of the model as it runs, or of the core alone.
function memoryPart(name, memory) {
  const choice = h("select", { change: () => figure.redraw() },
    memory.planners.map(({ planner }) => h("option", {}, planner)));
  const planner = () => memory.planners.find((p) => p.planner === choice.value);
  const figure = drawing("Places of tensors in the arena over the plan, bytes in use, and the lower bound",
    (width) => memoryChart(width, memory, planner()));
  const told = [`${count(memory.tensors.length, "tensor")} in the arena, aligned to ${memory.alignment}; ${size(memory.persistent_bytes)} of variables beside it.`,
    memory.open_shape === null ? "" : " Up to the first node whose output shape is known only while invoking."];
  return h("div", { class: "plans" }, name ? h("h3", {}, name) : null, h("p", {}, ...told),
    h("label", {}, "Plan of ", choice),
    key([["d0", "a tensor, as wide as its life"], ["line used", "bytes in use"], ["line bound", "lower bound"]]),
    figure, plannerTable(memory), memory.peak ? peakTable(memory) : null,
    memory.suggestions.length ? savingTable(memory) : null);
}

// What would make the arena smaller, with its share of the interpreter's arena.
function savingTable({ suggestions, planners: [{ bytes }] }) {
  const whole = Math.max(bytes, 1);
  return table("What would save memory, at most", [
    { title: "bytes", value: (s) => s.saves, cell: (s) => s.saves.toLocaleString("en"), isNumber: true },
    { title: "share", value: (s) => s.saves, cell: (s) => `${Math.round(100 * s.saves / whole)} %`, isNumber: true },
    { title: "what", value: (s) => s.text, class: "wide" },
  ], suggestions);
}

// The word for a position in the execution plan: with partitions it is not the index of a node.
const unit = ({ is_by_node: isByNode }) => (isByNode ? "node" : "step");

function memoryChart(width, memory, plan) {
  const { tensors, operators } = memory, used = (plan.in_use ?? memory.in_use).map(([task, bytes]) => [Math.max(task, memory.start), bytes]), lasts = plan.last ?? tensors.map(({ last }) => last);
  const top = Math.max(plan.bytes, plan.bound, ...used.map(([, bytes]) => bytes), 1);
  const steps = Math.max(operators.length, 1);
  const x = d3.scaleLinear([memory.start, steps], [0, 1]), y = d3.scaleLinear([0, top], [0, 1]);
  const { root, plot } = chart(width, 380, x, y, `${unit(memory)} of the execution plan`, { x: whole, y: size });
  tensors.forEach((tensor, i) => {
    const from = x(Math.max(tensor.first, memory.start)), to = x(lasts[i] + 1), offset = plan.offsets[i];
    const low = y(offset), high = y(offset + tensor.bytes);
    const box = svg("g", { class: "box" },
      svg("title", {}, `${tensor.name}\n${tensor.made_by}, ${size(tensor.bytes)} from ${offset}, ${unit(memory)}s ${tensor.first}-${lasts[i]}`),
      svg("rect", { x: from, y: high, width: Math.max(to - from - 0.5, 1), height: Math.max(low - high - 0.5, 0.5) }));
    if (low - high > ROOM_FOR_TEXT && to - from > 7 * tensor.made_by.length + 8) {
      box.append(svg("text", { x: from + 4, y: high + 12 }, tensor.made_by));
    }
    plot.append(box);
  });
  const line = d3.line().curve(d3.curveStepAfter).x(([task]) => x(task)).y(([, bytes]) => y(bytes));
  const last = used.length ? [[steps, used[used.length - 1][1]]] : [];
  plot.append(svg("path", { class: "line used", d: line([...used, ...last]) }),
    svg("path", { class: "line bound", d: `M${x(memory.start)},${y(plan.bound)}H${x(steps)}` }));
  return root;
}

function plannerTable(memory) {
  const least = Math.min(...memory.planners.map(({ bytes }) => bytes));
  return [table("Planners, bytes of the arena", [
    { title: "planner", value: (p) => p.planner },
    { title: "bytes", value: (p) => p.bytes, cell: (p) => p.bytes.toLocaleString("en"), isNumber: true },
    { title: "bound", value: (p) => p.bound, cell: (p) => p.bound.toLocaleString("en"), isNumber: true },
    { title: "ratio", value: (p) => p.ratio, cell: (p) => p.is_optimal && p.bytes === least ? "least" : p.ratio.toFixed(3), isNumber: true },
    { title: "in place", value: (p) => memory.in_place.includes(p.planner) ? "yes" : "no" },
    { title: "ms", value: (p) => p.milliseconds, cell: (p) => p.milliseconds.toFixed(2), isNumber: true },
  ], memory.planners), h("p", { class: "muted" }, `bound: no plan is smaller; ratio: arena / bound; least: equal, no row is smaller. ${memory.in_place.join(" and ")} compute in place and keep the model's inputs, so have another bound.`)];
}

function peakTable(memory) {
  const { peak, tensors } = memory, rows = peak.tensors.map((i) => tensors[i]);
  const short = shortNames(rows.map((t) => t.name));
  const step = memory.is_by_node ? "" : `step ${peak.position} of the execution plan, `;
  const plan = memory.planners[0], lasts = new Map(peak.tensors.map((i) => [tensors[i], plan.last?.[i] ?? tensors[i].last]));
  const caption = `Most is in use at ${step}${peak.where}: ${peak.bytes.toLocaleString("en")} bytes (planner ${plan.planner})`;
  return table(caption, [
    { title: "tensor", value: (t) => t.index, isNumber: true },
    { title: "name", value: (t) => t.name, cell: (t) => named(t.name, short), class: "wide" },
    { title: "made by", value: (t) => t.made_by },
    { title: "bytes", value: (t) => t.bytes, cell: (t) => t.bytes.toLocaleString("en"), isNumber: true },
    { title: `${unit(memory)}s`, value: (t) => t.first, cell: (t) => `${t.first}-${lasts.get(t)}`, isNumber: true },
  ], rows);
}

// -- time -----------------------------------------------------------------------------------------

function timeSection(view, go) {
  const { benchmark, profile } = report;
  if (!benchmark && !profile) return null;
  return h("section", { id: "time" }, h("h2", {}, "Time"), benchmark ? benchmarkParts(benchmark) : null,
    profile ? profileParts(profile, view, go) : null);
}

function benchmarkParts(benchmark) {
  const { latency, drawn_runs: runs, machine } = benchmark;
  const pairs = latency ? [["median", seconds(latency.median)], ["mean", seconds(latency.mean)],
    ["p95", seconds(latency.percentiles.p95)], ["min", seconds(latency.min)], ["max", seconds(latency.max)],
    ["runs", `${latency.count}`], ["inferences a second", benchmark.inferences_per_second.toFixed(1)]] : [];
  if (benchmark.signature !== null) pairs.unshift(["signature", benchmark.signature]);
  if (benchmark.tokens_per_second !== null) pairs.push(["tokens a second", benchmark.tokens_per_second.toFixed(1)]);
  pairs.push(["first inference", seconds(benchmark.first_inference_seconds)], ["init", seconds(benchmark.init_seconds)]);
  if (benchmark.peak_memory !== null) pairs.push(["peak memory", size(benchmark.peak_memory)]);
  return [h("div", { class: "facts" }, facts(pairs)),
    cautions(benchmark.cautions),
    runs.length > 1 ? drawing("Time of the runs", (width) => runsChart(width, runs, latency)) : null,
    runs.length && runs.length < latency.count ? h("p", { class: "muted" }, "Drawn: the fastest and the slowest run of each stretch.") : null,
    stageTable(benchmark),
    h("p", { class: "muted" }, `${machine.processor.name || machine.processor.machine}, ${machine.processor.usable_cores} cores, ${machine.system}, Python ${machine.python}, ${machine.date}`)];
}

// Words that say where the nodes of a section are.
const inSection = ({ title, is_inside: isInside }) => (isInside ? title : `of ${title}`);

// The time of every node, section by section, and of all nodes of one operator together.
function profileParts(profile, view, go) {
  const told = `${count(profile.runs, "run")} with every node timed: median ${seconds(profile.median)}, ${seconds(profile.outside)} of it outside of nodes.`;
  return [h("h3", {}, "Operators"), h("p", {}, told), profile.notes.map((note) => h("p", { class: "muted" }, note)),
    profile.sections.flatMap((section) => {
      const where = `${inSection(section)}, ${seconds(section.seconds)} a run`;
      const own = section.is_inside ? "; in the times of its partitions, too" : "";
      return [table(`Nodes ${where}${own}`, nodeColumns(view, go), section.nodes),
        table(`By operator, ${section.title}, ${seconds(section.seconds)} a run`, typeColumns, section.types)];
    })];
}

const barCell = ({ share }) => {
  const bar = h("span", { class: "bar" });
  bar.style.setProperty("--share", share);
  return [bar, `${(100 * share).toFixed(1)} %`];
};

const timeColumns = [
  { title: "a run", value: (n) => n.seconds, cell: (n) => seconds(n.seconds), isNumber: true },
  { title: "share", value: (n) => n.share, cell: barCell, class: "share", isNumber: true },
];

const typeColumns = [{ title: "node type", value: (n) => n.type, cell: (n) => operator(n.type) }, ...timeColumns,
  { title: "count", value: (n) => n.count, isNumber: true }];

const nodeColumns = (view, go) => [
  { title: "node type", value: (n) => n.type, cell: (n) => operator(n.type) },
  ...timeColumns,
  { title: "nodes", value: (n) => n.nodes[0] ?? -1, class: "wide", cell: (n) => nodesLink(n, view, go) },
  { title: "runs on", value: (n) => n.delegate ?? report.host, class: "nowrap" },
  { title: "calls", value: (n) => n.times, cell: (n) => figure(n.times), isNumber: true },
];

// An operator's name, which may break between its words where a column is narrow.
const operator = (name) => name.split(/(?<=\+)|(?<=_)(?=[A-Z]{3})/).flatMap((part, i) => (i ? [h("wbr"), part] : [part]));

const cautions = (texts) => texts.map((text) => h("p", { class: "reason" }, `caution: ${text}`));

// A button that marks nodes in the graph.
function nodesLink({ subgraph, nodes }, view, go) {
  if (nodes.length === 1) return nodeLink(subgraph, nodes[0], view, go);
  const show = () => {
    if (view.number !== subgraph) go(subgraph);
    view.mark(nodes);
    document.getElementById("graph").scrollIntoView();
  };
  return nodes.length ? h("button", { type: "button", class: "link", click: show }, numbers(nodes)) : "-";
}

function runsChart(width, runs, { count: number, max, median }) {
  const x = d3.scaleLinear([0, number], [0, 1]);
  const y = d3.scaleLinear([0, max], [0, 1]).nice();
  const { root, plot } = chart(width, 220, x, y, "run", { x: whole, y: seconds });
  plot.append(svg("path", { class: "line bound", d: `M${x(0)},${y(median)}H${x(number)}` }));
  const radius = runs.length < number ? 1 : 2;
  for (const [run, time] of runs) plot.append(svg("circle", { class: "dot", cx: x(run + 0.5), cy: y(time), r: radius }));
  return root;
}

function stageTable({ stages }) {
  return table("Stages", [
    { title: "stage", value: (s) => (s.name === "invoke" ? "all runs" : s.name) },
    { title: "time", value: (s) => s.seconds, cell: (s) => seconds(s.seconds), isNumber: true },
    { title: "memory after", value: (s) => s.memory ?? -1, cell: (s) => size(s.memory), isNumber: true },
    { title: "peak", value: (s) => s.peak ?? -1, cell: (s) => size(s.peak), isNumber: true },
  ], stages);
}

// -- verdicts -----------------------------------------------------------------------------------------

function verdictSection() {
  const found = report.comparison;
  if (!found) return null;
  const judged = found.others.filter(({ verdict }) => verdict);
  const rows = [{ name: `${found.one.name}, once more`, ratio: found.control, word: "control" },
    ...judged.map(({ name, verdict }) => ({ name, ratio: verdict.ratio, word: verdict.word }))];
  const spread = ({ low, value, high }) => `${figure(value)} [${figure(low)} to ${figure(high)}]`;
  return h("section", { id: "verdicts" }, h("h2", {}, "Verdicts"),
    h("p", {}, `${found.one.name}: ${seconds(found.one.median)}. Ratio: its time by that of the other, below 1 it is faster; the interval holds 95 % of bootstrap resamples of ${count(found.blocks, "block")}. Beside itself it is ${spread(found.control)}.`),
    drawing("Ratio of times with its interval, beside each other set-up", (width) => ratioChart(width, rows)),
    table(`${found.one.name} beside each other set-up`, [
      { title: "set-up", value: (t) => t.name, class: "wide" },
      { title: "threads", isNumber: true, value: (t) => t.threads ?? -1, cell: (t) => t.threads ?? "-" },
      { title: "median", isNumber: true, value: (t) => t.median ?? -1, cell: (t) => seconds(t.median) },
      found.one.tokens_per_second === null ? null : { title: "tokens a second", isNumber: true, value: (t) => t.tokens_per_second ?? -1, cell: (t) => t.tokens_per_second?.toFixed(1) ?? "-" },
      { title: "ratio [95 %]", isNumber: true, value: (t) => t.verdict?.ratio.value ?? -1, cell: (t) => t.verdict ? spread(t.verdict.ratio) : "-" },
      { title: "verdict", value: (t) => t.words ?? t.error, class: "wide" },
    ].filter(Boolean), found.others),
    cautions([...found.cautions, ...judged.filter((t) => t.warning).map((t) => `${t.name}: ${t.warning}`)]),
    judged.filter(({ verdict }) => verdict.word === "too noisy").map((t) => h("p", { class: "muted" },
      `${t.name}: too noisy, since faster or slower needs the whole interval beyond the noise floor, ${(100 * t.verdict.floor).toFixed(1)} % from 1.`)));
}

const ROW = 34; // pixels

function ratioChart(width, rows) {
  const low = Math.min(0.9, ...rows.map(({ ratio }) => ratio.low)), high = Math.max(1.1, ...rows.map(({ ratio }) => ratio.high));
  const x = d3.scaleLog([low * 0.95, high * 1.05], [0, 1]);
  const y = d3.scaleLinear([0, rows.length], [0, 1]);
  const ticks = d3.ticks(low, high, 6), names = shortNames(rows.map(({ name }) => name), Math.floor(width / 8));
  const { root, plot } = chart(width, MARGIN.top + MARGIN.bottom + rows.length * ROW, x, y, "ratio of times", { x: (v) => figure(v), y: () => "" });
  root.querySelectorAll(".axis").forEach((axis) => axis.remove());
  for (const tick of ticks) {
    plot.append(svg("path", { class: "grid", d: `M${x(tick)},${y(rows.length)}V${y(0)}` }),
      svg("text", { x: x(tick), y: y(0) + 16, "text-anchor": "middle" }, figure(tick)));
  }
  plot.append(svg("path", { class: "line bound", d: `M${x(1)},${y(rows.length)}V${y(0)}` }));
  rows.forEach(({ name, ratio, word }, i) => {
    const middle = y(rows.length - i - 0.5);
    plot.append(svg("path", { class: `ratio ${word.replace(" ", "-")}`, d: `M${x(ratio.low)},${middle}H${x(ratio.high)}` }),
      svg("circle", { class: `ratio ${word.replace(" ", "-")}`, cx: x(ratio.value), cy: middle, r: 4 }),
      svg("text", { class: "row", x: MARGIN.left, y: middle - 8 }, names.get(name)));
  });
  return root;
}

// -- differences ------------------------------------------------------------------------------------

const QUIETEST = 1e-9; // noise below this is drawn as this: equal values have none at all

const figure = (value) => {
  if (value === null || value === undefined) return "-";
  return value !== 0 && Math.abs(value) < 1e-3 ? value.toExponential(2) : `${Number(value.toPrecision(4))}`;
};

// Infinite noise comes as null: values that are NaN or infinite on one side only.
const isKnown = (way) => "noise" in way;
const noiseOf = (way) => (way.noise === null ? Infinity : way.noise ?? 0);
const own = (layer) => (report.differences.same_inputs_say_more ? layer.same_inputs : layer.drift);

function differenceSection(view, go) {
  const found = report.differences;
  if (!found) return null;
  const worst = found.worst_first.map((i) => found.layers[i]);
  const known = [...found.worst_first].sort((a, b) => a - b).map((i) => found.layers[i]);
  const areSame = known.length > 0 && known.every((layer) => !noiseOf(layer.drift) && !noiseOf(own(layer)));
  const ways = found.same_inputs_say_more ? [["drift", "drift"], ["same_inputs", "same inputs"]] : [["drift", "drift"]];
  return h("section", { id: "differences" }, h("h2", {}, "Differences"),
    found.verdict ? h("p", {}, h("strong", {}, found.verdict.text)) : null,
    h("p", {}, `${found.test} against ${found.reference}, ${count(found.runs, "run")}.`),
    found.notes.map((note) => h("p", { class: "muted" }, note)),
    found.outputs ? outputParts(found) : null, (found.alone ?? []).map((text) => h("p", {}, text)),
    areSame ? h("p", {}, h("strong", {}, "Every tensor is the same, value for value.")) : known.length ? [
      key(ways.map(([name, word]) => [`dot ${name}`, word])),
      drawing("Noise of every layer, in execution order", (width) => noiseChart(width, known, ways)),
      h("p", { class: "muted" }, `${found.figures} Noise is the difference's energy as a share of the signal, in the worst run.`)] : null,
    known.length ? layerTable(worst, ways, view, go) : null,
    found.left_out.map((text) => h("p", { class: "muted" }, text)));
}

function outputParts(found) {
  const short = shortNames(found.outputs.map((o) => o.name));
  return [table("Outputs", [
    { title: "name", value: (o) => o.name, cell: (o) => named(o.name, short) },
    { title: "type", value: (o) => o.type },
    { title: "max", isNumber: true, value: (o) => o.max ?? -1, cell: (o) => figure(o.max) },
    { title: "SNR dB", isNumber: true, value: (o) => o.snr_db ?? -1, cell: (o) => o.max === 0 ? "inf" : figure(o.snr_db) },
    { title: "unequal", isNumber: true, value: (o) => o.unequal },
  ], found.outputs), found.outputs.flatMap((o) => o.facts.map((fact) => h("p", {}, named(o.name, short), `: ${fact}`)))];
}

function noiseChart(width, layers, ways) {
  const shown = (way) => Math.min(Math.max(noiseOf(way), QUIETEST), 10);
  const x = d3.scaleLinear([0, Math.max(layers.length, 1)], [0, 1]);
  const y = d3.scaleLog([QUIETEST, 10], [0, 1]);
  const { root, plot } = chart(width, 260, x, y, "tensor, in execution order", { x: whole, y: (v) => Number.isInteger(Math.log10(v) / 2) ? v.toExponential(0) : "" });
  layers.forEach((layer, i) => {
    for (const [name] of ways) {
      const way = layer[name];
      if (!isKnown(way)) continue;
      const title = `${layer.node} ${layer.op}, ${layer.name}\nnoise ${figure(way.noise)}, greatest difference ${figure(way.max)}`;
      plot.append(svg("circle", { class: `dot ${name}`, cx: x(i + 0.5), cy: y(shown(way)), r: name === "drift" ? 4 : 2.5 }, svg("title", {}, title)));
    }
  });
  return root;
}

const LAYER_ORDER = { alone: "those first that add most noise themselves", exposed: "by noise on the same inputs", boundaries: "by noise on the same inputs" };

// The columns are those of `diff --layers`, the most important ones first, for narrow windows.
function layerTable(layers, ways, view, go) {
  const found = report.differences, note = (l) => l.same_inputs.note || l.drift.note || "", short = shortNames(layers.map((l) => l.name));
  const decibels = (way) => !isKnown(way) ? "-" : way.noise === 0 ? "inf" : figure(way.snr_db);
  const columns = ([name, word]) => [
    { title: word, isNumber: true, value: (l) => l[name].max ?? -1,
      cell: (l) => l[name].is_off ? h("strong", { class: "problem" }, figure(l[name].max)) : figure(l[name].max) },
    { title: name === "drift" ? "drift dB" : "same dB", isNumber: true, value: (l) => isKnown(l[name]) ? noiseOf(l[name]) : -1, cell: (l) => decibels(l[name]) },
  ];
  return table(`Layers, ${found.same_inputs_say_more ? LAYER_ORDER[found.inner] : "by noise of their drift"}`, [
    { title: "node", isNumber: true, value: (l) => l.node, cell: (l) => nodeLink(l.subgraph, l.node, view, go) },
    { title: "operator", value: (l) => l.op, cell: (l) => operator(l.op) },
    ...[...ways].reverse().flatMap(columns),
    { title: "name", value: (l) => l.name, cell: (l) => named(l.name, short), class: "wide" },
    { title: "runs on", value: (l) => l.delegate ?? report.host, class: "nowrap" },
    layers.some(note) ? { title: "note", value: note, cell: note } : null,
  ].filter(Boolean), layers);
}

// A button that shows a node in the graph.
function nodeLink(subgraph, index, view, go) {
  const show = () => {
    if (view.number !== subgraph) go(subgraph);
    view.openNode(index);
    document.getElementById("graph").scrollIntoView();
  };
  return h("button", { type: "button", class: "link", click: show }, `${index}`);
}
