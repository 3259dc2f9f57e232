"use strict";
// An editor of Python: a text area over its own coloured text, so that undo, a screen reader and a
// phone's keyboard work as everywhere.
//
//   editor(text, label, {changed(text), run()}) →
//     {element, text (get and set), changed, focus()}
//   bookEditor(book, label, {changed(), run()}) → the same, for lines that stand in the book
//
// Tab indents, Escape and then Tab leaves, Enter keeps the indentation, Ctrl+Enter runs.

const WORDS = "False None True and as assert async await break class continue def del elif else "
  + "except finally for from global if import in is lambda nonlocal not or pass raise return try "
  + "while with yield";
const TOKENS = new RegExp([  // a comment, a string, a number, a keyword: as the site's own colours
  "(?<c>#[^\\n]*)",
  "(?<s>[rbfuRBFU]{0,2}(?:\"\"\"[^]*?(?:\"\"\"|$)|'''[^]*?(?:'''|$)|\"(?:\\\\.|[^\"\\\\\\n])*\"?|'(?:\\\\.|[^'\\\\\\n])*'?))",
  "(?<m>\\b(?:0[xX][\\da-fA-F_]+|\\d[\\d_]*\\.?[\\d_]*(?:[eE][-+]?\\d+)?)\\b)",
  `(?<k>\\b(?:${WORDS.replaceAll(" ", "|")})\\b)`,
].join("|"), "g");

function coloured(text) {
  const parts = [];
  let last = 0;
  for (const found of text.matchAll(TOKENS)) {
    const kind = Object.keys(found.groups).find((name) => found.groups[name] !== undefined);
    const token = make("span", { className: kind, textContent: found[0] });
    parts.push(text.slice(last, found.index), token);
    last = found.index + found[0].length;
  }
  return [...parts, text.slice(last), "\n"];
}

function editor(text, label, { changed = () => {}, run = () => {} } = {}) {
  const area = make("textarea", { value: text, spellcheck: false, wrap: "off", rows: 1 });
  const plain = { autocapitalize: "off", autocomplete: "off", autocorrect: "off" };
  const said = { "aria-label": label, "aria-description": "Tab indents. Escape, then Tab leaves. Ctrl+Enter runs." };
  for (const [name, value] of Object.entries({ ...plain, ...said })) area.setAttribute(name, value);
  const ink = make("pre", { ariaHidden: "true" });
  const paint = () => ink.replaceChildren(...coloured(area.value));
  let leaving = false;

  function put(from, to, words) {  // (execCommand keeps the browser's undo)
    area.setSelectionRange(from, to);
    if (!document.execCommand("insertText", false, words)) {
      area.setRangeText(words, from, to, "end");
      area.dispatchEvent(new Event("input"));
    }
  }

  function indent(from, to, start, back) {
    if (from === to && !back) {
      put(from, to, " ".repeat(4 - ((from - start) % 4)));
      return;
    }
    const lines = area.value.slice(start, to);
    const words = back ? lines.replace(/^ {1,4}/gm, "") : lines.replace(/^/gm, "    ");
    put(start, to, words);
    area.setSelectionRange(start, start + words.length);
  }

  area.addEventListener("input", () => { paint(); changed(area.value); });
  area.addEventListener("keydown", (event) => {
    const { selectionStart: from, selectionEnd: to, value } = area;
    const start = value.lastIndexOf("\n", from - 1) + 1;
    const leaves = leaving;
    leaving = event.key === "Escape" || (leaving && event.key === "Shift");
    if (event.isComposing) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run();
    else if (event.key === "Enter") {
      const line = value.slice(start, from);
      put(from, to, `\n${line.match(/^ */)[0]}${/:\s*(#.*)?$/.test(line) ? "    " : ""}`);
    } else if (event.key === "Tab" && !leaves) indent(from, to, start, event.shiftKey);
    else return;
    event.preventDefault();
  });
  paint();
  return {
    element: make("div", { className: "editor" }, ink, area),
    changed,
    get text() { return area.value; },
    set text(value) { area.value = value; paint(); },
    focus() { area.setSelectionRange(0, 0); area.focus(); },
  };
}

// An editor of lines of the book. Its text, and `other`, what `leftThere` has exchanged for it, come
// back in this tab after a reload.
function bookEditor(book, label, { changed, run }) {
  const key = `minigrad.lines.${document.body.dataset.module}.${label}`;
  let [text, other] = [book, book];
  try { [text, other] = JSON.parse(remembered(key)) ?? [book, book]; } catch { /* (of another kind) */ }
  const keep = () => remember(key, JSON.stringify([opened.text, opened.other]));
  const opened = editor(text, label, { changed() { keep(); changed(); }, run });
  return Object.assign(opened, { other });
}

// What is said of an editor that opens with other lines than the book's, with a button for these.
// It exchanges the two, so that neither is lost.
function leftThere(opened, book) {
  if (opened.text === book && opened.other === book) return [];
  const said = make("span", {}), button = plainButton("", () => {
    [opened.text, opened.other] = [opened.other, opened.text];
    opened.changed();
    name();
  });
  function name() {
    said.textContent = opened.text === book ? "The book's lines. " : "Your lines, as you left them. ";
    button.firstChild.textContent = opened.other === book ? "The book's lines" : "My lines";
  }
  name();
  return [said, button];
}
