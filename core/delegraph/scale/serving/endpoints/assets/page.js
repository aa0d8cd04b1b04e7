// The page of the server. It asks what any client may ask, and makes text of every name.

import { figures, samplesByModel } from "/page/figures.js";
import { curl, python } from "/page/snippets.js";

const PERIOD = 2000; // milliseconds between two readings
const WINDOW = 5; // readings over which figures are taken
const KEPT = 60; // points of a line
const STATES = { READY: "ready", LOADING: "loading", UNLOADING: "unloading", UNAVAILABLE: "not ready" };

const byId = (id) => document.getElementById(id);
const grpc = document.querySelector('meta[name="grpc"]').content;
const cards = new Map();
const readings = [];
let token = "";
let timer = null;

class Refused extends Error {}

async function asked(path, method = "GET") {
  const headers = token ? { authorization: `Bearer ${token}` } : {};
  const answer = await fetch(path, { method, headers, cache: "no-store" });
  if (answer.status === 401) throw new Refused();
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer;
}

const json = async (path, method) => (await asked(path, method)).json();

function element(tag, text = "", properties = {}) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(text);
  return made;
}

// -- a model ---------------------------------------------------------------------------------------

class Card {
  constructor(name) {
    this.name = name;
    this.shown = "";
    this.rates = [];
    this.root = element("article");
    const title = element("div", "", { className: "title" });
    this.state = element("p", "", { className: "state" });
    title.append(element("h2", name), this.state);
    this.reasons = element("div");
    this.live = element("div", "", { hidden: true });
    this.values = new Map();
    const list = element("dl", "", { className: "figures" });
    for (const label of ["requests/s", "latency p50", "latency p99", "queue", "in progress", "rows a batch", "requests", "incidents"]) {
      const cell = element("div");
      this.values.set(label, element("dd", "–"));
      cell.append(element("dt", label), this.values.get(label));
      list.append(cell);
    }
    this.line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
    const chart = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    for (const [key, value] of Object.entries({ viewBox: "0 0 100 20", preserveAspectRatio: "none", "aria-hidden": "true" })) chart.setAttribute(key, value);
    chart.append(this.line);
    const figure = element("figure");
    figure.append(chart, element("figcaption", "requests a second, last two minutes"));
    this.live.append(list, figure);
    this.description = element("div");
    this.root.append(title, this.reasons, this.live, this.description);
  }

  showStates(entries) {
    const words = entries.map(({ version, state }) => `${version ? `version ${version} ` : ""}${STATES[state] ?? state}`);
    this.state.textContent = words.join(", ");
    const isReady = entries.some(({ state }) => state === "READY");
    this.state.className = `state ${isReady ? "good" : entries.some(({ state }) => state === "UNAVAILABLE") ? "bad" : ""}`;
    this.live.hidden = !isReady;
    if (!isReady) this.description.replaceChildren();
    if (!isReady) this.shown = "";
    this.reasons.replaceChildren(...entries.filter(({ reason }) => reason).map(({ reason }) => element("p", reason, { className: "problem" })));
  }

  async showCalls(entries) {
    const ready = entries.filter(({ state }) => state === "READY");
    const key = `${ready.map(({ version }) => version)} ${Boolean(token)}`;
    if (!ready.length || key === this.shown) return;
    const parts = [];
    for (const { version } of ready.reverse()) {
      const isChosen = ready.length > 1;
      const path = `/v2/models/${encodeURIComponent(this.name)}${version ? `/versions/${version}` : ""}`;
      const model = { ...(await json(path)), name: this.name, version, isChosen };
      if (isChosen) parts.push(element("h3", `Version ${version}`));
      parts.push(tensors(model), ...calls(model));
    }
    this.description.replaceChildren(...parts);
    this.shown = key;
  }

  showFigures(found) {
    const time = (seconds) => (seconds === null ? "–" : seconds < 1 ? `${(seconds * 1e3).toFixed(1)} ms` : `${seconds.toFixed(2)} s`);
    const texts = {
      "requests/s": found.rate.toFixed(found.rate < 10 ? 1 : 0),
      "latency p50": time(found.half),
      "latency p99": time(found.most),
      queue: time(found.queue),
      "in progress": String(found.pending),
      "rows a batch": found.rows === null ? "–" : found.rows.toFixed(1),
      requests: found.all.toLocaleString("en"),
      incidents: found.incidents.toLocaleString("en"),
    };
    for (const [label, text] of Object.entries(texts)) this.values.get(label).textContent = text;
    this.rates = [...this.rates, found.rate].slice(-KEPT);
    const most = Math.max(...this.rates, 1e-9);
    const first = KEPT - this.rates.length;
    this.line.setAttribute("points", this.rates.map((rate, place) => `${((first + place) * 100) / (KEPT - 1)},${19 - (18 * rate) / most}`).join(" "));
  }
}

function tensors(model) {
  const table = element("table");
  const head = element("tr");
  head.append(...["", "name", "type", "shape"].map((text) => element("th", text)));
  table.append(head);
  for (const [kind, list] of [["input", model.inputs], ["output", model.outputs]]) {
    for (const { name, datatype, shape } of list) {
      const row = element("tr");
      row.append(...[kind, name, datatype, `[${shape.join(", ")}]`].map((text) => element("td", text)));
      table.append(row);
    }
  }
  return table;
}

function calls(model) {
  const isSecure = location.protocol === "https:";
  const grpcAddress = /^\d+$/.test(grpc) ? `${location.hostname}:${grpc}` : grpc;
  return [
    ["curl", curl(model, location.origin, Boolean(token))],
    ["Python, REST", python(model, "http", location.host, isSecure, Boolean(token))],
    ["Python, gRPC", python(model, "grpc", grpcAddress, isSecure, Boolean(token))],
  ].map(([title, text]) => {
    const details = element("details");
    const button = element("button", "Copy", { type: "button" });
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    });
    details.append(element("summary", title), element("pre", text));
    if (navigator.clipboard) details.append(button);
    return details;
  });
}

// -- all of them -----------------------------------------------------------------------------------

async function refresh() {
  const [server, index, text] = await Promise.all([json("/v2"), json("/v2/repository/index", "POST"), asked("/metrics").then((answer) => answer.text())]);
  const models = grouped(index);
  for (const [name, card] of cards) if (!models.has(name)) { card.root.remove(); cards.delete(name); }
  readings.push([performance.now() / 1e3, samplesByModel(text)]);
  if (readings.length > WINDOW + 1) readings.shift();
  const [[start, before], [end, now]] = [readings[0], readings.at(-1)];
  for (const [name, entries] of models) {
    if (!cards.has(name)) cards.set(name, new Card(name));
    const card = cards.get(name);
    byId("models").append(card.root);
    card.showStates(entries);
    await card.showCalls(entries);
    if (end > start) card.showFigures(figures(before.get(name), now.get(name), end - start));
  }
  const ready = new Set(index.filter(({ state }) => state === "READY").map(({ name }) => name)).size;
  say(`Version ${server.version}: ${ready} of ${models.size} ${models.size === 1 ? "model" : "models"} ready.`);
}

function grouped(index) {
  const found = new Map();
  for (const entry of index) found.set(entry.name, [...(found.get(entry.name) ?? []), entry]);
  return found;
}

function say(text, isProblem = false) {
  if (byId("summary").textContent !== text) byId("summary").textContent = text;
  byId("summary").className = isProblem ? "problem" : "";
}

async function run() {
  timer = null;
  try {
    if (!document.hidden) await refresh();
    byId("token").hidden = true;
  } catch (error) {
    if (error instanceof Refused) {
      byId("refused").hidden = !token;
      byId("token").hidden = false;
      token = "";
      say("Locked.");
      return;
    }
    readings.length = 0;
    say("The server does not answer.", true);
  }
  timer = setTimeout(run, PERIOD);
}

byId("token").addEventListener("submit", (event) => {
  event.preventDefault();
  token = byId("secret").value;
  byId("secret").value = "";
  if (timer === null) run();
});
document.addEventListener("visibilitychange", () => { readings.length = 0; });
run();
