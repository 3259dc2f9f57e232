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
    this.waits = false;  // for blocks above
    this.running = this.editing = null;
    this.mine = null;  // what the reader typed here before Reset
    this.isMarked = false;  // by a definition of the reader's, frames/definitions.js
    this.runButton = runButton("Run", () => (this.waits || this.running ? python.stop() : this.run()));
    this.editButton = plainButton("Edit", () => this.edit());
    this.resetButton = plainButton("Reset", () => this.reset());
    this.resetButton.hidden = true;
    this.bar = barOf(element, this.runButton, this.editButton, this.resetButton);
    this.status = make("p", { className: "status", role: "status" });
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
    this.editing = editor(this.mine ?? this.typed, `Example ${this.place}`, { changed, run: () => this.run() });
    this.clear();
    if (this.mine !== null) this.status.append("Your lines, as you left them. ", theBooks(this.editing, this.typed));
    this.element.hidden = this.editButton.hidden = true;
    this.resetButton.hidden = false;
    this.bar.classList.add("on");
    this.element.after(this.editing.element);
    this.editing.focus();
  }

  reset() {
    if (this.running) python.stop();
    if (this.editing && this.editing.text !== this.typed) this.mine = this.editing.text;
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

  async run() {
    const above = blocks.slice(0, blocks.indexOf(this)).filter((each) => !each.ran);
    if (!above.length) return this.alone();
    const first = above.length === 1 ? "the block above" : `the ${above.length} blocks above`;
    this.status.textContent = `First ${first} …`;
    this.waits = true;
    this.says("Stop");
    const went = await runInOrder(above);
    this.waits = false;
    this.says("Run");
    if (went) return this.alone(`. First, ${first} ran.`);
    this.status.textContent = `It needs ${first}. Not all of that ran to its end.`;
    return false;
  }

  says(words) {
    this.runButton.firstChild.textContent = words;
    this.bar.classList.add("on");
  }

  alone(more = ".") {
    this.running ??= this.ask(more).finally(() => { this.running = null; });
    return this.running;
  }

  async ask(more) {
    this.clear();
    this.resetButton.hidden = false;
    this.says("Stop");
    this.status.textContent = "It runs …";
    const began = performance.now();
    const shown = this.editing ? new Result(this.after) : new Compared(this.element);
    let failed = false;
    const text = this.editing ? this.editing.text : this.doctest;
    const question = { run: text, of: document.body.dataset.module, name: `example ${this.place}` };
    const right = await python.ask(question, (message) => {
      if ("said" in message) this.status.textContent = message.said || "It runs …";
      if ("begin" in message) shown.begin(message.begin);
      if ("out" in message) shown.out(message.out);
      if ("differs" in message) shown.differs();
      if (message.failed) failed = true;
      show(message, this.after);
    });
    this.ran = right !== null && !failed;
    this.says("Run");
    if (this.resetButton.hidden) this.bar.classList.remove("on");  // (Reset has ended it)
    const seconds = `${((performance.now() - began) / 1000).toFixed(1)} s`;
    const verdict = this.editing ? seconds : `${right ? "As" : "Not as"} in the book, ${seconds}`;
    this.status.textContent = this.ran ? verdict + more : "";
    return this.ran;
  }
}

// The output of the reader's own lines, below them.
class Result {
  constructor(into) { this.into = into; this.box = null; }
  begin() {}
  out(text) {
    if (!this.box) {
      this.box = make("pre", { className: "plain got", tabIndex: 0 });
      this.into.append(this.box);
    }
    this.box.append(text);
  }
  differs() {}
}

// The output of a block of the book, in the place of the book's own.
class Compared {
  constructor(element) {
    this.examples = [];
    for (const line of element.children) {
      if (line.textContent.startsWith(">>> ")) this.examples.push({ typed: line, book: [], text: "" });
      const now = this.examples.at(-1);
      if (line.className === "in") now.typed = line;
      else now.book.push(line);
    }
    this.now = null;
  }

  begin(place) { this.now = this.examples[place]; }

  out(text) {
    this.now.text += text;
    this.draw([], []);
  }

  // Set what was printed below its line; mark what is not in the book, and add what only it has.
  draw(marked, lacking) {
    const { typed, book, text } = this.now;
    const lines = text.replace(/\n$/, "").split("\n");
    const rows = text ? lines.map((line, i) => make("div", {
      className: marked.includes(i) ? "out got differs" : "out got", textContent: line || " ",
    })) : [];
    rows.push(...lacking.map((line) => make("div", { className: "out book", textContent: line })));
    this.now.rows?.forEach((row) => row.remove());
    book.forEach((line) => { line.hidden = true; });
    typed.after(...rows);
    this.now.rows = rows;
  }

  differs() {
    const book = this.now.book.map((line) => line.textContent);
    const lines = this.now.text.replace(/\n$/, "").split("\n");
    let [from, end] = [0, 0];  // how many lines are equal, from above and from below
    while (from < Math.min(lines.length, book.length) && lines[from] === book[from]) from += 1;
    while (end < Math.min(lines.length, book.length) - from && lines.at(-1 - end) === book.at(-1 - end)) end += 1;
    const marked = lines.map((_, i) => i).slice(from, lines.length - end);
    this.draw(marked, book.slice(from, book.length - end));
  }
}

async function runInOrder(some) {
  for (const each of some) if (!each.ran && !(await each.alone())) return false;
  return true;
}

const missing = document.body.dataset.missing;  // a package that is not in the browser
const consoles = python.can ? all(".console") : [];
const blocks = missing ? [] : consoles.map((element, i) => new Block(element, i + 1));
if (missing) {
  const why = `Not run here: these examples need ${missing}, which is not among what a browser loads.`;
  consoles.forEach((each) => each.after(make("p", { className: "status", textContent: why })));
}
python.ended(() => blocks.forEach((each) => { each.ran = false; }));
