"use strict";
// The page without this script is complete but for the filters, the samples and the table of every
// measurement. Data come from the JSON below the page; nothing is fetched.
const CHUNK = 150; // rows drawn at a time: the rest follow when the end of the table comes near
const NOISE = 0.02; // a change below this is none
const INFINITE = ["never", "∞"];
const DATA = JSON.parse(document.getElementById("data").textContent);
const ROWS = DATA.rows.map((values, place) => {
  const row = { place };
  DATA.fields.forEach((name, i) => (row[name] = values[i]));
  return Object.assign(row, DATA.matrices[row.m]);
});
const byId = (id) => document.getElementById(id);

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name === "class") made.className = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== ""));
  return made;
}

function drawing(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const apart = (text) => text.replace(/\B(?=(\d{3})+$)/g, "\u202f");
const count = (whole) => apart(String(whole));
const cases = (whole) => `${count(whole)} ${whole === 1 ? "case" : "cases"}`;

// A measurement in three significant digits, or with so many decimals.
function digits(value, decimals) {
  if (value === null || value === undefined) return "–";
  if (INFINITE.includes(value)) return value;
  if (decimals !== undefined && Math.abs(value) >= 0.1 ** decimals) return value.toFixed(decimals);
  if (value === 0) return "0";
  const size = Math.floor(Math.log10(Math.abs(value)));
  if (size >= 2) return apart(String(Math.round(value)));
  return value.toFixed(Math.min(12, 2 - size));
}

// ---- sorting -----------------------------------------------------------------------------------

// Numbers before words, what is missing last in either direction.
function compareValues(a, b, down) {
  const gone = (v) => v === null || v === undefined || v === "";
  if (gone(a) || gone(b)) return gone(a) - gone(b);
  if (INFINITE.includes(a)) a = Infinity;
  if (INFINITE.includes(b)) b = Infinity;
  const numbers = typeof a === "number" && typeof b === "number";
  const order = numbers ? (a === b ? 0 : a - b) : String(a).localeCompare(String(b), "en", { numeric: true });
  return down ? -order : order;
}

// Makes a heading a button; sort(column, down) is called when it is pressed.
function sortableHeadings(table, sort) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    heading.dataset.name = heading.textContent; // is printed: headings that repeat show no buttons
    const button = element("button", { type: "button" }, ...heading.childNodes);
    heading.replaceChildren(button);
    heading.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const was = heading.getAttribute("aria-sort");
      // Numbers are wanted largest first, names from A.
      const first = heading.classList.contains("n") ? "descending" : "ascending";
      const other = first === "ascending" ? "descending" : "ascending";
      headings.forEach((h) => h.setAttribute("aria-sort", "none"));
      heading.setAttribute("aria-sort", was === first ? other : first);
      sort(column, heading.getAttribute("aria-sort") === "descending");
    });
  });
}

for (const table of document.querySelectorAll("table.sortable")) {
  sortableHeadings(table, (column, down) => {
    const key = (row) => {
      const value = row.cells[column].dataset.v;
      return value === undefined ? row.cells[column].textContent : isNaN(value) || value === "" ? value : Number(value);
    };
    const rows = [...table.tBodies[0].rows].map((row) => [key(row), row]);
    rows.sort((a, b) => compareValues(a[0], b[0], down));
    table.tBodies[0].append(...rows.map((pair) => pair[1]));
  });
}

// ---- a table drawn piece by piece --------------------------------------------------------------

class LongTable {
  // columns: {name, kind, value(item), cell(item) -> nodes}; the first is the heading of the row.
  constructor(table, columns, decorate) {
    const more = element("button", { type: "button", class: "more" }, "Show more rows");
    Object.assign(this, { table, columns, decorate, more, items: [], drawn: 0, sorted: null });
    const heading = element("tr");
    for (const column of columns) heading.append(element("th", { scope: "col", class: column.kind }, column.name));
    table.append(element("thead", {}, heading), element("tbody"));
    sortableHeadings(table, (column, down) => {
      this.sorted = [this.columns[column].value, down];
      this.show(this.items);
    });
    table.parentElement.after(more);
    more.addEventListener("click", () => this.draw(CHUNK));
    const near = (entries) => entries.some((entry) => entry.isIntersecting) && this.draw(CHUNK);
    new IntersectionObserver(near, { rootMargin: "600px" }).observe(more);
    addEventListener("beforeprint", () => this.draw(Infinity));
  }
  show(items) {
    this.items = [...items];
    if (this.sorted) {
      const [value, down] = this.sorted;
      const keyed = this.items.map((item) => [value(item), item]);
      keyed.sort((a, b) => compareValues(a[0], b[0], down));
      this.items = keyed.map((pair) => pair[1]);
    }
    this.table.tBodies[0].replaceChildren();
    this.table.setAttribute("aria-rowcount", this.items.length + 1);
    this.drawn = 0;
    this.draw(CHUNK);
  }
  draw(count) {
    const part = document.createDocumentFragment();
    for (const item of this.items.slice(this.drawn, this.drawn + count)) {
      const line = element("tr", { "aria-rowindex": ++this.drawn + 1 });
      this.columns.forEach((column, i) => {
        const content = column.cell ? column.cell(item) : digits(column.value(item), column.decimals);
        const tag = i === 0 ? "th" : "td";
        const bad = column.mark ? column.mark(item) : "";
        line.append(element(tag, { class: `${column.kind || ""} ${bad}`.trim() || null, scope: i === 0 ? "row" : null }, content));
      });
      this.decorate?.(line, item);
      part.append(line);
    }
    this.table.tBodies[0].append(part);
    this.more.hidden = this.drawn >= this.items.length;
  }
}

// ---- every measurement -------------------------------------------------------------------------

const failed = (row) => ["wrong", "failed", "timeout"].includes(row.status);
const hot = (row) => (row.hot ? row.hot[0] : null);
const note = (row) => row.reason || (row.params.picked ? `picked ${row.params.picked}: ${row.params.why ?? ""}` : "");
const several = (name) => new Set(ROWS.map((row) => row[name])).size > 1;
const some = (value) => ROWS.some((row) => value(row) !== null && value(row) !== "");

const COLUMNS = [
  { name: "matrix", value: (r) => r.matrix, cell: (r) => r.matrix },
  { name: "N", kind: "n", value: (r) => r.n, cell: (r) => count(r.n) },
  {
    name: "kernel",
    value: (r) => r.kernel,
    cell: (r) => element("button", { type: "button", class: "open", "aria-haspopup": "dialog", "aria-describedby": "tip" }, r.kernel),
  },
  { name: "inputs", value: (r) => r.precision, cell: (r) => r.precision, when: several("precision") },
  { name: "C", value: (r) => r.c_type, cell: (r) => r.c_type, when: several("c_type") },
  { name: "order", value: (r) => r.order, cell: (r) => r.order, when: several("order") },
  { name: "B and C", value: (r) => r.layout, cell: (r) => `${r.layout}-major`, when: several("layout") },
  { name: "run", value: (r) => r.run, cell: (r) => DATA.runs[r.run], when: several("run") },
  { name: "status", value: (r) => r.status, cell: (r) => r.status, mark: (r) => (failed(r) ? "bad" : "") },
  { name: "hot, µs", kind: "n", value: hot },
  { name: "quartiles ±, %", kind: "n", value: (r) => (r.hot ? (50 * (r.hot[2] - r.hot[1])) / r.hot[0] : null), decimals: 1 },
  { name: "cold, µs", kind: "n", value: (r) => (r.cold ? r.cold[0] : null) },
  { name: "GFLOP/s", kind: "n", value: (r) => r.gflops },
  { name: "of the bound", kind: "n", value: (r) => r.of_bound, decimals: 2 },
  { name: "× cuSPARSE default fp32", kind: "n", value: (r) => r.x_default, decimals: 2 },
  { name: "× best cuSPARSE", kind: "n", value: (r) => r.x_best, decimals: 2 },
  { name: "× cuBLAS", kind: "n", value: (r) => r.x_cublas, decimals: 2 },
  { name: "× Eigen fp32", kind: "n", value: (r) => r.x_eigen32, decimals: 2 },
  { name: "× Eigen", kind: "n", value: (r) => r.x_eigen, decimals: 2 },
  { name: "preparation, ms", kind: "n", value: (r) => (r.hot ? r.preparation : null) },
  { name: "pays at", kind: "n", value: (r) => r.pays },
  { name: "group", value: (r) => r.group, cell: (r) => r.group },
  { name: "skipped or picked because", kind: "wide", value: note, cell: note },
].filter((column) => column.when ?? some(column.value));

const rowTable = new LongTable(byId("row-table"), COLUMNS, (line, row) => {
  line.dataset.row = row.place;
  line.className = [row.best ? "best" : "", row.baseline ? "baseline" : ""].join(" ").trim();
});

// ---- what a row is made of ---------------------------------------------------------------------

// Samples in the order taken, with the median's line and the quartiles' band.
function sampleChart(row) {
  const width = 420, height = 92, left = 52, gap = 18;
  const timings = [["hot", row.hot, "var(--c1)"], ["cold", row.cold, "var(--c2)"]].filter((t) => t[1] && t[1][5].length);
  const wide = (width - left * timings.length - gap) / timings.length;
  const chart = drawing("svg", { viewBox: `0 0 ${width} ${height}`, class: "samples", role: "img", "aria-label": timings.map(([name, t]) => `${t[5].length} ${name} samples, median ${digits(t[0])} µs`).join("; ") });
  timings.forEach(([name, t, colour], part) => {
    const x0 = left + part * (wide + left + gap / 2);
    const low = Math.min(...t[5], t[1]), high = Math.max(...t[5], t[2]);
    const y = (v) => (high > low ? 74 - (60 * (v - low)) / (high - low) : 44);
    const x = (i) => x0 + (wide * (i + 0.5)) / t[5].length;
    chart.append(
      drawing("rect", { x: x0, width: wide, y: y(t[2]), height: Math.max(1, y(t[1]) - y(t[2])), fill: colour, opacity: 0.15 }),
      drawing("line", { x1: x0, x2: x0 + wide, y1: y(t[0]), y2: y(t[0]), stroke: colour }),
      ...t[5].map((v, i) => drawing("circle", { cx: x(i), cy: y(v), r: t[5].length > 60 ? 1.3 : 2.2, fill: colour })),
    );
    const label = (text, at, anchor, yy) => chart.append(drawing("text", { x: at, y: yy, "text-anchor": anchor }, text));
    label(digits(high), x0 - 5, "end", 18);
    if (high > low) label(digits(low), x0 - 5, "end", 78);
    label(`${name}: ${t[5].length} samples, µs`, x0 + wide / 2, "middle", 90);
  });
  return chart;
}

function pairs(list) {
  const out = element("dl", { class: "pairs" });
  for (const [name, value] of list) if (value) out.append(element("dt", {}, name), element("dd", {}, value));
  return out;
}

const times = (t) => t && `${digits(t[0])} µs (quartiles ${digits(t[1])} – ${digits(t[2])}, least ${digits(t[3])}; ${t[5].length} samples of ${t[4] === 1 ? "1 launch" : `${t[4]} launches`})`;
const joined = (object) => Object.entries(object).map(([name, value]) => `${name} ${typeof value !== "number" ? value : Number.isInteger(value) ? count(value) : digits(value)}`).join(" · ");

function summary(row) {
  const { picked, why, measured, ...options } = row.params;
  return [
    element("b", {}, `${row.label}, ${row.matrix}, N = ${row.n}`),
    pairs([
      [row.status === "ok" ? "" : row.status, row.reason],
      ["picked", picked],
      ["because", why],
      ["measured", measured],
      ["hot", times(row.hot)],
      ["cold", times(row.cold)],
      ["preparation", row.hot && `${digits(row.preparation)} ms: ${joined(row.stages)}`],
      ["pays at", row.against && row.pays !== null && `${row.pays === "never" ? row.pays : count(Math.ceil(row.pays))} calls against ${row.against}`],
      ["options", joined(options)],
    ]),
    row.hot || row.cold ? sampleChart(row) : "",
  ];
}

const sameCase = (a, b) => a.m === b.m && a.run === b.run && a.n === b.n && a.layout === b.layout && a.precision === b.precision && a.c_type === b.c_type;

function detail(row) {
  const rivals = ROWS.filter((other) => other.hot && other.status === "ok" && sameCase(other, row)).sort((a, b) => hot(a) - hot(b));
  const bars = element("div", { class: "bars" });
  for (const other of rivals) {
    const mark = other === row ? "this" : null;
    const width = Math.max(0.5, (100 * hot(rivals[0])) / hot(other));
    bars.append(element("span", { class: mark }, other.label), element("i", { class: mark, style: `width:${width}%` }), element("span", { class: mark }, `${digits(hot(other))} µs`));
  }
  const [title, ...rest] = summary(row);
  return [
    element("h3", { id: "detail-title" }, title.textContent),
    ...rest,
    pairs([
      ["matrix", `${count(row.rows)} × ${count(row.cols)}, ${count(row.nnz)} nonzeros; per row ${digits(row.mean)} in the mean, ${count(row.longest)} at most, cv ${digits(row.cv)}`],
      ["group", row.group],
      ["format", row.format && joined(row.format)],
      ["device memory", row.bytes && `${digits(row.bytes / 1e6)} MB`],
      ["error / bound", row.error !== null && digits(row.error)],
      ["run", DATA.runs[row.run]],
    ]),
    rivals.length > 1 ? element("h4", {}, `Speed of each kernel of this case (${row.precision}, C in ${row.c_type}), hot`) : "",
    rivals.length > 1 ? bars : "",
    row.command ? element("h4", {}, "To repeat it") : "",
    row.command ? element("p", { class: "command" }, row.command) : "",
  ].filter((part) => part !== "");
}

const tip = byId("tip");
const rowAt = (target) => {
  const line = target.closest?.("tr[data-row]");
  return line ? ROWS[line.dataset.row] : null;
};

function showTip(row, x, y) {
  tip.replaceChildren(...summary(row).filter((part) => part !== ""));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const below = y + 22 + box.height < innerHeight;
  tip.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - box.width - 8))}px`;
  tip.style.top = `${Math.max(8, below ? y + 22 : y - box.height - 14)}px`;
}
const hideTip = () => (tip.hidden = true);

for (const table of document.querySelectorAll("#row-table, #compare-table")) {
  let shown = null;
  table.addEventListener("pointermove", (event) => {
    const row = event.pointerType === "touch" ? null : rowAt(event.target);
    if (!row || !event.target.closest("tbody")) return hideTip();
    if (row !== shown || tip.hidden) showTip((shown = row), event.clientX, event.clientY);
  });
  table.addEventListener("pointerleave", hideTip);
  table.addEventListener("focusin", (event) => {
    const row = event.target.matches(".open") && event.target.matches(":focus-visible") && rowAt(event.target);
    const box = event.target.getBoundingClientRect();
    if (row) showTip((shown = row), box.left, box.bottom - 14);
  });
  table.addEventListener("focusout", hideTip);
  table.addEventListener("click", (event) => {
    if (!event.target.closest(".open")) return;
    hideTip();
    byId("detail").firstElementChild.replaceChildren(...detail(rowAt(event.target)));
    byId("detail").showModal();
  });
}
addEventListener("keydown", (event) => event.key === "Escape" && hideTip());
addEventListener("scroll", hideTip, { passive: true });
byId("detail").addEventListener("click", (event) => event.target === byId("detail") && byId("detail").close());

// ---- two runs ----------------------------------------------------------------------------------

const keyOf = (r) => JSON.stringify([r.matrix_key, r.n, r.kernel, r.precision, r.c_type, r.layout, r.order]);

// a and b: rows of one case in two runs; the ratio is B's time over A's.
function verdict(a, b) {
  if (a.status !== b.status) return `${a.status} → ${b.status}`;
  if (!a.hot || !b.hot) return "";
  const apart = a.hot[2] < b.hot[1] || b.hot[2] < a.hot[1];
  const change = b.hot[0] / a.hot[0] - 1;
  if (!apart || Math.abs(change) <= NOISE) return "≈ the same";
  return change < 0 ? "▼ less" : "▲ more";
}

// All ratios in order: most cases of an unchanged program lie on the line at 1.
function ratioChart(both) {
  const ratios = both.map((c) => c.ratio).filter((r) => r).sort((a, b) => a - b);
  if (ratios.length < 2) return "";
  const width = 900, height = 150, left = 60;
  const reach = Math.max(1.1, ratios.at(-1), 1 / ratios[0]);
  const y = (r) => 75 - (60 * Math.log(r)) / Math.log(reach);
  const chart = drawing("svg", { viewBox: `0 0 ${width} ${height}`, class: "samples", role: "img", "aria-label": `Time of B over A in ${cases(ratios.length)}, from ${digits(ratios[0])} to ${digits(ratios.at(-1))}` });
  for (const level of [reach, 1, 1 / reach]) {
    chart.append(drawing("line", { x1: left, x2: width, y1: y(level), y2: y(level), stroke: "var(--line)" }));
    chart.append(drawing("text", { x: left - 6, y: y(level) + 4, "text-anchor": "end" }, `${level.toFixed(2)}×`));
  }
  const step = (width - left) / ratios.length;
  ratios.forEach((r, i) => chart.append(drawing("circle", { cx: left + step * (i + 0.5), cy: y(r), r: 2, fill: r > 1 ? "var(--c2)" : "var(--c1)" })));
  chart.append(drawing("text", { x: (left + width) / 2, y: height - 2, "text-anchor": "middle" }, `time of B over A, ${cases(ratios.length)} in order`));
  return chart;
}

const compareTable = byId("compare-table") && new LongTable(
  byId("compare-table"),
  [
    { name: "matrix", value: (c) => c.b.matrix, cell: (c) => c.b.matrix },
    { name: "N", kind: "n", value: (c) => c.b.n, cell: (c) => count(c.b.n) },
    { name: "kernel", value: (c) => c.b.kernel, cell: (c) => element("button", { type: "button", class: "open", "aria-haspopup": "dialog", "aria-describedby": "tip" }, c.b.label) },
    { name: "A hot, µs", kind: "n", value: (c) => hot(c.a) },
    { name: "B hot, µs", kind: "n", value: (c) => hot(c.b) },
    { name: "B / A", kind: "n", value: (c) => c.ratio, decimals: 3 },
    { name: "A cold, µs", kind: "n", value: (c) => (c.a.cold ? c.a.cold[0] : null) },
    { name: "B cold, µs", kind: "n", value: (c) => (c.b.cold ? c.b.cold[0] : null) },
    { name: "change", value: (c) => c.verdict, cell: (c) => c.verdict, mark: (c) => (c.verdict.startsWith("▼") ? "good" : c.verdict.startsWith("▲") || failed(c.b) ? "bad" : "") },
  ],
  (line, c) => (line.dataset.row = c.b.place),
);
if (compareTable) compareTable.sorted = [(c) => (c.ratio ? Math.abs(Math.log(c.ratio)) : c.a.status !== c.b.status ? Infinity : -1), true];

function compareRuns(visible) {
  if (!compareTable) return;
  const [runA, runB] = [Number(byId("run-a").value), Number(byId("run-b").value)];
  const inA = new Map(ROWS.filter((row) => row.run === runA).map((row) => [keyOf(row), row]));
  const both = [];
  let alone = 0;
  for (const b of visible.filter((row) => row.run === runB)) {
    const a = inA.get(keyOf(b));
    if (!a) alone++;
    else both.push({ a, b, ratio: a.hot && b.hot ? b.hot[0] / a.hot[0] : null, verdict: verdict(a, b) });
  }
  const logs = both.filter((c) => c.ratio).map((c) => Math.log(c.ratio));
  const mean = logs.length ? Math.exp(logs.reduce((sum, v) => sum + v, 0) / logs.length) : null;
  const marked = (sign) => both.filter((c) => c.verdict.startsWith(sign)).length;
  const [less, more, same] = [marked("▼"), marked("▲"), marked("≈")];
  const changes = new Map(); // how often each status became another
  for (const c of both.filter((c) => c.a.status !== c.b.status)) changes.set(c.verdict, (changes.get(c.verdict) ?? 0) + 1);
  const inB = new Set(ROWS.filter((row) => row.run === runB).map(keyOf));
  const lost = visible.filter((row) => row.run === runA && !inB.has(keyOf(row))).length;
  const sentences = [
    `${cases(both.length)} in both runs, ${count(less + more + same)} timed in both.`,
    mean && `B takes ${digits(mean, 3)} × the time of A (geometric mean): ${count(less)} less, ${count(more)} more, ${count(same)} the same.`,
    changes.size && `Another status: ${[...changes].map(([change, n]) => `${count(n)} ${change}`).join(", ")}.`,
    lost && `${cases(lost)} of A not in B.`,
    alone && `${cases(alone)} of B not in A.`,
  ];
  byId("compared").textContent = both.length ? sentences.filter((one) => one).join(" ") : "No case is in both runs.";
  byId("ratios").replaceChildren(ratioChart(both));
  compareTable.show(both);
}

// ---- filters -----------------------------------------------------------------------------------

const FACETS = [...document.querySelectorAll(".facet")];
const chosenOf = (facet) => new Set([...facet.querySelectorAll("input:checked")].map((input) => input.value));

function filter() {
  const words = byId("find").value.trim().toLowerCase();
  const chosen = Object.fromEntries(FACETS.map((facet) => [facet.dataset.facet, chosenOf(facet)]));
  const fits = (row) =>
    (!words || row.matrix.toLowerCase().includes(words)) &&
    Object.entries(chosen).every(([name, values]) => !values.size || values.has(String(row[name])));
  for (const facet of FACETS) {
    const names = [...facet.querySelectorAll("input:checked")].map((input) => input.dataset.name);
    facet.querySelector(".chosen").textContent = names.length > 1 ? `: ${names.length}` : names.length ? `: ${names[0]}` : "";
  }
  const visible = ROWS.filter(fits);
  rowTable.show(visible);
  compareRuns(visible);
  // An answer stays if a row that it is drawn from fits.
  const kept = new Set(visible.map((row) => row.answer));
  let answers = 0;
  for (const line of byId("answers").tBodies[0].rows) {
    line.hidden = !kept.has(Number(line.dataset.key));
    answers += !line.hidden;
  }
  byId("count").textContent = `${count(visible.length)} of ${count(ROWS.length)} rows, ${count(answers)} answers`;
}

let waiting = 0;
const soon = () => {
  clearTimeout(waiting);
  waiting = setTimeout(filter, 60);
};
byId("filters").addEventListener("input", soon);
byId("filters").addEventListener("reset", () => setTimeout(filter));
byId("filters").addEventListener("submit", (event) => event.preventDefault());
for (const select of document.querySelectorAll("#run-a, #run-b")) select.addEventListener("change", filter);
addEventListener("click", (event) => FACETS.forEach((facet) => facet.contains(event.target) || (facet.open = false)));
addEventListener("keydown", (event) => {
  const open = event.key === "Escape" && FACETS.find((facet) => facet.open);
  if (open) {
    open.open = false;
    open.querySelector("summary").focus();
  }
});

// ---- colours -----------------------------------------------------------------------------------

const theme = byId("theme");
const wishes = matchMedia("(prefers-color-scheme: dark)");
function colours(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  theme.setAttribute("aria-pressed", dark);
}
colours(wishes.matches);
wishes.addEventListener("change", () => colours(wishes.matches));
theme.addEventListener("click", () => colours(document.documentElement.dataset.theme !== "dark"));
// Paper is white: the page is printed in light colours and left as it was.
let before = null;
addEventListener("beforeprint", () => {
  before = document.documentElement.dataset.theme;
  colours(false);
});
addEventListener("afterprint", () => before && colours(before === "dark"));

filter();
