"""Demos · What can mislead in the source text "I love you", and what shows it."""

from __future__ import annotations

import numpy as np

from attention import MultiHeadAttention, merge_heads
from demos._training import Marks
from demos.texts.sources import left_open, unclear, wrong
from demos.texts.sources import love_you_text as source
from demos.texts.sources.love_you_text import D_K, largest
from minigrad import Tensor, softmax


class Slips:
    """The slips, measured on the text's layer and on one with Xavier's weights.

    A difference of 0 proves something only if the same lines also find one that is not 0: that is
    what Xavier's weights are for.
    """

    def __init__(
        self,
        marks: Marks,
        seed: int,
        x: Tensor,
        fixed: MultiHeadAttention,
        mixed: MultiHeadAttention,
    ) -> None:
        self.marks, self.seed = marks, seed
        self.x, self.fixed, self.mixed = x, fixed, mixed
        self.q, self.k, self.v = (projected[0] for projected in source.heads(x, fixed))  # (3, 64)
        self.scores = (self.q @ self.k.mT / np.sqrt(D_K)).data  # (3, 3)

    @wrong(
        "The softmax has no axis.",
        "So it runs over all nine scores, and the rows sum to 0, 0 and 1. The lines that print "
        "the weights compute them anew, by row, and hide this.",
        weighty=True,
    )
    def softmax_without_an_axis(self) -> str:
        over_all = softmax(self.scores, axis=None).sum(axis=-1)
        by_row = softmax(self.scores).sum(axis=-1)
        self.marks.at_most('weights of "I" without an axis, their sum', over_all[0], 0, "g")
        return f"The rows sum to {over_all}, and by row to {by_row}."

    @wrong(
        'The context vector printed for "I" is 64 zeros.',
        "By rows it is 13085 in every slot.",
        weighty=True,
    )
    def context_of_zeros(self) -> str:
        of_i = (softmax(self.scores, axis=axis)[0] @ self.v.data for axis in (None, -1))
        return "“I” without an axis: {}, by rows: {}.".format(*map(np.unique, of_i))

    @unclear(
        "The weights look like a random draw in the code, and the text does not say that they "
        "are none.",
        "The ranges hold one integer each: 1, 3 and 5 everywhere. All 64 columns of Q, K and V "
        "are equal, and the scores have rank 1.",
        weighty=True,
    )
    def weights_that_are_not_drawn(self) -> str:
        different = {}  # columns of Q, K and V, of the first head
        for attend in (self.fixed, self.mixed):
            projected = source.heads(self.x, attend)
            different[attend] = [np.unique(part.data[0], axis=1).shape[1] for part in projected]
        rank = np.linalg.matrix_rank(self.scores)
        total = sum(different[self.fixed])
        self.marks.at_most("different columns of Q, K and V, together", total, 3, "d")
        self.marks.at_most("rank of the scores", rank, 1, "d")
        return (
            f"Q, K and V have {different[self.fixed]} different columns, with Xavier's weights "
            f"{different[self.mixed]}; the rank of the scores is {rank}."
        )

    @left_open(
        "The text does not notice that attention then depends on a word by the sum of its row "
        "alone.",
        "Every word looks at the largest sum, in whatever order the 512 features are.",
    )
    def only_the_sum_of_a_row_counts(self) -> str:
        shuffled = Tensor(np.random.default_rng(self.seed).permuted(self.x.data, axis=1))
        by_sum, by_order = (
            largest(attend(shuffled).data - attend(self.x).data)
            for attend in (self.fixed, self.mixed)
        )
        what = "outputs change by"
        self.marks.at_most(f"features shuffled: {what}", by_sum, 0, ".0e")
        self.marks.at_least(f"features shuffled, Xavier's weights: {what}", by_order, 0.1, ".1f")
        return (
            f"The features shuffled, each row by itself, change the outputs by {by_sum:.0e}; with "
            f"Xavier's weights by {by_order:.0e}."
        )

    @left_open(
        "The scores are scaled by 1/8 and are still 1.5e8.",
        "√d_k = 8 is made for queries and keys of mean 0 and variance 1; here their means are "
        "2539 and 7616.",
    )
    def scale_without_unit_variance(self) -> str:
        gap = self.gap()
        self.marks.at_most("weight of the second word, exp(-gap)", np.exp(-gap), 0, ".0e")
        return (
            f"The means of Q and K are {self.q.data.mean():.0f} and {self.k.data.mean():.0f}. The "
            f"second word is {gap:.1e} behind, and exp(-{gap:.1e}) is {np.exp(-gap)}."
        )

    def gap(self) -> float:
        """Return how far the second word is behind the first, in the row where it is closest."""
        *_, second, first = np.sort(self.scores, axis=-1).T
        return float((first - second).min())

    @unclear(
        "d_model is called the positional embedding space.",
        "It is the width of token and position together. In this text no position is added: "
        "exchange two words, and their outputs are exchanged.",
    )
    def no_position_is_added(self) -> str:
        exchanged, as_they_are = self.mixed(self.x[::-1]).data, self.mixed(self.x).data
        differ = largest(exchanged - as_they_are)
        back = largest(exchanged - as_they_are[::-1])
        self.marks.at_least("words exchanged: outputs differ by", differ, 0.1, ".1f")
        what = "words exchanged, outputs exchanged back: they differ by"
        self.marks.at_most(what, back, 1e-12, ".0e")
        return (
            f"“I” and “you” exchanged, Xavier's weights: the outputs differ by {differ:.0e}, and "
            f"exchanged back by {back:.0e}."
        )

    @unclear(
        "Step 7 repeats steps 1 to 6 for the other words, in a heading alone.",
        "Steps 1 to 5 are done for all three words already, and step 1 would draw other words: "
        "one product is left.",
    )
    def one_product_is_left(self) -> str:
        apart = {}
        for axis in (-1, None):
            words = [softmax(scores, axis=axis) @ self.v.data for scores in self.scores[:, None]]
            together = softmax(self.scores, axis=axis) @ self.v.data
            apart[axis] = largest(np.concatenate(words) - together)
        what = "one word at a time and one product"
        self.marks.at_most(f"{what}: apart", apart[-1], 1e-12, ".0e")
        self.marks.at_least(f"{what}, without an axis: apart", apart[None], 13085, ".0f")
        return (
            f"One word at a time and one product are {apart[-1]:.0e} apart, without an axis "
            f"{apart[None]:.0f}."
        )

    @unclear(
        "Each input is said to have 3 weight matrices.",
        "Step 3 assumes one of each for all inputs, and so does the code.",
    )
    def one_matrix_for_all_inputs(self) -> str:
        return (
            f"One (512, 64) for {len(self.x)} inputs gives queries {self.q.shape}. With one for "
            "each input, W_Q would be (3, 512, 64), where it is printed as (512, 64)."
        )

    @left_open(
        "The title promises multi-head attention, and the model is said to have eight heads.",
        "One is computed.",
    )
    def one_head_of_eight(self) -> str:
        joined = merge_heads(source.head_outputs(self.fixed, self.x))  # (3, 512)
        return f"The text's context has 64 features, ours from eight heads {joined.shape[-1]}."
