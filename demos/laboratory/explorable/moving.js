// Moving: the two sliders, the guess, and links.

const state = {m: 4, a: 0, query: 1, tried: new Set()};

function show() {
  const {m, a, query} = state, found = measured(a)[m], scale = D_KS[m] ** -a;
  const norm = found.norms[query - 1];
  attend(m, scale, query - 1);  // for p
  state.tried.add(a);
  $("d_k").value = m;
  $("a").value = a;
  $("query").value = query;
  $("d_k").setAttribute("aria-valuetext", `d_k = ${D_KS[m]}`);
  $("a").setAttribute("aria-valuetext", `a = ${a}, the scale is ${short(scale)}`);
  put("d_k_said", D_KS[m], D_KS[m]);
  put("a_said", a, a);
  put("scale_said", scale, short(scale));
  put("median", found.median, short(found.median));
  put("mean", found.mean, short(found.mean));
  put("dead", found.dead, percent(found.dead));
  put("entropy", found.entropy, found.entropy.toFixed(2));
  put("largest", found.largest, found.largest.toFixed(2));
  put("apart", apart(a), short(apart(a)));
  put("norm", norm, shortNorm(norm));
  $("looks").textContent = `gives ${percent(Math.max(...p))} of its weight to one key, and ${norm < DEAD ? "is dead" : "is alive"}.`;
  $("said").textContent = `At d_k = ${D_KS[m]} and a = ${a}, half of the queries get less than ${short(found.median)}, the mean is ${short(found.mean)}, and ${percent(found.dead)} are dead. From d_k = 16 to 1024 the largest median is ${short(apart(a))} times the smallest.`.replaceAll(" = ", "\u00a0=\u00a0");
  drawLines();
  drawHistogram();
  drawTried();
  drawHill();
  const link = `#d_k=${D_KS[m]}&a=${a}${query > 1 ? `&query=${query}` : ""}`;
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

// The guess stays as it was made, and the measurement is put beside it.
const VERDICTS = {falls: "it falls to less than half", stays: "it stays between half and double", grows: "it grows to more than double"};
function answer(question, guessed) {
  const what = question.dataset.asks, [from, to] = [4, 8].map(m => measured(0)[m][what]);
  const verdict = to < from / 2 ? "falls" : to > 2 * from ? "grows" : "stays";
  for (const [value, words] of [[guessed, "your guess"], [verdict, "measured"]]) {
    const choice = question.querySelector(`[value=${value}] + span`);
    choice.append(" ", Object.assign(document.createElement("b"), {textContent: `(${words})`}));
  }
  const place = question.querySelector(".answer"), said = document.createElement("b");
  said.textContent = guessed === verdict ? "As you guessed." : "Not as you guessed.";
  place.replaceChildren(`Measured: ${short(from)} at d_k = 64 and ${short(to)} at 1024, so ${VERDICTS[verdict]}. `, said);
  place.hidden = false;
  question.disabled = true;
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
    } else if (name === "query") {
      next.query = value;
      if (!(Number.isInteger(value) && value >= 1 && value <= QUERIES)) return refuse(`The link asks for query ${text}, but the queries are 1 to ${QUERIES} here.`);
    } else return refuse(`The link asks for “${name}”, which this page does not have: a link sets d_k, a and query.`);
  }
  if (![...asked].length) return;
  Object.assign(state, next);
  reveal();
}

$("d_k").addEventListener("input", () => { state.m = Number($("d_k").value); show(); });
$("a").addEventListener("input", () => { state.a = Number($("a").value); show(); });
$("query").addEventListener("change", () => { state.query = between(Math.round(Number($("query").value)) || 1, 1, QUERIES); show(); });
$("all").addEventListener("click", () => { for (let n = 0; n <= 20; n++) state.tried.add(n / 20); show(); });
$("skip").addEventListener("click", () => { reveal(); $("task").focus(); });
$("guess").addEventListener("submit", event => {
  event.preventDefault();
  const questions = [...document.querySelectorAll("fieldset")];
  const guesses = questions.map(each => each.querySelector(":checked"));
  $("message").hidden = true;
  if (guesses.includes(null)) {
    $("message").textContent = "Choose one answer to each of the two questions.";
    $("message").hidden = false;
    return;
  }
  questions.forEach((each, n) => answer(each, guesses[n].value));
  $("compare").hidden = true;
  reveal();
  $("task").focus({preventScroll: true});
});
addEventListener("hashchange", follow);
addEventListener("resize", () => $("lab").hidden || show());
for (const found of document.querySelectorAll("details[open]")) found.open = false;  // the answer
for (const part of later) part.hidden = true;
$("guess").hidden = false;
follow();
