"use strict";
// The turns of the loop: parts and sentences say in data-at when they are shown.
{
const figure = document.querySelector("#loop"), bar = figure.querySelector("input"), parts = figure.querySelectorAll("[data-at]");
const show = () => {
  for (const part of parts) part.style.display = part.dataset.at.split(" ").includes(bar.value) ? "" : "none";
  bar.setAttribute("aria-valuetext", figure.querySelector(`.moves [data-at="${bar.value}"]`).textContent);
};
figure.querySelector(".moves").hidden = false;
bar.value = 0;
bar.addEventListener("input", show);
window.addEventListener("beforeprint", () => { bar.value = bar.max; show(); });
show();
}
