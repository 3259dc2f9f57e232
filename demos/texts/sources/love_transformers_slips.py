"""Demos · What can mislead in the source text "I love Transformers", and what shows it."""

from __future__ import annotations

import numpy as np

from attention import MultiHeadAttention, merge_heads, split_heads
from attention.scaling import entropy
from demos._training import Marks
from demos.texts.sources import left_open, unclear, wrong
from demos.texts.sources import love_transformers_text as source
from demos.texts.sources.love_transformers_text import WORDS
from minigrad import Tensor, concatenate, jacobian, softmax
from minigrad.nn import xavier_uniform

# The shapes that the text states for W_Q, for Q K and the weights, and for the heads' outputs, with
# its n, d_model, d_k, d_v and h put in. It prints three more, of single matrices, and those hold.
STATED_SHAPES = {"W_Q": (4, 2, 2), "weights": (3, 3, 2), "heads": (3, 2, 2)}


class Slips:
    """The slips, measured on the text's input X and its layer of two heads."""

    def __init__(
        self, marks: Marks, rng: np.random.Generator, x: Tensor, layer: MultiHeadAttention
    ) -> None:
        self.marks, self.rng = marks, rng
        self.x, self.layer = x, layer
        self.ours = source.ours()
        self.weights = self.ours["weights"]  # (H, T, S)
        self.q = split_heads(layer.w_q(x), 2)  # (H, T, d_k)
        self.k = split_heads(layer.w_k(x), 2)
        self.raw = (self.q @ self.k.mT).data  # (H, T, S)
        self.scores = self.raw / np.sqrt(2)

    @unclear(
        "The text states the shapes of its drawing, with the heads last.",
        "Its code stores the heads first, and the text does not say that the two differ.",
    )
    def heads_last_or_first(self) -> str:
        # Twelve numbers fit into (3, 4) in more than one order, and only one keeps the features of
        # a word together.
        drawn = np.moveaxis(self.weights, 0, -1)  # (T, S, H)
        recut = self.weights.reshape(3, 3, 2)  # (T, S, H)
        stored = self.weights[0, 1]
        moved, reshaped = (np.abs(order[1, :, 0] - stored).max() for order in (drawn, recut))
        self.marks.at_most("drawn by moveaxis, and stored: apart", moved, 0, ".0f")
        self.marks.at_least("drawn by reshape alone, and stored: apart", reshaped, 0.9, ".2f")
        shapes = (
            f"{name}: stated {stated}, stored {self.ours[name].shape}"
            for name, stated in STATED_SHAPES.items()
        )
        rows = zip(WORDS, drawn.round(2), strict=True)
        return (
            f"{'; '.join(shapes)}. The drawing's `weights[1, :, 0]` is the stored "
            f"`weights[0, 1, :]`, {stored.round(2)}: the order is turned by "
            f"`np.moveaxis(weights, 0, -1)`. By `reshape` alone this row would be "
            f"{recut[1, :, 0].round(2)}. The drawing, with both heads in each cell:\n"
        ) + "".join(f"\n    {word:12}  {row.tolist()}" for word, row in rows)

    @wrong(
        "Concatenation is said to run along the axis of heads, axis 1.",
        "The axis of heads is axis 0, and the code takes that axis apart and joins features.",
        weighty=True,
    )
    def heads_are_joined_by_features(self) -> str:
        heads = Tensor(self.ours["heads"])  # (H, T, d_v)
        joined = concatenate([heads[0], heads[1]], axis=1)  # (T, H · d_v)
        apart = np.abs((joined - merge_heads(heads)).data).max()
        self.marks.at_most("features joined, and merge_heads: apart", apart, 0.0, ".0e")
        return (
            f"“{WORDS[1]}”, head by head: {joined.data[1].round(3).tolist()}. By reshape alone: "
            f"{heads.reshape(3, 4).data[1].round(3).tolist()}. By our `merge_heads`: apart by "
            f"{apart:g}."
        )

    @unclear(
        "One array is named scaled_attention_scores, another weighted_scores.",
        "The first holds the weights, and the second averages of values; a score is never printed.",
    )
    def weights_that_are_named_scores(self) -> str:
        scores, weights = self.scores[0, 0], self.weights[0, 0]
        return (
            f"Head 1, “{WORDS[0]}”: scores {scores.round(3)}, sum {scores.sum():.3f}; weights "
            f"{weights.round(3)}, sum {weights.sum():.3f}."
        )

    @unclear(
        "The text says that the heads split a word's vector.",
        "Its code is right: each head projects all d_model features.",
    )
    def each_head_reads_every_feature(self) -> str:
        # If the vector were split first, half of the columns of ∂q/∂x would be 0.
        whole = jacobian(lambda x: split_heads(self.layer.w_q(x), 2))(self.x.data).data
        of_love = whole[:, 1, :, 1]  # (H, T, d_k, T, d_model) → (H, d_k, d_model)
        reads = np.linalg.norm(of_love, axis=1)  # (H, d_model)
        what = "each head reads each feature: least ‖∂q/∂feature‖"
        self.marks.at_least(what, reads.min(), 0.2, ".3f")
        return "‖∂q/∂feature‖ of head 1 {}, of head 2 {}.".format(*reads.round(3))

    @left_open(
        "Xavier's bound is taken for each head's matrix, 1.0, and the text does not mention the"
        " choice.",
        "So the variance grows to 4/3. For the whole layer the bound would be 0.866, which two "
        "printed weights exceed, and the variance would stay.",
    )
    def bound_of_a_head_or_of_the_layer(self) -> str:
        # Xavier's bound √(6/(d_in + d_out)) makes an output as large as its input, in the mean over
        # the draws: Var(y) = d_in · Var(w) · E[x²], with Var(w) = bound²/3. The last factor is
        # E[x²], which is not Var(x) unless the mean is 0.
        of_head, of_layer = np.sqrt(6 / (4 + 2)), np.sqrt(6 / (4 + 4))
        beyond = (np.abs(self.ours["W_Q"]) > of_layer).sum()
        inputs = self.rng.standard_normal((200, 4))
        inputs /= np.sqrt(np.mean(inputs**2))
        text = f"Bounds {of_head:.3f} and {of_layer:.3f}; {beyond} printed weights are beyond."
        for what, d_out, variance in (("head", 2, 4 / 3), ("layer", 4, 1)):
            grown = np.var(inputs @ xavier_uniform((5000, 4, d_out), rng=self.rng))
            text += f" With the {what}'s bound a variance of 1 becomes {grown:.3f}; by the formula "
            text += f"{variance:.3f}."
            off = abs(grown / variance - 1)
            mark = f"variance of x W with the {what}'s bound, off the formula by"
            self.marks.at_most(mark, off, 0.03)
        return text

    @left_open(
        "Xavier's weights are said to preserve the variance, without a condition.",
        "They do so for inputs with mean 0; these have mean 4.5, and what W multiplies is their"
        " mean square, 26, and not their variance, 5.75.",
    )
    def mean_square_and_not_variance(self) -> str:
        x = self.x.data
        square = np.mean(x**2)
        sizes = np.mean([self.q.data**2, self.k.data**2], axis=(-2, -1)).ravel().round(1)
        return (
            f"X has mean {x.mean()}, variance {x.var()}, mean square {square}. The mean squares of "
            f"Q'₁ Q'₂ K'₁ K'₂ are {sizes}; 4/3 of X's is {4 / 3 * square:.1f}."
        )

    @wrong(
        "The scale is said to give numerical stability.",
        "Here subtracting the maximum gives it.",
        weighty=True,
    )
    def stable_by_the_maximum(self) -> str:
        nan = []  # where exp overflows: scaled without and with the subtraction, unscaled alike
        for scores in (100 * self.scores, 100 * self.raw):
            with np.errstate(over="ignore", invalid="ignore"):
                naive = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
            nan += [np.isnan(naive).sum(), np.isnan(softmax(scores)).sum()]
        return (
            "NaN in weights of 100 times larger scores: scaled {} without the subtraction and {} "
            "with it, unscaled {} and {}.".format(*nan)
        )

    @wrong(
        "The scale is said to adjust the words to their context.",
        "It does not: it is the same factor for every score.",
        weighty=True,
    )
    def one_factor_for_every_score(self) -> str:
        factor = self.scores / self.raw
        return f"scaled / raw of all 18 scores: {factor.min():.6f} to {factor.max():.6f}."

    @left_open(
        "Each row of a head is said to be a word in its context.",
        "That is the method's purpose. Here head 2 is one-hot, although it is scaled, and its "
        "three printed rows are the same.",
    )
    def head_2_is_one_hot(self) -> str:
        second = self.weights[1]
        left = second[:, 1:].sum(axis=1)
        differ = np.ptp(self.ours["heads"][1], axis=0).max()
        spread = entropy(second).mean() / np.log(3)
        return (
            f"What is left for the other two words: {left}. The rows of its output differ by at "
            f"most {differ:.1e}. The entropy of its weights is {spread:.1e} of log n."
        )

    @unclear(
        "The first word is said to attend to every other word.",
        "It attends to itself too, and in head 2 to nothing else.",
    )
    def a_word_attends_to_itself_too(self) -> str:
        first, second = (head.diagonal().round(3) for head in self.weights)
        return f"The weights of words on themselves: head 1 {first}; head 2 {second}."
