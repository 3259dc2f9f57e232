"use strict";
// What an element of A or B reaches in C, and the sum that is its gradient.
{
const figure = document.querySelector("#product"), cells = [...figure.querySelectorAll(".cell")];
const m = JSON.parse(figure.querySelector("script").textContent);
const shown = (x) => String(Number(x.toPrecision(3))).replace("-", "−");

// Of Aᵢₖ: row i of G times row k of B. Of Bₖⱼ: column k of A times column j of G.
function terms(name, i, j) {
  return name === "A" ? m.G[i].map((g, k) => [g, m.B[j][k]]) : m.A.map((row, k) => [row[i], m.G[k][j]]);
}
function point(cell) {
  const { m: name } = cell.dataset, [i, j] = [Number(cell.dataset.i), Number(cell.dataset.j)];
  for (const each of cells) {
    const { m: other } = each.dataset, [a, b] = [Number(each.dataset.i), Number(each.dataset.j)];
    const reached = (name === "A" ? a === i : b === j) && "CG".includes(other);
    const used = name === "A" ? other === "B" && a === j : other === "A" && b === i;
    each.classList.toggle("now", each === cell);
    each.classList.toggle("reached", reached);
    each.classList.toggle("used", used);
  }
  const pairs = terms(name, i, j), sum = pairs.reduce((total, [x, y]) => total + x * y, 0);
  const bracket = (x) => (x < 0 ? `(${shown(x)})` : shown(x));
  const told = pairs.map(([x, y]) => `${bracket(x)} · ${bracket(y)}`).join(" + ");
  const low = `<tspan dy="4" class="small">${i + 1}${j + 1}</tspan><tspan dy="-4">\u200b</tspan>`;
  figure.querySelector("[data-sum]").innerHTML = `∂<tspan class="var">L</tspan>/∂<tspan class="var">${name}</tspan>${low} = ${told} = ${shown(sum)}`;
  figure.dataset.found = sum;
}
figure.querySelector(".moves").hidden = false;
figure.querySelector("svg").setAttribute("role", "group");
figure.querySelector("[data-sum]").setAttribute("aria-live", "polite");
for (const cell of cells.filter((each) => "AB".includes(each.dataset.m))) {
  const { m: name, i, j } = cell.dataset;
  const said = `${name}, row ${Number(i) + 1}, column ${Number(j) + 1}: ${cell.textContent}`;
  for (const [key, value] of Object.entries({ tabindex: 0, role: "button", "aria-label": said })) cell.setAttribute(key, value);
  for (const event of ["pointerenter", "focus", "click"]) cell.addEventListener(event, () => point(cell));
}
point(cells[0]);
}
