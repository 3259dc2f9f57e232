"""Demos · Speed: a whole training step of a small GPT, written by hand in NumPy.

Forward, backward and Adam of a pre-LN GPT with tanh-GELU, learned positions and one matrix for
tokens and scores, as `gpt2` builds it. Attention is that of `by_hand`. What this program does
besides that an engine with a record usually does not:

**The norm's gain is folded into the next matrix.** A norm is n ⊙ gain + shift, and what follows is
always a matrix W. (n ⊙ gain + shift) W = n W′ + c with W′ = diag(gain) W and c = shift W: a product
of d² numbers instead of one of N d. Since each row of n has mean 0, the mean of each column of W′
may be subtracted too, and n W′ is the same. Then the gradient that comes back, g W′ᵀ, has rows of
mean 0, and chapter 3.7's formula loses a term:

    ∂L/∂x = (h - n mean(n ⊙ h))/σ        h = g W′ᵀ
    ∂L/∂W = diag(gain) nᵀ g + shiftᵀ Σ g        ∂L/∂gain = Σ (nᵀ g) ⊙ W        ∂L/∂shift = W Σ g

**Sums over rows are products with ones**, which BLAS does at the speed of memory.

**GELU leaves its slope behind instead of its input.** With s = ½ (1 + tanh u) it is f(x) = x s, and
since s′ = 2 s (1 - s) u′, its slope is f′ = s + f (1 - s) 2u′. Both are computed in pieces of 2¹⁵
numbers while these are in the cache, so the backward pass is one product in place.

**Nothing is kept that is not needed.** The sum x of the residuals lives in one array that is added
to, in both directions: the norms need n and σ alone. Queries, keys and values are one product of
three matrices side by side, and the heads are views of it.

**All parameters are views of one array**, and so are their gradients, so Adam is one loop over
pieces of 2¹⁵ numbers, in place.

Legend: N = B · T rows, d features of a position, V tokens. A parameter's letters: `gain` and
`shift` of a norm, `w` and `b` of a matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from demos.speed.bench.by_hand import Attention, Program, product
from demos.speed.bench.rows import Array, Given

PIECE = 2**15
EPS = 1e-5  # of the norms


class Parameters:
    """Named arrays that are views of one long array."""

    def __init__(self, shapes: dict[str, tuple[int, ...]]) -> None:
        self.flat = np.zeros(sum(int(np.prod(shape)) for shape in shapes.values()), np.float32)
        self.shapes, self.named, start = shapes, {}, 0
        for name, shape in shapes.items():
            end = start + int(np.prod(shape))
            self.named[name] = self.flat[start:end].reshape(shape)
            start = end

    def __getitem__(self, name: str) -> Array:
        return self.named[name]


class Adam:
    """Adam (Kingma & Ba 2014), with PyTorch's rate and constants, over one long array."""

    def __init__(self, size: int) -> None:
        self.m, self.v = (np.zeros(size, np.float32) for _ in range(2))
        self.spare, self.t = np.empty(PIECE, np.float32), 0

    def step(self, p: Array, g: Array, lr: float = 1e-3, eps: float = 1e-8) -> None:
        """Set p ← p - lr m′/(√v′ + eps). Both bias corrections are taken out of the loop."""
        self.t += 1
        root = (1 - 0.999**self.t) ** 0.5
        rate, eps = lr * root / (1 - 0.9**self.t), eps * root
        for start in range(0, p.size, PIECE):
            here = slice(start, start + PIECE)
            m, v, g_here = self.m[here], self.v[here], g[here]
            s = self.spare[: m.size]
            np.subtract(g_here, m, out=s)
            s *= 0.1
            m += s
            np.multiply(g_here, g_here, out=s)
            s -= v
            s *= 1e-3
            v += s
            np.sqrt(v, out=s)
            s += eps
            np.divide(m, s, out=s)
            s *= rate
            p[here] -= s


class Norm:
    """Rows of mean 0 and variance 1, and the gradient that goes back through them."""

    def __init__(self, N: int, d: int) -> None:
        self.n, self.spare, self.mean = _empty(N, d), _empty(N, d), _empty(N, 1)
        self.inverse = _empty(N, 1)  # 1/σ
        self.mean_of = np.full((d, 1), 1 / d, np.float32)

    def forward(self, x: Array) -> Array:
        """Return (x - μ)/σ."""
        np.matmul(x, self.mean_of, out=self.mean)
        np.subtract(x, self.mean, out=self.n)
        self.inverse[:, 0] = np.vecdot(self.n, self.n)
        self.inverse /= x.shape[1]
        self.inverse += EPS
        np.sqrt(self.inverse, out=self.inverse)
        np.divide(1, self.inverse, out=self.inverse)
        self.n *= self.inverse
        return self.n

    def backward(self, h: Array, of_x: Array) -> None:
        """Add (h - n mean(n ⊙ h))/σ to of_x. h has rows of mean 0, and is overwritten."""
        along = np.vecdot(self.n, h)[:, None]
        along /= h.shape[1]
        np.multiply(self.n, along, out=self.spare)
        h -= self.spare
        h *= self.inverse
        of_x += h


class Folded:
    """A matrix behind a norm: n W′ + c, with W′ = diag(gain) W less its columns' means."""

    def __init__(self, d: int, width: int) -> None:
        self.w, self.c, self.of_w = _empty(d, width), _empty(width), _empty(d, width)

    def forward(self, n: Array, gain: Array, shift: Array, w: Array, b: Any, y: Array) -> None:
        """Write n W′ + c to y."""
        np.multiply(w, gain[:, None], out=self.w)
        self.w -= self.w.mean(axis=0)
        np.matmul(shift, w, out=self.c)
        self.c += b
        product(n, self.w, y)
        y += self.c

    def backward(self, n: Array, g: Array, ones: Array, of: Any, w: Array, h: Array) -> None:
        """Write g W′ᵀ to h, and the parameters' gradients to `of`: gain, shift, W and b."""
        gain, shift, of_gain, of_shift, of_w, of_b = of
        product(g, self.w.T, h)
        product(n.T, g, self.of_w)
        of_c = ones @ g
        if of_b is not None:
            of_b[...] = of_c
        of_gain[...] = np.vecdot(self.of_w, w)
        np.matmul(w, of_c, out=of_shift)
        self.of_w *= gain[:, None]
        of_w += self.of_w
        of_w += np.multiply.outer(shift, of_c)


def gelu(x: Array, slope: Array, spare: Array) -> None:
    """Replace x by f(x), and write f′(x) to slope, a piece at a time. All are flat."""
    root = (2 / np.pi) ** 0.5
    for start in range(0, x.size, PIECE):
        here = slice(start, start + PIECE)
        piece, f_prime = x[here], slope[here]
        s, q = spare[0, : piece.size], spare[1, : piece.size]
        np.multiply(piece, piece, out=q)
        q *= root * 0.044715
        q += root  # w = u/x
        np.multiply(q, piece, out=s)
        np.tanh(s, out=s)
        s += 1
        s *= 0.5  # s
        piece *= s  # f
        q *= 6
        q -= 4 * root  # 2u′ = 6w - 4 √(2/π)
        q *= piece
        np.subtract(1, s, out=f_prime)
        f_prime *= q
        f_prime += s


class Block:
    """The buffers of one block."""

    def __init__(self, B: int, H: int, T: int, d: int) -> None:
        N = B * T
        self.norm_1, self.norm_2 = Norm(N, d), Norm(N, d)
        self.in_qkv, self.in_1 = Folded(d, 3 * d), Folded(d, 4 * d)
        self.qkv, self.y = _empty(N, 3 * d), _empty(N, d)
        self.inner, self.slope = _empty(N, 4 * d), _empty(N, 4 * d)
        self.attention = Attention((B, H, T, d // H), causal=True)


class Step:
    """One training step, in buffers that are made once."""

    def __init__(self, sizes: dict[str, Any], given: Given) -> None:
        V, B, T, d, H = (sizes[name] for name in ("V", "B", "T", "d", "heads"))
        self.sizes, N = (B, T, d, H), B * T
        shapes: dict[str, tuple[int, ...]] = {"tokens": (V, d), "positions": (T, d)}
        for i in range(sizes["blocks"]):
            each = {"qkv": (d, 3 * d), "o": (d, d), "1": (d, 4 * d), "2": (4 * d, d)}
            for name, shape in each.items():
                shapes |= {f"{i}.w_{name}": shape, f"{i}.b_{name}": shape[1:]}
            for name in ("gain_1", "shift_1", "gain_2", "shift_2"):
                shapes[f"{i}.{name}"] = (d,)
        shapes |= {"gain": (d,), "shift": (d,)}
        self.p, self.of = Parameters(shapes), Parameters(shapes)
        for name, parts in _places(sizes).items():
            self.p[name][...] = np.concatenate([given[part] for part in parts], axis=-1)
        self.adam = Adam(self.p.flat.size)
        self.blocks = [Block(B, H, T, d) for _ in range(sizes["blocks"])]
        self.norm, self.head = Norm(N, d), Folded(d, V)
        self.x, self.h, self.of_x = (_empty(N, d) for _ in range(3))
        self.logits, self.of_qkv, self.of_inner = _empty(N, V), _empty(N, 3 * d), _empty(N, 4 * d)
        self.of_y, self.spare = _empty(N, d), _empty(2, PIECE)
        self.ones = np.ones(N, np.float32)
        self.rows, self.numbers = np.arange(N), np.arange(V)[:, None]

    def heads(self, x: Array, count: int) -> list[Array]:
        """Return views (B, H, T, d_k) of x, one for each of queries, keys, values."""
        B, T, d, H = self.sizes
        split = x.reshape(B, T, count, H, d // H).transpose(2, 0, 3, 1, 4)
        return list(split)

    def forward(self, words: Array, targets: Array) -> float:
        """Return the loss, and leave its gradient by the logits in `logits`."""
        B, T, d, _ = self.sizes
        p, x, h = self.p, self.x, self.h
        np.take(p["tokens"], words, axis=0, out=x)
        x.reshape(B, T, d)[...] += p["positions"]
        for i, block in enumerate(self.blocks):
            n = block.norm_1.forward(x)
            parts = (p[f"{i}.{name}"] for name in ("gain_1", "shift_1", "w_qkv", "b_qkv"))
            block.in_qkv.forward(n, *parts, block.qkv)
            (y,) = self.heads(block.y, 1)
            block.attention.forward(*self.heads(block.qkv, 3), y)
            x += product(block.y, p[f"{i}.w_o"], h)
            x += p[f"{i}.b_o"]
            n = block.norm_2.forward(x)
            parts = (p[f"{i}.{name}"] for name in ("gain_2", "shift_2", "w_1", "b_1"))
            block.in_1.forward(n, *parts, block.inner)
            gelu(block.inner.reshape(-1), block.slope.reshape(-1), self.spare)
            x += product(block.inner, p[f"{i}.w_2"], h)
            x += p[f"{i}.b_2"]
        n, logits = self.norm.forward(x), self.logits
        self.head.forward(n, p["gain"], p["shift"], p["tokens"].T, 0, logits)
        logits -= logits.max(axis=1, keepdims=True)
        right = logits[self.rows, targets].sum()
        np.exp(logits, out=logits)
        sums = logits @ np.ones((logits.shape[1], 1), np.float32)
        loss = (np.log(sums).sum() - right) / len(x)
        logits /= sums * np.float32(len(x))
        logits[self.rows, targets] -= np.float32(1 / len(x))
        return float(loss)

    def backward(self, words: Array) -> None:
        """Compute all gradients, from `logits` on."""
        p, of, of_x, h, ones = self.p, self.of, self.of_x, self.h, self.ones
        # The tokens' matrix gets one gradient here, as the head, and another at the end.
        of["tokens"][...] = 0
        places = (p["gain"], p["shift"], of["gain"], of["shift"], of["tokens"].T, None)
        self.head.backward(self.norm.n, self.logits, ones, places, p["tokens"].T, h)
        of_x[...] = 0
        self.norm.backward(h, of_x)
        for i, block in reversed(list(enumerate(self.blocks))):
            product(block.inner.T, of_x, of[f"{i}.w_2"])
            np.matmul(ones, of_x, out=of[f"{i}.b_2"])
            inner = product(of_x, p[f"{i}.w_2"].T, self.of_inner)
            inner *= block.slope
            self._folded(i, "2", "1", block.norm_2, block.in_1, inner)
            product(block.y.T, of_x, of[f"{i}.w_o"])
            np.matmul(ones, of_x, out=of[f"{i}.b_o"])
            product(of_x, p[f"{i}.w_o"].T, self.of_y)
            (of_y,), (y,) = self.heads(self.of_y, 1), self.heads(block.y, 1)
            found = tuple(self.heads(self.of_qkv, 3))
            block.attention.backward(of_y, *self.heads(block.qkv, 3), y, found)
            self._folded(i, "1", "qkv", block.norm_1, block.in_qkv, self.of_qkv)
        B, T, d, _ = self.sizes
        np.matmul(self.ones[:B], of_x.reshape(B, T * d), out=of["positions"].reshape(T * d))
        chosen = np.equal(self.numbers, words).astype(np.float32)  # (V, N): for a small V
        of_tokens = of["tokens"]
        of_tokens += product(chosen, of_x, np.empty_like(of_tokens))

    def _folded(self, i: int, norm: str, w: str, n: Norm, folded: Folded, g: Array) -> None:
        """Go back through a folded matrix and its norm, to of_x."""
        p, of = self.p, self.of
        of[f"{i}.w_{w}"][...] = 0
        gain, shift = f"{i}.gain_{norm}", f"{i}.shift_{norm}"
        places = (p[gain], p[shift], of[gain], of[shift], of[f"{i}.w_{w}"], of[f"{i}.b_{w}"])
        folded.backward(n.n, g, self.ones, places, p[f"{i}.w_{w}"], self.h)
        n.backward(self.h, self.of_x)


def _places(sizes: dict[str, Any]) -> dict[str, list[str]]:
    """Return our names for the parameters, each with the names of its parts, side by side."""
    places = {"tokens": ["tokens.weight"], "positions": ["positions.weight"]}
    for i in range(sizes["blocks"]):
        block = f"blocks.{i}"
        of = {"qkv": [f"{block}.attention.w_{each}" for each in "qkv"]}
        of |= {"o": [f"{block}.attention.w_o"]}
        of |= {each: [f"{block}.feed_forward.w_{each}"] for each in "12"}
        for name, parts in of.items():
            places[f"{i}.w_{name}"] = [f"{part}.weight" for part in parts]
            places[f"{i}.b_{name}"] = [f"{part}.bias" for part in parts]
        for number, norm in (("1", "norm_attention"), ("2", "norm_feed_forward")):
            places[f"{i}.gain_{number}"] = [f"{block}.{norm}.gain"]
            places[f"{i}.shift_{number}"] = [f"{block}.{norm}.bias"]
    return places | {"gain": ["norm.gain"], "shift": ["norm.bias"]}


def step(sizes: dict[str, Any], given: Given) -> Program:
    """Return the program of the rows toy and char-gpt."""
    made: dict[str, Step] = {}
    words, targets = given["words"].reshape(-1), given["targets"].reshape(-1)

    def once() -> float:
        if not made:
            made["step"] = Step(sizes, given)
        whole = made["step"]
        loss = whole.forward(words, targets)
        whole.backward(words)
        whole.adam.step(whole.p.flat, whole.of.flat)
        return loss

    def results() -> Given:
        losses, found = [once()], {}
        for name, parts in _places(sizes).items():
            pieces = np.split(made["step"].of[name].copy(), len(parts), axis=-1)
            found |= dict(zip(parts, pieces, strict=True))
        losses += [once(), once()]
        return {"losses": np.array(losses)} | found

    return once, results


def _empty(*shape: int) -> Array:
    return np.empty(shape, np.float32)
