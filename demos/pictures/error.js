"use strict";
// The error of a central difference of x³ at 1, for the reader's own step.
// (`place`, `move` and `tell` are of axes.js.)
{
const figure = document.querySelector("#error"), bar = figure.querySelector("input");
const m = JSON.parse(figure.querySelector("script").textContent);
const dot = figure.querySelector("circle"), cube = (x) => x * x * x;

// Two digits, of a small number with a power of ten.
function shown(x) {
  const [digits, power] = x.toExponential(1).split("e-");
  if (x === 0 || x >= 0.001) return String(Number(x.toPrecision(2)));
  return `${digits === "1.0" ? "" : `${digits}·`}10⁻${[...power].map((c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]).join("")}`;
}
function show() {
  const power = Number(bar.value), h = 10 ** power;
  const found = (cube(1 + h) - cube(1 - h)) / (2 * h), error = Math.abs(found - 3);
  move(dot, place(m.axes, power, Math.log10(Math.max(error, m.floor))));
  dot.style.display = "";
  tell(bar, shown(h));
  const why = power > -4.9 ? `The third derivative counts: h² = ${shown(h * h)}.`
    : power < -5.4 ? "Rounding counts: of 1 + h and 1 − h, and of f." : "Here both parts are small.";
  figure.querySelector("p").textContent = `The difference is ${found}, wrong by ${shown(error)}. ${why}`;
  figure.dataset.found = error;
}
figure.querySelector(".moves").hidden = false;
bar.addEventListener("input", show);
show();
}
