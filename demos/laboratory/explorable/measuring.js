// Why ½: 512 queries look at 64 keys, and everything is computed here at each move. The file
// `__init__.py` beside this one draws the same numbers, and measures them with minigrad. (`draws.js`
// comes before this file.)

const KEYS = 64, QUERIES = 512, WIDEST = 1024, DEAD = 1e-3;
const D_KS = [4, 8, 16, 32, 64, 128, 256, 512, 1024], FROM = 2;  // flatness is judged from 16 on
const $ = id => document.getElementById(id);

// The products of every row of x with every row of y over the first 4, 8, … 1024 features. The
// first 8 contain the first 4, so one pass over the features gives all nine.
function products(x, y) {
  const rows = x.length / WIDEST, columns = y.length / WIDEST;
  const found = D_KS.map(() => new Float64Array(rows * columns));
  for (let i = 0, n = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++, n++) {
      let sum = 0, feature = 0;
      for (let m = 0; m < D_KS.length; m++) {
        for (; feature < D_KS[m]; feature++) sum += x[i * WIDEST + feature] * y[j * WIDEST + feature];
        found[m][n] = sum;
      }
    }
  }
  return found;
}

const sizes = [KEYS * WIDEST, QUERIES * WIDEST, QUERIES * KEYS];
const drawn = normals(Number($("lab").dataset.seed), sizes[0] + sizes[1] + sizes[2]);
const keys = drawn.subarray(0, sizes[0]), queries = drawn.subarray(sizes[0], sizes[0] + sizes[1]);
const ofP = drawn.subarray(sizes[0] + sizes[1]);  // ∂L/∂p
const scores = products(queries, keys), gram = products(keys, keys);

// ------------------------------------------------------------ the measurement

const p = new Float64Array(KEYS), ds = new Float64Array(KEYS);

// p = softmax of the scaled scores of query t. Returns the entropy of p.
function attend(m, scale, t) {
  const s = scores[m], at = t * KEYS;
  let largest = -Infinity, total = 0, average = 0;
  for (let j = 0; j < KEYS; j++) largest = Math.max(largest, s[at + j]);
  for (let j = 0; j < KEYS; j++) total += p[j] = Math.exp(scale * (s[at + j] - largest));
  for (let j = 0; j < KEYS; j++) average += (p[j] /= total) * scale * (s[at + j] - largest);
  return Math.log(total) - average;
}

// ‖∂L/∂q‖ for query t, whose weights are in p. With ds = J ∂L/∂p = p ⊙ (∂L/∂p - ⟨p, ∂L/∂p⟩) it is
// the length of scale · Kᵀ ds, whose square is scale² dsᵀ (K Kᵀ) ds: the keys themselves are not needed again.
function gradientNorm(m, scale, t) {
  const G = gram[m], at = t * KEYS;
  let average = 0, square = 0;
  for (let j = 0; j < KEYS; j++) average += p[j] * ofP[at + j];
  for (let j = 0; j < KEYS; j++) ds[j] = p[j] * (ofP[at + j] - average);
  for (let i = 0; i < KEYS; i++) {
    let sum = G[i * KEYS + i] * ds[i] / 2;
    for (let j = 0; j < i; j++) sum += G[i * KEYS + j] * ds[j];
    square += 2 * ds[i] * sum;
  }
  return scale * Math.sqrt(Math.max(square, 0));
}

function median(x) {
  const sorted = x.slice().sort(), half = x.length / 2;
  return (sorted[half - 1] + sorted[half]) / 2;
}

function measure(m, a) {
  const scale = D_KS[m] ** -a;
  const norms = new Float64Array(QUERIES), tops = new Float64Array(QUERIES);
  let entropy = 0;
  for (let t = 0; t < QUERIES; t++) {
    entropy += attend(m, scale, t) / QUERIES / Math.log(KEYS);
    for (let j = 0; j < KEYS; j++) tops[t] = Math.max(tops[t], p[j]);
    norms[t] = gradientNorm(m, scale, t);
  }
  return {
    norms, entropy, largest: median(tops), median: median(norms),
    mean: norms.reduce((sum, x) => sum + x, 0) / QUERIES,
    dead: norms.filter(x => x < DEAD).length / QUERIES,
  };
}

const known = new Map();  // exponent → the measurements at all nine d_k
function measured(a) {
  if (!known.has(a)) known.set(a, D_KS.map((_, m) => measure(m, a)));
  return known.get(a);
}
function apart(a) {
  const medians = measured(a).slice(FROM).map(found => found.median);
  return Math.max(...medians) / Math.min(...medians);
}
