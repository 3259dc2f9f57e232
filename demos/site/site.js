"use strict";
// Every page of the site: folds that open by themselves, copying, and Find.

const all = (selector, root = document) => [...root.querySelectorAll(selector)];

function make(tag, options, ...children) {
  const element = Object.assign(document.createElement(tag), options);
  element.append(...children);
  return element;
}

// ---- Folds. A link, an address and print open what they lead to.

function reveal() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let e = target; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
  target.scrollIntoView();
}
addEventListener("hashchange", reveal);
reveal();
addEventListener("beforeprint", () => all("details").forEach((e) => { e.open = true; }));

// ---- Code stays beside its prose. What is taller than the window scrolls to its end first.

const beside = new ResizeObserver((seen) => seen.forEach(({ target }) => {
  target.style.top = `${Math.min(67, innerHeight - target.offsetHeight - 16)}px`;
}));
all(".beside").forEach((each) => beside.observe(each));

// ---- Code is copied without line numbers, prompts and results.

for (const block of all(".code")) {
  const button = make("button", { type: "button", className: "copy", textContent: "Copy" });
  button.addEventListener("click", async () => {
    const typed = all(".in", block).map((line) => line.textContent.slice(4));
    const lines = typed.length ? typed : all(".ln", block).map((line) => line.textContent);
    const text = lines.map((line) => line.trimEnd()).join("\n") + "\n";
    try {
      await navigator.clipboard.writeText(text);
    } catch {  // (a page from a file may not be allowed to)
      const area = make("textarea", { value: text });
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  block.before(make("div", { className: "holder" }, button));
}

// ---- The evening: which of its chapters have been read, in this browser. One that is left by the
// link to the next has been. (The key is that of the exercises, demos/live/frames/exercises.js.)

const KEPT = "minigrad.exercises";

function everythingKept() {
  try {
    return JSON.parse(localStorage.getItem(KEPT)) ?? { "minigrad exercises": 1, files: {}, solved: [] };
  } catch { return null; }  // (refused, or of another kind)
}

function isRead(page) { return Boolean(everythingKept()?.read?.includes(page)); }

function keepAsRead(page) {
  const whole = everythingKept();
  if (whole?.["minigrad exercises"] !== 1 || isRead(page)) return;
  whole.read = [...(whole.read ?? []), page];
  try { localStorage.setItem(KEPT, JSON.stringify(whole)); } catch { /* (full: not remembered) */ }
}

const pageOf = (link) => link.getAttribute("href");
for (const link of all(".evening li a, .route li a")) link.parentElement.classList.toggle("done", isRead(pageOf(link)));
const evening = document.querySelector(".evening");
if (evening) {
  const here = evening.querySelector("[aria-current]");
  const stations = all("li", evening);
  const later = stations.slice(stations.indexOf(here.parentElement)).filter((each) => !each.matches(".done"));
  const left = later.reduce((sum, { dataset }) => sum + Number(dataset.minutes), 0);
  evening.querySelector(".left").textContent = left ? `${left} min left` : "read to its end";
  all("[rel=next]").forEach((link) => link.addEventListener("click", () => keepAsRead(pageOf(here))));
}

// ---- A link that opens something in a frame of the page shows the frame.

for (const link of all("a[target]")) {
  const frame = document.getElementsByName(link.target)[0];
  if (frame) link.addEventListener("click", () => frame.scrollIntoView({ block: "nearest" }));
}

// ---- Find: names, chapters and terms, and then the sections whose prose has all words that are
// typed. Both are scripts, since a page from a file may not fetch.

const opener = document.querySelector("button.find"), dialog = document.querySelector(".finder");
const [input, list, count] = dialog.children;
opener.hidden = false;
let chosen = 0;
const SHOWN = 12, NAMES = 7;  // how much is listed, and how much of it is names if there is more

function score(name, word) {
  const text = name.toLowerCase();
  if (text === word) return 0;
  if (text.startsWith(word)) return 1;
  if (text.split(/[^\p{L}\p{N}]+/u).some((part) => part.startsWith(word))) return 2;
  return text.includes(word) ? 3 : 9;
}

function namesWith(typed) {
  const rank = (name, kind) =>
    Math.max(...typed.map((word) => Math.min(score(name, word), 4 + score(kind, word))));
  return (window.FIND || [])
    .map(([name, kind, address]) => ({ name, kind, address, rank: rank(name, kind) }))
    .filter((entry) => entry.rank < 8)
    .sort((a, b) => a.rank - b.rank);
}

// Sections with these words in their heading come first, then those with the whole words.
function sectionsWith(typed) {
  const sections = (window.SECTIONS || []).flatMap(([title, rows]) => rows.map(
    ([address, heading, words]) => {
      const text = ` ${words} `;
      const has = (test) => typed.every(test);
      if (!has((word) => text.includes(` ${word}`))) return null;
      let rank = has((word) => text.includes(` ${word} `)) ? 1 : 2;
      if (has((word) => score(heading, word) < 3)) rank = 0;
      const isTop = title.endsWith(heading);
      return { name: isTop ? title : heading, kind: isTop ? "page" : `section of ${title}`, address, rank };
    },
  ));
  return sections.filter(Boolean).sort((a, b) => a.rank - b.rank);
}

function search() {
  const bare = (word) => word.replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, "");  // (a name, not its comma)
  const typed = input.value.toLowerCase().split(/\s+/).map(bare).filter(Boolean);
  const names = typed.length ? namesWith(typed) : [];
  const known = new Set(names.slice(0, NAMES).map(({ address }) => address));
  const sections = typed.length ? sectionsWith(typed).filter(({ address }) => !known.has(address)) : [];
  const listed = [...names.slice(0, Math.max(NAMES, SHOWN - sections.length)), ...sections].slice(0, SHOWN);
  chosen = 0;
  list.replaceChildren(...listed.map(({ name, kind, address }, i) => {
    const words = [make("b", { textContent: name }), " ", make("span", { textContent: kind })];
    const link = make("a", { href: address, tabIndex: -1 }, ...words);
    return make("li", { id: `found-${i}`, role: "option" }, link);
  }));
  const total = names.length + sections.length;
  count.textContent = "";
  if (total > listed.length) count.textContent = `${listed.length} of ${total} found`;
  else if (total) count.textContent = `${total} found`;
  else if (typed.length) count.textContent = "Nothing found";
  choose(0);
}

function choose(step) {
  const items = all("li", list);
  input.removeAttribute("aria-activedescendant");
  if (!items.length) return;
  chosen = (chosen + step + items.length) % items.length;
  items.forEach((item, i) => item.setAttribute("aria-selected", String(i === chosen)));
  input.setAttribute("aria-activedescendant", items[chosen].id);
  items[chosen].scrollIntoView({ block: "nearest" });
}

function load(name, file) {
  if (window[name]) return;
  window[name] = [];  // (until it is here)
  const isMissing = () => { count.textContent = `${file} is missing: build the site again`; };
  document.head.append(make("script", { src: file, onload: search, onerror: isMissing }));
}

function open() {
  if (dialog.open) return;
  load("FIND", "find.js");
  dialog.showModal();
  input.select();
}
opener.addEventListener("click", open);
input.addEventListener("input", () => {
  load("SECTIONS", "sections.js");
  search();
});
list.addEventListener("click", () => dialog.close());
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
input.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) choose(step);
  else if (event.key === "Enter") all("a", list)[chosen]?.click();
  else return;
  event.preventDefault();
});
addEventListener("keydown", (event) => {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  open();
});
