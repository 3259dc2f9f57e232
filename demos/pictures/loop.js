"use strict";
// The loop of chapter 0, step by step. A reader's own loop comes with the event "loop" (demos/live/_loop.py).
{
const figure = document.querySelector("#loop"), [bar, next, status, code] = ["input", "button", "[role=status]", ".steps"].map((each) => figure.querySelector(each));
let steps = JSON.parse(figure.querySelector("script").textContent), ending = "";

function show() {
  const step = steps[bar.value], last = Number(bar.value) === steps.length - 1;
  for (const part of figure.querySelectorAll("[data-box]")) {
    const name = part.dataset.box, waits = step.waits.includes(name) ? "waits" : step.done.includes(name) ? "done" : "";
    part.setAttribute("class", step.now === name ? "now" : waits);
    part.lastElementChild.textContent = step.grads[name] ?? "";
  }
  figure.querySelectorAll("[data-link]").forEach((link, n) => {
    link.setAttribute("class", `link ${step.sent[n] ? "sent" : ""} ${step.link === n ? "in-use" : ""}`);
    link.lastElementChild.textContent = step.sent[n];
  });
  for (const line of code.children) {
    const lit = Number(line.dataset.line) === step.line;
    line.classList.toggle("lit", lit);
    line.lastElementChild.textContent = lit ? step.note : "";
  }
  const words = step.says.split(/\b([abcxL])\b/).map((text, i) => Object.assign(document.createElement(i % 2 ? "var" : "span"), { textContent: text }));
  status.replaceChildren(...words, last ? ` ${ending}` : "");
  bar.setAttribute("aria-valuetext", status.textContent);
  next.disabled = last;
}
function line(text, n) {
  const [row, words, note] = ["div", "span", "i"].map((tag) => document.createElement(tag));
  words.textContent = text;
  Object.assign(row.dataset, { line: n, n: n + 1 });
  row.append(words, " ", note);
  return row;
}
document.addEventListener("loop", ({ detail }) => {
  if (detail.steps.length) steps = detail.steps;
  ending = detail.says;
  code.replaceChildren(...detail.text.trimEnd().split("\n").map(line));
  bar.max = steps.length - 1;
  bar.value = detail.says ? bar.max : 0;
  show();
});
figure.querySelector(".moves").hidden = false;
bar.addEventListener("input", show);
next.addEventListener("click", () => { bar.stepUp(); show(); });
window.addEventListener("beforeprint", () => { bar.value = bar.max; show(); });
show();
}
