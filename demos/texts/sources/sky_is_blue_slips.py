"""Demos · What can mislead in "The sky is blue and world is round", and what shows it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from attention import (
    MultiHeadAttention,
    attention_weights,
    causal_mask,
    padding_mask,
    split_heads,
)
from demos._training import Marks
from demos.texts.sources import agreeing, left_open, unclear, wrong
from demos.texts.sources import sky_is_blue_text as source
from demos.texts.sources.sky_is_blue_text import (
    D_MODEL,
    IGNORED,
    PRINTED,
    SENTENCE,
    VOCABULARY,
    Measured,
    SelfAttention,
    measure,
    moved_by,
    token_ids,
)
from minigrad import Tensor, gradients, softmax, where


def as_it_masks(layer: SelfAttention, x: Tensor, mask: np.ndarray, axis: int = -1) -> Tensor:
    """Return weights masked as in the text's second class, softmax over keys or queries."""
    scores = layer.w_q(x) @ layer.w_k(x).mT / np.sqrt(D_MODEL)
    return softmax(where(mask, scores, -np.inf), axis=axis)


def complaint(source: str) -> str:
    """Return the error that this source raises, after the imports that the text has."""
    try:
        exec(compile(source, "text", "exec"), {"math": None, "torch": None})
    except (NameError, SyntaxError) as error:
        return f"{type(error).__name__}: {error.args[0]}"
    return "nothing"


class Slips:
    """The slips, measured on many draws of the text's recipe and on its two classes.

    sentence  the words that are drawn
    table     initial values and a scale → many draws
    like      how many draws, from which seed and of which width they are
    single    the text's SelfAttention
    multi     its MultiHeadAttention
    """

    def __init__(
        self,
        marks: Marks,
        sentence: str,
        table: Mapping[tuple[str, str], Measured],
        like: Mapping[str, int],
        x: Tensor,
        single: SelfAttention,
        multi: MultiHeadAttention,
    ) -> None:
        self.marks, self.sentence = marks, sentence
        self.ids, self.as_printed = token_ids(sentence), token_ids(SENTENCE)
        self.like, self.width = like, like["d_model"]
        self.raw, self.scaled = table["N(0, 1)", "1"], table["N(0, 1)", "1/√d"]
        self.unit_raw, self.unit = table["N(0, 1/d)", "1"], table["N(0, 1/d)", "1/√d"]
        self.x, self.single, self.multi = x, single, multi  # (1, T, d_model), and the classes

    @wrong(
        "The printed token ids are not those of the sentence.", 'They belong to "… world is blue".'
    )
    def ids_of_another_sentence(self) -> str:
        agree = agreeing(PRINTED["token ids"], source.as_text(self.as_printed))
        return (
            f"{self.as_printed} for the sentence, {agree} of 8 as printed; with blue for round, "
            "all 8."
        )

    @left_open(
        "The text does not say that words are numbered with their repetitions.",
        "So some ids are never used, which does no harm.",
    )
    def some_ids_are_never_used(self) -> str:
        unused = sorted(set(range(8)) - set(self.ids.tolist()))
        each_once = token_ids(self.sentence, distinct=True)
        return f"No word is numbered {unused}; each once, the ids are {each_once}."

    @left_open(
        "The text does not say that its second replace changes nothing.",
        "It looks for all nine characters in a row, and the loop before it has done the work.",
    )
    def a_replace_that_changes_nothing(self) -> str:
        noisy = "sky (blue);"
        return f"`{noisy}` becomes `{noisy.replace(IGNORED, '')}`."

    @wrong("Multiplying by 1/√d_k is called dividing by it.", "That would go the other way.")
    def multiplying_is_not_dividing(self) -> str:
        inverted = measure(self.ids, "N(0, 1)", 1 / self.width**-0.5, **self.like)
        times = inverted.variance.mean() / self.raw.variance.mean()
        return f"Divided by 1/√d_k, the variance is {times:.0f} times as large."

    @unclear("The ratio 32 is shown as an effect.", "Var(x/√32) = Var(x)/32 holds for any numbers.")
    def a_ratio_of_any_numbers(self) -> str:
        squares = np.arange(64.0) ** 2
        ratio = squares.var() / (squares / 32**0.5).var()
        return f"Divided by √32, even the squares from 0 to 63² have {ratio:g} times less variance."

    @wrong(
        "The text says that keys and values grow because nothing is scaled.",
        "They grow because W is drawn from N(0, 1). A scale of the scores does not change them.",
        weighty=True,
    )
    def keys_and_values_grow_by_w(self) -> str:
        scaled, unit = self.scaled, self.unit_raw
        return (
            f"From N(0, 1) keys have variance {scaled.key_variance:.1f} and values "
            f"{scaled.value_variance:.1f}, at any scale; from N(0, 1/d) {unit.key_variance:.2f} "
            f"and {unit.value_variance:.2f}. Unscaled, only the scores grow, to "
            f"{unit.variance.mean():.1f}."
        )

    @left_open(
        "The scale is said to give more stable gradients.",
        "It does not suffice here. Most queries look at one word, as W is N(0, 1).",
        weighty=True,
    )
    def the_scale_does_not_suffice(self) -> str:
        other = measure(self.as_printed, "N(0, 1)", None, **self.like)
        other_unit = measure(self.as_printed, "N(0, 1/d)", None, **self.like)
        return (
            f"Scaled, the largest weight of a query is {self.scaled.largest:.2f} on average, and "
            f"from N(0, 1/d) {self.unit.largest:.2f}. With its printed sentence: "
            f"{other.largest:.2f} and {other_unit.largest:.2f}."
        )

    @wrong(
        "Softmax runs over the queries (dim=0) in the worked example.",
        "It has to run over the keys, as it does in the class.",
        weighty=True,
    )
    def softmax_over_the_queries(self) -> str:
        # Each *column* sums to 1. The weights of one query may then sum to almost nothing, or to
        # several words. And the future leaks in: a column's sum includes the later queries.
        weights = softmax(Tensor(self.scaled.scores), axis=-2).data
        sums = weights.sum(axis=-1)  # (draws, T): one for each query
        low, high = np.median(sums.min(axis=-1)), np.median(sums.max(axis=-1))
        v, causal = self.single.w_v(self.x), causal_mask(8)
        by_columns, by_rows = (
            moved_by((as_it_masks(self.single, self.x, causal, axis) @ v)[0, 0], self.x)[1:].max()
            for axis in (-2, -1)
        )
        what = "what a later word moves, softmax by"
        self.marks.at_least(f"{what} columns", by_columns, 1e-3, ".0e")
        self.marks.at_most(f"{what} rows", by_rows, 0, "g")
        return (
            f"The rows of a typical draw sum to {low:.0e} … {high:.1f}, of all at most to "
            f"{sums.max():.1f}. Under a causal mask a later word moves the first output by "
            f"{by_columns:.1e}; by rows, {by_rows:g}."
        )

    @wrong(
        "The text says that values may have any width, and that the shape of (8, 8) weights and"
        " the shape of (8, 32) values are the same.",
        "They are not, and need not be.",
    )
    def shapes_need_not_be_the_same(self) -> str:
        weights = attention_weights(self.single.w_q(self.x), self.single.w_k(self.x))
        v = self.single.w_v(self.x)
        return (
            f"Weights {weights.shape[1:]} times values {v.shape[1:]}: only the inner axes have to "
            f"agree. Values of 5 features give an output {(weights @ v[..., :5]).shape[1:]}."
        )

    @wrong(
        "The text says that heads speed the work up like a team.",
        "They do as many multiplications as one head.",
    )
    def heads_are_no_faster(self) -> str:
        q = self.single.w_q(self.x)
        one, four = (8 * split_heads(q, num_heads).size for num_heads in (1, 4))
        return f"Q Kᵀ takes {one:,} multiplications with one head, {four:,} with four."

    @wrong("`nn` and `F` are used and never imported.", "So the code does not run.")
    def never_imported(self) -> str:
        return (
            f"A class on `nn`: {complaint('class Layer(nn.Module): pass')}. A method with `F`: "
            f"{complaint('def forward(x): F.softmax(x)')}, until it is called: "
            f"{complaint('(lambda x: F.softmax(x))(0)')}."
        )

    @wrong("A comment lacks its #.", "That is a SyntaxError.")
    def a_comment_without_its_mark(self) -> str:
        return f"{complaint('d_model = 32 features')}."

    @left_open(
        "The text passes no mask.",
        "With one, a query that may look nowhere gets NaN, and so does the gradient.",
    )
    def a_query_that_may_look_nowhere(self) -> str:
        before = np.tril(np.ones((8, 8), dtype=bool), -1)  # only words *before* it: the first none
        x, single = self.x, self.single
        leaves = {"X": x, "W_Q": single.w_q.weight, "W_K": single.w_k.weight}
        leaves["W_V"] = single.w_v.weight
        with np.errstate(invalid="ignore"):
            output = (as_it_masks(single, x, before) @ single.w_v(x)).sum()
            sick = gradients(output, list(leaves.values()), retain_graph=True)
        nan = {name: np.isnan(g).mean() for name, g in zip(leaves, sick, strict=True)}
        ours = single(x, mask=before)
        healthy = [np.isfinite(g).all() for g in gradients(ours.sum(), list(leaves.values()))]
        silent = np.abs(ours.data[0, 0]).max()
        what = "a query that may look nowhere"
        of_values, of_scores = (nan["X"], nan["W_V"]), (nan["W_Q"], nan["W_K"])
        self.marks.at_least(f"{what}, the text: NaN in X and in W_V", min(of_values), 1.0)
        self.marks.at_most(f"{what}, the text: NaN in W_Q and in W_K", max(of_scores), 0.0)
        self.marks.at_least(f"{what}: our gradients without NaN", np.mean(healthy), 1.0)
        self.marks.at_most(f"{what}: our output", silent, 0, "g")
        shares = ", ".join(f"{name} {share:.0%}" for name, share in nan.items())
        return (
            f"The share of NaN in each gradient: {shares} (`where` passes none to what it "
            f"refused). Ours: that word's output is {silent:g}, and {np.mean(healthy):.0%} of the "
            "gradients are without NaN."
        )

    @left_open(
        "The shape of a mask is not said.",
        "A mask (B, T, S) meets scores (B, H, T, S): if B = H, a head gets a sequence's mask.",
    )
    def a_head_gets_a_sequences_mask(self) -> str:
        batch = Tensor(np.concatenate([self.x.data] * 4))  # (B, T, d_model), and B = H = 4
        lengths = padding_mask([8, 6, 4, 2], 8)  # (B, 1, S)
        q, k = (split_heads(layer(batch), 4) for layer in (self.multi.w_q, self.multi.w_k))
        theirs = attention_weights(q, k, mask=lengths)
        ours = self.multi.weights(batch, mask=lengths)
        by_text, by_us = (
            (weights.data[0, :, 0] > 0).sum(axis=-1)  # (H,): keys that the first sequence looks at
            for weights in (theirs, ours)
        )
        what = "words for the head that has least"
        self.marks.at_most(f"masks (B, T, S), the text: {what}", min(by_text), 2, "d")
        self.marks.at_least(f"masks (B, T, S), our layer: {what}", min(by_us), 8, "d")
        return (
            f"Of 8 words the first sequence's heads may look at {by_text}; through our layer "
            f"{by_us}."
        )

    @wrong(
        "`SelfAttention.scale` is a tensor and not a buffer.",
        "So it stays behind when the class is moved to another device, and the division there "
        "fails.",
    )
    def a_scale_that_stays_behind(self) -> str:
        return (
            "A plain number would do, `embed_size ** 0.5`, as in the text's second class. We "
            "cannot run this, as NumPy knows one device."
        )

    @unclear(
        "The formulas write q = W x, the code X W.",
        "W is square, so both orders run, and W means its transpose in one of them.",
    )
    def the_order_of_x_and_w(self) -> str:
        w = self.single.w_q.weight
        there, back = (self.x @ w).data, (self.x @ w.mT).data
        differ = np.mean(there != back)
        return f"x W and x Wᵀ: both {there.shape}; {differ:.0%} of the numbers differ."

    @unclear(
        "Softmax is said to be applied to the entire matrix and to give one probability "
        "distribution.",
        "The code gives eight, one for each column.",
    )
    def softmax_of_the_entire_matrix(self) -> str:
        scores = Tensor(self.scaled.scores[0])  # (T, S)
        whole, by_column = (softmax(scores, axis=axis).data.sum() for axis in (None, -2))
        return (
            f"Over the entire matrix all weights sum to {whole:.0f}; over columns, as in the code, "
            f"to {by_column:.0f}, 1 for each."
        )

    @unclear(
        "The word query stands for a matrix of weights, W_q, and for its result, Q.",
        "Key and value have two meanings too.",
    )
    def the_word_query(self) -> str:
        w_q = self.single.w_q
        return (
            f"Ours: `w_q` has shape {w_q.weight.shape}, and q, which it makes, "
            f"{w_q(self.x).shape[1:]}."
        )

    @unclear(
        "`itos` holds the ids of the words, and `vocab_size` is explained as the number of "
        "unique words.",
        "`itos` would be read as id → string, and `vocab_size` is 100.",
    )
    def itos_and_vocab_size(self) -> str:
        of_printed, of_repaired = (len(set(s.split())) for s in (SENTENCE, self.sentence))
        return (
            f"The printed sentence has {of_printed} different words, that of the printed ids "
            f"{of_repaired}; {VOCABULARY - of_repaired} rows of the embedding are never read."
        )
