"use strict";
// A demo's page: a guess opens the answer, and a slider shows one picture of several.

for (const choice of document.querySelectorAll(".choice")) {
  const guesses = [...choice.children];
  choice.hidden = false;
  for (const guess of guesses) {
    guess.addEventListener("click", () => {
      guesses.forEach((each) => each.setAttribute("aria-pressed", String(each === guess)));
      choice.nextElementSibling.open = true;
    });
  }
}

for (const slider of document.querySelectorAll(".slider")) {
  const bar = slider.querySelector("input"), said = slider.querySelector("output");
  const pictures = [...slider.querySelectorAll("img")];
  const show = () => {
    pictures.forEach((picture, i) => { picture.hidden = i !== Number(bar.value); });
    said.textContent = pictures[bar.value].dataset.label;
    bar.setAttribute("aria-valuetext", said.textContent);
  };
  bar.value = bar.max;
  bar.hidden = false;
  bar.addEventListener("input", show);
  show();
}
