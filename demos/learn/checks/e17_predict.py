"""Exercise 17 · The check: measure, and answer each prediction with what was found."""

import functools
import numbers

import numpy as np

from attention.scaling import heads, saturation, ties
from demos.learn._telling import Unsolved, given

SECONDS = 60.0
HINTS = (
    "A score is a sum of d_k products, each of variance 1. When softmax is given scores that far "
    "apart, nearly all weight is on one key: what does a typical query get then through J? And "
    "what are the weights, and J, when 1/d_k has made all scores small? With two keys, x₁ - x₂ "
    "is Gaussian with variance 2. What is the density of its absolute value at 0?",
    "Without a scale there are two kinds of queries. In most of them one weight is nearly 1. In a "
    "few the two largest scores are nearly equal: J is not small there, and the columns of Kᵀ, "
    "which nothing shrinks, have length √d_k. Which of the two decides the median, and which the "
    "mean? With two keys only those queries count whose scores are a few units apart. There the "
    "density of u is ties/√d_k.",
    "With 1/d_k all weights are nearly equal, and so J is the same at every width. It is a little "
    "smaller than with 1/√d_k, and scale · Kᵀ is 8 times smaller at d_k = 64: the median is some "
    "11 times smaller. Without a scale the typical query is decided at d_k = 1024, and its "
    "gradient is some 30 times smaller than with 1/√d_k. The undecided queries become rarer as "
    "their gradients become longer, so the mean rises a little at most. With two keys, ties is "
    "twice the density of a Gaussian with variance 2 at 0: 2/√(4π) = 1/√π. The mean is the area ½ "
    "times ties/√d_k, times √2 √d_k, times 2/√π: √(2/π) ties, whatever d_k is.",
)
REPEATS = 4
WORDS = ("rises", "stays", "falls")
CHANGES = {  # name: what is measured, the exponent of the scale, words
    "mean": ("gradient_mean", 0.0, "the mean of ‖∂L/∂q‖ without a scale"),
    "median": ("gradient_median", 0.0, "the median of ‖∂L/∂q‖ without a scale"),
    "dead": ("dead_share", 0.0, "the share of queries with ‖∂L/∂q‖ < 0.001 without a scale"),
    "small_median": ("gradient_median", 1.0, "the median of ‖∂L/∂q‖ with the scale 1/d_k"),
}
RATIOS = {  # name: what is measured, its word, d_k, and the exponent of the scale
    "small_ratio_64": ("gradient_median", "median", 64, 1.0),
    "median_ratio": ("gradient_median", "median", 1024, 0.0),
    "mean_ratio": ("gradient_mean", "mean", 1024, 0.0),
}
WHY = (
    "Before you change a line, say why it came out so: which queries decide it, and which factor "
    "of ∂L/∂q = scale · Kᵀ J ∂L/∂p has changed for them?"
)


@functools.cache
def measured():
    """Return a function of d_k, a and a name: a measurement of `saturation`, mean over repeats."""
    found = {}
    for d_k in (64, 1024):
        for a in (0.0, 0.5, 1.0):
            rngs = [np.random.default_rng([17, d_k, i]) for i in range(REPEATS)]
            found[d_k, a] = [saturation(d_k, a, rng=rng) for rng in rngs]
    return lambda d_k, a, name: float(np.mean([getattr(each, name) for each in found[d_k, a]]))


@functools.cache
def of_two_keys():
    """Return the mean of ‖∂L/∂q‖ over queries that look at two keys at d_k = 256, without scale."""
    rng = np.random.default_rng(17)
    *_, norms = heads(256, 0.0, keys=2, queries=2**15, per_key_set=512, rng=rng)
    return float(norms.mean())


def check(answer):
    """Compare each prediction with the measurement, and tell those that differ."""
    predicted = {name: given(answer, name) for name in (*CHANGES, *RATIOS, "ties", "plateau")}
    unreadable = []
    for name, value in predicted.items():
        number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if name in CHANGES and value not in WORDS:
            unreadable.append(f"{name} is {value!r}: write 'rises', 'stays' or 'falls'")
        if name not in CHANGES and not (number and value > 0):
            unreadable.append(f"{name} is {value!r}: write a number above 0")
    if unreadable:
        raise Unsolved("\n".join(unreadable), "value")
    seen = measured()
    facts = {}  # name: is the prediction right, and what was measured
    for name, (what, a, words) in CHANGES.items():
        before, after = (seen(d_k, a, what) for d_k in (64, 1024))
        right = change(before, after)
        facts[name] = (
            predicted[name] in right,
            f"{words} is {before:.2g} at d_k = 64 and {after:.2g} at d_k = 1024, so it "
            + " by less than a factor 2, or ".join(right),
        )
    for name, (what, word, d_k, a) in RATIOS.items():
        other, scaled = seen(d_k, a, what), seen(d_k, 0.5, what)
        facts[name] = (
            close(predicted[name], other / scaled, 3),
            f"at d_k = {d_k} the {word} of ‖∂L/∂q‖ is {other:.2g} "
            f"{'with 1/d_k' if a else 'without a scale'} and {scaled:.2g} with 1/√d_k: "
            f"{other / scaled:.2g} times as large",
        )
    facts["ties"] = (
        close(predicted["ties"], ties(2), 1.1),
        f"`ties(2)` of the chapter is {ties(2):.3f}",
    )
    facts["plateau"] = (
        close(predicted["plateau"], of_two_keys(), 1.1),
        f"with two keys at d_k = 256 the mean of ‖∂L/∂q‖ is {of_two_keys():.3f}",
    )
    wrong = [f"{x} = {predicted[x]!r}: {words}" for x, (right, words) in facts.items() if not right]
    if wrong:
        count = f"{len(facts) - len(wrong)} of {len(facts)} predictions are as measured."
        raise Unsolved("\n".join([count, *wrong, WHY]), "value")
    print("Measured:", *(words for _, words in facts.values()), sep="\n")


def change(before, after):
    """Return the right words for a change by this factor: two of them between 1.2 and 2."""
    factor = max(after / before, before / after)
    direction = "rises" if after > before else "falls"
    return [direction] if factor >= 2 else [direction, "stays"] if factor > 1.2 else ["stays"]


def close(number, found, factor):
    """Return True if a predicted number is within a factor of the measured one."""
    return found / factor < number < found * factor
