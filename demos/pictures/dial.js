"use strict";
// The hands of sinusoidal positions, at the reader's own position and shift. (`tell` is of axes.js.)
{
const figure = document.querySelector("#dial"), [bar, shifts] = figure.querySelectorAll("input");
const m = JSON.parse(figure.querySelector("script").textContent);
const shown = (x, digits) => x.toFixed(digits).replace("-", "−");

// The row of position t: of each pair of features the sine and the cosine of its angle.
function row(t) {
  return m.middles.map((_, i) => {
    const angle = t / 10000 ** ((2 * i) / m.d_model);
    return [Math.sin(angle), Math.cos(angle)];
  });
}
// The angle from one hand to the other, clockwise, as the two hands themselves say it.
function turn([sin, cos], [later, other]) {
  const angle = Math.atan2(later * cos - other * sin, other * cos + later * sin);
  return angle < 0 ? angle + 2 * Math.PI : angle;
}
function show() {
  const t = Number(bar.value), shift = Number(shifts.value), rows = { ink: row(t), cross: row(t + shift) };
  const turns = rows.ink.map((hand, i) => turn(hand, rows.cross[i]));
  for (const [kind, hands] of Object.entries(rows)) {
    hands.forEach(([sin, cos], i) => {
      const hand = figure.querySelector(`[data-pair="${i}"] [data-hand=${kind}]`), x = m.middles[i], long = m.radii[kind];
      hand.setAttribute("points", `${x},${m.y} ${x + long * sin},${m.y - long * cos}`);
    });
    figure.querySelector(`[data-value=${kind}]`).textContent = kind === "ink" ? t : t + shift;
  }
  turns.forEach((angle, i) => {
    const dial = figure.querySelector(`[data-pair="${i}"]`);
    dial.querySelector("[data-value=sin]").textContent = shown(rows.ink[i][0], 3);
    dial.querySelector("[data-value=cos]").textContent = shown(rows.ink[i][1], 3);
    dial.lastElementChild.textContent = `turn ${Number(angle.toPrecision(3))}`;
  });
  tell(bar, t);
  tell(shifts, shift);
  const told = turns.map((angle) => Number(angle.toPrecision(3))).join(", ");
  figure.querySelector("p").textContent = `From position ${t} to ${t + shift} the hands turn by ${told} radians.`;
  figure.dataset.found = JSON.stringify({ now: rows.ink, later: rows.cross, turns });
}
figure.querySelector(".moves").hidden = false;
for (const each of [bar, shifts]) each.addEventListener("input", show);
show();
}
