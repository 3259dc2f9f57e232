"use strict";
// The reader's own width and number of keys: a point on the map, and two on the hill.
// (`normals` is of draws.js; `place`, `move` and `tell` are of axes.js. Scores and ∂L/∂p are hill.py's.)
{
const figure = document.querySelector("#hill"), [wide, many, fit] = figure.querySelectorAll("input");
const find = (selector) => figure.querySelector(selector), said = find(".moves p");
const m = JSON.parse(find("script").textContent), drawn = normals(m.seed, 2 * m.half), hills = new Map();

// s times the median of ‖J ∂L/∂p‖, between its limits, and s times its mean. The score of the first
// key is higher by `fits`. J ∂L/∂p = p ⊙ (∂L/∂p - ⟨p, ∂L/∂p⟩), p = softmax(s · scores).
function middle(keys, s, fits) {
  const queries = Math.min(2 ** 14, Math.floor(m.half / keys));
  const found = new Float64Array(queries), p = new Float64Array(keys);
  for (let t = 0, at = 0; t < queries; t++, at += keys) {
    let largest = -Infinity, total = 0, mean = 0, square = 0;
    const score = (j) => drawn[at + j] + (j ? 0 : fits);
    for (let j = 0; j < keys; j++) largest = Math.max(largest, score(j));
    for (let j = 0; j < keys; j++) total += p[j] = Math.exp(s * (score(j) - largest));
    for (let j = 0; j < keys; j++) mean += (p[j] /= total) * drawn[m.half + at + j];
    for (let j = 0; j < keys; j++) square += (p[j] * (drawn[m.half + at + j] - mean)) ** 2;
    found[t] = s * Math.sqrt(square);
  }
  found.sort();
  const average = found.reduce((sum, length) => sum + length, 0) / queries;
  const ranks = [-1, 0, 1].map((side) => {
    const rank = (queries - 1) * (0.5 + side * m.limits / Math.sqrt(queries)), low = Math.floor(rank);
    return found[low] + (rank - low) * (found[low + 1] - found[low]);
  });
  return [...ranks, average];
}

// The hill of a number of keys, of which one fits: its heights at the spreads.
function hill(keys, fits) {
  const name = `${keys} ${fits}`;
  if (!hills.has(name)) hills.set(name, m.spreads.map((s) => middle(keys, s, fits)));
  return hills.get(name);
}

const short = (x) => x < m.floor ? `less than ${m.floor}` : String(Number(x.toPrecision(2)));
const onHill = (s, long) => place(m.axes[1], Math.log2(s), Math.log10(Math.max(long, m.floor)));
function put(name, s, long) {
  const [x, y] = onHill(s, long), word = find(`.${name} text`);
  move(find(`.${name} circle`), [x, y]);
  find(`.${name} polyline`).setAttribute("points", `${x},54 ${x},${y}`);
  word.setAttribute("x", Math.min(x, 466 - word.getComputedTextLength() / 2));
}

function show() {
  const power = Number(wide.value), d_k = 2 ** power, s = 2 ** (power / 2);
  const keys = Number(many.value) ? 4 * 2 ** many.value : 5;
  const fits = Number(fit.value), heights = hill(keys, fits);
  const [low, without, high, mean] = heights[m.spreads.indexOf(s)], [, scaled, , scaledMean] = heights[m.spreads.indexOf(1)];
  const ratio = without / scaled, means = mean / scaledMean;
  const way = m.spreads.map((each, i) => [each, heights[i][1]]).filter((each) => each[1] >= m.floor);
  find("polyline.back").setAttribute("points", way.map((each) => onHill(...each)).join(" "));
  move(find(".point"), place(m.axes[0], Math.log2(keys), power));
  put("with", 1, scaled);
  put("without", s, without);
  find(".keys").textContent = `${keys.toLocaleString("en")} keys`;
  tell(wide, d_k);
  tell(many, keys.toLocaleString("en"));
  tell(fit, fits);
  const limits = without < m.floor ? "below the drawing" : `90 % limits ${short(low)} to ${short(high)}`;
  said.textContent = `At s = ${short(s)} the median is ${short(without)} (${limits}), and at s = 1 it is ${short(scaled)}: without the scale it is ${short(ratio)} times as long, and the mean ${short(means)} times.`;
  figure.dataset.found = JSON.stringify([without, scaled, ratio, means]);
}
figure.querySelector(".moves").hidden = false;
for (const bar of [wide, many, fit]) bar.addEventListener("input", show);
show();
}
