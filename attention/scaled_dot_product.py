"""11 · Attention: a look-up made soft.

In chapter 0: `return softmax(multiply(matmul(q, transpose(k)), Value(scale)))`.

How can one vector get information from others, without knowing which of them has it? The vectors
form a sequence, for example one for each word, and the place of each is a position. Every position
has a key k, which describes what can be found there, and a value v, which is what is found there. A
position that looks for something forms a query q. (Each of the three is the vector times a learned
matrix of its own: chapter 13.) The product q·k is large if the key fits the query. Divided by √d_k,
where d_k is the number of entries of q and of k, it is called the **score**. Softmax turns the
scores into weights that sum to 1, and the result is the average of the values with these weights.
With one query, key or value in each row of Q, K and V,

    Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V           (Vaswani et al. 2017, equation 1)

This is a dictionary look-up made soft, so that it has a derivative, which tells how to change the
query, the keys and the values so that the loss falls.

Why divide by √d_k? Let q and k be independent of each other, with d_k independent entries of mean 0
and variance 1 (footnote 4 of the paper's section 3.2.1). A product of two such entries has mean 0
and variance E[q²] E[k²] = 1. The variances of independent terms add, so q·k has variance d_k, and
q·k/√d_k has variance 1 for every d_k. Undivided, scores at a large d_k are far apart, softmax of
them is nearly one-hot, and then its VJP returns nearly 0 (chapter 3.6). (That is not all: from
variance 1, without the scale, query gradients are unequal before a head has found its key, and
after that most queries get next to none. Chapter 16.)

Legend: T queries, S keys, d_k features of a query or key, d_v features of a value. All leading
axes (…) are batch axes and broadcast.

One query and two keys, with numbers that need no computer. √d_k is 2, and ln 3 gives the weights ¾
and ¼:

    >>> q = Tensor([[2.0, 0.0, 0.0, 0.0]], requires_grad=True)
    >>> k = Tensor([[np.log(3.0), 0.0, 0.0, 0.0], [0.0, 4.0, 0.0, 0.0]], requires_grad=True)
    >>> v = Tensor([[4.0, 0.0], [0.0, 4.0]], requires_grad=True)
    >>> attention_weights(q, k).data            # the scores are ln 3 and 0: 3 to 1
    array([[0.75, 0.25]])
    >>> o = attention(q, k, v)
    >>> o.data                                  # ¾ (4, 0) + ¼ (0, 4)
    array([[3., 1.]])

**The way back.** Let O be the result, and G = ∂L/∂O the gradient that arrives there. Forward there
were three steps: the scores Z = scale · Q Kᵀ with the scale 1/√d_k, the weights P = softmax(Z), and
the result O = P V. Backward there are the same three steps, the last one first.

O = P V is a matrix product. Chapter 3.5 says what a product passes back to its two factors:

    ∂L/∂V = Pᵀ G
    ∂L/∂P = G Vᵀ

P = softmax(Z) is taken in each row. Chapter 3.6 says what each score gets: its weight × (the
gradient of its weight - the average of these gradients). The gradients of a row's weights are the
row of ∂L/∂P, and their average under the weights is the sum of the row of P ⊙ ∂L/∂P:

    ∂L/∂Z = P ⊙ (∂L/∂P - rowsum(P ⊙ ∂L/∂P))

Z = scale · Q Kᵀ is a product again, of Q and Kᵀ. For the left factor chapter 3.5 gives
(∂L/∂Z) (Kᵀ)ᵀ = (∂L/∂Z) K. For the right one it gives Qᵀ (∂L/∂Z), and the transpose of this is the
gradient of K. Both are multiplied by the scale, as Z was:

    ∂L/∂Q = scale · (∂L/∂Z) K
    ∂L/∂K = scale · (∂L/∂Z)ᵀ Q

These five lines are the way back through attention. `attention_backward` has them in code.

What do they say? Look at one query q, with the weights pⱼ, the result o = Σⱼ pⱼ vⱼ and g = ∂L/∂o.
The gradient of the weight pⱼ is the number g·vⱼ: it says how fast the loss *rises* when more of
value j is taken. The average of these numbers under the weights is Σⱼ pⱼ (g·vⱼ) = g·o. So each
score gets

    ∂L/∂zⱼ = pⱼ (g·vⱼ - g·o)

This is positive if value j raises the loss more than the average does, g·vⱼ > g·o, and negative if
less. Over all keys these numbers sum to 0, since raising all scores together changes no weight.

The gradient of the query adds up the keys with these factors, ∂L/∂q = scale · Σⱼ ∂L/∂zⱼ kⱼ. A step
of descent goes against the gradient. It subtracts from q a positive multiple of each key whose
value raises the loss more than the average, and it adds a positive multiple of each of the others.
In the step -rate · ∂L/∂q the loss falls, by about rate · ‖∂L/∂q‖² if the rate is small. (Whether
the score of a key falls is another question, which is answered below.)

The keys get steps too. As ∂L/∂kⱼ = scale · ∂L/∂zⱼ q, a step subtracts a multiple of q from key j if
its value raises the loss more than the average, and adds a multiple of q if less. And as
∂L/∂vⱼ = pⱼ g, a step moves each value against g, and moves it further if its weight is larger. If
several queries look at a key, the gradients of the key and of its value are the sums over these
queries.

In the example let g = (1, -1): the loss rises with the first feature of o, and falls with the
second.

    g·vⱼ      4 and -4,  their average g·o = 3 - 1 = 2
    ∂L/∂zⱼ    ¾ (4 - 2) = 1½  and  ¼ (-4 - 2) = -1½
    ∂L/∂q     ½ (1½ k₁ - 1½ k₂) = (¾ ln 3, -3, 0, 0)
    ∂L/∂kⱼ    ½ · 1½ q = (1½, 0, 0, 0)  and  (-1½, 0, 0, 0)
    ∂L/∂vⱼ    ¾ g = (¾, -¾)  and  ¼ g = (¼, -¼)

The engine finds the same gradients by itself, from the rules of the single operations. Below, the
numbers of the engine are on the left, and those of `attention_backward` on the right:

    >>> from minigrad import gradients
    >>> g = np.array([[1.0, -1.0]])
    >>> engine = gradients(o, [q, k, v], g)
    >>> by_hand = attention_backward(q.data, k.data, v.data, g, scale=0.5)
    >>> for name, found, hand in zip("qkv", engine, by_hand):
    ...     for row, same in zip(found.round(3), hand.round(3)):
    ...         print(f"∂L/∂{name} ", row, same)
    ∂L/∂q  [ 0.824 -3.     0.     0.   ] [ 0.824 -3.     0.     0.   ]
    ∂L/∂k  [1.5 0.  0.  0. ] [1.5 0.  0.  0. ]
    ∂L/∂k  [-1.5  0.   0.   0. ] [-1.5  0.   0.   0. ]
    ∂L/∂v  [ 0.75 -0.75] [ 0.75 -0.75]
    ∂L/∂v  [ 0.25 -0.25] [ 0.25 -0.25]
    >>> q.data = q.data - 0.1 * engine[0]       # a step of descent
    >>> attention_weights(q, k).data.round(2)
    array([[0.61, 0.39]])

After the step q looks less at key 1, whose value raises the loss, and more at key 2. These two keys
are orthogonal, so the multiple of a key that is added to q changes the score of this key only.

**Does the score of a key fall if its value raises the loss more than the average?** If the key
itself makes the step, it does, for a single query: q·kⱼ changes by -rate · scale · ∂L/∂zⱼ ‖q‖². If
q makes the step, it need not. Keys share directions, and a multiple of one key that is added to q
also changes the scores of the others. Take q = (1, 0), the keys (1, 0) and (3, 0), and v, g and
scale = ½ as above:

    >>> keys = np.array([[1.0, 0.0], [3.0, 0.0]])
    >>> attention_backward(np.array([[1.0, 0.0]]), keys, v.data, g, scale=0.5)[0].round(2)
    array([[-1.57,  0.  ]])

Value 1 raises the loss more than value 2, and nevertheless the step, which is along (1.57, 0), goes
*toward* key 1. It subtracts a multiple of key 1, and adds the same multiple of key 2, which is
three times as long. So q·k₁ rises, and q·k₂ rises more. How often is that so? Draw q, keys, values
and g at random, and look at the keys whose values raise the loss more than the average. With
the scale 1/√d_k a small step of q raises the scores of 6 % of them with 2 keys at d_k = 4. At
d_k = 64 it is 34 % of them with 64 keys, and 45 % with 1,024.

A key that a query may not look at (chapter 11.1) gets the weight 0, and then the query sends no
gradient to the key or to its value. A query that may look at no key gets weights of 0 only: its
result is 0, and no gradient goes through it.

Exercises 16, 18 to 20 and 22 of `python -m demos learn`: the way back with two keys and a pencil,
softmax over the wrong axis, the equation above, a query without a key, and the way back in code.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad import Tensor, masked_softmax, norm, softmax, where

Mask = np.ndarray[Any, np.dtype[np.bool_]]
Scale = float | Tensor | Callable[[int], float | Tensor] | None


def attention_weights(
    q: Tensor, k: Tensor, *, mask: Any = None, score_bias: Any = None, scale: Scale = None
) -> Tensor:
    """Return how much each query looks at each key.   (…, T, d_k), (…, S, d_k) → (…, T, S)

    mask        boolean, True = may look, broadcast to (…, T, S); see chapter 11.1. A query that
                may look nowhere gets weights 0 instead of weights that sum to 1.
    score_bias  numbers added to the scaled scores, broadcast to (…, T, S), such as those of
                chapter 14 that say how near a key is; a Tensor if they are learned
    scale       what the scores are multiplied by: None for 1/√d_k, a number, a scalar Tensor (a
                learned temperature), or a function of d_k
    """
    scores = scale_factor(q, k, scale) * (q @ k.mT)  # (…, T, S)
    if score_bias is not None:
        scores = scores + check_score_bias(score_bias, scores.shape, scores.dtype)  # (…, T, S)
    return over_keys(scores, mask)


def over_keys(scores: Tensor, mask: Any) -> Tensor:
    """Apply softmax over the keys that each query may look at.   (…, T, S) → (…, T, S)

    A forbidden score counts as -∞, so its weight exp(-∞) is 0, and so is every gradient through it.
    A query that may look nowhere gets weights of 0 (`masked_softmax`, chapter 3.7, says how).
    """
    if mask is None:
        return softmax(scores)
    return masked_softmax(scores, mask=check_mask(mask, scores.shape))


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Any = None,
    score_bias: Any = None,
    scale: Scale = None,
    drop: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """softmax(Q Kᵀ / √d_k) V.   (…, T, d_k), (…, S, d_k), (…, S, d_v) → (…, T, d_v)

    T queries look at S keys, of d_k features each, and average S values, of d_v features.

    `mask`, `score_bias` and `scale` are as for `attention_weights`. `drop` is a function applied to
    the weights, such as a Dropout layer. The weights that remain no longer sum to 1 in each row.
    That is intended: on average over many calls they do, since Dropout divides them by the
    probability that a weight stays (chapter 6.4).

    Vaswani et al. 2017, section 3.2.1. A query that fits two keys equally gets the mean of their
    two values:

    >>> attention(Tensor([[0.0]]), Tensor([[1.0], [2.0]]), Tensor([[1.0], [5.0]]))
    Tensor([[3.]])
    """
    weights = attention_weights(q, k, mask=mask, score_bias=score_bias, scale=scale)  # (…, T, S)
    return (weights if drop is None else drop(weights)) @ v  # (…, T, d_v)


def attention_backward(
    Q: Any, K: Any, V: Any, G: Any, *, scale: float, may_look: Any = None
) -> tuple[Any, Any, Any]:
    """Return ∂L/∂Q, ∂L/∂K and ∂L/∂V of `attention`, from G = ∂L/∂O: the way back, by hand.

    Q (…, T, d_k), K (…, S, d_k), V (…, S, d_v) and G (…, T, d_v) are arrays with the same batch
    axes (…), and each gradient has its array's shape. may_look is what `attention` calls mask. (It
    has no score_bias and no drop.) The engine never calls this function.
    """
    Z = scale * Q @ K.mT  # (…, T, S)
    P = over_keys(Z, may_look)  # (…, T, S)
    dV = P.mT @ G  # (…, S, d_v)
    dP = G @ V.mT  # (…, T, S)
    dZ = P * (dP - (P * dP).sum(axis=-1, keepdims=True))  # (…, T, S)
    dQ = scale * dZ @ K  # (…, T, d_k)
    dK = scale * dZ.mT @ Q  # (…, S, d_k)
    return dQ, dK, dV


# ---------------------------------------------------- A first reading may stop here.
# What follows: the scale, and sentences for arguments that do not fit.


def unit_length(x: Tensor) -> Tensor:
    """Divide every row by its length; a row of zeros stays zero.   (…, T, d_k) → (…, T, d_k)"""
    length = norm(x, axis=-1, keepdims=True)
    return x / where(length == 0, 1, length)


def scale_factor(q: Tensor, k: Tensor, scale: Scale) -> float | Tensor:
    """Return the factor of the scores of q and k; ValueError if their shapes do not fit.

    (With 1/√d_k the variance of the scores is 1 over all queries and keys together. The scores of a
    single query spread over its keys like ‖q‖/√d_k: 1 give or take 35 % at d_k = 4, 9 % at 64.)
    """
    d_k = q.shape[-1]
    if min(q.ndim, k.ndim) < 2 or k.shape[-1] != d_k or (scale is None and not d_k):
        raise ValueError(
            "q (…, T, d_k) and k (…, S, d_k) have at least two axes and equally many features, "
            f"not 0: got {q.shape} and {k.shape}"
        )
    if scale is None:
        return 1 / math.sqrt(d_k)
    if callable(scale):
        return scale(d_k)
    return scale


def check_mask(mask: Any, scores_shape: tuple[int, ...]) -> Mask:
    """Return the mask as a boolean array; refuse one that is not boolean or does not fit."""
    array = np.asarray(mask)
    if array.dtype != np.bool_:
        raise TypeError(
            f"mask must be boolean, with True where a query may look: got dtype {array.dtype}; "
            "compare first, for instance mask == 1 or mask == 0, whichever marks keys to look at"
        )
    _check_shape("mask", array.shape, scores_shape)
    return array


def check_score_bias(score_bias: Any, scores_shape: tuple[int, ...], dtype: Any) -> Tensor:
    """Return the score_bias as a Tensor; refuse one that is not finite or does not fit."""
    values = score_bias if isinstance(score_bias, Tensor) else np.asarray(score_bias)
    if values.dtype.kind != "f" or not np.isfinite(values).all():
        raise ValueError(
            "score_bias holds finite numbers of a floating dtype: to forbid a key pass mask=, with "
            "True where a query may look"
        )
    _check_shape("score_bias", values.shape, scores_shape)
    return values if isinstance(values, Tensor) else Tensor(values.astype(dtype))


def _check_shape(name: str, shape: tuple[int, ...], scores_shape: tuple[int, ...]) -> None:
    """Raise ValueError if an array of this shape does not broadcast to the scores."""
    if len(shape) > len(scores_shape) or any(
        n not in (1, m) for n, m in zip(shape[::-1], scores_shape[::-1], strict=False)
    ):
        hint = ""
        if name == "mask" and shape == (scores_shape[0], scores_shape[-1]):
            hint = (
                ": of one (B, S), True at tokens and False at padding, make padding_mask(mask, S)"
            )
        raise ValueError(
            f"{name} of shape {shape} does not broadcast to the scores' {scores_shape}, which end "
            f"in (T queries, S keys){hint}"
        )


# Reference: no demo uses what follows.


def qk_norm(attend: Callable[..., Tensor] = attention) -> Callable[..., Tensor]:
    """Return `attend` with every query and key brought to length 1 before (Henry et al. 2020).

    A score is then the cosine between the two, at most 1 at any width. Scores cannot grow, and so
    softmax stays nearly uniform unless the scale is large. Pass a learned scale,
    `scale=Tensor(10.0, requires_grad=True)`, instead of 1/√d_k. A layer always passes all four
    options (chapter 13), and they go on to `attend`.

    >>> q, k, v = Tensor([[30.0, 0.0]]), Tensor([[5.0, 0.0], [0.0, 7.0]]), Tensor([[1.0], [5.0]])
    >>> qk_norm()(q, k, v, scale=np.log(3.0))                # cosines 1 and 0
    Tensor([[2.]])
    """

    def attend_unit(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
        return attend(unit_length(q), unit_length(k), v, **options)

    attend_unit.prepare = unit_length  # type: ignore[attr-defined]  # for a layer's `weights`
    return attend_unit
