"use strict";
// What the pictures with Axes (of demos/pictures/__init__.py) share: a point's place, and a slider's value.
const place = ([x, y, right, up], a, b) => [x + right * a, y - up * b];
function move(circle, [x, y]) {
  circle.setAttribute("cx", x);
  circle.setAttribute("cy", y);
}
function tell(bar, value) {
  bar.previousElementSibling.textContent = value;
  bar.setAttribute("aria-valuetext", value);
}
