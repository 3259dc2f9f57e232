"use strict";
// The definitions of a chapter: Edit opens one, and the reader's lines take its place. What is told
// of them stands directly under them, in the form of demos/live/breaks.html.

const TOLD = "The graph of the small program; a dashed box has a wrong gradient";

class Definition {
  constructor(name, parts) {
    this.name = name;
    this.parts = parts;  // a rule's VJPs stand beside their derivation, apart from its value
    this.editing = null;
    this.running = this.isUsed = false;
    this.edit_ = plainButton("Edit", () => this.edit());
    this.run_ = runButton("Use my lines", () => (this.running ? python.stop() : this.run()));
    this.reset_ = plainButton("Reset", () => this.reset());
    this.run_.hidden = this.reset_.hidden = true;
    this.bar = barOf(parts[0], this.run_, this.edit_, this.reset_);
    this.status = make("p", { className: "status", role: "status" });
    this.after = make("div", { className: "after-run" });
    parts[0].after(this.status, this.after);
  }

  // The lines as they stand in the file: what begins in the body of a function is indented there.
  get book() {
    return this.parts.map((part) => {
      const lines = all(".ln", part).map((line) => line.textContent.trimEnd());
      const indent = /^(@|def |class |#)/.test(lines[0]) ? "" : "    ";
      return lines.map((line) => indent + line).join("\n");
    }).join("\n");
  }

  edit() {
    this.editing = editor(this.book, `The lines of ${this.name}`, { run: () => this.run() });
    this.parts.forEach((part) => { part.hidden = true; });
    this.parts[0].after(this.editing.element);
    this.edit_.hidden = true;
    this.run_.hidden = this.reset_.hidden = false;
    this.bar.classList.add("on");
    this.editing.focus();
  }

  reset() {
    this.editing.element.remove();
    this.editing = null;
    this.parts.forEach((part) => { part.hidden = false; });
    this.edit_.hidden = false;
    this.run_.hidden = this.reset_.hidden = true;
    this.bar.classList.remove("on");
    this.after.replaceChildren();
    const others = definitions.filter((each) => each !== this && each.isUsed);
    if (this.isUsed) python.restart();  // (a new Python has the book's lines)
    blocks.forEach((block) => block.clear());
    this.status.textContent = others.length ? "Python begins anew: use your other lines again." : "";
    this.edit_.focus();
  }

  async run() {
    if (this.running) return;
    this.running = true;
    this.run_.firstChild.textContent = "Stop";
    this.status.textContent = "It is judged …";
    this.after.replaceChildren();
    const question = { define: this.editing.text, of: document.body.dataset.module, name: this.name };
    const answer = await python.ask(question, (message) => {
      if ("said" in message) this.status.textContent = message.said || "It is judged …";
      show(message, this.after);
    });
    this.running = false;
    this.run_.firstChild.textContent = "Use my lines";
    this.status.textContent = "";
    if (!answer) return;
    this.isUsed = true;
    blocks.forEach((block) => { block.ran = false; });
    this.status.textContent = "Your lines are in use, wherever the project knows them.";
    this.after.append(told(answer));
    answer.examples.forEach(mark);
  }
}

const folded = (title, ...inside) => make("details", { className: "fold" }, make("summary", { textContent: title }), ...inside);
const plain = (textContent) => make("pre", { className: "plain", textContent, tabIndex: 0 });

function told({ right, heading, reason, numbers, picture, examples, message }) {
  const said = make("b", { textContent: `${right ? "✓" : "✗"} ${heading}` });
  const both = make("div", { className: "both", tabIndex: 0 });
  if (numbers) {
    const [worst, ...others] = numbers.rows.map((row) => pair(numbers.what, row));
    both.append(make("div", {}, worst, ...(others.length ? [folded("the other rows", ...others)] : [])));
  }
  if (picture) both.append(make("img", { src: `data:image/svg+xml,${encodeURIComponent(picture)}`, alt: TOLD }));
  const box = make("div", { className: right ? "verdict right" : "verdict" }, make("p", {}, said, ` ${reason}`), both);
  if (examples.length) {
    const title = `examples of this page that print something else: ${examples.length}`;
    box.append(folded(title, ...examples.map(({ typed, now }) => plain(typed + now))));
  }
  if (message) box.append(folded("all that gradcheck says", plain(message)));
  return box;
}

// A row of a gradient, and the same by differences.
function pair(what, { place, yours, moving, sums }) {
  const cell = (text, className = "") => make("td", { textContent: text, className });
  const row = (title, texts, sum, others) => make("tr", {}, make("th", { textContent: title }),
    ...texts.map((text, i) => cell(text, text === others[i] ? "" : "off")),
    cell(sum, sum === others.at(-1) ? "sum" : "sum off"));
  const head = make("tr", {}, make("td", { colSpan: yours.length + 1 }), make("th", { className: "sum", textContent: "sum" }));
  const caption = make("caption", { textContent: `the gradient of ${what}${place ? `, ${place}` : ""}` });
  const table = make("table", { className: "pair" }, caption, head,
    row("your line says", yours, sums[0], [...moving, sums[1]]),
    row("moving it says", moving, sums[1], [...moving, sums[1]]));
  return make("div", { className: "wide", tabIndex: 0 }, table);
}

// An example of the page that does not print what the book says: its lines show what it prints.
function mark({ typed, now }) {
  for (const block of blocks.filter((each) => !each.editing)) {
    const shown = new Compared(block.element);
    const texts = typedIn(block.element);
    const place = texts.indexOf(typed.trimEnd());
    if (place < 0) continue;
    shown.begin(place);
    shown.out(now);
    shown.differs();
    block.reset_.hidden = false;
    return;
  }
}

// What is typed in each example of a block, without prompts.
function typedIn(element) {
  const texts = [];
  for (const line of all(".in", element)) {
    if (line.textContent.startsWith(">>> ")) texts.push([]);
    texts.at(-1).push(line.textContent.slice(4));
  }
  return texts.map((lines) => lines.join("\n").trimEnd());
}

const named = new Map();
for (const part of python.can && !missing ? all(".code[data-of]") : []) {
  named.set(part.dataset.of, [...(named.get(part.dataset.of) || []), part]);
}
const definitions = [...named].map(([name, parts]) => new Definition(name, parts));
python.ended(() => definitions.filter((each) => each.isUsed).forEach((each) => {
  each.isUsed = false;
  if (each.editing) each.status.textContent = "Not in use any more: Python begins anew.";
}));
