// Elements and tables. Texts become text nodes: nothing that a model's file says is read as HTML.

// Returns an element; attributes that are null or false are left out.
function h(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key, value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

const count = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;

const LONGEST_NAME = 40;

// Returns a map from each name to one of so many letters, without a part of a long name. All lack
// the same part, so that different names stay different; if there is none, some get a number.
function shortNames(names, most = LONGEST_NAME) {
  const all = [...new Set(names)], half = Math.ceil((most - 1) / 2), seen = new Map();
  const cut = (name, head) => name.length <= most ? name : `${name.slice(0, head)}…${name.slice(name.length - (most - 1 - head))}`;
  let best = half, distinct = 0;
  for (let i = 0; i < most && distinct < all.length; i++) {
    const head = half + (i % 2 ? -(i + 1) / 2 : i / 2); // from the middle to both ends
    const found = head < 0 || head >= most ? 0 : new Set(all.map((name) => cut(name, head))).size;
    if (found > distinct) [best, distinct] = [head, found];
  }
  return new Map(all.map((name) => {
    const short = cut(name, best), number = (seen.get(short) ?? 0) + 1;
    seen.set(short, number);
    return [name, number > 1 ? `${short.slice(0, most - 4)} (${number})` : short];
  }));
}

// A name as *short* has it; all of a shortened one is shown by the mouse pointer.
const named = (name, short) => (short.get(name) === name ? name : h("span", { title: name }, short.get(name)));

// A number of bytes for people; null is a size known only while invoking.
function size(bytes) {
  if (bytes === null || bytes === undefined) return "?";
  let value = bytes, unit = "B";
  for (unit of ["B", "kB", "MB", "GB"]) {
    if (value < 1000 || unit === "GB") break;
    value /= 1000;
  }
  return unit === "B" ? `${value} B` : `${value.toFixed(1)} ${unit}`;
}

// 0-2, 5 for [5, 0, 1, 2].
function numbers(indices) {
  const ordered = [...indices].sort((a, b) => a - b), parts = [];
  for (let i = 0; i < ordered.length;) {
    let j = i;
    while (ordered[j + 1] === ordered[j] + 1) j++;
    parts.push(i === j ? `${ordered[i]}` : `${ordered[i]}-${ordered[j]}`);
    i = j + 1;
  }
  return parts.join(", ");
}

const MOST_ROWS = 200; // shown at first; a button shows the others

// Returns a table whose headings sort it. A column has title, value (what is sorted by), and
// perhaps cell (what is shown), isNumber, and the class of its cells. Where a column is a reason, or
// there are many, the rows stand as cards in a narrow window: each cell on a line with its title.
function table(caption, columns, rows) {
  const body = h("tbody"), areCards = columns.length > 6 || columns.some((column) => column.isReason);
  let most = MOST_ROWS, ordered = rows;
  const fill = () => body.replaceChildren(...ordered.slice(0, most).map((row) => h("tr", {}, columns.map((c) => cell(c, row)))));
  const all = h("button", { type: "button", class: "all", click: () => {
    most = Infinity;
    all.remove();
    fill();
  } }, `Show all ${count(rows.length, "row")}`);
  const cell = (column, row) => {
    const shown = (column.cell ?? column.value)(row);
    const classes = [column.isNumber ? "number" : "", column.class ?? ""].join(" ").trim();
    return h("td", { class: classes || null, "data-title": areCards ? column.title : null }, areCards ? h("span", {}, shown ?? "-") : shown ?? "-");
  };
  const headings = columns.map((column) => {
    const button = h("button", { type: "button", click: () => sort(column, heading) }, column.title);
    const heading = h("th", { scope: "col", class: column.isNumber ? "number" : null }, button);
    return heading;
  });
  const sort = (column, heading) => {
    const isDown = heading.getAttribute("aria-sort") === (column.isNumber ? "descending" : "ascending");
    const descending = Boolean(column.isNumber) !== isDown;
    for (const other of headings) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
    ordered = [...rows].sort((a, b) => compare(column.value(a), column.value(b)) * (descending ? -1 : 1));
    fill();
  };
  fill();
  const shown = h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, headings)), body);
  return h("div", { class: areCards ? "scroll cards" : "scroll", tabindex: "0", role: "region", "aria-label": caption }, shown, rows.length > most ? all : null);
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a ?? "").localeCompare(String(b ?? ""), "en", { numeric: true });
}
