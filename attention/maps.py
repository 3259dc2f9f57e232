"""Maps: pictures of attention weights.

What do attention weights show? First, where each query looks: a map has a row for each query and a
column for each key, and a row sums to 1, or to 0 if its query has no key. Second, how decided a
query is: the **entropy** -Σ p log p of a row is 0 if one key has all the weight, and log n if n
keys have 1/n each. The title of each head gives the mean of entropy / log n over its rows. Here n
is the number of keys that a row may look at: t + 1 in row t of a causal map, if its mask is given.
A row with a single key cannot choose, and is left out. Weights do not show what a head *does*: the
values that it moves, and what later layers make of them. Whether weights explain an output is
disputed: Jain & Wallace 2019 say no, Wiegreffe & Pinter 2019 that it depends on the definition.

The weights are those of `GPT.maps`, `TextEncoder.maps`, `Encoder.maps` or
`MultiHeadAttention.weights`. A key that a query may not look at is hatched, since a weight of 0 is
something else: the query could have looked there, and did not.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from attention.figures import new_figure
from attention.scaled_dot_product import check_mask
from attention.scaling import entropy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = np.ndarray[Any, Any]


WIDTH = 7.6  # inches of a figure at most
GAP = 0.2  # inches between maps
LETTER = 0.068  # inches, the width of a letter in a cell's name
FEW = 64  # cells, which leave room for a number in each


def plot_heads(
    weights: Array,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    titles: Sequence[str] = (),
    mask: Any = None,
    largest: float = 1.0,
) -> Figure:
    """Draw a map for each head, all on one colour scale.   (H, T, S)

    queries  T names of rows, keys S names of columns; titles, one for each head, "head 1" … if not
             given
    mask     True where a query may look, for all heads (T, S) or for each (H, T, S)
    largest  the weight from which on the colour is the darkest
    """
    weights = np.asarray(weights)
    H, T, S = weights.shape
    if (len(queries), len(keys)) != (T, S):
        raise ValueError(f"{len(queries)} queries and {len(keys)} keys do not name {weights.shape}")
    masks = np.broadcast_to(True if mask is None else check_mask(mask, (H, T, S)), (H, T, S))
    columns, cell = _arranged(H, queries, keys)
    names = titles or [f"head {head + 1}" for head in range(H)]
    said = [
        _wrapped(f"{name}{_decided(*each)}", cell * S + GAP)
        for name, *each in zip(names, weights, masks, strict=True)
    ]
    rows = -(-H // columns)
    lines = max(each.count("\n") + 1 for each in said)
    longest = max(map(len, keys))
    turned = longest > 2 and LETTER * longest > cell  # names of columns that would touch
    figure = new_figure(
        columns * (cell * S + GAP) + LETTER * max(map(len, queries)) + 1.1,
        rows * (cell * T + 0.15 * lines + 0.2) + (LETTER * longest if turned else 0.2) + 0.1,
    )
    figure.set_layout_engine("compressed")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    letters = 8 if cell > 0.2 else 7
    for panel in panels[H:]:
        panel.axis("off")
    for head, (panel, p, may) in enumerate(zip(panels, weights, masks, strict=False)):
        image = panel.imshow(np.ma.array(p, mask=~may), cmap="Blues", vmin=0.0, vmax=largest)
        panel.patch.set(hatch="/////", edgecolor="#b5b5b5")  # which is seen where p is masked
        for t, s in np.argwhere(may) if T * S <= FEW else ():
            colour = "white" if p[t, s] > 0.61 * largest else "black"
            number = f"{p[t, s]:.2f}"
            style = {"color": colour, "fontsize": 8, "ha": "center", "va": "center"}
            panel.text(s, t, number.removeprefix("0"), **style)
        panel.set_xticks(range(S), list(keys), fontsize=letters, rotation=90 if turned else 0)
        panel.set_yticks(range(T), list(queries), fontsize=letters)
        panel.tick_params(length=2, labelleft=head % columns == 0, labelbottom=head + columns >= H)
        panel.set_title(said[head], fontsize=9)
    more = "max" if np.where(masks, weights, 0).max() > largest else "neither"
    bar = figure.colorbar(image, ax=list(panels), fraction=0.05, aspect=30, extend=more)
    what = "weight of a key (column) for a query (row)\nlog n: the entropy of n equal weights"
    if not masks.all():
        what += "\nhatched: masked"
    bar.set_label(_wrapped(what, 0.8 * figure.get_figheight()), fontsize=8)
    bar.ax.tick_params(labelsize=8)
    return figure


def changing(frames: Array | Sequence[Array]) -> list[int]:
    """Return the indices of the first and last frame, and of those where a row moves by 0.1."""
    shown = [0]
    for i in range(1, len(frames)):
        moved = np.abs(np.asarray(frames[i]) - frames[shown[-1]]).sum(axis=-1).max() / 2
        if moved >= 0.1 or i == len(frames) - 1:
            shown.append(i)
    return shown


# ---------------------------------------------------- A first reading may stop here.
# What follows: how large a cell is, how many maps stand side by side, and their titles.


def _decided(weights: Array, mask: Array) -> str:
    """Return a phrase with the mean entropy / log n of the rows with n > 1 keys; '' without any.

    What lies under the mask is not drawn and does not count.
    """
    n = mask.sum(axis=-1)
    choosing = n > 1
    if not choosing.any():
        return ""
    spread = entropy(np.where(mask, weights, 0)[choosing]) / np.log(n[choosing])
    return f", entropy\N{NO-BREAK SPACE}{spread.mean():.2f}\N{NO-BREAK SPACE}log\N{NO-BREAK SPACE}n"


def _arranged(H: int, queries: Sequence[str], keys: Sequence[str]) -> tuple[int, float]:
    """Return the number of maps that fit side by side, and the side of a cell in inches."""
    T, S = len(queries), len(keys)
    few = T * S <= FEW
    least, most = (0.34, 0.45) if few else (0.2 if H <= 4 else 0.13, min(0.26, 4 / S))
    if few and S <= 5:  # room for the names of the columns
        least = most = max(most, LETTER * max(map(len, keys)) + 0.05)
    room = WIDTH - LETTER * max(map(len, queries)) - 0.9
    columns = max(min(H, 4, int(room / (least * S + GAP))), 1)
    return columns, max(min((room / columns - GAP) / S, most), 0.1)


def _wrapped(title: str, width: float) -> str:
    """Return the title in lines that are as wide as a map."""
    parts = [wrap(part, max(int(width / 0.075), 12)) for part in title.split("\n")]
    return "\n".join(line for part in parts for line in part)
