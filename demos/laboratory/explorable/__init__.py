"""Demos · Why half: the draws and the measurements of the explorable page, in Python.

The page computes in the browser, in `measuring.js`. This file does the same with NumPy and this
project's engine. Both languages draw the same random numbers, so the two can be compared. A test
does so, to nine digits.

512 queries q and 64 keys k have 1024 features each. At a smaller d_k only their first d_k features
are taken, so all nine widths see the same draws. Every query has its own ∂L/∂p, the gradient at its
attention weights p. All entries are independent, of mean 0 and variance 1. A reader may let one key
stand out: then query t is correlated with key t mod 64.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import NamedTuple

import numpy as np

from attention import attention_weights
from attention.scaling import DEAD, entropies
from demos.pictures.draws import Array, normal
from minigrad import Tensor, gradients

FOLDER = Path(__file__).parent
SCRIPTS = ("../../pictures/draws.js", "measuring.js", "drawing.js", "moving.js")  # in this order
KEYS, QUERIES = 64, 512
D_KS = tuple(2**n for n in range(2, 11))  # 4, 8, …, 1024
EXPONENTS = tuple(n / 20 for n in range(21))  # 0, 0.05, …, 1
FITS = tuple(n / 2 for n in range(13))  # m from 0 to 6: by how much the right key stands out
FROM = 2  # flatness is judged from D_KS[2] = 16 on: see `apart`


class Draws(NamedTuple):
    """The random numbers that all measurements of one seed share, in the order of drawing."""

    keys: Array  # (64, 1024)
    queries: Array  # (512, 1024)
    of_p: Array  # (512, 64): ∂L/∂p


def draws(seed: int) -> Draws:
    """Return the keys, the queries and ∂L/∂p of a seed."""
    shapes = (KEYS, D_KS[-1]), (QUERIES, D_KS[-1]), (QUERIES, KEYS)
    ends = np.cumsum([np.prod(shape) for shape in shapes])
    parts = np.split(normal(seed, int(ends[-1])), ends[:-1])
    return Draws(*(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)))


@dataclass(frozen=True)
class QueriesAtScale:
    """Attention of the 512 queries at one d_k and one exponent a, as the page shows it."""

    norms: Array  # (512,): ‖∂L/∂q‖ of each query
    mean: float  # of ‖∂L/∂q‖
    median: float
    dead_share: float  # of queries with ‖∂L/∂q‖ < 1e-3
    entropy: float  # mean over queries of Σ -p log p / log 64: 1 is uniform, 0 one-hot
    largest_weight: float  # median over queries of max p


def measure(drawn: Draws, d_k: int, a: float, m: float = 0.0) -> QueriesAtScale:
    """Compute attention with the scale d_k^-a and ∂L/∂q of each query, by this project's engine.

    Each query has the correlation α = m/√d_k with one key, whose score is then m deviations above
    the others, as in `heads` of chapter 16. If √d_k is below m, the query is that key: α = 1.
    """
    keys = drawn.keys[:, :d_k]
    fit = min(m / d_k**0.5, 1.0)
    drawn_queries = (1 - fit**2) ** 0.5 * drawn.queries[:, :d_k]
    q = Tensor(drawn_queries + fit * keys[np.arange(QUERIES) % KEYS], requires_grad=True)
    weights = attention_weights(q, Tensor(keys), scale=float(d_k) ** -a)
    (gradient,) = gradients(weights, [q], drawn.of_p)
    norms = np.linalg.norm(gradient, axis=-1)
    return QueriesAtScale(
        norms=norms,
        mean=float(norms.mean()),
        median=float(np.median(norms)),
        dead_share=float((norms < DEAD).mean()),
        entropy=float(entropies(weights.data).mean()),
        largest_weight=float(np.median(weights.data.max(axis=-1))),
    )


def apart(medians: list[float]) -> float:
    """Return the largest of the medians from d_k = 16 on over the smallest: 1 is a flat line.

    At d_k = 4 and 8 a query's d_k terms are too few to average out, and there the median is up to
    a quarter lower even where the line is flat otherwise.
    """
    return max(medians[FROM:]) / min(medians[FROM:])


def parts(seed: int) -> tuple[str, str, str]:
    """Return the page's markup, script and style, with a seed and the project's colours put in."""
    text = lambda name: (FOLDER / name).read_text(encoding="utf-8")
    markup = Template(text("page.html")).substitute(SEED=seed)
    return markup, "\n".join(map(text, SCRIPTS)), text("page.css")
