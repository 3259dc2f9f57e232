"use strict";
// Softmax, moved by hand. A query is given by its products with its keys, and by g = ∂L/∂y, the
// gradient at its weights. Both passes are computed here, at each move. (`all` and `make` are those
// of site.js.)
{
const find = (selector, root = document) => root.querySelector(selector);
const sum = (values) => values.reduce((total, value) => total + value, 0);
const cases = JSON.parse(find("#cases").textContent);
const slider = find("#c"), rows = all(".bars"), questions = all(".question");
let now = 0, frame = 0;

// The scale is c = d_k^(setting - 1). Of the keys, ‖Σᵢ of_xᵢ kᵢ‖ needs their products alone.
function passes({ d_k, raw, g, products }, setting) {
  const c = d_k ** (setting - 1), x = raw.map((each) => c * each), largest = Math.max(...x);
  const e = x.map((each) => Math.exp(each - largest)), y = e.map((each) => each / sum(e));
  const mean = sum(y.map((weight, i) => weight * g[i])), departures = g.map((each) => each - mean);
  const of_x = departures.map((departure, i) => y[i] * departure);
  const square = sum(products.map((row, i) => of_x[i] * sum(row.map((p, j) => p * of_x[j]))));
  const rms_x = Math.sqrt(sum(of_x.map((each) => each ** 2)) / of_x.length);
  return { c, x, y, g, mean, departures, of_x, rms_x, rms_q: c * Math.sqrt(square / d_k) };
}

function number(value, digits) {
  const size = Math.abs(value), [digit, power = ""] = size.toExponential(digits ? 1 : 0).split("e-");
  const small = size ? `${digit}·10⁻${[...power].map((each) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[each]).join("")}` : "0";
  const large = digits ? size.toPrecision(digits) : size.toFixed(size < 1 ? 3 : size < 10 ? 2 : 1);
  return (value < 0 ? "−" : "") + (size < 0.0005 ? small : large);
}
const two = (value) => Number(value.toPrecision(2)).toLocaleString("en");
function compared(ratio) {
  if (Math.abs(ratio - 1) < 0.045) return "as large as";
  return ratio > 1 ? `${two(ratio)} times that` : `${ratio > 0.095 ? two(ratio) : `1/${two(1 / ratio)}`} of that`;
}

function show() {
  const found = passes(cases[now], slider.valueAsNumber), scaled = passes(cases[now], 0.5);
  const count = found.y.length, top = Math.max(...found.y), c = Number(found.c.toPrecision(3));
  for (const row of rows) {
    const values = found[row.dataset.row], cells = find(".cells", row);
    row.style.cssText = `${cases[now].styles[row.dataset.row]};--mean:${found.mean}`;
    cells.replaceChildren(...values.map((value, i) => {
      const textContent = count > 9 ? "" : number(value), winner = found.y[i] === top;
      const cell = make("data", { value, textContent, className: winner ? "winner" : "" });
      cell.style.setProperty("--v", value);
      return cell;
    }));
  }
  for (const name of ["rms_x", "rms_q"]) {
    Object.assign(find(`#${name}`), { value: found[name], textContent: number(found[name], 3) });
    find(`#${name}_times`).textContent = compared(found[name] / scaled[name]);
  }
  find("#mean").textContent = number(found.mean);
  find("#scale").textContent = c;
  slider.setAttribute("aria-valuetext", `c = ${c}`);
  const when = top > 0.99 ? "one" : top > 0.6 ? "large" : top * count > 1.5 ? "middle" : "even";
  for (const each of all(".says > *")) each.hidden = each.dataset.when !== when;
}

function go(target) {
  const from = slider.valueAsNumber, began = performance.now();
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const step = (time) => {
    const part = still ? 1 : Math.min(1, Math.max(0, time - began) / 1400);
    slider.value = from + (target - from) * part ** 2 * (3 - 2 * part);
    show();
    if (part < 1) frame = requestAnimationFrame(step);
  };
  cancelAnimationFrame(frame);
  step(began);
}

// A query begins with the scale, and its slider waits for the guess.
function choose(place) {
  cancelAnimationFrame(frame);
  now = place;
  slider.value = 0.5;
  questions.forEach((question, i) => { question.hidden = i !== now; });
  all(".cases button").forEach((each, i) => each.setAttribute("aria-pressed", i === now));
  const waits = !find("[aria-pressed]", questions[now]);
  for (const each of [slider, ...all(".ticks button")]) each.disabled = waits;
  show();
}
function guess(question, button) {
  if (find("[aria-pressed]", question)) return;
  button.setAttribute("aria-pressed", "true");
  const told = find(".told", question), right = "right" in button.dataset;
  told.textContent = `${right ? "As you guessed" : "Not as you guessed"}: ${told.dataset.said}`;
  const left = questions.some((each) => !find("[aria-pressed]", each));
  for (const each of all(".after")) each.hidden = left;
  choose(now);
  go(1);
}

slider.addEventListener("input", () => { cancelAnimationFrame(frame); show(); });
for (const each of all(".ticks button")) each.onclick = () => go(Number(each.dataset.to));
all(".cases button").forEach((each, i) => { each.onclick = () => choose(i); });
for (const question of questions) {
  for (const each of all("button", question)) each.onclick = () => guess(question, each);
}
for (const each of all(".still, .after")) each.hidden = true;
find(".play").hidden = false;
choose(0);
}
