"""Pictures · One sentence under four heads, and what W_O adds up (chapter 13)."""

import numpy as np

from attention import MultiHeadAttention, split_heads
from demos.pictures import figure, line, number, shapes, text
from minigrad import Tensor

WORDS = ("the", "cat", "saw", "the", "dog")
HEADS = ("the word before", "the same word", "the first word", "all alike")
SIDE, WIDTH, D_K = 19, 20, 5
Array = np.ndarray


def layer() -> tuple[MultiHeadAttention, Tensor]:
    """Return a layer of four heads, and the vectors of the sentence, 1 at a place and at a word.

    W_Q and W_K are set by hand: the heads look at what HEADS says. The rest is random.
    """
    kinds = sorted(set(WORDS))
    place = np.arange(len(WORDS))
    word = len(WORDS) + np.arange(len(kinds))
    x = np.zeros((len(WORDS), WIDTH))
    x[place, place] = 1
    x[place, [word[kinds.index(each)] for each in WORDS]] = 1
    w_q, w_k = np.zeros((2, WIDTH, len(HEADS), D_K))
    w_q[place[1:], 0, place[:-1]] = w_k[place, 0, place] = 4
    w_q[word, 1, np.arange(len(word))] = w_k[word, 1, np.arange(len(word))] = 4
    w_q[place, 2, 0] = w_k[0, 2, 0] = 4
    made = MultiHeadAttention(WIDTH, len(HEADS), rng=np.random.default_rng(0))
    ours = {"w_q.weight": w_q.reshape(WIDTH, -1), "w_k.weight": w_k.reshape(WIDTH, -1)}
    made.load_state_dict(made.state_dict() | ours)
    return made, Tensor(x)


def added(made: MultiHeadAttention, x: Tensor) -> Array:
    """Return what each head adds to the output, through its rows of W_O.   → (H, T, d_model)"""
    values = split_heads(made.w_v(x), len(HEADS))
    rows = made.w_o.weight.data.reshape(len(HEADS), D_K, WIDTH)
    parts: Array = (made.weights(x) @ values @ rows).data
    return parts


def picture() -> str:
    """Return the figure: a map for each head, and below it how much it adds for the last word."""
    made, x = layer()
    weights, parts_of = made.weights(x).data, added(made, x)
    lengths = np.linalg.norm(parts_of[:, -1], axis=-1)
    whole = float(np.linalg.norm(parts_of[:, -1].sum(axis=0)))
    unit = 70 / max(whole, *lengths)
    parts = []
    for i, word in enumerate(WORDS):
        parts.append(text(42, 52 + SIDE * i, word, "end"))
    for h, (name, length) in enumerate(zip(HEADS, lengths, strict=True)):
        left = 50 + 118 * h
        middle = left + SIDE * len(WORDS) / 2
        parts.append(text(middle, 24, name))
        for (i, j), weight in np.ndenumerate(weights[h]):
            x_, y_ = left + SIDE * j, 38 + SIDE * i
            parts.append(shapes.rect(x_, y_, SIDE, SIDE, f"level-{round(4 * weight)}"))
        parts.append(line([(middle, 222), (middle, 222 - unit * length)], "fore bar"))
        parts.append(text(middle, 240, number(length, 2), "fore"))
    parts.append(line([(556, 222), (556, 222 - unit * whole)], "bar"))
    parts += [text(556, 240, number(whole, 2)), text(556, 122, "sum")]
    parts += [text(42, 208, WORDS[-1], "end"), text(42, 226, "gets", "end soft")]
    alt = f"Four maps of attention over “{' '.join(WORDS)}”: " + ", ".join(HEADS) + ". The heads "
    alt += f"add {', '.join(number(each, 2) for each in lengths)} to the output of the last word; "
    alt += f"the sum has the length {number(whole, 2)}."
    says = (
        "One sentence, four questions: a row is the word that looks (W_Q and W_K are set by hand). "
        "Bars: the length of what each head adds to the last word through its rows of W_O. The "
        "vectors add up to the output; they point different ways, so their sum is shorter than the "
        "bars together."
    )
    return figure("heads", (600, 252), parts, alt, says)
