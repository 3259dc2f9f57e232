"use strict";
// Attention in a plane: both passes for what the reader has moved. (`drawn` and `arrow` are forces.py's.)
{
const figure = document.querySelector("#forces"), find = (selector) => figure.querySelector(selector);
const m = JSON.parse(find("script").textContent), bar = find("input"), go = find(".go");
const zip = (a, b, f) => a.map((x, i) => f(x, b[i])), plus = (a, b) => zip(a, b, (x, y) => x + y);
const times = (c, a) => a.map((x) => c * x), dot = (a, b) => zip(a, b, (x, y) => x * y).reduce((x, y) => x + y);
const mixed = (weights, rows) => rows.map((row, j) => times(weights[j], row)).reduce(plus);
const names = ["q", ...m.k.map((_, j) => `k${j}`), ...m.v.map((_, j) => `v${j}`), ...(m.star ? ["star"] : [])];
let now, scale, frame = 0;

function passes({ q, k, v, star, g }, c) {
  const z = k.map((key) => c * dot(q, key)), e = z.map((x) => Math.exp(x - Math.max(...z)));
  const p = times(1 / e.reduce((a, b) => a + b), e), o = mixed(p, v);
  const ofO = star ? zip(o, star, (x, y) => x - y) : g, L = star ? dot(ofO, ofO) / 2 : dot(g, o);
  const ofP = v.map((value) => dot(value, ofO)), mean = dot(p, ofP), pull = zip(p, ofP, (w, x) => w * (mean - x));
  const pulls = { z: pull, q: times(c, mixed(pull, k)), k: pull.map((x) => times(c * x, q)), v: p.map((w) => times(-w, ofO)), o: times(-1, ofO) };
  return { p, o, L, pulls, scale: c };
}

// ---- Where the parts are.

const fixed = (x, digits = 1) => x.toFixed(digits), xy = (point) => point.map((x) => fixed(x)).join(",");
const at = ([x, y]) => [m.zero[0] + m.unit * x, m.zero[1] - m.unit * y], long = ([x, y]) => [m.unit * x, -m.unit * y];
const two = (x) => (x !== 0 && Math.abs(x) < 0.005 ? "≈ 0" : fixed(x, 2).replace("-", "−"));

function arrow(start, by, inside = true) {
  const length = Math.hypot(...by);
  if (length < 1) return { d: "", "stroke-width": "0.0" };
  const along = times(1 / length, by), width = Math.min(4.5, length / 5), across = times(1.3 * width, [-along[1], along[0]]);
  const ends = along.map((step, i) => ((step > 0 ? m.size[i] - m.room : m.room) - start[i]) / step);
  const room = inside ? Math.max(Math.min(...ends.filter(Number.isFinite)), 20) : length;
  let tip;
  const heads = (length > room ? [0, 14] : [0]).map((back) => {
    tip = plus(start, times(Math.min(length, room) - back, along));
    const middle = plus(tip, times(-2.8 * width, along));
    return `M${xy(plus(middle, across))}L${xy(tip)}L${xy(plus(middle, times(-1, across)))}Z`;
  });
  return { d: `M${xy(start)}L${xy(tip)}${heads.join("")}`, "stroke-width": fixed(width) };
}

function drawn({ q, k, v, star }, { p, o, pulls, scale }) {
  const parts = {};
  const line = (start, end, weight) => ({ x1: fixed(start[0]), y1: fixed(start[1]), x2: fixed(end[0]), y2: fixed(end[1]), "stroke-width": fixed(1 + 8 * weight) });
  const point = (name, place, radius, side) => {
    const [cx, cy] = at(place).map((x) => fixed(x)), beside = (middle, away, [low, high]) => (low <= middle + away && middle + away <= high ? middle + away : middle - away);
    const [x, y] = at(place).map((middle, i) => beside(middle, side[i] * (radius + 13), m.edges[i]));
    parts[name] = { cx, cy, r: fixed(radius) };
    parts[`move-${name}`] = { cx, cy };
    parts[`name-${name}`] = { x: fixed(x), y: fixed(y + 5) };
  };
  parts["arrow-q"] = arrow(m.zero, long(q), false);
  parts["pull-q"] = arrow(at(q), long(pulls.q));
  let end = at(q);
  parts.sum = { points: [end, ...k.map((key, j) => (end = plus(end, long(times(scale * pulls.z[j], key)))))].map(xy).join(" ") };
  point("q", q, 3, m.sides.q);
  parts.hull = { points: v.map((value) => xy(at(value))).join(" ") };
  p.forEach((weight, j) => {
    const radius = 5 + 20 * weight ** 0.5, pull = pulls.z[j], full = m.bar * Math.abs(pull), length = Math.min(48, full);
    parts[`beam-${j}`] = line(m.zero, at(k[j]), weight);
    parts[`mix-${j}`] = line(at(o), at(v[j]), weight);
    parts[`pull-k${j}`] = arrow(at(k[j]), long(pulls.k[j]));
    parts[`pull-v${j}`] = arrow(at(v[j]), long(pulls.v[j]));
    point(`k${j}`, k[j], radius, m.sides.k[j]);
    point(`v${j}`, v[j], radius, m.sides.v[j]);
    parts[`weight-${j}`] = { width: fixed(130 * weight) };
    parts[`weight-number-${j}`] = { x: fixed(40 + 130 * weight), text: two(weight) };
    parts[`score-${j}`] = { x: fixed(pull > 0 ? 140 : 140 - length), width: fixed(length) };
    parts[`score-number-${j}`] = { x: fixed(140 + (pull > 0 ? 1 : -1) * (length + 26 + (full > 48 ? 5 : 0))), text: `${full > 48 ? "»" : ""}${pull >= 0.005 ? "+" : ""}${two(pull)}` };
  });
  point("o", o, 8, m.below);
  parts["pull-o"] = arrow(at(o), long(pulls.o));
  if (star) {
    const [x, y] = at(star);
    parts.star = { x: fixed(x), y: fixed(y + 9) };
    parts["move-star"] = { cx: fixed(x), cy: fixed(y) };
  }
  return parts;
}

// ---- What is said.

function within({ v: [a, b, c], star }) {  // the triangle of the values
  const side = ([x, y], [u, w]) => (u - x) * (star[1] - y) - (w - y) * (star[0] - x);
  const sides = [side(a, b), side(b, c), side(c, a)];
  return sides.every((x) => x >= 0) || sides.every((x) => x <= 0);
}
function sentence({ p, L, pulls }) {
  const [better, worse] = [1, -1].map((sign) => pulls.z.map((x, j) => (sign * x > 1e-12 ? `k${"₁₂₃"[j]}` : "")).filter(Boolean));
  if (now.star && L < 1e-4) return "The output is at the star. Nothing pulls.";
  if (now.star && !within(now)) return "The star is outside of the shaded area: no mixture reaches it.";
  const isGone = [pulls.q, ...pulls.k].every((pull) => Math.hypot(...pull) < 0.05);
  if (Math.max(...p) > 0.985 && isGone) return `One weight is ${two(Math.max(...p))}. The output is still pulled, but almost nothing gets back to q and the keys.`;
  if (!better.length) return "All values are equally good: no score is pulled.";
  const whose = better.length > 1 ? "whose values are" : "whose value is";
  return `The pull on q is a sum: along ${better.join(" and ")}, ${whose} better than the average, and against ${worse.join(" and ")}.`;
}
function say(text) {
  const words = text.split(/\b(q|k[₁₂₃])(?![a-z])/).map((word, i) => {
    const element = document.createElement(i % 2 ? "var" : "span");
    element.textContent = word;
    return element;
  });
  find(".says").replaceChildren(...words);
}

// ---- What the reader moves.

function show(text) {
  const computed = passes(now, scale);
  for (const [name, attributes] of Object.entries(drawn(now, computed))) {
    const part = find(`[data-part="${name}"]`);
    for (const [key, value] of Object.entries(attributes)) {
      if (key === "text") part.textContent = value;
      else part?.setAttribute(key, value);
    }
  }
  say(text ?? sentence(computed));
  bar.previousElementSibling.textContent = scale.toFixed(2);
  bar.setAttribute("aria-valuetext", scale.toFixed(2));
  figure.dataset.found = JSON.stringify({ ...computed, ...now });
}
const get = (name) => (name === "q" || name === "star" ? now[name] : now[name[0]][name[1]]);
function put(name, place) {
  const edges = m.size.map((size, i) => [i ? 50 : 36, size - 36].map((x) => (i ? m.zero[1] - x : x - m.zero[0]) / m.unit).sort((a, b) => a - b));
  const kept = zip(place, edges, (x, [low, high]) => Math.min(Math.max(x, low), high));
  if (name === "q" || name === "star") now[name] = kept;
  else now[name[0]][name[1]] = kept;
  stop();
}
function turn(c) {
  bar.value = Math.log2(c);
  scale = c;
  stop();
}
function stop(text) {
  cancelAnimationFrame(frame);
  frame = 0;
  if (go) go.textContent = "Follow the pull";
  show(text);
}

// A step of descent for q and the keys: the values stay. It ends when the loss falls no more.
function step() {
  const { L, pulls } = passes(now, scale), rate = 0.06;
  now.q = plus(now.q, times(rate, pulls.q));
  now.k = zip(now.k, pulls.k, (key, pull) => plus(key, times(rate, pull)));
  const left = passes(now, scale).L;
  return left > 1e-4 && L - left > (now.star && within(now) ? 1e-7 : 1e-4);
}
function follow() {
  if (frame) return stop();
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (still) {
    for (let n = 0; n < 5000 && step();) n += 1;
    return stop();
  }
  go.textContent = go.dataset.stop;
  const next = () => {
    if (!step()) return stop();
    show("q and the keys follow their pulls, and the values stay.");
    frame = requestAnimationFrame(next);
  };
  frame = requestAnimationFrame(next);
}

for (const name of names) {
  const ring = find(`[data-part="move-${name}"]`), svg = ring.closest("svg");
  const label = name === "star" ? "the star" : name.replace(/\d/, (j) => "₁₂₃"[j]);
  for (const [key, value] of Object.entries({ tabindex: 0, role: "button", "aria-label": `${label}: the arrow keys move it` })) ring.setAttribute(key, value);
  ring.addEventListener("pointerdown", (event) => { ring.setPointerCapture(event.pointerId); ring.focus({ preventScroll: true }); event.preventDefault(); });
  ring.addEventListener("pointermove", (event) => {
    if (!ring.hasPointerCapture(event.pointerId)) return;
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    put(name, [(x - m.zero[0]) / m.unit, (m.zero[1] - y) / m.unit]);
  });
  ring.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[event.key];
    if (!by) return;
    event.preventDefault();
    put(name, plus(get(name), by));
  });
}
function begin() {
  now = structuredClone({ q: m.q, k: m.k, v: m.v, star: m.star, g: m.g });
  turn(m.scale);
}
bar.addEventListener("input", () => { scale = 2 ** bar.valueAsNumber; stop(); });
for (const button of figure.querySelectorAll("[data-scale]")) button.addEventListener("click", () => turn(2 ** Number(button.dataset.scale)));
find(".again").addEventListener("click", begin);
go?.addEventListener("click", follow);
find(".planes").setAttribute("role", "group");
find(".moves").hidden = false;
begin();
}
