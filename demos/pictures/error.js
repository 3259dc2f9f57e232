"use strict";
// The error of a central difference of x³ at 1, for the reader's own step.
{
const figure = document.querySelector("#error"), bar = figure.querySelector("input");
const dot = figure.querySelector("circle"), cube = (x) => x * x * x;
const powers = (x) => x.toExponential(1).replace(/e([-+])(\d+)/, (_, sign, n) => `·10${sign === "-" ? "⁻" : ""}${[...n].map((c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]).join("")}`);
function show() {
  const power = Number(bar.value), h = 10 ** power;
  const found = (cube(1 + h) - cube(1 - h)) / (2 * h), error = Math.abs(found - 3);
  dot.setAttribute("cx", 60 + 40 * (power + 12));
  dot.setAttribute("cy", 30 - 16 * Math.log10(Math.max(error, 1e-13)));
  dot.style.display = "";
  const why = power > -4.9 ? "The curvature of x³ enters." : power < -5.4 ? "The last digits of f(1 + h) and f(1 − h) are rounding." : "Here both are small.";
  figure.querySelector("p").textContent = `h = ${powers(h)}: the difference is ${found}, wrong by ${powers(error)}. ${why}`;
  figure.dataset.found = error;
}
figure.querySelector(".moves").hidden = false;
bar.addEventListener("input", show);
show();
}
