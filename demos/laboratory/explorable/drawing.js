// The pictures: what was measured, as words, colours and SVG. (`measuring.js` comes before this file
// and `moving.js` after it, in one script.)

// ------------------------------------------------------------ words and colours

const raised = n => String(n).replace(/./g, c => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]);
function short(x) {
  if (x === 0 || (x >= 1e-4 && x < 1e4)) return String(Number(x.toPrecision(3)));
  const [digits, power] = x.toExponential(1).split("e");
  return `${digits} · 10${raised(Number(power))}`;
}
// A shorter gradient is the rounding of numbers near 1: its digits mean nothing.
const shortNorm = x => x < 1e-12 ? "< 10⁻¹²" : short(x);
const percent = x => `${Math.round(100 * x)} %`;
// An exponent has one colour: that of no scale at 0, of 1/√d_k at ½, of 1/d_k at 1, mixed between.
const colour = a => a <= 0.5
  ? `color-mix(in oklab, var(--scaled) ${200 * a}%, var(--unscaled))`
  : `color-mix(in oklab, var(--twice) ${200 * a - 100}%, var(--scaled))`;

// How d_k is set, in a text and in a picture. (The last part brings the line back up.)
const setText = text => text.replaceAll("d_k", "<var>d</var><sub>k</sub>");
const D_K = '<tspan font-style="italic">d</tspan><tspan font-size="75%" dy="3">k</tspan><tspan dy="-3">\u200b</tspan>';

function put(id, value, text) {
  $(id).value = value;  // all digits, for a program
  $(id).textContent = text;
}

// ------------------------------------------------------------ pictures

// An empty picture in its place. Returns its width, and a function that adds an element.
function picture(id, height, label) {
  const place = $(id), width = Math.max(place.clientWidth, 200);
  const make = tag => document.createElementNS("http://www.w3.org/2000/svg", tag);
  const svg = make("svg");
  const size = {viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label};
  for (const [name, value] of Object.entries(size)) svg.setAttribute(name, value);
  place.replaceChildren(svg);
  const add = (tag, attributes, text) => {
    const element = svg.appendChild(make(tag));
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    return element;
  };
  return [width, add];
}
const line = (add, x1, y1, x2, y2, style) => add("line", {x1, y1, x2, y2, style});
const path = points => "M" + points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L");
const GRID = "stroke: var(--line)", between = (x, low, high) => Math.min(Math.max(x, low), high);

// Horizontal lines with their names, at the heights y(value).
function levels(add, left, right, y, names) {
  for (const [value, name] of names) {
    line(add, left, y(value), right, y(value), GRID);
    add("text", {x: left - 6, y: y(value) + 4, "text-anchor": "end"}, name);
  }
}

function drawLines() {
  const found = measured(state.a, state.out), [m, a] = [state.m, state.a];
  const ends = [found[0], found[8]].map(each => `median ${short(each.median)}, mean ${short(each.mean)}`);
  const [width, add] = picture("lines", 260,
    `Median and mean of the gradient over d_k at a = ${a}. At d_k = 4: ${ends[0]}. At d_k = 1024: ${ends[1]}.`);
  const left = 46, right = width - 62, top = 12, bottom = 228;
  const x = n => left + (right - left) * n / 8;
  const y = value => bottom - (bottom - top) * between((Math.log10(value) + 3) / 4, 0, 1);
  levels(add, left, right, y, [[1e-3, "0.001"], [1e-2, "0.01"], [0.1, "0.1"], [1, "1"], [10, "10"]]);
  D_KS.forEach((d_k, n) => { if (n % 2 === 0) add("text", {x: x(n), y: bottom + 18, "text-anchor": "middle"}).innerHTML = n ? d_k : `${D_K} = 4`; });
  for (const other of state.tried) {
    if (other === a) continue;
    const medians = measured(other, state.out).map((each, n) => [x(n), y(each.median)]);
    add("path", {d: path(medians), class: "ghost", fill: "none", style: `stroke: ${colour(other)}; stroke-width: 1.2; opacity: .45`});
  }
  line(add, x(m), top, x(m), bottom, "stroke: var(--soft); stroke-dasharray: 2 3");
  const names = [];
  for (const [what, dash] of [["mean", "5 4"], ["median", "none"]]) {
    const points = found.map((each, n) => [x(n), y(each[what])]);
    add("path", {d: path(points), class: what, fill: "none", style: `stroke: ${colour(a)}; stroke-width: 2.5; stroke-dasharray: ${dash}`});
    points.forEach(([cx, cy], n) => add("circle", {cx, cy, r: n === m ? 5.5 : 3, style: `fill: ${what === "mean" ? "var(--paper)" : colour(a)}; stroke: ${colour(a)}; stroke-width: 1.5`}));
    names.push([points[8][1], what]);
  }
  const missing = Math.max(14 - (names[1][0] - names[0][0]), 0) / 2;  // two names that do not touch
  add("text", {x: right + 9, y: names[0][0] + 4 - missing, class: "strong"}, "mean");
  add("text", {x: right + 9, y: names[1][0] + 4 + missing, class: "strong"}, "median");
}

function drawHistogram() {
  const {norms, mean, median, dead} = measured(state.a, state.out)[state.m], [low, high] = [-9.2, 2], wide = 0.2;
  const [width, add] = picture("histogram", 260,
    `Histogram of the gradient's length for 512 queries at d_k = ${D_KS[state.m]}, a = ${state.a}: median ${short(median)}, mean ${short(mean)}, ${percent(dead)} below 0.001. Query ${state.query} has ${shortNorm(norms[state.query - 1])}.`);
  const left = 34, right = width - 10, top = 44, bottom = 214;
  const x = log => left + (right - left) * (log - low) / (high - low);
  const place = value => x(between(Math.log10(value), low + wide / 2, high - wide / 2));
  const counts = new Array(Math.round((high - low) / wide)).fill(0);
  const bin = value => between(Math.floor((Math.log10(value) - low) / wide), 0, counts.length - 1);
  for (const norm of norms) counts[bin(norm)]++;
  const most = [40, 100, 200, 400, 512].find(limit => limit >= Math.max(...counts));
  const y = count => bottom - (bottom - top) * count / most;
  add("rect", {x: left, y: top, width: x(-3) - left, height: bottom - top, style: "fill: var(--raised)"});
  levels(add, left, right, y, [[0, "0"], [most / 2, most / 2], [most, most]]);
  counts.forEach((count, n) => count && add("rect", {
    class: "bar", x: x(low + n * wide) + 0.5, y: y(count), width: x(wide) - x(0) - 1, height: bottom - y(count),
    style: `fill: ${colour(state.a)}`,
  }));
  line(add, x(-3), top, x(-3), bottom, "stroke: var(--soft)");
  add("text", {x: left + 6, y: top + 16, class: "strong"}, `dead: ${percent(dead)}`);
  for (const [value, name] of [[-9, "< 10⁻⁹"], [-6, "10⁻⁶"], [-3, "0.001"], [0, "1"], [2, "100"]]) {
    add("text", {x: between(x(value), left + 14, right - 8), y: bottom + 26, "text-anchor": "middle"}, name);
  }
  for (const [what, value, height, dash] of [["median", median, 14, "none"], ["mean", mean, 32, "5 4"]]) {
    const at = place(value), end = at > (left + right) / 2;
    line(add, at, height - 8, at, bottom, `stroke: var(--ink); stroke-width: 1.6; stroke-dasharray: ${dash}`);
    add("text", {x: at + (end ? -6 : 6), y: height + 2, "text-anchor": end ? "end" : "start", class: "strong"}, `${what} ${short(value)}`);
  }
  const at = place(norms[state.query - 1]);
  add("path", {class: "mark", d: `M${at} ${bottom + 1}l6 10h-12z`, style: "fill: var(--ink)"});
  add("text", {x: between(at, left + 20, right - 24), y: bottom + 42, "text-anchor": "middle", class: "strong"}, `query ${state.query}`);
}

function drawTried() {
  const tried = [...state.tried].sort((a, b) => a - b);
  const [width, add] = picture("tried", 260,
    `The largest median from d_k = 16 on, divided by the smallest, at the exponents that were tried: ${tried.map(a => `${short(apart(a, state.out))} at ${a}`).join(", ")}.`);
  const left = 46, right = width - 14, top = 12, bottom = 228;
  const x = a => left + (right - left) * a;
  const y = value => bottom - (bottom - top) * between(Math.log10(value) / 3, 0, 1);
  levels(add, left, right, y, [[1, "flat: 1"], [10, "10"], [100, "100"], [1000, "1000"]]);
  for (const [a, name] of [[0, "a = 0"], [0.25, "¼"], [0.5, "½"], [0.75, "¾"], [1, "1"]]) {
    add("text", {x: x(a), y: bottom + 18, "text-anchor": "middle"}, name);
  }
  for (const a of tried) {
    const now = a === state.a;
    const height = y(apart(a, state.out));
    line(add, x(a), height, x(a), bottom, `stroke: ${colour(a)}; stroke-width: 1.2; opacity: .6`);
    add("circle", {cx: x(a), cy: height, r: now ? 7 : 4, style: `fill: ${colour(a)}; stroke: var(--ink); stroke-width: ${now ? 1.6 : 0}`});
  }
}

// The medians over the spread of the scores: nine points for each exponent, on one hill.
function drawHill() {
  const spread = (m, a) => D_KS[m] ** (0.5 - a);
  const [width, add] = picture("hill", 260,
    `The medians over s = d_k^(½-a), which is the scores' standard deviation. At a = ${state.a} the nine widths have s from ${short(spread(0, state.a))} to ${short(spread(8, state.a))}. The medians rise and then fall.`);
  const left = 46, right = width - 22, top = 12, bottom = 228;
  const x = s => left + (right - left) * (Math.log2(s) + 5) / 10;
  const y = value => bottom - (bottom - top) * between((Math.log10(value) + 3) / 4, 0, 1);
  levels(add, left, right, y, [[1e-3, "0.001"], [1e-2, "0.01"], [0.1, "0.1"], [1, "1"], [10, "10"]]);
  for (const [s, name] of [[1 / 32, "s = 1/32"], [1 / 8, "1/8"], [1 / 2, "½"], [2, "2"], [8, "8"], [32, "32"]]) {
    add("text", {x: x(s), y: bottom + 18, "text-anchor": s < 1 / 16 ? "end" : "middle", dx: s < 1 / 16 ? 14 : 0}, name);
  }
  for (const a of [...[...state.tried].filter(each => each !== state.a), state.a]) {  // this a is on top
    const now = a === state.a;
    measured(a, state.out).forEach((found, m) => add("circle", {
      cx: x(spread(m, a)), cy: y(found.median), r: !now ? 2.5 : m === state.m ? 8 : 5, class: now ? "now" : "ghost",
      style: `fill: ${colour(a)}; ${now ? "stroke: var(--ink); stroke-width: 1.2" : "opacity: .55"}`,
    }));
  }
}
