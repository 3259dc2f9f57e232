"use strict";
// Random numbers of mean 0 and variance 1: the same as demos/pictures/draws.py draws.

function normals(seed, count) {
  const found = new Float64Array(count);
  let state = seed | 0;
  const uniform = () => {  // mulberry32
    state = (state + 0x6D2B79F5) | 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  for (let i = 0; i < count; i += 2) {  // Box-Muller
    const length = Math.sqrt(-2 * Math.log(1 - uniform())), angle = 2 * Math.PI * uniform();
    found[i] = length * Math.cos(angle);
    found[i + 1] = length * Math.sin(angle);
  }
  return found;
}
