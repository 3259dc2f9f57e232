"use strict";
// An exhibit: which line is wrong? Each line is a button with its answer.
for (const line of document.querySelectorAll(".exhibit button")) {
  line.addEventListener("click", () => {
    for (const other of line.parentElement.children) other.classList.remove("good", "bad");
    line.classList.add("right" in line.dataset ? "good" : "bad");
    line.parentElement.nextElementSibling.textContent = line.dataset.said;
  });
}
