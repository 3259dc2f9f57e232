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

from demos.speed.bench.by_hand import Attention, Program
from demos.speed.bench.rows import Array, Given

PIECE = 2**15
EPS = 1e-5  # of the norms


def views(flat: Array, like: Given) -> Given:
    """Return the parts of one long array, by the names and in the shapes of others."""
    ends = np.cumsum([x.size for x in like.values()])
    parts = zip(like.items(), np.split(flat, ends[:-1]), strict=True)
    return {name: part.reshape(x.shape) for (name, x), part in parts}


class Adam:
    """Adam (Kingma & Ba 2014), with PyTorch's rate and constants, over one long array."""

    def __init__(self, size: int) -> None:
        self.m, self.v = (np.zeros(size, np.float32) for _ in range(2))
        self.spare = np.empty(PIECE, np.float32)
        self.t = 0

    def step(self, p: Array, g: Array) -> None:
        """Set p ← p - .001 m′/(√v′ + 10⁻⁸). Both bias corrections are taken out of the loop."""
        self.t += 1
        root = (1 - 0.999**self.t) ** 0.5
        rate = 1e-3 * root / (1 - 0.9**self.t)
        eps = 1e-8 * root
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


class Folded:
    """A norm n = (x - μ)/σ with the matrix W behind it: n W′ + c.

    `p` and `of` are gain, shift, W and b, and their gradients; the head has no b.
    """

    def __init__(self, N: int, p: list[Any], of: list[Any]) -> None:
        self.p, self.of = p, of
        d, width = p[2].shape
        self.n = _empty(N, d)
        self.spare = _empty(N, d)
        self.y = _empty(N, width)
        self.inverse, self.mean = _empty(N, 1), _empty(N, 1)  # inverse is 1/σ
        self.w = _empty(d, width)
        self.of_w = _empty(d, width)
        self.c = _empty(width)
        self.mean_of = np.full((d, 1), 1 / d, np.float32)
        self.ones = np.ones(N, np.float32)

    def forward(self, x: Array) -> Array:
        """Return n W′ + c, with W′ = diag(gain) W less its columns' means."""
        gain, shift, w, b = self.p
        np.matmul(x, self.mean_of, out=self.mean)
        np.subtract(x, self.mean, out=self.n)
        self.inverse[:, 0] = np.vecdot(self.n, self.n)
        self.inverse /= x.shape[1]
        self.inverse += EPS
        np.sqrt(self.inverse, out=self.inverse)
        np.divide(1, self.inverse, out=self.inverse)
        self.n *= self.inverse
        np.multiply(w, gain[:, None], out=self.w)
        self.w -= self.w.mean(axis=0)
        np.matmul(shift, w, out=self.c)
        if b is not None:
            self.c += b
        np.matmul(self.n, self.w, self.y)
        self.y += self.c
        return self.y

    def backward(self, g: Array, h: Array, of_x: Array) -> None:
        """Write the parameters' gradients, and add (h - n mean(n ⊙ h))/σ to of_x, h = g W′ᵀ."""
        gain, shift, w, _ = self.p
        of_gain, of_shift, of_w, of_b = self.of
        np.matmul(g, self.w.T, h)
        np.matmul(self.n.T, g, self.of_w)
        of_c = self.ones @ g
        if of_b is not None:
            of_b[...] = of_c
        of_gain[...] = np.vecdot(self.of_w, w)
        np.matmul(w, of_c, out=of_shift)
        np.multiply(self.of_w, gain[:, None], out=of_w)
        of_w += np.multiply.outer(shift, of_c)
        along = np.vecdot(self.n, h)[:, None]
        along /= h.shape[1]
        np.multiply(self.n, along, out=self.spare)
        h -= self.spare
        h *= self.inverse
        of_x += h


def gelu(x: Array, slope: Array, spare: Array) -> None:
    """Replace x by f(x), and write f′(x) to slope, a piece at a time. All are flat."""
    root = (2 / np.pi) ** 0.5
    for start in range(0, x.size, PIECE):
        here = slice(start, start + PIECE)
        piece, f_prime = x[here], slope[here]
        s = spare[0, : piece.size]
        q = spare[1, : piece.size]
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

    def __init__(self, shape: tuple[int, int, int, int], of_qkv: Any, of_1: Any) -> None:
        B, H, T, d_k = shape
        self.in_qkv, self.in_1 = Folded(B * T, *of_qkv), Folded(B * T, *of_1)
        self.y, self.slope = _empty(B * T, H * d_k), _empty(B * T, 4 * H * d_k)
        self.attention = Attention(shape, causal=True)


class Step:
    """One training step, in buffers that are made once."""

    def __init__(self, sizes: dict[str, Any], given: Given) -> None:
        V, B, T, d, H = (sizes[name] for name in ("V", "B", "T", "d", "heads"))
        self.sizes = (B, T, d, H)
        N = B * T
        first = {
            name: np.concatenate([given[part] for part in parts], axis=-1)
            for name, parts in places(sizes["blocks"]).items()
        }
        self.flat = np.concatenate([x.reshape(-1) for x in first.values()])
        self.flat_of = np.zeros_like(self.flat)
        self.p, self.of = views(self.flat, first), views(self.flat_of, first)
        self.adam = Adam(self.flat.size)
        self.blocks = [
            Block(
                (B, H, T, d // H), self.behind_norm(f"{i}.", "qkv"), self.behind_norm(f"{i}.", "1")
            )
            for i in range(sizes["blocks"])
        ]
        of_head = ([of["gain"], of["shift"], of["tokens"].T, None] for of in (self.p, self.of))
        self.head = Folded(N, *of_head)
        self.x, self.h, self.of_x, self.of_y = (_empty(N, d) for _ in range(4))
        self.of_qkv = _empty(N, 3 * d)
        self.of_inner = _empty(N, 4 * d)
        self.spare = _empty(2, PIECE)
        self.ones = np.ones(N, np.float32)
        self.rows = np.arange(N)
        self.numbers = np.arange(V)[:, None]

    def behind_norm(self, block: str, name: str) -> list[list[Array]]:
        """Return gain, shift, W and b of a matrix behind a norm, and their gradients."""
        kinds = ("gain", "shift", "w", "b")
        return [[x[f"{block}{kind}_{name}"] for kind in kinds] for x in (self.p, self.of)]

    def heads(self, x: Array, count: int) -> list[Array]:
        """Return views (B, H, T, d_k) of x, one for each of queries, keys, values."""
        B, T, d, H = self.sizes
        split = x.reshape(B, T, count, H, d // H).transpose(2, 0, 3, 1, 4)
        return list(split)

    def forward(self, words: Array, targets: Array) -> float:
        """Return the loss, and leave its gradient by the logits in the head's y."""
        B, T, d, _ = self.sizes
        p, x, h = self.p, self.x, self.h
        np.take(p["tokens"], words, axis=0, out=x)
        x.reshape(B, T, d)[...] += p["positions"]
        for i, block in enumerate(self.blocks):
            qkv = block.in_qkv.forward(x)
            (y,) = self.heads(block.y, 1)
            q, k, v = self.heads(qkv, 3)
            block.attention.forward(q, k, v, y)
            x += np.matmul(block.y, p[f"{i}.w_o"], h)
            x += p[f"{i}.b_o"]
            inner = block.in_1.forward(x)
            gelu(inner.reshape(-1), block.slope.reshape(-1), self.spare)
            x += np.matmul(inner, p[f"{i}.w_2"], h)
            x += p[f"{i}.b_2"]
        logits = self.head.forward(x)
        logits -= logits.max(axis=1, keepdims=True)
        right = logits[self.rows, targets].sum()
        np.exp(logits, out=logits)
        sums = logits @ np.ones((logits.shape[1], 1), np.float32)
        loss = (np.log(sums).sum() - right) / len(x)
        logits /= sums * np.float32(len(x))
        logits[self.rows, targets] -= np.float32(1 / len(x))
        return float(loss)

    def backward(self, words: Array) -> None:
        """Compute all gradients, from those of the logits on."""
        p, of, of_x, h, ones = self.p, self.of, self.of_x, self.h, self.ones
        of_x[...] = 0
        self.head.backward(self.head.y, h, of_x)
        for i, block in reversed(list(enumerate(self.blocks))):
            np.matmul(block.in_1.y.T, of_x, of[f"{i}.w_2"])
            np.matmul(ones, of_x, out=of[f"{i}.b_2"])
            inner = np.matmul(of_x, p[f"{i}.w_2"].T, self.of_inner)
            inner *= block.slope
            block.in_1.backward(inner, h, of_x)
            np.matmul(block.y.T, of_x, of[f"{i}.w_o"])
            np.matmul(ones, of_x, out=of[f"{i}.b_o"])
            np.matmul(of_x, p[f"{i}.w_o"].T, self.of_y)
            (of_y,), (y,) = self.heads(self.of_y, 1), self.heads(block.y, 1)
            q, k, v = self.heads(block.in_qkv.y, 3)
            of_q, of_k, of_v = self.heads(self.of_qkv, 3)
            block.attention.backward(of_y, q, k, v, y, (of_q, of_k, of_v))
            block.in_qkv.backward(self.of_qkv, h, of_x)
        B, T, d, _ = self.sizes
        np.matmul(ones[:B], of_x.reshape(B, T * d), out=of["positions"].reshape(T * d))
        # The tokens' matrix got one gradient as the head, and gets another as the first layer.
        chosen = np.equal(self.numbers, words).astype(np.float32)  # (V, N): for a small V
        of_tokens = of["tokens"]
        of_tokens += np.matmul(chosen, of_x, np.empty_like(of_tokens))


def places(blocks: int) -> dict[str, list[str]]:
    """Return our names for the parameters, each with the names of its parts, side by side."""
    found = {"tokens": ["tokens.weight"], "positions": ["positions.weight"]}
    parts = {"qkv": [f"attention.w_{each}" for each in "qkv"], "o": ["attention.w_o"]}
    parts |= {each: [f"feed_forward.w_{each}"] for each in "12"}
    for i in range(blocks):
        for name, each in parts.items():
            found[f"{i}.w_{name}"] = [f"blocks.{i}.{part}.weight" for part in each]
            found[f"{i}.b_{name}"] = [f"blocks.{i}.{part}.bias" for part in each]
        for name, norm in (("qkv", "norm_attention"), ("1", "norm_feed_forward")):
            found[f"{i}.gain_{name}"] = [f"blocks.{i}.{norm}.gain"]
            found[f"{i}.shift_{name}"] = [f"blocks.{i}.{norm}.bias"]
    return found | {"gain": ["norm.gain"], "shift": ["norm.bias"]}


def step(sizes: dict[str, Any], given: Given) -> Program:
    """Return the program of the rows toy and char-gpt."""
    whole = Step(sizes, given)
    words, targets = given["words"].reshape(-1), given["targets"].reshape(-1)

    def once() -> float:
        loss = whole.forward(words, targets)
        whole.backward(words)
        whole.adam.step(whole.flat, whole.flat_of)
        return loss

    def results() -> Given:
        losses = [once()]
        found = {}
        for name, parts in places(sizes["blocks"]).items():
            pieces = np.split(whole.of[name].copy(), len(parts), axis=-1)
            found |= dict(zip(parts, pieces, strict=True))
        return {"losses": np.array([*losses, once(), once()])} | found

    return once, results


def _empty(*shape: int) -> Array:
    return np.empty(shape, np.float32)
