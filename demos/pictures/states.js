"use strict";
// A picture that goes from state to state: parts and sentences say in data-at when they are shown.
for (const figure of document.querySelectorAll("figure.pic")) {
  const bar = figure.querySelector(".moves > input[type=range]"), parts = figure.querySelectorAll("[data-at]");
  if (!bar || !parts.length) continue;
  const show = () => {
    for (const part of parts) part.style.display = part.dataset.at.split(" ").includes(bar.value) ? "" : "none";
    bar.setAttribute("aria-valuetext", figure.querySelector(`.moves [data-at="${bar.value}"]`).textContent);
  };
  bar.parentNode.hidden = false;
  bar.value = 0;
  bar.addEventListener("input", show);
  show();
}
