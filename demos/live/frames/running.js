"use strict";
// A run as the reader sees it: its button, how it goes, and what it prints, draws and fails with.
//
//   plainButton(words, clicked)
//   runButton(words, clicked)  a button that starts a run. It names the download until this tab has
//                              Python, and is Stop during the run
//   isGoingOn(button), goesOn(button, is)  whether its run goes on
//   barOf(code, ...buttons)    put buttons at the right end of a piece of code, beside Copy; quiet
//                              unless its class is "on", or it is the page's first
//   statusLine()               an empty line for what goes on
//   follow(question, {button, status, into, words, hear}) → Promise of {done, went, seconds}
//                              ask Python, and show how it goes: `words` while it runs. hear has
//                              functions by the kinds of messages: hear.out takes the place of
//                              print. went: whether there was an answer, and no error. seconds:
//                              of the run alone, without Python's start and other runs before it
//   print(text, into)          append what is printed to an element
//   remembered(key), remember(key, text)  of this tab; nothing is kept if the browser refuses

const LOADED = "minigrad.loaded";  // this tab has had Python

function remembered(key) {
  try { return sessionStorage.getItem(key); } catch { return null; }
}

function remember(key, text) {
  try { sessionStorage.setItem(key, text); } catch { /* (full, or refused as in private windows) */ }
}

function plainButton(words, clicked) {
  const button = make("button", { type: "button" }, make("span", { textContent: words }));
  button.addEventListener("click", clicked);
  return button;
}

function runButton(words, clicked) {
  const button = plainButton(words, () => (isGoingOn(button) ? python.stop() : clicked()));
  button.dataset.words = words;
  if (!remembered(LOADED)) button.append(make("small", { className: "cost", textContent: ` ${live.cost}` }));
  return button;
}

const isGoingOn = (button) => button.classList.contains("running");

function goesOn(button, is) {
  button.classList.toggle("running", is);
  button.firstChild.textContent = is ? "Stop" : button.dataset.words;
}

function barOf(code, ...buttons) {
  const bar = make("div", { className: "bar" }, ...buttons);
  if (!all(".bar").length) bar.classList.add("first");
  code.previousElementSibling.append(bar);  // (site.js has put Copy there)
  return bar;
}

const statusLine = () => make("p", { className: "status", role: "status" });

async function follow(question, { button, status, into, words = "It runs …", hear = {} }) {
  let began = performance.now(), failed = false, now = words;
  goesOn(button, true);
  status.textContent = words;
  into.replaceChildren();
  const done = await python.ask(question, (message) => {
    if ("said" in message) status.textContent = now = message.said || words;
    if (message.said === "") {
      remember(LOADED, "yes");
      all(".cost").forEach((each) => each.remove());
    }
    if (message.begin === 0) began = performance.now();
    if ("out" in message && !hear.out) print(message.out, into);
    for (const [kind, what] of Object.entries(message)) hear[kind]?.(what);
    if (message.failed) {
      failed = true;
      into.append(failure(message));
    }
    if (message.shown) into.append(...drawing(message));
  });
  goesOn(button, false);
  if (status.textContent === now) status.textContent = "";  // (Reset may have said something)
  const seconds = `${((performance.now() - began) / 1000).toFixed(1)} s`;
  return { done, went: done !== null && !failed, seconds };
}

function print(text, into) {
  const box = into.querySelector(":scope > .got") ?? make("pre", { className: "plain got", tabIndex: 0 });
  if (!box.isConnected) into.append(box);
  box.append(text);
  box.scrollTop = box.scrollHeight;
}

function failure({ failed, trace }) {
  const [sentence, ...more] = failed.split("\n");
  const box = make("div", { className: "failed", role: "alert" }, make("b", { textContent: sentence }));
  if (more.length) box.append(make("pre", { className: "plain", textContent: more.join("\n"), tabIndex: 0 }));
  if (trace) {
    const lines = make("pre", { textContent: trace, tabIndex: 0 });
    box.append(make("details", {}, make("summary", { textContent: "Traceback" }), lines));
  }
  return box;
}

// ---- A file that a run shows. A picture or a page is in a frame of its own origin.

const SIZE = /<svg[^>]*?width="([\d.]+)pt"[^>]*?height="([\d.]+)pt"/;

function drawing({ shown: name, text, base64 }) {
  const parts = [];
  const [svg, html, png] = [".svg", ".html", ".png"].map((end) => name.endsWith(end));
  if (png) parts.push(make("img", { src: `data:image/png;base64,${base64}`, alt: name }));
  if (svg || html) {
    const frame = make("iframe", { title: name, className: html ? "stepped" : "drawn" });
    frame.sandbox = html ? "allow-scripts" : "";
    const [, width, height] = (svg && text.match(SIZE)) || [];
    if (width) Object.assign(frame.style, { width: `${width * 4 / 3}px`, height: `${height * 4 / 3}px` });
    frame.srcdoc = html ? text : `<!doctype html><body style="margin:0">${text.replace(/^<\?xml.*?\?>/, "")}`;
    parts.push(make("div", { className: "wide", tabIndex: 0 }, frame));
  }
  const file = base64 ? `data:application/octet-stream;base64,${base64}`
    : URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  const link = make("a", { href: file, download: name, textContent: `Keep ${name}` });
  return [...parts, make("p", { className: "kept" }, link)];
}

if (!python.can) {
  document.querySelector("footer").append(" Examples run where these pages are served: ",
    make("code", { textContent: "python -m demos site --serve" }), ".");
}
