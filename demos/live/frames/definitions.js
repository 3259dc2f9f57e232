"use strict";
// The definitions of a chapter: Edit opens one, and the reader's lines take its place. What is told
// of them stands directly under them, in the form of demos/live/breaks.html.

const TOLD = "The graph of the small program; a dashed box has a wrong gradient";

class Definition {
  constructor(name, parts) {
    this.name = name;
    this.parts = parts;  // a rule's VJPs stand beside their derivation, apart from its value
    this.editor = null;  // made by the first Edit; Reset puts it away, with what is typed in it
    this.editing = null;  // the same, while it is open
    this.inUse = "";  // the lines that Python has in its place; "" for the book's
    this.editButton = plainButton("Edit", () => this.edit());
    this.runButton = runButton("Use my lines", () => this.run());
    this.resetButton = plainButton("Reset", () => this.reset());
    this.runButton.hidden = this.resetButton.hidden = true;
    this.bar = barOf(parts[0], this.runButton, this.editButton, this.resetButton);
    this.status = statusLine();
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
    const changed = () => { if (this.after.hasChildNodes()) this.sayWhichAreUsed(); };
    this.editor ??= bookEditor(this.book, `The lines of ${this.name}`, { changed, run: () => this.run() });
    this.editing = this.editor;
    this.status.replaceChildren(...leftThere(this.editing, this.book));
    this.parts.forEach((part) => { part.hidden = true; });
    this.parts[0].after(this.editing.element);
    this.editButton.hidden = true;
    this.runButton.hidden = this.resetButton.hidden = false;
    this.bar.classList.add("on");
    this.editing.focus();
  }

  reset() {
    this.editing.element.remove();
    this.editing = null;
    this.parts.forEach((part) => { part.hidden = false; });
    this.editButton.hidden = false;
    this.runButton.hidden = this.resetButton.hidden = true;
    this.bar.classList.remove("on");
    const others = definitions.filter((each) => each !== this && each.inUse);
    const ends = this.inUse || isGoingOn(this.runButton);
    if (ends) {  // (a new Python has the book's lines)
      if (python.busy) python.stop();
      else python.restart();
      blocks.filter((block) => !block.editing && !block.running).forEach((block) => block.restore());
    }
    this.after.replaceChildren();
    this.status.textContent = ends && others.length ? "Python begins anew: use your other lines again." : "";
    this.editButton.focus();
  }

  async run() {
    if (isGoingOn(this.runButton)) return;
    const question = { define: this.editing.text, of: document.body.dataset.module, name: this.name };
    const { done } = await follow(question, {
      button: this.runButton, status: this.status, into: this.after, words: "Your lines are being checked …",
    });
    blocks.forEach((block) => { block.ran = false; });
    if (!this.editing) return;  // (Reset has put them away)
    if (!done) {
      if (this.inUse) this.status.textContent = "These lines are not in use; your earlier ones still are.";
      return;
    }
    this.inUse = question.define;
    this.sayWhichAreUsed();
    this.after.append(told(done));
    mark(done.examples);
    if (done.loop) document.dispatchEvent(new CustomEvent("loop", { detail: done.loop }));
  }

  sayWhichAreUsed() {
    const isUsed = this.editing.text === this.inUse;
    this.status.textContent = isUsed ? "Your lines are in use everywhere in the project." : "Changed: press Use my lines again.";
  }
}

const folded = (title, ...inside) => make("details", { className: "fold" }, make("summary", { textContent: title }), ...inside);
const plain = (textContent) => make("pre", { className: "plain", textContent, tabIndex: 0 });

function told({ right, heading, reason, numbers, picture, examples, message }) {
  const kinds = { true: ["✓", "verdict right"], false: ["✗", "verdict"], null: ["?", "verdict unjudged"] };
  const [sign, kind] = kinds[right];
  const said = make("b", { textContent: `${sign} ${heading}` });
  const both = make("div", { className: "both", tabIndex: 0 });
  if (numbers) {
    const [worst, ...others] = numbers.rows.map((row) => pair(numbers.what, row));
    both.append(make("div", {}, worst, ...(others.length ? [folded("the other rows", ...others)] : [])));
  }
  if (picture) both.append(make("img", { src: `data:image/svg+xml,${encodeURIComponent(picture)}`, alt: TOLD }));
  const box = make("div", { className: kind }, make("p", {}, said, ` ${reason}`), both);
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

// Examples of the page that do not print what the book says: their lines show what they print. All
// other lines are the book's again. (A block that runs shows its own result, which comes after this.)
function mark(examples) {
  const free = blocks.filter((each) => !each.editing && !each.running);
  free.forEach((block) => block.restore());
  const places = free.flatMap((block) => {
    const shown = new Compared(block.element);
    return shown.examples.map(({ lines }, place) => ({ lines, block, shown, place }));
  });
  for (const { typed, now } of examples) {
    const found = places.findIndex(({ lines }) => lines.join("\n").trimEnd() === typed.trimEnd());
    if (found === -1) continue;
    const [{ block, shown, place }] = places.splice(found, 1);  // (the same line may stand there twice)
    shown.begin(place);
    shown.out(now);
    shown.differs();
    block.isMarked = true;
    block.resetButton.hidden = false;
  }
}

const named = new Map();
for (const part of python.can && !missing ? all(".code[data-of]") : []) {
  named.set(part.dataset.of, [...(named.get(part.dataset.of) || []), part]);
}
const definitions = [...named].map(([name, parts]) => new Definition(name, parts));
python.ended(() => {
  blocks.filter((each) => each.isMarked).forEach((each) => each.restore());
  for (const each of definitions.filter(({ inUse }) => inUse)) {
    each.inUse = "";
    if (each.editing) each.status.textContent = "Not in use any more: Python begins anew.";
  }
});
