"use strict";
// Why ½: 512 queries look at 64 keys, and everything is computed here at each move. The file
// `__init__.py` beside this one draws the same numbers, and measures them with minigrad.

const KEYS = 64, QUERIES = 512, WIDEST = 1024, DEAD = 1e-3;
const D_KS = [4, 8, 16, 32, 64, 128, 256, 512, 1024], FROM = 2;  // flatness is judged from 16 on
const $ = id => document.getElementById(id);

// ------------------------------------------------------------ the draws, as in `__init__.py`

function normals(seed, count) {
  const found = new Float64Array(count);
  let state = seed | 0;
  const uniform = () => {  // mulberry32
    state = (state + 0x6D2B79F5) | 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  for (let i = 0; i < count; i += 2) {  // Box-Muller
    const length = Math.sqrt(-2 * Math.log(1 - uniform())), angle = 2 * Math.PI * uniform();
    found[i] = length * Math.cos(angle);
    found[i + 1] = length * Math.sin(angle);
  }
  return found;
}

// The products of every row of x with every row of y over the first 4, 8, … 1024 features. The
// first 8 contain the first 4, so one pass over the features gives all nine.
function products(x, y) {
  const rows = x.length / WIDEST, columns = y.length / WIDEST;
  const found = D_KS.map(() => new Float64Array(rows * columns));
  for (let i = 0, n = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++, n++) {
      let sum = 0, feature = 0;
      for (let m = 0; m < D_KS.length; m++) {
        for (; feature < D_KS[m]; feature++) sum += x[i * WIDEST + feature] * y[j * WIDEST + feature];
        found[m][n] = sum;
      }
    }
  }
  return found;
}

const sizes = [KEYS * WIDEST, QUERIES * WIDEST, QUERIES * KEYS];
const drawn = normals(Number($("lab").dataset.seed), sizes[0] + sizes[1] + sizes[2]);
const keys = drawn.subarray(0, sizes[0]), queries = drawn.subarray(sizes[0], sizes[0] + sizes[1]);
const g = drawn.subarray(sizes[0] + sizes[1]);  // ∂L/∂p
const scores = products(queries, keys), gram = products(keys, keys);

// ------------------------------------------------------------ the measurement

const p = new Float64Array(KEYS), ds = new Float64Array(KEYS);

// p = softmax of the scaled scores of query t. Returns the entropy of p.
function attend(m, scale, t) {
  const s = scores[m], at = t * KEYS;
  let largest = -Infinity, total = 0, average = 0;
  for (let j = 0; j < KEYS; j++) largest = Math.max(largest, s[at + j]);
  for (let j = 0; j < KEYS; j++) total += p[j] = Math.exp(scale * (s[at + j] - largest));
  for (let j = 0; j < KEYS; j++) average += (p[j] /= total) * scale * (s[at + j] - largest);
  return Math.log(total) - average;
}

// ‖∂L/∂q‖ for query t, whose weights are in p. With ds = J g = p ⊙ (g - ⟨p, g⟩) it is the length of
// scale · Kᵀ ds, whose square is scale² dsᵀ (K Kᵀ) ds: the keys themselves are not needed again.
function length(m, scale, t) {
  const G = gram[m], at = t * KEYS;
  let average = 0, square = 0;
  for (let j = 0; j < KEYS; j++) average += p[j] * g[at + j];
  for (let j = 0; j < KEYS; j++) ds[j] = p[j] * (g[at + j] - average);
  for (let i = 0; i < KEYS; i++) {
    let sum = G[i * KEYS + i] * ds[i] / 2;
    for (let j = 0; j < i; j++) sum += G[i * KEYS + j] * ds[j];
    square += 2 * ds[i] * sum;
  }
  return scale * Math.sqrt(Math.max(square, 0));
}

function median(x) {
  const sorted = x.slice().sort(), half = x.length / 2;
  return (sorted[half - 1] + sorted[half]) / 2;
}

function measure(m, a) {
  const scale = D_KS[m] ** -a;
  const norms = new Float64Array(QUERIES), tops = new Float64Array(QUERIES);
  let entropy = 0;
  for (let t = 0; t < QUERIES; t++) {
    entropy += attend(m, scale, t) / QUERIES / Math.log(KEYS);
    for (let j = 0; j < KEYS; j++) tops[t] = Math.max(tops[t], p[j]);
    norms[t] = length(m, scale, t);
  }
  return {
    norms, entropy, largest: median(tops), median: median(norms),
    mean: norms.reduce((sum, x) => sum + x, 0) / QUERIES,
    dead: norms.filter(x => x < DEAD).length / QUERIES,
  };
}

const known = new Map();  // exponent → the measurements at all nine d_k
function measured(a) {
  if (!known.has(a)) known.set(a, D_KS.map((_, m) => measure(m, a)));
  return known.get(a);
}
function apart(a) {
  const medians = measured(a).slice(FROM).map(found => found.median);
  return Math.max(...medians) / Math.min(...medians);
}

// ------------------------------------------------------------ words and colours

const raised = n => String(n).replace(/./g, c => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]);
function short(x) {
  if (x === 0 || (x >= 1e-4 && x < 1e4)) return String(Number(x.toPrecision(3)));
  const [digits, power] = x.toExponential(1).split("e");
  return `${digits} · 10${raised(Number(power))}`;
}
const percent = x => `${Math.round(100 * x)} %`;
// An exponent has one colour: that of no scale at 0, of 1/√d_k at ½, of 1/d_k at 1, mixed between.
const colour = a => a <= 0.5
  ? `color-mix(in oklab, var(--scaled) ${200 * a}%, var(--unscaled))`
  : `color-mix(in oklab, var(--twice) ${200 * a - 100}%, var(--scaled))`;

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
  const found = measured(state.a), [m, a] = [state.m, state.a];
  const ends = [found[0], found[8]].map(each => `median ${short(each.median)}, mean ${short(each.mean)}`);
  const [width, add] = picture("lines", 260,
    `Median and mean of the gradient over d_k at a = ${a}. At d_k = 4: ${ends[0]}. At d_k = 1024: ${ends[1]}.`);
  const left = 46, right = width - 56, top = 12, bottom = 228;
  const x = n => left + (right - left) * n / 8;
  const y = value => bottom - (bottom - top) * between((Math.log10(value) + 3) / 4, 0, 1);
  levels(add, left, right, y, [[1e-3, "0.001"], [1e-2, "0.01"], [0.1, "0.1"], [1, "1"], [10, "10"]]);
  D_KS.forEach((d_k, n) => n % 2 || add("text", {x: x(n), y: bottom + 18, "text-anchor": "middle"}, n ? d_k : "d_k = 4"));
  for (const other of state.tried) {
    if (other === a) continue;
    const medians = measured(other).map((each, n) => [x(n), y(each.median)]);
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
  const {norms, mean, median, dead} = measured(state.a)[state.m], [low, high] = [-9.2, 2], wide = 0.2;
  const [width, add] = picture("histogram", 260,
    `Histogram of the gradient's length for 512 queries at d_k = ${D_KS[state.m]}, a = ${state.a}: median ${short(median)}, mean ${short(mean)}, ${percent(dead)} below 0.001. Query ${state.query} has ${short(norms[state.query - 1])}.`);
  const left = 34, right = width - 10, top = 44, bottom = 214;
  const x = log => left + (right - left) * (log - low) / (high - low);
  const place = value => x(between(Math.log10(value), low + wide / 2, high - wide / 2));
  const counts = new Array(Math.round((high - low) / wide)).fill(0);
  const bin = value => between(Math.floor((Math.log10(value) - low) / wide), 0, counts.length - 1);
  for (const norm of norms) counts[bin(norm)]++;
  const most = [40, 100, 200, 400, 512].find(limit => limit >= Math.max(...counts));
  const y = count => bottom - (bottom - top) * count / most;
  add("rect", {x: left, y: top, width: x(-3) - left, height: bottom - top, style: "fill: var(--box)"});
  levels(add, left, right, y, [[0, "0"], [most / 2, most / 2], [most, most]]);
  counts.forEach((count, n) => count && add("rect", {
    class: "bar", x: x(low + n * wide) + 0.5, y: y(count), width: x(wide) - x(0) - 1, height: bottom - y(count),
    style: `fill: ${colour(state.a)}`,
  }));
  line(add, x(-3), top, x(-3), bottom, "stroke: var(--soft)");
  add("text", {x: left + 6, y: top + 16, class: "strong"}, `dead: ${percent(dead)}`);
  for (const [value, name] of [[-9, "< 10⁻⁹"], [-6, "10⁻⁶"], [-3, "0.001"], [0, "1"], [2, "100"]]) {
    add("text", {x: between(x(value), left + 14, right - 8), y: bottom + 18, "text-anchor": "middle"}, name);
  }
  for (const [what, value, height, dash] of [["median", median, 14, "none"], ["mean", mean, 32, "5 4"]]) {
    const at = place(value), end = at > (left + right) / 2;
    line(add, at, height - 8, at, bottom, `stroke: var(--ink); stroke-width: 1.6; stroke-dasharray: ${dash}`);
    add("text", {x: at + (end ? -6 : 6), y: height + 2, "text-anchor": end ? "end" : "start", class: "strong"}, `${what} ${short(value)}`);
  }
  const at = place(norms[state.query - 1]);
  add("path", {class: "mark", d: `M${at} ${bottom + 1}l6 10h-12z`, style: "fill: var(--on)"});
  add("text", {x: between(at, left + 20, right - 24), y: bottom + 36, "text-anchor": "middle", class: "strong"}, `query ${state.query}`);
}

function drawTried() {
  const tried = [...state.tried].sort((a, b) => a - b);
  const [width, add] = picture("tried", 260,
    `The largest median from d_k = 16 on, divided by the smallest, at the exponents that were tried: ${tried.map(a => `${short(apart(a))} at ${a}`).join(", ")}.`);
  const left = 46, right = width - 14, top = 12, bottom = 228;
  const x = a => left + (right - left) * a;
  const y = value => bottom - (bottom - top) * between(Math.log10(value) / 3, 0, 1);
  levels(add, left, right, y, [[1, "flat: 1"], [10, "10"], [100, "100"], [1000, "1000"]]);
  for (const [a, name] of [[0, "a = 0"], [0.25, "¼"], [0.5, "½"], [0.75, "¾"], [1, "1"]]) {
    add("text", {x: x(a), y: bottom + 18, "text-anchor": "middle"}, name);
  }
  for (const a of tried) {
    const now = a === state.a;
    line(add, x(a), y(apart(a)), x(a), bottom, `stroke: ${colour(a)}; stroke-width: 1.2; opacity: .6`);
    add("circle", {cx: x(a), cy: y(apart(a)), r: now ? 7 : 4, style: `fill: ${colour(a)}; stroke: var(--ink); stroke-width: ${now ? 1.6 : 0}`});
  }
}

// The medians over the spread of the scores: nine points for each exponent, on one hill.
function drawHill() {
  const spread = (m, a) => D_KS[m] ** (0.5 - a);
  const [width, add] = picture("hill", 260,
    `The medians over s = d_k^(½-a), which is the scores' standard deviation. At a = ${state.a} the nine widths have s from ${short(spread(0, state.a))} to ${short(spread(8, state.a))}. The medians rise up to s = 6 and then fall.`);
  const left = 46, right = width - 22, top = 12, bottom = 228;
  const x = s => left + (right - left) * (Math.log2(s) + 5) / 10;
  const y = value => bottom - (bottom - top) * between((Math.log10(value) + 3) / 4, 0, 1);
  levels(add, left, right, y, [[1e-3, "0.001"], [1e-2, "0.01"], [0.1, "0.1"], [1, "1"], [10, "10"]]);
  for (const [s, name] of [[1 / 32, "s = 1/32"], [1 / 8, "1/8"], [1 / 2, "½"], [2, "2"], [8, "8"], [32, "32"]]) {
    add("text", {x: x(s), y: bottom + 18, "text-anchor": s < 1 / 16 ? "start" : "middle", dx: s < 1 / 16 ? -8 : 0}, name);
  }
  for (const a of [...[...state.tried].filter(each => each !== state.a), state.a]) {  // this a is on top
    const now = a === state.a;
    measured(a).forEach((found, m) => add("circle", {
      cx: x(spread(m, a)), cy: y(found.median), r: !now ? 2.5 : m === state.m ? 7 : 4.5, class: now ? "now" : "ghost",
      style: `fill: ${colour(a)}; ${now ? "stroke: var(--paper)" : "opacity: .55"}`,
    }));
  }
}

// ------------------------------------------------------------ moving

const state = {m: 4, a: 0, query: 1, tried: new Set()};

function show() {
  const {m, a, query} = state, found = measured(a)[m], scale = D_KS[m] ** -a;
  const norm = found.norms[query - 1];
  attend(m, scale, query - 1);  // for p
  state.tried.add(a);
  $("d_k").value = m;
  $("a").value = a;
  $("query").value = query;
  $("d_k").setAttribute("aria-valuetext", `d_k = ${D_KS[m]}`);
  $("a").setAttribute("aria-valuetext", `a = ${a}, the scale is ${short(scale)}`);
  put("d_k_said", D_KS[m], D_KS[m]);
  put("a_said", a, a);
  put("scale_said", scale, short(scale));
  put("median", found.median, short(found.median));
  put("mean", found.mean, short(found.mean));
  put("dead", found.dead, percent(found.dead));
  put("entropy", found.entropy, found.entropy.toFixed(2));
  put("largest", found.largest, found.largest.toFixed(2));
  put("apart", apart(a), short(apart(a)));
  put("norm", norm, short(norm));
  $("looks").textContent = `gives ${percent(Math.max(...p))} of its weight to one key, and ${norm < DEAD ? "is dead" : "is alive"}.`;
  $("said").textContent = `At d_k = ${D_KS[m]} and a = ${a}, half of the queries get less than ${short(found.median)}, the mean is ${short(found.mean)}, and ${percent(found.dead)} are dead. From d_k = 16 to 1024 the largest median is ${short(apart(a))} times the smallest.`.replaceAll(" = ", "\u00a0=\u00a0");
  drawLines();
  drawHistogram();
  drawTried();
  drawHill();
  history.replaceState(null, "", `#d_k=${D_KS[m]}&a=${a}${query > 1 ? `&query=${query}` : ""}`);
}

function open() {
  $("lab").hidden = false;
  $("skip").hidden = true;
  show();
}

// The guess stays as it was made, and the measurement is put beside it.
const VERDICTS = {falls: "it falls to less than half", stays: "it stays between half and double", grows: "it grows to more than double"};
function answer(question, guessed) {
  const what = question.dataset.asks, [from, to] = [4, 8].map(m => measured(0)[m][what]);
  const verdict = to < from / 2 ? "falls" : to > 2 * from ? "grows" : "stays";
  for (const [value, words] of [[guessed, "your guess"], [verdict, "measured"]]) {
    const choice = question.querySelector(`[value=${value}] + span`);
    choice.append(" ", Object.assign(document.createElement("b"), {textContent: `(${words})`}));
  }
  const place = question.querySelector(".answer"), said = document.createElement("b");
  said.textContent = guessed === verdict ? "As you guessed." : "Not as you guessed.";
  place.replaceChildren(`Measured: ${short(from)} at d_k = 64 and ${short(to)} at 1024, so ${VERDICTS[verdict]}. `, said);
  place.hidden = false;
  question.disabled = true;
}

// What a link asks for: an error is one sentence, and nothing changes then.
function follow() {
  const asked = new URLSearchParams(location.hash.slice(1)), next = {...state};
  const refuse = sentence => { $("message").textContent = sentence; $("message").hidden = false; };
  $("message").hidden = true;
  for (const [name, text] of asked) {
    const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN;
    if (name === "d_k") {
      next.m = D_KS.indexOf(value);
      if (next.m < 0) return refuse(`The link asks for d_k = ${text}, but d_k is one of ${D_KS.join(", ")} here.`);
    } else if (name === "a") {
      next.a = Math.round(value * 20) / 20;
      if (next.a !== value || value > 1) return refuse(`The link asks for a = ${text}, but a goes from 0 to 1 in steps of 0.05 here.`);
    } else if (name === "query") {
      next.query = value;
      if (!(Number.isInteger(value) && value >= 1 && value <= QUERIES)) return refuse(`The link asks for query ${text}, but the queries are 1 to ${QUERIES} here.`);
    } else return refuse(`The link asks for “${name}”, which this page does not have: a link sets d_k, a and query.`);
  }
  if (![...asked].length) return;
  Object.assign(state, next);
  open();
}

$("d_k").addEventListener("input", () => { state.m = Number($("d_k").value); show(); });
$("a").addEventListener("input", () => { state.a = Number($("a").value); show(); });
$("query").addEventListener("change", () => { state.query = between(Math.round(Number($("query").value)) || 1, 1, QUERIES); show(); });
$("all").addEventListener("click", () => { for (let n = 0; n <= 20; n++) state.tried.add(n / 20); show(); });
$("skip").addEventListener("click", () => { open(); $("task").focus(); });
$("guess").addEventListener("submit", event => {
  event.preventDefault();
  const questions = [...document.querySelectorAll("fieldset")];
  const guesses = questions.map(each => each.querySelector(":checked"));
  $("message").hidden = true;
  if (guesses.includes(null)) {
    $("message").textContent = "Choose one answer to each of the two questions.";
    $("message").hidden = false;
    return;
  }
  questions.forEach((each, n) => answer(each, guesses[n].value));
  $("compare").hidden = true;
  open();
  $("task").focus({preventScroll: true});
});
addEventListener("hashchange", follow);
addEventListener("resize", () => $("lab").hidden || show());
for (const found of document.querySelectorAll("details[open]")) found.open = false;  // the answer
$("guess").hidden = false;
follow();
