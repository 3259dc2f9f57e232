"use strict";
// The reader's own width and number of keys: a point on the map, and two on the hill.
// (`normals` is of draws.js. Scores and g are those of hill.py.)
{
const figure = document.querySelector("#hill"), [wide, many] = figure.querySelectorAll("input");
const find = (selector) => figure.querySelector(selector), said = find(".moves p");
const HALF = 2 ** 18, FLOOR = 1e-3, drawn = normals(Number(said.dataset.seed), 2 * HALF);
const hills = new Map();

// s times the median of ‖J g‖: J g = p ⊙ (g - ⟨p, g⟩), p = softmax of s times the scores.
function median(keys, s) {
  const queries = Math.min(2 ** 14, Math.floor(HALF / keys));
  const found = new Float64Array(queries), p = new Float64Array(keys);
  for (let t = 0, at = 0; t < queries; t++, at += keys) {
    let largest = -Infinity, total = 0, mean = 0, square = 0;
    for (let j = 0; j < keys; j++) largest = Math.max(largest, drawn[at + j]);
    for (let j = 0; j < keys; j++) total += p[j] = Math.exp(s * (drawn[at + j] - largest));
    for (let j = 0; j < keys; j++) mean += (p[j] /= total) * drawn[HALF + at + j];
    for (let j = 0; j < keys; j++) square += (p[j] * (drawn[HALF + at + j] - mean)) ** 2;
    found[t] = s * Math.sqrt(square);
  }
  found.sort();
  return (found[queries / 2 - 1] + found[queries / 2]) / 2;
}

// The hill of a number of keys: its heights at the spreads.
const spreads = Array.from({ length: 29 }, (_, i) => 2 ** (i / 4 - 2));  // from ¼ to 32
function hill(keys) {
  if (!hills.has(keys)) hills.set(keys, spreads.map((s) => median(keys, s)));
  return hills.get(keys);
}

const high = "⁰¹²³⁴⁵⁶⁷⁸⁹";
function short(x) {
  const [digit, power] = x.toExponential(0).split("e-");
  return x >= FLOOR ? String(Number(x.toPrecision(2))) : `${digit}·10⁻${[...power].map((c) => high[c]).join("")}`;
}
const place = (s, long) => [394 + 32 * Math.log2(s), 107 - 43 * Math.log10(Math.max(long, FLOOR))];
function move(circle, [x, y]) {
  circle.setAttribute("cx", x);
  circle.setAttribute("cy", y);
}
function put(name, s, long) {
  const [x, y] = place(s, long), word = find(`.${name} text`);
  move(find(`.${name} circle`), [x, y]);
  find(`.${name} polyline`).setAttribute("points", `${x},54 ${x},${y}`);
  word.setAttribute("x", x);
}

function show() {
  const power = Number(wide.value), d_k = 2 ** power, s = 2 ** (power / 2);
  const keys = Number(many.value) ? 4 * 2 ** many.value : 5;
  const heights = hill(keys), without = heights[spreads.indexOf(s)], scaled = heights[8];
  const ratio = without / scaled;
  const way = spreads.map((each, i) => [each, heights[i]]).filter((each) => each[1] >= FLOOR);
  find("polyline.back").setAttribute("points", way.map((each) => place(...each)).join(" "));
  move(find(".point"), [100 + 17 * Math.log2(keys / 5), 84 + 26 * (power - 4)]);
  put("with", 1, scaled);
  put("without", s, without);
  find(".keys").textContent = `${keys} keys`;
  for (const [bar, value] of [[wide, d_k], [many, keys]]) {
    bar.previousElementSibling.textContent = value;
    bar.setAttribute("aria-valuetext", value);
  }
  const low = without < FLOOR ? ", below the drawing" : "";
  said.textContent = `At s = ${short(s)} the median is ${short(without)}${low}, and at s = 1 it is ${short(scaled)}: without the scale it is ${short(ratio)} times as long.`;
  figure.dataset.found = JSON.stringify([without, scaled, ratio]);
}
figure.querySelector(".moves").hidden = false;
for (const bar of [wide, many]) bar.addEventListener("input", show);
show();
}
