"use strict";
// The page's end of Python: one worker a page, which starts with the first question.
//
//   python.can             whether this page can run Python (not from file://)
//   python.ask(question, hear) → Promise of the answer, RESULT in demos/live/_reader.py, or null
//                          if Python has ended. hear(message) gets each message of that file's
//                          table; while Python starts it gets {said: WORDS}, and {said: ""} when
//                          it is ready
//   python.busy            whether a question has no answer yet
//   python.stop()          end the worker, with all names; each open question hears {failed:
//                          SENTENCE} and is answered by null
//   python.restart()       the same without a sentence: the next question meets a new Python
//   python.ended(f)        f() is called whenever a Python has ended, so its names are gone
//
// And what all pages that run have:
//
//   runButton(words, clicked)  a button that needs Python; until this tab has it, it says the cost
//   plainButton(words, clicked)
//   barOf(code, ...buttons)    put buttons at the right end of a piece of code, beside Copy; quiet
//                              unless its class is "on"
//   show(message, into)        append what {shown} or {failed} says to an element

const live = document.currentScript.dataset;  // addresses, and what a first start loads
const LOADED = "minigrad.loaded";  // of sessionStorage: this tab has had Python

const python = {
  can: location.protocol !== "file:",  // (a page from a file may not start a worker)
  worker: null,
  asked: new Map(),  // of each open question: who hears of it, and who gets the answer
  count: 0,
  listeners: [],

  get busy() { return this.asked.size > 0; },

  ended(listener) { this.listeners.push(listener); },

  start() {
    const at = (address) => new URL(address, document.baseURI).href;
    // A worker from a file would have no policy, and could ask any host. One from a blob has its
    // page's.
    const program = [`import ${JSON.stringify(at("live/worker.js"))};`];
    const blob = URL.createObjectURL(new Blob(program, { type: "text/javascript" }));
    this.worker = new Worker(blob, { type: "module" });
    this.ready = false;
    this.worker.onmessage = ({ data }) => this.hear(JSON.parse(data));
    this.worker.onerror = ({ message }) => this.hear({ broken: message || "no file answers" });
    const { runtime, code, numpy, viz } = live;
    this.worker.postMessage({ runtime: at(runtime), code: at(code), numpy: at(numpy), viz: at(viz) });
  },

  ask(question, hear = () => {}) {
    if (!this.worker) this.start();
    const id = ++this.count;
    return new Promise((answered) => {
      this.asked.set(id, { hear, answered });
      this.worker.postMessage(JSON.stringify({ id, ...question }));
    });
  },

  hear(message) {
    if (message.broken && this.ready) {
      this.end(`Python has ended: ${message.broken}. What you typed is here. The next Run starts a new Python.`);
    } else if (message.broken) {
      this.end(`Python did not come: ${message.broken}. The next Run tries again.`);
    } else if (message.ready) {
      this.ready = true;
      all(".cost").forEach((each) => each.remove());
      try { sessionStorage.setItem(LOADED, "yes"); } catch { /* (a private window may refuse) */ }
    }
    if (message.said || message.ready) {
      for (const { hear } of this.asked.values()) hear({ said: message.said || "" });
    }
    const question = this.asked.get(message.id);
    if (!question) return;
    if ("done" in message) {
      this.asked.delete(message.id);
      question.answered(message.done);
    } else question.hear(message);
  },

  stop() { this.end("Stopped. The next Run starts a new Python."); },
  restart() { this.end(""); },

  end(failed) {
    this.worker?.terminate();
    this.worker = null;
    const open = [...this.asked.values()];
    this.asked.clear();
    this.listeners.forEach((each) => each());
    for (const { hear, answered } of open) {
      if (failed) hear({ failed });
      answered(null);
    }
  },
};
addEventListener("pagehide", () => python.restart());  // (190 MB)

function isLoaded() {
  try { return sessionStorage.getItem(LOADED) !== null; } catch { return false; }
}

function plainButton(words, clicked) {
  const button = make("button", { type: "button" }, make("span", { textContent: words }));
  button.addEventListener("click", clicked);
  return button;
}

function runButton(words, clicked) {
  const button = plainButton(words, clicked);
  if (!isLoaded()) button.append(make("small", { className: "cost", textContent: ` ${live.cost}` }));
  return button;
}

function barOf(code, ...buttons) {
  const bar = make("div", { className: "bar" }, ...buttons);
  code.previousElementSibling.append(bar);  // (site.js has put Copy there)
  return bar;
}

// ---- What a run shows. All text is text; a picture or a page is in a frame of its own origin.

const SIZE = /<svg[^>]*?width="([\d.]+)pt"[^>]*?height="([\d.]+)pt"/;

function show(message, into) {
  if (message.failed) {
    const said = make("b", { textContent: message.failed });
    const failed = make("div", { className: "failed", role: "alert" }, said);
    if (message.trace) {
      const trace = make("pre", { textContent: message.trace, tabIndex: 0 });
      failed.append(make("details", {}, make("summary", { textContent: "Traceback" }), trace));
    }
    into.append(failed);
  }
  if (!message.shown) return;
  const { shown: name, text, base64 } = message;
  const [svg, html, png] = [".svg", ".html", ".png"].map((end) => name.endsWith(end));
  if (png) into.append(make("img", { src: `data:image/png;base64,${base64}`, alt: name }));
  if (svg || html) {
    const frame = make("iframe", { title: name, className: html ? "stepped" : "drawn" });
    frame.sandbox = html ? "allow-scripts" : "";
    const [, width, height] = (svg && text.match(SIZE)) || [];
    if (width) Object.assign(frame.style, { width: `${width * 4 / 3}px`, height: `${height * 4 / 3}px` });
    frame.srcdoc = html ? text : `<!doctype html><body style="margin:0">${text.replace(/^<\?xml.*?\?>/, "")}`;
    into.append(make("div", { className: "wide", tabIndex: 0 }, frame));
  }
  const file = base64 ? `data:application/octet-stream;base64,${base64}`
    : URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  into.append(make("p", { className: "kept" },
    make("a", { href: file, download: name, textContent: `Keep ${name}` })));
}

if (!python.can) {
  document.querySelector("footer").append(" Examples run where these pages are served: ",
    make("code", { textContent: "python -m demos site --serve" }), ".");
}
