// Why ½: 512 queries look at 64 keys, and everything is computed here at each move. The file
// `__init__.py` beside this one draws the same numbers, and measures them with minigrad. (`draws.js`
// comes before this file.)

const KEYS = 64, QUERIES = 512, WIDEST = 1024, DEAD = 1e-3;
const D_KS = [4, 8, 16, 32, 64, 128, 256, 512, 1024];
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

const p = new Float64Array(KEYS), ds = new Float64Array(KEYS), s = new Float64Array(KEYS);

// p = softmax of the scaled scores of query t, whose key t mod 64 stands out by `out` deviations.
// The query is fit · (that key) + √(1 - fit²) · (what was drawn). Returns the entropy of p.
function attend(m, scale, t, out) {
  const fit = Math.min(out / Math.sqrt(D_KS[m]), 1), rest = Math.sqrt(1 - fit * fit);
  const drawn = t * KEYS, right = t % KEYS * KEYS;
  let largest = -Infinity, total = 0, average = 0;
  for (let j = 0; j < KEYS; j++) s[j] = rest * scores[m][drawn + j] + fit * gram[m][right + j];
  for (let j = 0; j < KEYS; j++) largest = Math.max(largest, s[j]);
  for (let j = 0; j < KEYS; j++) total += p[j] = Math.exp(scale * (s[j] - largest));
  for (let j = 0; j < KEYS; j++) average += (p[j] /= total) * scale * (s[j] - largest);
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

function measure(m, a, out) {
  const scale = D_KS[m] ** -a;
  const norms = new Float64Array(QUERIES), tops = new Float64Array(QUERIES);
  let entropy = 0;
  for (let t = 0; t < QUERIES; t++) {
    entropy += attend(m, scale, t, out) / QUERIES / Math.log(KEYS);
    for (let j = 0; j < KEYS; j++) tops[t] = Math.max(tops[t], p[j]);
    norms[t] = gradientNorm(m, scale, t);
  }
  return {
    norms, entropy, largest: median(tops), median: median(norms),
    mean: norms.reduce((sum, x) => sum + x, 0) / QUERIES,
    dead: norms.filter(x => x < DEAD).length / QUERIES,
  };
}

const known = new Map();  // exponent, and by how much a key stands out → the measurements at all nine d_k
function measured(a, out) {
  const name = `${a} ${out}`;
  if (!known.has(name)) known.set(name, D_KS.map((_, m) => measure(m, a, out)));
  return known.get(name);
}
// Flatness is judged from 16 on, and where a key can stand out so far: by √d_k at most.
const first = out => D_KS.findIndex(d_k => d_k >= Math.max(16, out * out));
function apart(a, out) {
  const medians = measured(a, out).slice(first(out)).map(found => found.median);
  return Math.max(...medians) / Math.min(...medians);
}
