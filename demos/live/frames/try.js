"use strict";
// The page Try: an editor, programs to begin with, and below it whatever a run prints and draws.

// Of sessionStorage: what is in the editor of this tab, and what a program has put aside.
const [TYPED, PUT_ASIDE] = ["minigrad.try", "minigrad.try.aside"];

function remembered(key) {
  try { return sessionStorage.getItem(key); } catch { return null; }
}

function remember(key, text) {
  try { sessionStorage.setItem(key, text); } catch { /* (full, or refused: until the page is left) */ }
}

function tryPage(place) {
  const programs = all("details", place).map((each) => ({
    name: each.querySelector("summary").textContent, text: each.querySelector("pre").textContent.trimEnd(),
  }));
  const status = make("p", { className: "status", role: "status" });
  const way = make("p", { className: "status", role: "status" });  // back to what is put aside
  const after = make("div", { className: "answer" });
  const write = editor(remembered(TYPED) ?? programs[0].text, "Your program", { changed, run: () => run() });
  const choices = programs.map(({ name, text }) => plainButton(name, () => replace(text)));
  const button = runButton("Run", () => run());

  function changed() {
    remember(TYPED, write.text);
    choices.forEach((each, i) => each.setAttribute("aria-pressed", write.text === programs[i].text));
  }

  // Another program; what was typed comes back by a button, which stays until it is used.
  function replace(text) {
    const before = write.text;
    if (before === text) return;
    write.text = text;
    changed();
    status.textContent = "";
    if (!programs.some((each) => each.text === before)) putAside(before);
  }

  function putAside(text) {
    remember(PUT_ASIDE, text);
    const back = plainButton("My lines back", () => {
      way.replaceChildren();
      remember(PUT_ASIDE, "");
      replace(text);
    });
    way.replaceChildren("Your lines are put aside. ", back);
  }

  async function run() {
    if (python.busy) {
      python.stop();
      return;
    }
    let failed = false;
    const printed = make("pre", { className: "plain got", tabIndex: 0 });
    const began = performance.now();
    button.firstChild.textContent = "Stop";
    status.textContent = "It runs …";
    after.replaceChildren();
    const done = await python.ask({ run: write.text, of: document.body.dataset.module, name: "your program" }, (message) => {
      if ("said" in message) status.textContent = message.said || "It runs …";
      if ("out" in message) {
        if (!printed.isConnected) after.append(printed);
        printed.append(message.out);
        printed.scrollTop = printed.scrollHeight;
      }
      if (message.failed) failed = true;
      show(message, after);
    });
    button.firstChild.textContent = "Run";
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    status.textContent = done === null || failed ? "" : `It ran, ${seconds} s.`;
  }

  place.replaceChildren(make("div", { className: "choice" }, ...choices), write.element,
    make("div", { className: "buttons" }, button), status, way, after);
  changed();
  if (remembered(PUT_ASIDE)) putAside(remembered(PUT_ASIDE));
}

if (python.can) all("[data-try]").forEach(tryPage);
