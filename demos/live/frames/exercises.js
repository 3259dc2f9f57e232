"use strict";
// An exercise that is written in the page, and the list of those that are solved.
//
// What the learner types is kept in this browser, under one key, and nowhere else. Save writes the
// same as a file, which Load reads, here and in a terminal (demos/learn/_moving.py):
//
//   {"minigrad exercises": 1, "files": {NAME: TEXT}, "solved": [NAME],
//    "read": [PAGE]}  the chapters that have been read (demos/site/site.js), which may be missing

const KEY = KEPT;  // (of site.js)
const ASIDE = `${KEY}.before`;  // where something of another kind is put, and then with .2, .3, …
const REPLACED = `${KEY}.replaced`;  // of sessionStorage: what each Load has replaced

function parsed(text) {  // null if it is of another kind
  try {
    const found = JSON.parse(text);
    const isText = ([name, file]) => /^e\d\d_\w+$/.test(name) && typeof file === "string";
    const isOurs = found["minigrad exercises"] === 1 && Array.isArray(found.solved)
      && Array.isArray(found.read ?? []);
    if (isOurs && Object.entries(found.files).every(isText)) return found;
  } catch { /* (cut off, or not JSON) */ }
  return null;
}

const kept = {
  unwritten: {},  // of each exercise that the browser has refused to keep: its text, and if it is solved
  pages: null,  // chapters that Load has brought, and the browser has refused to keep
  isOther: false,  // whether something of another kind is kept under the key

  read() {
    let text = null;
    try { text = localStorage.getItem(KEY); } catch { /* (refused: as if there were nothing) */ }
    const found = text && parsed(text);
    this.isOther ||= Boolean(text && !found);
    const whole = { read: [], ...(found || { "minigrad exercises": 1, files: {}, solved: [] }) };
    for (const [name, { text, solved }] of Object.entries(this.unwritten)) {
      whole.files[name] = text;  // (undefined: JSON has no such file)
      whole.solved = whole.solved.filter((each) => each !== name);
      if (solved) whole.solved.push(name);
    }
    return this.pages ? { ...whole, read: this.pages } : whole;
  },

  write(name, text, solved) {
    this.unwritten[name] = { text, solved };
    this.store();
  },

  store() {
    const whole = this.read();
    try {
      const old = localStorage.getItem(KEY);
      if (old && !parsed(old)) this.putAside(old);
      localStorage.setItem(KEY, JSON.stringify(whole));
      this.unwritten = {};
      this.pages = null;
    } catch { /* (full, or refused as in private windows) */ }
    warn();
  },

  putAside(text) {  // (once, in the place of nothing else)
    let n = 1, key = ASIDE;
    while (![null, text].includes(localStorage.getItem(key))) key = `${ASIDE}.${n += 1}`;
    localStorage.setItem(key, text);
  },
};

// ---- One file, for the terminal and back.

const warning = make("p", { className: "warned", role: "alert" });

function warn() {
  const refused = Object.keys(kept.unwritten).length > 0;
  const words = [];
  if (refused) words.push("This browser keeps nothing here: its storage is full, or refused. Save before you leave this page.");
  if (kept.isOther) words.push(`What was kept here is of another kind. You begin anew. With your first change it is put aside in this browser's storage, as ${ASIDE} or ${ASIDE}.2 and so on.`);
  const said = words.join(" ");
  if (warning.textContent !== said) warning.textContent = said;
}
addEventListener("beforeunload", (event) => {
  if (Object.keys(kept.unwritten).length) event.preventDefault();
});

function save() {
  const blob = new Blob([JSON.stringify(kept.read(), null, 1)], { type: "application/json" });
  const link = make("a", { href: URL.createObjectURL(blob), download: "exercises.json" });
  link.click();
  URL.revokeObjectURL(link.href);
}

// Buttons for both; `renew` shows what is kept now. `status` gets a sentence, and `line` one with
// the button that leads back.
function fileButtons(renew, status, line) {
  const now = () => JSON.stringify(kept.read());
  const show = (text) => {
    const { files, solved, read } = JSON.parse(text);
    for (const name of Object.keys({ ...kept.read().files, ...files })) {
      kept.write(name, files[name], solved.includes(name));
    }
    kept.pages = read;
    kept.store();
    renew();
  };
  const words = ["What was here before is put aside.", "Undo"];
  const replace = aside(REPLACED, line, { now, show, isOwn: () => true }, words);
  const input = make("input", { type: "file", accept: ".json", hidden: true });
  input.addEventListener("change", async () => {
    const [file] = input.files;
    const loaded = parsed(await file.text().catch(() => ""));  // (it may be gone)
    input.value = "";
    if (!loaded) {
      status.textContent = `${file.name} is not a file that Save has written. Nothing is changed.`;
      return;
    }
    const before = kept.read(), names = Object.keys(loaded.files);
    const others = before.solved.filter((name) => !names.includes(name));
    const theirs = loaded.solved.filter((name) => names.includes(name));
    const read = [...new Set([...before.read, ...(loaded.read ?? [])])];
    const count = names.length === 1 ? "1 exercise is" : `${names.length} exercises are`;
    const files = { ...before.files, ...loaded.files };
    replace(JSON.stringify({ ...before, files, solved: [...others, ...theirs], read }),
      `${count} loaded from ${file.name}, ${theirs.length} solved.`);
  });
  return [plainButton("Save", save), plainButton("Load", () => input.click()), input];
}

// ---- An exercise.

function exercise(place) {
  const { exercise: name, given, above, seconds, late, next, called } = place.dataset;
  const head = given.split("\n").slice(0, above).join("\n") + "\n";  // stands in prose at the left
  const answer = make("div", { className: "answer", tabIndex: -1 });
  const [status, loaded, way] = [statusLine(), statusLine(), statusLine()];
  const numbers = make("pre", { className: "numbers", ariaHidden: "true" });
  const write = editor("", `Your file ${name}.py`, { changed, run: () => check() });
  let hidden = head;  // what of the learner's file is not in the editor
  let solved = null;  // the text that was solved last

  function file() { return `${hidden}${write.text}\n`; }

  function count() {
    const first = hidden.split("\n").length, lines = write.text.split("\n").length;
    numbers.textContent = Array.from({ length: lines }, (_, i) => first + i).join("\n");
  }

  function changed() {
    const isSolved = file() === solved;
    count();
    if (isSolved && !status.textContent) status.textContent = "Solved.";
    else if (!isSolved && status.textContent === "Solved.") status.textContent = "";
    if (!isSolved) answer.querySelector(".right")?.remove();
    kept.write(name, file(), isSolved);
  }

  function fill(text) {
    hidden = text.startsWith(head) ? head : "";
    write.text = text.slice(hidden.length).replace(/\n$/, "");
    answer.replaceChildren();
    count();
    const words = file() === solved ? ["Solved."] : [];
    if (!hidden) words.push("Your file begins with other lines than this exercise does now, so all of it is here.");
    status.textContent = words.join(" ");
  }

  function renew() {
    const whole = kept.read(), text = whole.files[name] ?? given;
    solved = whole.solved.includes(name) ? text : null;
    fill(text);
  }

  const isKept = (text) => (kept.read().files[name] ?? given) === text;

  // Put another text into the editor. What is kept does not change until the learner types, or takes
  // lines of their own: after Begin again, a reload brings the old lines back, too.
  function show(text) {
    fill(text);
    if (text !== given && !isKept(text)) kept.write(name, text, text === solved);
  }

  async function check() {
    if (isGoingOn(checkButton) || isGoingOn(compareButton)) return;  // (Ctrl+Enter)
    const text = file(), { files } = kept.read();
    let clock = null;
    const begin = () => { clock ??= setTimeout(() => python.end(late), seconds * 1000); };
    if (python.worker && python.ready) begin();
    const hear = {
      said(words) { if (!words) begin(); },
      out(printed) {
        if (!answer.childElementCount) answer.append(make("p", { textContent: "It printed:" }));
        print(printed, answer);
      },
    };
    compareButton.disabled = true;
    const { done } = await follow({ check: name, text, files }, { ...here, button: checkButton, hear, words: "It is checked …" });
    compareButton.disabled = false;
    clearTimeout(clock);
    if (!done) return;
    const isSame = file() === text;
    if (done.solved) solved = text;
    if (isSame && (isKept(text) || done.solved)) kept.write(name, text, done.solved);
    if (done.printed) answer.querySelector(".got").textContent = done.printed;
    for (const each of done.warned) answer.append(make("p", { textContent: `warning: ${each}` }));
    const words = done.kind ? `${done.kind}: ${done.said}` : done.said;
    const right = isSame ? "Solved." : "Solved, as it was when you pressed Check. Check it again.";
    answer.append(make("pre", {
      className: done.solved ? "plain told right" : "plain told",
      role: "status", tabIndex: 0, textContent: done.solved ? right : words,
    }));
  }

  async function compare() {
    if (isGoingOn(compareButton)) return;
    checkButton.disabled = true;
    const { done } = await follow({ compare: name, text: file() }, { ...here, button: compareButton, words: "It is compared …" });
    checkButton.disabled = false;
    if (!done) return;
    const rows = done.map((line) => {
      const kind = { "+": "given", "-": "taken" }[line[0]] || "";
      const text = line[0] === "@" ? "⋯" : `${line[0]} ${line.slice(1)}`;
      return make("div", { className: kind, textContent: text });
    });
    const words = rows.length ? "- yours    + ours" : "Your file is the same as ours.";
    answer.append(make("p", { textContent: words }));
    if (rows.length) answer.append(make("div", { className: "code diff", tabIndex: 0 }, ...rows));
  }

  const here = { status, into: answer };
  const checkButton = runButton("Check", check);
  const compareButton = runButton("Our lines beside mine", compare);
  renew();
  const isOwn = (text) => text !== given;
  const replace = aside(`${KEY}.aside.${name}`, way, { now: file, show, isOwn });
  const bar = make("div", { className: "buttons" }, checkButton, compareButton,
    plainButton("Begin again", () => replace(given, "This is the exercise as it was given.")),
    ...fileButtons(renew, status, loaded));
  terminalSecond([]);
  document.querySelector("[data-file]").textContent = "Write the missing lines here, and press Check. They are kept in this browser.";
  if (next) Object.assign(document.querySelector(".turn [rel=next]"), { href: next, textContent: `Next on the path: ${called} →` });
  place.hidden = true;
  place.after(make("div", { className: "numbered" }, numbers, write.element), bar, warning, status, loaded, way, answer);

  addEventListener("storage", ({ key }) => {
    const theirs = kept.read().files[name];
    if (key !== KEY || theirs === undefined || theirs === file()) return;
    const button = plainButton("Take them", () => replace(theirs, "These are the other tab's lines."));
    status.replaceChildren("Another tab has changed this exercise. The lines that are changed last are kept. ", button);
  });
}

// ---- The list: a filled station on the path, and a word in the list.

function stations(path) {
  const [status, loaded] = [statusLine(), statusLine()];
  const count = make("span", {});
  const tiles = all(".tile a[href^='exercise-']");

  function mark() {
    const solved = kept.read().solved.map((name) => `exercise-${Number(name.slice(1, 3))}.html`);
    const markLink = (link, within, tag, words) => {
      const is = solved.includes(link.getAttribute("href"));
      within.classList.toggle("solved", is);
      within.querySelector(".mark")?.remove();
      if (is) within.append(make(tag, { className: "mark", textContent: words }));
    };
    for (const link of all("a", path)) markLink(link, link.closest("li"), "small", "solved");
    for (const link of tiles) markLink(link, link.closest(".tile").querySelector(".kicker"), "span", " · solved");
    count.textContent = `Solved in this browser: ${solved.length} of ${tiles.length}.`;
    warn();
  }

  const words = "Each exercise is written in its page: Check says what to look at, and what you write is kept in this browser. Save and Load carry it in one file.";
  terminalSecond([make("p", { textContent: words })]);
  path.after(make("div", { className: "buttons" }, count, ...fileButtons(mark, status, loaded)), warning, status, loaded);
  mark();
  addEventListener("storage", mark);
  addEventListener("pageshow", mark);  // (as it was left, after a way back)
}

// What is said for a terminal comes second, in one fold; `first` comes before it.
function terminalSecond(first) {
  const places = all("[data-terminal]");
  const fold = make("details", { className: "fold terminal" }, make("summary", { textContent: "Or in a terminal" }));
  places[0].before(...first, fold);
  fold.append(...places);
}

if (python.can) {
  all("[data-exercise]").forEach(exercise);
  all(".shows .route").forEach(stations);
  warn();
}
