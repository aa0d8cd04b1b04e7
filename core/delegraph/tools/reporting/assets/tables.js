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

// A name without its middle if it is long; all of it is shown by the mouse pointer.
function named(name) {
  if (name.length <= LONGEST_NAME) return name;
  const half = (LONGEST_NAME - 1) / 2;
  return h("span", { title: name }, `${name.slice(0, Math.ceil(half))}…${name.slice(-Math.floor(half))}`);
}

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
// perhaps cell (what is shown), isNumber, and the class of its cells.
function table(caption, columns, rows) {
  const body = h("tbody");
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
    return h("td", { class: classes || null }, shown ?? "-");
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
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, shown, rows.length > most ? all : null);
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a ?? "").localeCompare(String(b ?? ""), "en", { numeric: true });
}
