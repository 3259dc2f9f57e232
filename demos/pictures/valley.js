"use strict";
// Four optimizers in one valley, for the reader's own rate and number of steps.
// (`place`, `move` and `tell` are of axes.js.)
{
const figure = document.querySelector("#valley"), [bar, rates] = figure.querySelectorAll("input");
const m = JSON.parse(figure.querySelector("script").textContent);
const slope = [(x) => x - m.minimum[0], (y) => m.steep * (y - m.minimum[1])];
const height = ([x, y]) => 0.5 * ((x - m.minimum[0]) ** 2 + m.steep * (y - m.minimum[1]) ** 2);

// A step of one number p: g is its gradient, s is what is remembered, t counts the steps from 1.
function adam(p, g, s, rate, t) {
  s.m = (s.m ?? 0) + 0.1 * (g - (s.m ?? 0));
  s.v = (s.v ?? 0) + 0.001 * (g * g - (s.v ?? 0));
  return p - rate * (s.m / (1 - 0.9 ** t)) / (Math.sqrt(s.v / (1 - 0.999 ** t)) + 1e-8);
}
const rules = {
  "SGD": (p, g, s, rate) => p - rate * g,
  "SGD with momentum": (p, g, s, rate) => p - rate * (s.velocity = m.momentum * (s.velocity ?? 0) + g),
  "Adam": adam,
  "AdamW": (p, g, s, rate, t) => adam(p * (1 - rate * m.decay), g, s, rate, t),
};
function walk(rule, rate, steps) {
  const memory = [{}, {}], found = [m.start];
  for (let t = 1; t <= steps; t++) {
    found.push(found[t - 1].map((p, i) => rule(p, slope[i](p), memory[i], rate, t)));
  }
  return found;
}
function show() {
  const rate = Number(rates.value), steps = Number(bar.value), found = {}, told = [];
  for (const [name, rule] of Object.entries(rules)) {
    const group = figure.querySelector(`[data-name="${name}"]`), [path, dot] = group.children;
    const walked = walk(rule, rate, steps);
    found[name] = walked[steps];
    const points = walked.map((each) => place(m.axes[group.dataset.panel], ...each));
    path.setAttribute("points", points.join(" "));
    move(dot, points[steps]);
    const f = height(found[name]);
    told.push(`${f < 0.001 ? "below 0.001" : Number(f.toPrecision(2))} (${name})`);
  }
  tell(bar, steps);
  tell(rates, rate);
  figure.querySelector("text.end").textContent = `${steps} steps at rate ${rate}`;
  figure.querySelector("p").textContent = `After ${steps} steps at rate ${rate}, f is ${told.join(", ")}.`;
  figure.dataset.found = JSON.stringify(found);
}
figure.querySelector(".moves").hidden = false;
for (const each of [bar, rates]) each.addEventListener("input", show);
show();
}
