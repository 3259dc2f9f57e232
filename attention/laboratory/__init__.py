"""The laboratory: what else can be measured about √d_k?

Chapter 16 shows that the scale decides how many queries get a gradient. Here are more questions.
Each has a chapter, functions that measure one setting and return plain numbers, and an answer.

    chapter 16.2, chain: `factors`, `at_each_tensor`, `spectrum`
        Which factor of ∂L/∂q = Kᵀ · scale · J V g makes it short? J if a < ½, scale and K together
        if a > ½. Only at ½ does neither depend on d_k.
    chapter 16.3, freezing: `freezing_line`, `collapse`, `lookup`
        What does the number n of keys change? Without the scale softmax freezes near d_k = 2 ln n,
        in a wide crossover. With it, weights thin out as n grows.
    chapter 16.4, sharpness: `head_sharpness`, `largest_eigenvalue`, `largest_of_hessian`
        How curved is the loss where a training begins? The largest eigenvalue of the Hessian with
        respect to W_q and W_k goes nearly like d_k^(1-2a) for ½ and 1. Without a scale the power
        falls with the number of queries in the batch.
    chapter 16.5, basin: `training`, `outcomes`, `first_step`, `Adafactor`
        Which rates work? At one rate for all weights the first step moves a score the same at every
        width with ½ for SGD and with 1 for Adam. But scale and rate are nearly one number, and T5's
        initial values are 1/√d_k with relative steps, if W_q is not tiny.
    chapter 16.6, trained: `trained_heads`, `Look`
        What does a trained model lose with its scale? No answers of a look-up (and most of a
        calculation, as the demo `pretrained` shows). At d_k = 64 two thirds of its queries get next
        to nothing then from a random g, and a second task needs more steps at each of four rates.
    chapter 16.7, neighbours: `WAYS`, `neighbour`
        What else keeps scores in bounds? A scale, or small initial weights, do so at the start.
        QK-norm and additive attention do so however large the weights become.
    chapter 16.8, over_training: `heads_over_training`, `race`
        When do gradients fall without the scale, and is 1 a good spread of scores? In a small GPT
        the mean of a head that has found its key falls, to nearly nothing or to .6 to .85, by the
        end of a training. And the GPT learns soonest from a spread of ½ to 2, not the hill's top.

A tool, `figures`, draws what chapters 16.5 and 16.6 have found. `minigrad.runs.sweeps` measures
many settings (`sweep`), also on many computers (`workers`).

A measurement takes d_k and the exponent *a* of the scale d_k^-a (½ is the paper's, 0 no scale, 1 is
1/d_k; a function of d_k is the scale itself), sizes, and `rng`. `summary` of chapter 16 turns the
results of several generators into means and spreads.
"""

# ruff: noqa: RUF022 (the order is the lesson's, not the alphabet's)
from attention.laboratory.basin import Adafactor, first_step, outcomes, training
from attention.laboratory.chain import at_each_tensor, factors, spectrum
from attention.laboratory.freezing import collapse, freezing_line, lookup
from attention.laboratory.neighbours import WAYS, neighbour
from attention.laboratory.over_training import heads_over_training, race
from attention.laboratory.sharpness import head_sharpness, largest_eigenvalue, largest_of_hessian
from attention.laboratory.trained import Look, trained_heads

__all__ = [
    "at_each_tensor",
    "factors",
    "spectrum",
    "collapse",
    "freezing_line",
    "lookup",
    "head_sharpness",
    "largest_eigenvalue",
    "largest_of_hessian",
    "training",
    "outcomes",
    "first_step",
    "Adafactor",
    "Look",
    "trained_heads",
    "WAYS",
    "neighbour",
    "heads_over_training",
    "race",
]
