// Moving: the three sliders, the guess, and links.

const state = {m: 4, a: 0, out: 0, query: 1, tried: new Set()};  // out: by how much a key stands out

function show() {
  const {m, a, out, query} = state, found = measured(a, out)[m], scale = D_KS[m] ** -a;
  const norm = found.norms[query - 1];
  attend(m, scale, query - 1, out);  // for p
  state.tried.add(a);
  $("d_k").value = m;
  $("a").value = a;
  $("m").value = out;
  $("query").value = query;
  $("d_k").setAttribute("aria-valuetext", `d_k = ${D_KS[m]}`);
  $("a").setAttribute("aria-valuetext", `a = ${a}, the scale is ${short(scale)}`);
  $("m").setAttribute("aria-valuetext", `m = ${out}`);
  put("m_said", out, out);
  put("d_k_said", D_KS[m], D_KS[m]);
  put("a_said", a, a);
  put("scale_said", scale, short(scale));
  put("median", found.median, short(found.median));
  put("mean", found.mean, short(found.mean));
  put("dead", found.dead, percent(found.dead));
  put("entropy", found.entropy, found.entropy.toFixed(2));
  put("largest", found.largest, found.largest.toFixed(2));
  put("apart", apart(a, out), short(apart(a, out)));
  put("norm", norm, shortNorm(norm));
  $("looks").textContent = `gives ${percent(Math.max(...p))} of its weight to one key, and ${norm < DEAD ? "is dead" : "is alive"}.`;
  $("said").innerHTML = setText(`At d_k = ${D_KS[m]} and a = ${a}${out ? `, with a key that stands out by m = ${Math.min(out, Math.sqrt(D_KS[m]))}` : ""}, half of the queries get less than ${short(found.median)}, the mean is ${short(found.mean)}, and ${percent(found.dead)} are dead. From d_k = ${D_KS[first(out)]} to 1024 the largest median is ${short(apart(a, out))} times the smallest.`.replaceAll(" = ", "\u00a0=\u00a0"));
  document.querySelectorAll(".charts figure").forEach((each, n) => each.classList.toggle("chosen", n === $("which").selectedIndex));
  drawLines();
  drawHistogram();
  drawTried();
  drawHill();
  const link = `#d_k=${D_KS[m]}&a=${a}${out ? `&m=${out}` : ""}${query > 1 ? `&query=${query}` : ""}`;
  try { history.replaceState(null, "", link); } catch { /* Safari allows 100 of them in 30 seconds */ }
}

// What comes after the measurement gives the answer away, so it waits for the guess.
const later = [];
for (let part = $("lab").nextElementSibling; part; part = part.nextElementSibling) later.push(part);

function reveal() {
  $("lab").hidden = false;
  for (const part of later) part.hidden = false;
  $("skip").hidden = true;
  show();
}

// The guess: two lines from d_k = 64, whose ends a reader moves. They stay as they were left.
const ENDS = {median: {style: "", place: 34, power: 0}, mean: {style: "stroke-dasharray: 2 5", place: 0, power: 0}};
const asked = () => Object.entries(ENDS);
let moved = false;

function drawGuess() {
  const [width, add] = picture("drag", 250, "The gradient over d_k, from 64 to 1024, with two ends to be moved.");
  $("drag").firstChild.setAttribute("role", "group");  // (of two sliders)
  const left = 50, right = width - 90, y = power => 20 + 205 * (1 - power) / 5;  // from 10 to 10⁻⁴
  levels(add, left, right + 10, power => y(power), [1, 0, -1, -2, -3, -4].map(n => [n, n > -1 ? String(10 ** n) : `10${raised(n)}`]));
  for (const [x, name] of [[left + 30, "64"], [right, "1024"]]) add("text", {x, y: 246, "text-anchor": "middle"}, name);
  for (const [what, end] of asked()) {
    const start = Math.log10(measured(0, 0)[4][what]), x = right - end.place;
    end.from = start;
    if (!moved) end.power = start;
    const shown = add("path", {class: "guessed", style: end.style});
    const name = add("text", {x: right + 12, class: "strong"}, what);
    const handle = add("circle", {cx: x, r: 11, class: "handle", tabindex: 0, role: "slider", "aria-label": `the ${what} at d_k = 1024`, "aria-valuemin": -4, "aria-valuemax": 1});
    const put = power => {
      end.power = between(power, -4, 1);
      shown.setAttribute("d", path([[left + 30, y(start)], [x, y(end.power)]]));
      handle.setAttribute("cy", y(end.power));
      name.setAttribute("y", y(end.power) + (what === "mean" ? -4 : 14));
      handle.setAttribute("aria-valuenow", end.power.toFixed(2));
      handle.setAttribute("aria-valuetext", short(10 ** end.power));
    };
    const move = power => { if (!$("compare").hidden) { moved = true; put(power); } };
    handle.addEventListener("pointerdown", event => { handle.setPointerCapture(event.pointerId); event.preventDefault(); handle.focus(); });
    handle.addEventListener("pointermove", event => {
      const box = handle.ownerSVGElement.getBoundingClientRect();
      if (handle.hasPointerCapture(event.pointerId)) move(1 - ((event.clientY - box.top) * 250 / box.height - 20) / 41);
    });
    handle.addEventListener("keydown", event => {
      const by = {ArrowUp: 0.1, ArrowRight: 0.1, ArrowDown: -0.1, ArrowLeft: -0.1, PageUp: 1, PageDown: -1}[event.key];
      if (by) { event.preventDefault(); move(end.power + by); }
    });
    put(end.power);
    if ($("compare").hidden) add("path", {class: "measured", style: end.style, d: path([[left + 30, y(start)], [x, y(Math.log10(measured(0, 0)[8][what]))]])});
  }
}
// The measurement is put beside the guess.
function compare() {
  const said = asked().map(([what, end]) => {
    const guess = 10 ** end.power, found = measured(0, 0)[8][what], ratio = guess / found;
    const verdict = ratio < 2 && ratio > 0.5 ? "As you guessed" : `Not as you guessed: ${short(Number((ratio > 1 ? ratio : 1 / ratio).toPrecision(2)))} times ${ratio > 1 ? "smaller" : "larger"} than that`;
    return `The ${what}: you guessed ${short(Number(guess.toPrecision(2)))}, measured is ${short(found)} (from ${short(10 ** end.from)} at d_k = 64). ${verdict}.`;
  });
  $("answer").innerHTML = setText(said.join("<br>"));
  drawGuess();
}

// What a link asks for: an error is one sentence, and nothing changes then.
function follow() {
  const asked = new URLSearchParams(location.hash.slice(1)), next = {...state};
  const refuse = sentence => { $("message").textContent = sentence; $("message").hidden = false; };
  $("message").hidden = true;
  for (const [name, text] of asked) {
    const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN;
    if (name === "d_k") {
      next.m = D_KS.indexOf(value);
      if (next.m < 0) return refuse(`The link asks for d_k = ${text}, but d_k is one of ${D_KS.join(", ")} here.`);
    } else if (name === "a") {
      next.a = Math.round(value * 20) / 20;
      if (next.a !== value || value > 1) return refuse(`The link asks for a = ${text}, but a goes from 0 to 1 in steps of 0.05 here.`);
    } else if (name === "m") {
      next.out = Math.round(value * 2) / 2;
      if (next.out !== value || value > 6) return refuse(`The link asks for m = ${text}, but m goes from 0 to 6 in steps of 0.5 here.`);
    } else if (name === "query") {
      next.query = value;
      if (!(Number.isInteger(value) && value >= 1 && value <= QUERIES)) return refuse(`The link asks for query ${text}, but the queries are 1 to ${QUERIES} here.`);
    } else return refuse(`The link asks for “${name}”, which this page does not have: a link sets d_k, a, m and query.`);
  }
  if (![...asked].length) return;
  if (next.out !== state.out) state.tried.clear();
  Object.assign(state, next);
  reveal();
}

$("d_k").addEventListener("input", () => { state.m = Number($("d_k").value); show(); });
$("a").addEventListener("input", () => { state.a = Number($("a").value); show(); });
$("m").addEventListener("input", () => { state.out = Number($("m").value); state.tried.clear(); show(); });
$("which").addEventListener("input", show);  // (on a narrow screen, which has room for one picture)
$("query").addEventListener("change", () => { state.query = between(Math.round(Number($("query").value)) || 1, 1, QUERIES); show(); });
$("all").addEventListener("click", () => { for (let n = 0; n <= 20; n++) state.tried.add(n / 20); show(); });
$("skip").addEventListener("click", () => { reveal(); $("task").focus(); });
$("guess").addEventListener("submit", event => {
  event.preventDefault();
  $("message").hidden = true;
  if (!moved) {
    $("message").textContent = "Move the end of a line first, to where you expect it.";
    $("message").hidden = false;
    return;
  }
  $("compare").hidden = true;
  compare();
  reveal();
  $("task").focus({preventScroll: true});
});
addEventListener("hashchange", follow);
addEventListener("resize", () => { drawGuess(); if (!$("lab").hidden) show(); });
for (const found of document.querySelectorAll("details[open]")) found.open = false;  // the answer
for (const part of later) part.hidden = true;
$("guess").hidden = false;
drawGuess();
follow();
