"use strict";
// Both passes of attention, and the numbers of the query that is pointed at.
{
const figure = document.querySelector("#way_back"), buttons = [...figure.querySelectorAll("button")];
const m = JSON.parse(figure.querySelector("script").textContent);
const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
const turned = (rows) => rows[0].map((_, j) => rows.map((row) => row[j]));
const times = (A, B) => A.map((row) => turned(B).map((column) => dot(row, column)));
const scaled = (A) => A.map((row) => row.map((x) => m.scale * x));

function softmax(row) {
  const e = row.map((x) => Math.exp(x - Math.max(...row))), sum = e.reduce((a, b) => a + b);
  return e.map((x) => x / sum);
}
function passes({ Q, K, V, G }) {
  const z = scaled(times(Q, turned(K))), p = z.map(softmax), o = times(p, V);
  const part = o.map((row, t) => dot(G[t], row)), L = part.map(() => part.reduce((a, b) => a + b));
  const ofP = times(G, turned(V)), average = p.map((row, t) => dot(row, ofP[t]));
  const ofZ = p.map((row, t) => row.map((weight, j) => weight * (ofP[t][j] - average[t])));
  const ofQ = scaled(times(ofZ, K));
  const back = { "∂L/∂q": ofQ, "∂L/∂z": ofZ, "∂L/∂p": ofP, "∂L/∂o": G, "∂L/∂L": L.map(() => 1) };
  return { q: Q, z, p, o, part, L, average, ...back };
}
function shown(x) {
  const numbers = [x].flat().map((y) => String(Math.abs(y) < 1e-12 ? 0 : Number(y.toPrecision(4))).replace("-", "−"));
  return Array.isArray(x) ? `(${numbers.join(", ")})` : numbers[0];
}
const found = passes(m), numbers = { ...found, t: m.Q.map((_, t) => t + 1) };
function point(t) {
  for (const each of figure.querySelectorAll("[data-value]")) each.textContent = shown(numbers[each.dataset.value][t]);
  buttons.forEach((button, i) => button.setAttribute("aria-pressed", i === t));
  const first = found["∂L/∂z"][t][0], [more, less] = first > 0 ? [1, 2] : [2, 1];
  const said = Math.abs(first) < 1e-12
    ? "Both values raise the loss equally: no score can change it, and the query gets 0."
    : `Value ${more} raises the loss more than the average ${shown(found.average[t])}, value ${less} less. So a step of descent subtracts a multiple of key ${more} from <var>q</var>, and adds a multiple of key ${less}.`;
  figure.querySelector("p").innerHTML = said;
}
figure.dataset.found = JSON.stringify(found);
figure.querySelector(".moves").hidden = false;
buttons.forEach((button, t) => button.addEventListener("click", () => point(t)));
point(0);
}
