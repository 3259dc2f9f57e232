"use strict";
// The examples of a chapter: Run, Edit, Reset. What a block prints stands under its lines, and what
// is not as in the book is marked. A block needs the names of those above it, so these run first.
//
//   blocks                 all blocks of the page, in their order; of each: ran (may be set to
//                          false), run(), restore(), element
//   runInOrder(some) → Promise of whether all have run without an error

class Block {
  constructor(element, place) {
    this.element = element;
    this.place = place;
    this.ran = false;
    this.hasBegun = false;  // in the names as they are now
    this.running = null;  // a promise
    this.editor = null;  // made by the first Edit; Reset puts it away, with what is typed in it
    this.editing = null;  // the same, while it is open
    this.isMarked = false;  // by a definition of the reader's, frames/definitions.js
    this.runButton = runButton("Run", () => this.run());
    this.editButton = plainButton("Edit", () => this.edit());
    this.resetButton = plainButton("Reset", () => this.reset());
    this.resetButton.hidden = true;
    this.bar = barOf(element, this.runButton, this.editButton, this.resetButton);
    this.bar.parentElement.id = `example-${place}`;
    this.status = statusLine();
    this.after = make("div", { className: "after-run" });
    element.after(this.status, this.after);
    this.book = [...element.children].map((line) => line.cloneNode(true));
  }

  // The block as a doctest, as it stands in the book.
  get doctest() {
    const lines = this.book.map((line) => (line.textContent === " " ? "<BLANKLINE>" : line.textContent));
    return `${lines.join("\n")}\n`;
  }

  // What is typed in it, without prompts.
  get typed() {
    const lines = this.book.filter((line) => line.className === "in");
    return lines.map((line) => line.textContent.slice(4)).join("\n");
  }

  edit() {
    const changed = () => { this.ran = false; };
    this.editor ??= bookEditor(this.typed, `Example ${this.place}`, { changed, run: () => this.run() });
    this.editing = this.editor;
    this.clear();
    this.status.append(...leftThere(this.editing, this.typed));
    this.element.hidden = this.editButton.hidden = true;
    this.resetButton.hidden = false;
    this.bar.classList.add("on");
    this.element.after(this.editing.element);
    this.editing.focus();
  }

  reset() {
    if (isGoingOn(this.runButton)) python.stop();
    this.editing?.element.remove();
    this.editing = null;
    this.ran = false;
    this.element.hidden = this.editButton.hidden = false;
    this.restore();
    this.editButton.focus();
  }

  clear() {
    this.element.replaceChildren(...this.book.map((line) => line.cloneNode(true)));
    this.after.replaceChildren();
    this.status.textContent = "";
    this.isMarked = false;
  }

  // Show the block as it stands in the book.
  restore() {
    this.clear();
    this.resetButton.hidden = true;
    this.bar.classList.remove("on");
  }

  // Run the block, and first those above it that have not run. A block that has begun before begins
  // with new names: it may have spent a record, or changed what it was given.
  async run() {
    if (isGoingOn(this.runButton)) return;
    const upToThis = blocks.slice(0, this.place);
    if (!python.busy && upToThis.some((each) => each.hasBegun && (!each.ran || each === this))) {
      python.ask({ forget: document.body.dataset.module });
      blocks.forEach((each) => { each.ran = each.hasBegun = false; });
    }
    const above = upToThis.slice(0, -1).filter((each) => !each.ran);
    const words = above.length === 1 ? "the block above" : `the ${above.length} blocks above`;
    const unfinished = [];
    for (const each of above) {
      this.status.textContent = `First ${words} …`;
      this.bar.classList.add("on");
      goesOn(this.runButton, true);
      if (!(await each.alone())) unfinished.push(each);
      goesOn(this.runButton, false);
      if (!python.worker) break;  // (Stop, or it has ended by itself)
    }
    const isStopped = unfinished.length && !python.worker;
    const went = !isStopped && await this.alone();
    if (isStopped) this.status.textContent = "";
    if (unfinished.length) {
      const { place } = unfinished[0];
      const link = make("a", { href: `#example-${place}`, textContent: `Example ${place}` });
      this.status.append(" ", link, " did not run to its end.");
    } else if (above.length && went) this.status.append(` First, ${words} ran.`);
  }

  // Run the block itself; → Promise of whether it ran to its end.
  alone() {
    this.running ??= this.ask().finally(() => { this.running = null; });
    return this.running;
  }

  async ask() {
    this.clear();
    this.resetButton.hidden = false;
    this.bar.classList.add("on");
    this.hasBegun = true;
    const text = this.editing ? this.editing.text : this.doctest;
    const question = { run: text, of: document.body.dataset.module, name: `example ${this.place}` };
    const { done, went, seconds } = await follow(question, {
      button: this.runButton, status: this.status, into: this.after,
      hear: this.editing ? {} : new Compared(this.element),
    });
    this.ran = went;
    if (this.resetButton.hidden) this.bar.classList.remove("on");  // (Reset has ended it)
    const verdict = this.editing ? seconds : `${done ? "As" : "Not as"} in the book, ${seconds}`;
    if (went) this.status.textContent = `${verdict}.`;
    return went;
  }
}

// The output of a block of the book, in the place of the book's own.
class Compared {
  constructor(element) {
    this.examples = [];
    for (const line of element.children) {
      const isTyped = line.className === "in";
      if (isTyped && line.textContent.startsWith(">>> ")) this.examples.push({ lines: [], book: [], text: "" });
      const now = this.examples.at(-1);
      if (isTyped) {
        now.lines.push(line.textContent.slice(4));
        now.last = line;
      } else now.book.push(line);
    }
    this.now = null;
  }

  // (Named as the messages that they are for, demos/live/_reader.py.)
  begin(place) { this.now = this.examples[place]; }

  out(text) {
    this.now.text += text;
    this.draw([], []);
  }

  // Set what was printed below its line; mark what is not in the book, and add what only it has.
  draw(marked, lacking) {
    const { last, book, text } = this.now;
    const lines = text.replace(/\n$/, "").split("\n");
    const rows = text ? lines.map((line, i) => make("div", {
      className: marked.includes(i) ? "out got differs" : "out got", textContent: line || " ",
    })) : [];
    rows.push(...lacking.map((line) => make("div", { className: "out book", textContent: line })));
    this.now.rows?.forEach((row) => row.remove());
    book.forEach((line) => { line.hidden = true; });
    last.after(...rows);
    this.now.rows = rows;
  }

  differs() {
    const book = this.now.book.map((line) => line.textContent);
    const lines = this.now.text.replace(/\n$/, "").split("\n").map((line) => line || " ");
    let [from, end] = [0, 0];  // how many lines are equal, from above and from below
    while (from < Math.min(lines.length, book.length) && lines[from] === book[from]) from += 1;
    while (end < Math.min(lines.length, book.length) - from && lines.at(-1 - end) === book.at(-1 - end)) end += 1;
    const marked = lines.map((_, i) => i).slice(from, lines.length - end);
    this.draw(marked, book.slice(from, book.length - end));
  }
}

// A command that runs this very module: Run below it does what the command does.
function program(element) {
  const status = statusLine(), after = make("div", { className: "after-run" });
  const question = { run: "main()", of: document.body.dataset.module, name: "main" };
  const button = runButton("Run", () => follow(question, { button, status, into: after }));
  element.after(make("div", { className: "buttons" }, button), status, after);
}

const missing = document.body.dataset.missing;  // a package that is not in the browser
const consoles = python.can ? all(".console") : [];
const blocks = missing ? [] : consoles.map((element, i) => new Block(element, i + 1));
if (missing) {
  const why = `Not run here: these examples need ${missing}, which is not among what a browser loads.`;
  consoles.forEach((each) => each.after(make("p", { className: "status", textContent: why })));
}
if (blocks.length) {
  const words = "The examples (>>>) on this page run here: each has Run and Edit.";
  const cost = remembered(LOADED) ? [] : [make("span", { className: "cost", textContent: ` (Python: ${live.cost}.)` })];
  document.querySelector(".facts").append(make("div", { className: "runs" }, words, ...cost));
  const command = `python -m ${document.body.dataset.module}`;
  all("pre.plain").filter(({ textContent }) => textContent.trim() === command).forEach(program);
}
python.ended(() => blocks.forEach((each) => { each.ran = each.hasBegun = false; }));
