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

const live = document.currentScript.dataset;  // addresses, and what a first start loads

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
    this.ready = false;
    this.worker = new Worker(blob, { type: "module" });
    this.worker.onmessage = ({ data }) => this.hear(JSON.parse(data));
    this.worker.onerror = ({ message }) => this.hear({ broken: message || "the server does not answer" });
    const { runtime, code, numpy, viz } = live;
    this.worker.postMessage({ runtime: at(runtime), code: at(code), numpy: at(numpy), viz: at(viz) });
  },

  ask(question, hear = () => {}) {
    const id = ++this.count;
    return new Promise((answered) => {
      this.asked.set(id, { hear, answered });
      try {
        if (!this.worker) this.start();
        this.worker.postMessage(JSON.stringify({ id, ...question }));
      } catch (error) { this.hear({ broken: error.message }); }  // (a browser that allows no worker)
    });
  },

  hear(message) {
    if (message.broken && this.ready) {
      this.end(`Python has ended: ${message.broken}. What you typed is here. Python starts anew when you need it next.`);
    } else if (message.broken) {
      this.end(`Python could not be loaded: ${message.broken}. Press the button to try again.`);
    } else if (message.ready) this.ready = true;
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

  stop() { this.end("Stopped. Python starts anew when you need it next."); },
  restart() { this.end(""); },

  end(failed) {
    this.worker?.terminate();
    this.worker = null;
    const open = [...this.asked.values()];
    this.asked.clear();
    open.forEach(({ answered }) => answered(null));  // (first: a `hear` that fails stops no other run)
    this.listeners.forEach((each) => each());
    if (failed) open.forEach(({ hear }) => hear({ failed }));
  },
};
addEventListener("pagehide", () => python.restart());  // (190 MB)
