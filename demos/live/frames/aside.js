"use strict";
// Lines that other lines have replaced, newest first, with a button that brings them back. What they
// replace then is put aside in its turn.
//
//   aside(key, line, {now, show, isOwn}, words, label) → replace(text, said)
//     key, line     where it is remembered; the line that has the button, which nothing else uses
//     now()         the text that stands there; show(text) puts another in its place
//     isOwn(text)   whether a reader made it
//     words, label  of the line and of its button; said: words for this once

const LINES = ["Your lines are put aside.", "My lines back"];

function aside(key, line, { now, show, isOwn }, [words, label] = LINES) {
  let texts = [];
  try { texts = JSON.parse(remembered(key)) ?? []; } catch { /* (of another kind) */ }

  function offer(said) {
    texts = texts.filter((text) => text !== now());
    remember(key, JSON.stringify(texts));
    line.replaceChildren(...(texts.length ? [said, " ", plainButton(label, back)] : []));
  }

  function back() {
    const before = now();
    show(texts.pop());
    if (isOwn(before)) texts.unshift(before);
    offer(words);
  }

  offer(words);
  return (text, said = words) => {
    if (isOwn(now())) texts.push(now());
    show(text);
    offer(said);
  };
}
