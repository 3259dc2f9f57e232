"use strict";
// The page Try: an editor, programs to begin with, and below it whatever a run prints and draws.

const TYPED = "minigrad.try";  // what is in the editor of this tab

function tryPage(place) {
  const programs = all("details", place).map((each) => ({
    name: each.querySelector("summary").textContent, text: each.querySelector("pre").textContent.trimEnd(),
  }));
  const status = statusLine(), way = statusLine();  // the second: back to what is put aside
  const after = make("div", { className: "answer" });
  const write = editor(remembered(TYPED) ?? programs[0].text, "Your program", { changed, run });
  const button = runButton("Run", run);
  const isOwn = (text) => !programs.some((each) => each.text === text);
  const show = (text) => { write.text = text; changed(); };
  const replace = aside("minigrad.try.aside", way, { now: () => write.text, show, isOwn });
  const choices = programs.map(({ name, text }) => plainButton(name, () => replace(text)));

  function changed() {
    remember(TYPED, write.text);
    status.textContent = "";
    choices.forEach((each, i) => each.setAttribute("aria-pressed", write.text === programs[i].text));
  }

  async function run() {
    if (python.busy) return;
    const question = { run: write.text, of: document.body.dataset.module, name: "your program" };
    const { went, seconds } = await follow(question, { button, status, into: after });
    if (went) status.textContent = `It ran, ${seconds}.`;
  }

  place.replaceChildren(make("div", { className: "choice" }, ...choices), write.element,
    make("div", { className: "buttons" }, button), status, way, after);
  changed();
}

if (python.can) all("[data-try]").forEach(tryPage);
