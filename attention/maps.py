"""17.2 · Maps: pictures of attention weights.

What do attention weights show? First, where each query looks: a map has a row for each query and a
column for each key, and a row sums to 1, or to 0 if its query has no key. Second, how decided a
query is: the **entropy** -Σ p log p of a row is 0 if one key has all the weight, and log n if n
keys have 1/n each. The title of each head gives its mean entropy divided by log n. (Row t of a
causal map has t + 1 keys, so its entropy is at most log(t + 1).) Weights do not show what a head
*does*: the values that it moves, and what later layers make of them, are not in the picture (Jain &
Wallace 2019, Wiegreffe & Pinter 2019).

Names of tokens are drawn as they are given: a $ in them is not read as mathematics.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attention.figures import new_figure
from minigrad import Tensor, no_grad
from minigrad.runs.saving import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = np.ndarray[Any, Any]


def plot_heads(
    weights: Array,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    titles: Sequence[str] = (),
) -> Figure:
    """A map for each head, all on one colour scale.   (H, T, S)

    queries  T names of rows, keys S names of columns; titles, one for each head, "head 1" … if not
             given
    """
    weights = _checked(weights, queries, keys)
    H, T, S = weights.shape
    if titles and len(titles) != H:
        raise ValueError(f"{H} heads need {H} titles: got {len(titles)}")
    columns = min(H, 4)
    rows = -(-H // columns)
    figure = new_figure(max(3.1, 0.9 + 0.26 * S) * columns, max(2.0, 1.1 + 0.24 * T) * rows)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for panel in panels[H:]:
        panel.axis("off")
    for head in range(H):
        name = titles[head] if titles else f"head {head + 1}"
        spread = float(np.mean(entropy(weights[head]))) / np.log(S) if S > 1 else 0.0
        _draw(panels[head], weights[head], queries, keys, f"{name}, entropy {spread:.2f} log n")
    return figure


def block_weights(blocks: Sequence[Any], x: Tensor, *, mask: Any = None) -> list[Array]:
    """Where the heads of each of some blocks look, as x runs through them: (B, H, T, T) a block.

    For blocks without cross-attention: what they would look at there is not given.
    """
    found = []
    with no_grad():
        for block in blocks:
            seen = block.norm_attention(x) if block.norm_first else x
            found.append(block.attention.weights(seen, mask=mask).data)
            x = block(x, mask=mask)
    return found


def animate_weights(
    frames: Sequence[Array],
    queries: Sequence[str],
    keys: Sequence[str],
    path: str | Path,
    *,
    titles: Sequence[str],
    seconds: float = 0.15,
) -> Path:
    """Write maps of one head, (T, S) each, as an animated GIF, whole or not at all."""
    try:
        from PIL import Image
    except ImportError:
        raise ImportError('a GIF needs pillow: pip install "minigrad-attention[demos]"') from None
    pictures = []
    for weights, title in zip(frames, titles, strict=True):
        weights = _checked(weights[None], queries, keys)
        figure = new_figure(1.2 + 0.3 * len(keys), 1.4 + 0.28 * len(queries))
        _draw(figure.subplots(), weights[0], queries, keys, title)
        content = io.BytesIO()
        figure.savefig(content, format="png", dpi=90)
        pictures.append(Image.open(content).convert("P", palette=Image.Palette.ADAPTIVE))
    content = io.BytesIO()
    pictures[0].save(
        content,
        format="GIF",
        save_all=True,
        append_images=[*pictures[1:], *[pictures[-1]] * 8],  # rest on the last one
        duration=int(1000 * seconds),
        loop=0,
    )
    return write_whole(path, content.getvalue())


def entropy(weights: Array) -> Array:
    """-Σ p log p of each row: 0 for a row with one weight, log n for n equal ones.   (…, S) → (…)

    >>> from attention.maps import entropy
    >>> entropy(np.array([[1.0, 0.0], [0.5, 0.5]])) / np.log(2)
    array([-0.,  1.])
    """
    return -(weights * np.log(np.where(weights > 0, weights, 1))).sum(axis=-1)  # type: ignore[no-any-return]


def _checked(weights: Array, queries: Sequence[str], keys: Sequence[str]) -> Array:
    """Weights (H, T, S) with a name for each row and column."""
    weights = np.asarray(weights)
    if weights.ndim != 3 or weights.shape[1:] != (len(queries), len(keys)):
        raise ValueError(
            f"{len(queries)} queries and {len(keys)} keys name weights (heads, {len(queries)}, "
            f"{len(keys)}): got shape {weights.shape}"
        )
    return weights


def _draw(
    panel: Any, weights: Array, queries: Sequence[str], keys: Sequence[str], title: str
) -> None:
    panel.imshow(weights, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    for ticks, labels, names in (
        (panel.set_xticks, panel.set_xticklabels, keys),
        (panel.set_yticks, panel.set_yticklabels, queries),
    ):
        ticks(range(len(names)))
        labels(list(names), fontsize=8, parse_math=False)
    panel.tick_params(axis="x", rotation=90 if max(map(len, keys), default=0) > 2 else 0)
    panel.set_title(title, fontsize=9, parse_math=False)
    panel.set_xlabel("keys", fontsize=8)
    panel.set_ylabel("queries", fontsize=8)
