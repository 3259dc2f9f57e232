"""Demos · What can mislead in "Your journey starts with one step", and what shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from attention import attention_weights
from attention.mapping import to_ours, to_theirs
from demos._training import Marks
from demos.texts.sources import agreeing, left_open, unclear, wrong
from demos.texts.sources import your_journey_text as source
from demos.texts.sources.your_journey_text import (
    INPUTS,
    PRINTED,
    WORDS,
    SelfAttention,
    as_text,
    reached,
    spread,
)
from minigrad import Tensor, exp, jacobian, mse, softmax
from minigrad.optim import Adam


def spaced(numbers: Iterable[float], form: str = ".4f") -> str:
    """Return numbers as one line of text."""
    return " ".join(f"{number:{form}}" for number in numbers)


def listed(lines: Mapping[str, str]) -> str:
    """Return named lines of text as a display of Markdown."""
    width = max(map(len, lines))
    return "\n\n" + "\n".join(f"    {name:{width}}  {line}" for name, line in lines.items())


def naive_softmax(x: Any) -> Any:
    """Return exp(xᵢ) / Σⱼ exp(xⱼ) as it is on paper, without chapter 3.6's care."""
    return exp(x) / exp(x).sum()


def divided(scores: Any) -> Any:
    """Return each row divided by its sum."""
    return scores / scores.sum(axis=-1, keepdims=True)


def trained(head: SelfAttention, normalise: Callable[[Any], Any]) -> float:
    """Train a head to say the next word's start; return its last loss over a constant answer's."""
    target = np.roll(INPUTS[:, :2], -1, axis=0)
    optimizer = Adam(head.parameters(), 0.05)
    for _ in range(200):
        q, k, v = head.project(Tensor(INPUTS))
        loss = mse(normalise(q @ k.mT / np.sqrt(2)) @ v, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss.item() / target.var(axis=0).mean())


class Slips:
    """The slips, measured on the text's sentence and on its two classes.

    wide   V1 or V2 and a scale → entropy / log n of its recipe at d_k = 2048
    times  a factor of the inputs' length → the same of V2's recipe at a scale of 1
    """

    def __init__(
        self,
        marks: Marks,
        seed: int,
        wide: Mapping[tuple[str, str], float],
        times: Mapping[int, float],
    ) -> None:
        self.marks, self.seed = marks, seed
        self.wide, self.times = wide, times
        self.x = Tensor(INPUTS)
        self.one, self.two = source.version_1(), source.version_2()
        self.heads = {"V1": self.one, "V2": self.two}

    @unclear(
        'The text says that it compares x₂ with "every other input token".',
        "The code compares x₂ with itself too, and that weight is the largest, .2379.",
    )
    def compared_with_itself_too(self) -> str:
        rows = {}
        for name, mask in (("in its code", None), ("of every other", np.arange(len(WORDS)) != 1)):
            weights = attention_weights(self.x[1:2], self.x, scale=1.0, mask=mask)
            rows[name] = spaced(weights.data[0])
        return f"The weights of x₂.{listed(rows)}"

    @wrong(
        'Under "Key matrix weights" the text prints W_query once more.',
        "W_key comes three cells later.",
        weighty=True,
    )
    def w_query_once_more(self) -> str:
        printed = PRINTED['W_q, called "Key matrix weights"']
        of_q, of_k = (agreeing(printed, as_text(w.data)) for w in (self.one.w_q, self.one.w_k))
        what = 'numbers called "Key matrix weights" that are those of'
        self.marks.at_least(f"{what} w_q", of_q, 6, "d")
        self.marks.at_most(f"{what} w_k", of_k, 0, "d")
        return f"{of_q} of the six numbers are those of W_q, and {of_k} of W_k."

    @left_open(
        "The text first divides scores by their sum, and does not show what fails.",
        "V2's scores give negative weights, and any scale cancels.",
    )
    def divided_by_their_sum(self) -> str:
        raw = (self.x @ self.two.w_q @ (self.x @ self.two.w_k).mT).data[0]  # of the first word
        weights = {}
        for name, scores in (("scale 1", raw), ("scale 1/√2", raw / np.sqrt(2))):
            weights[f"sum, {name}"] = divided(scores)
            weights[f"softmax, {name}"] = softmax(scores)
        least = {name: min(row) for name, row in weights.items()}
        self.marks.at_most("the least weight by their sum", least["sum, scale 1"], -0.05, ".3f")
        self.marks.at_least("the least weight by softmax", least["softmax, scale 1"], 0.05, ".3f")
        rows = {name: spaced(row, "7.4f") for name, row in weights.items()}
        return f"V2's scores of “Your”, made weights by their sum, and by softmax.{listed(rows)}"

    @left_open(
        "The text says that its softmax may overflow, and not where.",
        "It does so from 710 in float64, from 89 in float32, which its own inputs reach when "
        "they are 8 times as long.",
    )
    def where_exp_overflows(self) -> str:
        rows = {"": "(z, 0) naive   ours   (-z, -z) naive   ours"}
        for dtype, numbers in (("float64", (709, 710, 746)), ("float32", (88, 89, 104))):
            for z in numbers:
                first = []  # weights
                for scores in ([z, 0.0], [-z, -z]):
                    s = Tensor(scores, dtype=dtype)
                    with np.errstate(over="ignore", invalid="ignore"):
                        first += [naive_softmax(s)[0].item(), softmax(s)[0].item()]
                rows[f"{dtype}, z = {z}"] = "{:12.3g}{:7.3g}{:17.3g}{:7.3g}".format(*first)
        longer = 8 * INPUTS[1]
        return (
            f"The inputs themselves, 8 times as long, have x₂ · x₂ = {longer @ longer:.1f}. The "
            f"first weight:{listed(rows)}"
        )

    @left_open(
        "V2 is said to improve V1.",
        "The two differ by seed, by storage (nn.Linear keeps the transpose) and by distribution"
        " at once, and are never made equal.",
    )
    def made_equal(self) -> str:
        # V1 and V2 are one formula. `nn.Linear` stores (d_out, d_in), so V1's weights must be
        # transposed on the way; a layout (attention/mapping.py) states this once, for both
        # directions.
        stored = to_theirs(self.one.state_dict(), source.LAYOUT_V2)
        made_equal = source.version_2()
        made_equal.load_state_dict(to_ours(stored, source.LAYOUT_V2))
        agreed = agreeing(PRINTED["V1"], as_text(made_equal(self.x).data))
        what = "numbers of V1's table that V2 gives with these"
        self.marks.at_least(what, agreed, 12, ".0f")
        shapes = ", ".join(f"`{name}` {array.shape}" for name, array in stored.items())
        return (
            f"As V2 stores V1's weights: {shapes}. With these V2 gives {agreed} of the 12 numbers "
            "of V1's table."
        )

    @unclear(
        "The text calls nn.Linear's initial weights optimized, and does not measure it.",
        "Their variance is 1/(3 d_in), so a signal loses two thirds of its mean square in each "
        "layer. Neither V1 nor V2 does more than average.",
    )
    def what_nn_linear_draws(self) -> str:
        # If inputs have variance 1, an output has d_in Var(w) (minigrad/nn/initial.py): a third of
        # the power is left after each layer and, in V2, a plain average of the values.
        drawn = source.torch_linear(np.random.RandomState(self.seed), 3, 100_000)
        off = abs(9 * drawn.var() - 1)
        self.marks.at_most("nn.Linear: d_in · variance of 300,000, from ⅓", off, 0.01)
        rows = {}
        for name, head in self.heads.items():
            values, contexts = (self.x @ head.w_v).data, head(self.x).data
            varied = np.std(contexts - contexts.mean(axis=0)) / np.std(values - values.mean(axis=0))
            what = f"{name}: how much contexts vary, of what values vary"
            self.marks.at_most(what, varied, 0.06)
            rows[name] = (
                f"entropy / log n {spread(head):.3f}; contexts vary by {varied:.1%} of the values"
            )
        return (
            f"d_in times the variance of 300,000 weights of `nn.Linear` is {3 * drawn.var():.4f}."
            f"{listed(rows)}"
        )

    @left_open(
        "Softmax is said to have more favourable gradients than division by the sum, and they "
        "are not shown.",
        "It is so: its slope is at most ½, the slope of the division has no bound, and the text's "
        "two heads learn more with softmax. But softmax's slope vanishes when scores are large.",
    )
    def softmax_and_division_learn(self) -> str:
        # The largest singular value of the Jacobian is the most that a small change of the scores
        # can change the weights. That of softmax, diag(p) - p pᵀ, is never above ½.
        rows, steepest, mean_loss = {}, {}, {}
        scores = [scale * INPUTS @ word for scale in (0.01, 1, 100) for word in INPUTS]
        for name, normalise in (("divided", divided), ("softmax", softmax)):
            slopes = [np.linalg.norm(jacobian(normalise)(row).data, 2) for row in scores]
            losses = [trained(head(), normalise) for head in (source.version_1, source.version_2)]
            rows[name] = (
                f"slopes {min(slopes):.1g} to {max(slopes):.2g}; losses {spaced(losses, '.2f')}"
            )
            steepest[name], mean_loss[name] = max(slopes), np.mean(losses)
        slope, loss = "the steepest of 18 rows", "loss / a constant's, mean of both"
        self.marks.at_least(f"divided: {slope}", steepest["divided"], 10, ".3g")
        self.marks.at_least(f"divided: {loss}", mean_loss["divided"], 0.45, ".2f")
        self.marks.at_most(f"softmax: {slope}", steepest["softmax"], 0.5, ".3g")
        self.marks.at_most(f"softmax: {loss}", mean_loss["softmax"], 0.45, ".2f")
        return (
            "The steepest slope of the weights by the scores, of 18 rows, and the losses of V1 and "
            f"V2 after 200 steps, over that of the best constant answer.{listed(rows)}"
        )

    @left_open(
        "`.T` and `dim=0` work for one sentence and for one vector, and the text uses no batch.",
        "With a batch of sentences they fail, or softmax runs over the wrong axis.",
    )
    def a_batch_of_sentences(self) -> str:
        pair = np.stack([INPUTS, INPUTS[::-1]])  # (B, T, d_in)
        try:
            product = f"have the shape {(pair @ pair.T).shape}"
        except ValueError as error:
            product = f"raise a {type(error).__name__}"
        rows = {}
        for axis in (0, -1):
            sums = softmax(self.x @ self.x.mT, axis=axis).data.sum(axis=-1)
            rows[f"dim={axis}"] = spaced(sums, ".3f")
        return (
            f"Two sentences {pair.shape} times their `.T` {pair.T.shape} {product}; with the last "
            f"two axes exchanged they give {(Tensor(pair) @ Tensor(pair).mT).shape}. The rows of "
            f"softmax of the (6, 6) scores sum to:{listed(rows)}"
        )

    @left_open(
        "The text gives small gradients as the reason for the scale, and means large widths.",
        "At its own d_k = 2 the scale makes the gradients of W_q and W_k smaller.",
        weighty=True,
    )
    def the_scale_makes_gradients_smaller(self) -> str:
        left = {}
        for name, head in self.heads.items():
            left[name] = reached(head, None)[0] / reached(head, 1.0)[0]
            what = f"{name}: ‖∂L/∂W_q‖ with the scale, over that without"
            self.marks.at_most(what, left[name], 0.9, ".2f")
        return (
            f"‖∂L/∂W_q‖ with the scale is {left['V1']:.2f} of that without it for V1, and "
            f"{left['V2']:.2f} for V2. These scores are far from saturation, so the scale does "
            "little more than multiply the gradients once more, by 1/√2 = 0.71."
        )

    @left_open(
        "The text's example for the scale is a width above a thousand.",
        "V1's recipe needs one there: its weights have mean ½, so its scores grow like d_k, and"
        " 1/√d_k is not enough. V2's recipe works without, as long as inputs are three numbers "
        "and of length about 1.",
        weighty=True,
    )
    def a_width_above_a_thousand(self) -> str:
        wide, times = self.wide, self.times
        lengths = np.linalg.norm(INPUTS, axis=1)
        return (
            f"Entropy / log n at d_k = 2048: V1 {wide['V1', '1/√d_k']:.3f} with 1/√d_k, "
            f"{wide['V1', '1/d_k']:.3f} with 1/d_k; V2 {wide['V2', '1']:.3f} with a scale of 1, "
            f"and {times[3]:.3f} and {times[10]:.3f} if its inputs, whose lengths are from "
            f"{lengths.min():.2f} to {lengths.max():.2f}, are 3 and 10 times as long."
        )
