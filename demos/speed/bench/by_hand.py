"""Demos · Speed: attention, forward and backward, written by hand in NumPy.

How fast could NumPy be, if somebody derived every line on paper for one model and never had to
serve another? The programs of this folder named `by_hand` answer that, and the benchmark calls them
"hand". They are the yardstick for an engine that runs on the same NumPy. The derivations are those
of chapters 3.5, 3.6, 3.7 and 12. What these programs do that an engine with a record usually does
not:

**The output of attention is divided by l; the weights are not.** With E = exp(S) and l the sum of
E over the keys, attention is y = (E V)/l. The division is of T · d_k numbers instead of T². Going
back, let G′ = G/l and Dᵢ = ⟨G′ᵢ, yᵢ⟩. The formulas of chapter 12 become

    ∂L/∂V = Eᵀ G′        X = ∂L/∂S = E ⊙ (G′ Vᵀ - D)        ∂L/∂Q = X K        ∂L/∂K = Xᵀ Q

so of all the work on T² numbers there is one exponential going forward, and one subtraction and one
product going back.

**No maximum is subtracted.** By Cauchy and Schwarz no score is larger than the longest query times
the longest key. If that bound is below 80, exp cannot overflow in float32 and no sum of it can
vanish, and the maximum, with two passes over T² numbers, is not needed. If it is above, this
program refuses. A library cannot refuse.

**Keys come first.** The scores are held as Sᵀ = K Qᵀ, a row for each key. OpenBLAS is slow at
products A Bᵀ of small matrices (96 Gflop/s) and quick at A B and Aᵀ B (153 Gflop/s, both at
128 × 32 times 32 × 128, on a Xeon with AVX-512). With Qᵀ and G′ᵀ at hand, which are made when Q and
G are scaled anyway, all six products are of the quick kinds, and a sum over keys is a product with
a row of ones.

**The scale costs nothing.** It is multiplied into the copy Qᵀ, and on the way back into the copy
G′ᵀ and into D: then X has it, and both gradients get it from X.

**Everything stays in the cache, in place.** The work is cut into pieces of about 2¹⁷ scores, some
members of the batch, some queries, some keys, and all steps are done on a piece while it is in the
second-level cache. Buffers are made once and never freed. E is kept for the backward pass if it is
small (64 MB), and computed again if it is not. Of a causal mask only the pieces that are not
forbidden altogether are computed.

Legend: B batch, H heads, T positions, d features of a head; a piece is C keys by R queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from demos.speed.bench.rows import Array, Given

PIECE = 2**17  # scores in a piece: 512 KB
KEPT = 2**24  # scores that are kept from the forward pass to the backward pass: 64 MB
LARGEST = 80.0  # exp(±80) is a normal float32, and so is a sum of 4096 numbers exp(80)

Program = tuple[Callable[[], Any], Callable[[], Given]]  # a step, and a step with its results


class Attention:
    """softmax(Q Kᵀ / √d) V and its gradients, for one shape, in buffers of its own."""

    def __init__(self, shape: tuple[int, int, int, int], causal: bool) -> None:
        B, H, T, d = shape
        self.shape = shape
        self.causal = causal
        self.scale = np.float32(d**-0.5)
        self.C = min(T, 256)
        self.R = T // 2 if causal and 64 <= T <= 256 else self.C
        self.members = max(PIECE // (self.C * self.R), 1)
        self.q_t, self.g_t = _empty(B, H, d, T), _empty(B, H, d, T)
        self.g = _empty(B, H, T, d)
        self.l = _empty(B, H, 1, T)
        self.ones = np.ones((1, self.C), np.float32)
        self.allowed = np.triu(np.ones((self.C, self.C), np.float32))  # key ≤ query
        self.piece, self.other = (_empty(self.members * self.C * self.R) for _ in range(2))
        self.part_r = _empty(self.members * self.R * d)
        self.part_c = _empty(self.members * self.C * d)
        self.kept: dict[Any, Array] | None = {} if B * H * T * T <= KEPT else None

    def chunks(self) -> Iterator[tuple[slice, slice]]:
        """Yield some members of the batch, or some heads of one member."""
        B, H, _, _ = self.shape
        if self.members >= H:
            each = self.members // H
            yield from ((slice(b, min(b + each, B)), slice(0, H)) for b in range(0, B, each))
        else:
            for b in range(B):
                for h in range(0, H, self.members):
                    yield slice(b, b + 1), slice(h, min(h + self.members, H))

    def keys_of(self, rows: slice) -> Iterator[slice]:
        """Return the keys that some queries may look at, C at a time."""
        end = rows.stop if self.causal else self.shape[2]
        return (slice(c, min(c + self.C, end)) for c in range(0, end, self.C))

    def weights(
        self, k: Array, where: Any, rows: slice, columns: slice, *, back: bool = False
    ) -> Array:
        """Return a piece of E = exp(K Qᵀ), forbidden ones 0; going back, what was kept of it.

        → (…, C, R)
        """
        q_t = self.q_t[where][..., rows]
        shape = (*q_t.shape[:2], columns.stop - columns.start, rows.stop - rows.start)
        if self.kept is None:
            e = _part(self.piece, shape)
        else:
            name = tuple(each.start for each in (*where, rows, columns))
            if name not in self.kept:
                self.kept[name] = _empty(*shape)
            e = self.kept[name]
            if back:
                return e
        np.exp(np.matmul(k[where][..., columns, :], q_t, e), out=e)
        if self.causal and columns.stop > rows.start:
            late = max(rows.start - columns.start, 0)  # the first key that may be forbidden
            corner = self.allowed[columns.start + late - rows.start :]
            e[..., late:, :] *= corner[: shape[-2] - late, : shape[-1]]
        return e

    def forward(self, q: Array, k: Array, v: Array, y: Array) -> Array:
        """Write attention to y. All four are (B, H, T, d), and may be views of other arrays."""
        longest = [float(np.sqrt(np.vecdot(x, x).max())) for x in (q, k)]
        if not longest[0] * longest[1] * float(self.scale) < LARGEST:
            raise ValueError(f"scores may exceed {LARGEST}: this program subtracts no maximum")
        np.multiply(q.mT, self.scale, out=self.q_t)
        for where in self.chunks():
            for rows in _pieces(self.shape[2], self.R):
                l = self.l[where][..., rows]
                sums = y[where][..., rows, :]
                for columns in self.keys_of(rows):
                    e = self.weights(k, where, rows, columns)
                    ones = self.ones[:, : e.shape[-2]]
                    values = v[where][..., columns, :]
                    if columns.start == 0:
                        np.matmul(ones, e, out=l)
                        np.matmul(e.mT, values, sums)
                    else:
                        l += ones @ e
                        sums += np.matmul(e.mT, values, _part(self.part_r, sums.shape))
                sums /= l.mT
        return y

    def backward(
        self, g: Array, q: Array, k: Array, v: Array, y: Array, found: tuple[Array, Array, Array]
    ) -> tuple[Array, Array, Array]:
        """Write the gradients of q, k and v to the three arrays of `found`."""
        of_q, of_k, of_v = found
        np.divide(g, self.l.mT, out=self.g)
        np.multiply(self.g.mT, self.scale, out=self.g_t)
        d = np.vecdot(self.g, y)[..., None, :]  # (B, H, 1, T)
        d *= self.scale
        for where in self.chunks():
            # The last queries see all keys: their pieces write, and all others add.
            for rows in reversed(list(_pieces(self.shape[2], self.R))):
                g_rows = self.g[where][..., rows, :]
                g_t = self.g_t[where]
                q_rows = q[where]
                last = rows.stop == self.shape[2]
                for columns in self.keys_of(rows):
                    e = self.weights(k, where, rows, columns, back=True)
                    x = np.matmul(
                        v[where][..., columns, :], g_t[..., rows], _part(self.other, e.shape)
                    )
                    x -= d[where][..., rows]
                    x *= e
                    for_v, for_k = of_v[where][..., columns, :], of_k[where][..., columns, :]
                    self._give(e, g_rows, for_v, self.part_c, last)
                    self._give(x, q_rows[..., rows, :], for_k, self.part_c, last)
                    for_q = of_q[where][..., rows, :]
                    keys = k[where][..., columns, :]
                    self._give(x.mT, keys, for_q, self.part_r, columns.start == 0)
        return found

    @staticmethod
    def _give(a: Array, b: Array, total: Array, buffer: Array, first: bool) -> None:
        """Write A B to the total, or add it."""
        if first:
            np.matmul(a, b, total)
        else:
            total += np.matmul(a, b, _part(buffer, total.shape))


def _empty(*shape: int) -> Array:
    return np.empty(shape, np.float32)


def _part(buffer: Array, shape: tuple[int, ...]) -> Array:
    """Return the beginning of a buffer, in a shape."""
    return buffer[: int(np.prod(shape))].reshape(shape)


def _pieces(n: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def attention(sizes: dict[str, Any], given: Given) -> Program:
    """Return the program of the rows named attention, and of long."""
    q, k, v, g = (given[name] for name in "qkvg")
    whole = Attention(q.shape, sizes["causal"])
    y = _empty(*q.shape)
    found = (_empty(*q.shape), _empty(*q.shape), _empty(*q.shape))

    def step() -> Given:
        whole.forward(q, k, v, y)
        whole.backward(g, q, k, v, y, found)
        return dict(zip("yqkv", (y, *found), strict=True))

    return step, step


def products(sizes: dict[str, Any], given: Given) -> Program:
    """Return a program: x · w · w · … with every step's result kept, and the way back.

    From y′ = y ⊙ w follow ∂L/∂w = g ⊙ y, summed over the steps, and g ⊙ w for the y before.
    """
    x, w = given["x"], given["w"]
    kept = np.empty((sizes["nodes"] + 1, 4, 4), np.float32)
    rows = list(kept)
    part, of_w, g = (np.empty_like(x) for _ in range(3))

    def step() -> Given:
        rows[0][...] = x
        for before, after in pairwise(rows):
            np.multiply(before, w, after)
        g[...], of_w[...] = 1, 0
        for before in reversed(rows[:-1]):
            np.multiply(g, before, part)
            np.add(of_w, part, of_w)
            np.multiply(g, w, g)
        return {"y": rows[-1].copy(), "x": g.copy(), "w": of_w.copy()}

    return step, step
