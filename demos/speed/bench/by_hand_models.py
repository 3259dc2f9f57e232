"""Demos · Speed: two models without a backward pass, written by hand in NumPy.

A BERT that reads, and a Llama that writes with a cache. They are plain programs, as one would write
them for one model in an afternoon: no layers, no options, buffers for keys and values that are as
long as the text will be, queries, keys and values in one product, and gains folded into the
matrices behind them, once, since the weights do not change.

NumPy has no erf. The one here is Abramowitz & Stegun's formula 7.1.26. Its error is 1.5e-7, and
with the rounding of float32 below 5e-7.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from demos.speed.bench.by_hand import Program, product
from demos.speed.bench.rows import Array, Given

Numbers = np.ndarray[Any, Any]


def erf(x: Array) -> Array:
    """1 - (a₁ t + … + a₅ t⁵) exp(-x²), t = 1/(1 + p |x|), with the sign of x."""
    t = 1 / (1 + np.float32(0.3275911) * np.abs(x))
    sum_ = np.full_like(x, 1.061405429)
    for a in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        sum_ *= t
        sum_ += np.float32(a)
    sum_ *= t
    sum_ *= np.exp(-x * x)
    return np.copysign(1 - sum_, x)


def encoder(sizes: dict[str, Any], given: Given) -> Program:
    """Return the program of BERT: 6 times x ← norm(x + attention(x)), norm(x + feed_forward(x))."""
    B, T, d, H = (sizes[name] for name in ("B", "T", "d", "heads"))
    mean_of = np.full((d, 1), 1 / d, np.float32)
    blocks = []
    for i in range(sizes["blocks"]):
        named = {name: given[f"encoder.blocks.{i}.{name}"] for name in _BLOCK}
        for kind in ("weight", "bias"):
            parts = [named[f"attention.w_{each}.{kind}"].copy() for each in "qkv"]
            parts[0] *= np.float32((d // H) ** -0.5)
            named[f"qkv.{kind}"] = np.concatenate(parts, axis=-1)
        blocks.append(named)

    def linear(x: Array, block: Given, name: str) -> Array:
        w = block[f"{name}.weight"]
        y = product(x, w, np.empty((len(x), w.shape[1]), np.float32))
        y += block[f"{name}.bias"]
        return y

    def norm(x: Array, gain: Array, bias: Array) -> Array:
        x -= x @ mean_of
        x /= np.sqrt(np.vecdot(x, x)[:, None] / np.float32(d) + np.float32(1e-12))
        x *= gain
        x += bias
        return x

    def step() -> Array:
        x = given["tokens.weight"][given["words"].reshape(-1)]  # (B T, d)
        x += given["kinds.weight"][0]
        x.reshape(B, T, d)[...] += given["positions.weight"]
        x = norm(x, given["norm.gain"], given["norm.bias"])
        for block in blocks:
            qkv = linear(x, block, "qkv").reshape(B, T, 3, H, d // H)
            q, k, v = qkv.transpose(2, 0, 3, 1, 4)  # (B, H, T, d_k) each
            e = product(q, k.mT, np.empty((B, H, T, T), np.float32))
            e -= e.max(axis=-1, keepdims=True)
            np.exp(e, out=e)
            y = np.empty((B, T, H, d // H), np.float32)
            heads = product(e, v, y.swapaxes(1, 2))
            heads /= e.sum(axis=-1, keepdims=True)
            x += linear(y.reshape(B * T, d), block, "attention.w_o")
            x = norm(x, block["norm_attention.gain"], block["norm_attention.bias"])
            h = linear(x, block, "feed_forward.w_1")
            s = erf(h * np.float32(0.5**0.5))
            s += 1
            s *= 0.5
            h *= s
            x += linear(h, block, "feed_forward.w_2")
            x = norm(x, block["norm_feed_forward.gain"], block["norm_feed_forward.bias"])
        return x

    return step, lambda: {"y": step().reshape(B, T, d)}


_BLOCK = [
    f"{matrix}.{kind}"
    for matrix in (*(f"attention.w_{each}" for each in "qkvo"), *("feed_forward.w_1",))
    for kind in ("weight", "bias")
] + [
    *(f"feed_forward.w_2.{kind}" for kind in ("weight", "bias")),
    *(f"norm_{each}.{kind}" for each in ("attention", "feed_forward") for kind in ("gain", "bias")),
]


class Writer:
    """A Llama that reads one token at a time and keeps the keys and values of all before."""

    def __init__(self, sizes: dict[str, Any], given: Given) -> None:
        d, H, H_kv = (sizes[name] for name in ("d", "heads", "kv_heads"))
        self.H, self.H_kv, self.d_k = H, H_kv, d // H
        longest = sizes["prompt"] + sizes["tokens"]
        self.tokens = given["tokens.weight"]
        self.blocks = []
        for i in range(sizes["blocks"]):
            w = {name: given[f"blocks.{i}.{name}"] for name in _LLAMA}
            parts = [w[f"attention.w_{each}.weight"] for each in "qkv"]
            parts[0] = parts[0] * np.float32(self.d_k**-0.5)
            gates = [w[f"feed_forward.w_{each}.weight"] for each in "13"]
            self.blocks.append(
                (
                    w["norm_attention.gain"][:, None] * np.concatenate(parts, axis=1),
                    w["attention.w_o.weight"],
                    w["norm_feed_forward.gain"][:, None] * np.concatenate(gates, axis=1),
                    w["feed_forward.w_2.weight"],
                    np.empty((H_kv, longest, self.d_k), np.float32),
                    np.empty((H_kv, longest, self.d_k), np.float32),
                )
            )
        self.head = given["norm.gain"][:, None] * given["head.weight"]
        # A pair of features is a complex number, and a turn by an angle is a product.
        angles = np.arange(longest)[:, None] / 10_000.0 ** (np.arange(0, self.d_k, 2) / self.d_k)
        self.turns = np.exp(1j * angles).astype(np.complex64)

    def __call__(self, token: int, t: int) -> Array:
        """Return the scores of the token after this one, which is at position t.   → (V,)"""
        x = self.tokens[token].copy()  # (d,)
        H, H_kv, d_k = self.H, self.H_kv, self.d_k
        for w_qkv, w_o, w_13, w_2, keys, values in self.blocks:
            qkv = (self.inverse_rms(x) * x) @ w_qkv
            qk = qkv[: (H + H_kv) * d_k].view(np.complex64).reshape(H + H_kv, d_k // 2)
            qk *= self.turns[t]
            heads = qkv.reshape(-1, d_k)
            keys[:, t], values[:, t] = heads[H : H + H_kv], heads[H + H_kv :]
            q = heads[:H].reshape(H_kv, H // H_kv, d_k)
            e = q @ keys[:, : t + 1].mT  # (H_kv, group, t + 1)
            e -= e.max(axis=-1, keepdims=True)
            np.exp(e, out=e)
            y = e @ values[:, : t + 1]  # (H_kv, group, d_k)
            y /= e.sum(axis=-1, keepdims=True)
            x += y.reshape(-1) @ w_o
            gate, up = ((self.inverse_rms(x) * x) @ w_13).reshape(2, -1)
            up *= gate
            up /= 1 + np.exp(-gate)
            x += up @ w_2
        return (self.inverse_rms(x) * x) @ self.head

    @staticmethod
    def inverse_rms(x: Array) -> Any:
        """Return 1/√(mean(x²) + eps)."""
        return np.float32((float(x @ x) / x.size + 1e-5) ** -0.5)


_LLAMA = (
    *(f"attention.w_{each}.weight" for each in "qkvo"),
    *(f"feed_forward.w_{each}.weight" for each in "132"),
    *("norm_attention.gain", "norm_feed_forward.gain"),
)


def generation(sizes: dict[str, Any], given: Given) -> Program:
    """Return a program that reads the prompt, and then appends the best next token repeatedly."""
    model, prompt = Writer(sizes, given), given["words"][0].tolist()

    def step() -> tuple[list[int], Numbers]:
        words = list(prompt)
        for t in range(len(prompt) + sizes["tokens"] - 1):
            scores = model(words[t], t)
            if t >= len(prompt) - 1:
                words.append(int(scores.argmax()))
        return words, scores

    def results() -> Given:
        words, scores = step()
        return {"words": np.array([words]), "logits": scores[None]}

    return step, results
