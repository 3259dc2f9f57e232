"""15.1 · Blocks: what a Transformer is stacked from.

What is around attention in a Transformer? Attention moves information between positions; a
feed-forward network works within each position and moves nothing. A block is one after the other,
each with a sum and a normalisation (LN, layer norm) around it. In its simplest form a block is the
two lines below that begin with `x = x`:

    >>> rng = np.random.default_rng(0)
    >>> norm_1, norm_2 = LayerNorm(6), LayerNorm(6)
    >>> attend, feed = MultiHeadAttention(6, 2, rng=rng), FeedForward(6, 24, rng=rng)
    >>> given = x = Tensor(rng.standard_normal((2, 5, 6)))
    >>> x = x + attend(norm_1(x))
    >>> x = x + feed(norm_2(x))
    >>> block = Block(attend, feed, norm_first=True)
    >>> x.shape, np.array_equal(block(given).data, x.data)  # `Block` gives the same numbers
    ((2, 5, 6), True)

The **residual** x + f(x) has the derivative 1 + f′: whatever f does, one summand of the gradient
passes unchanged (chapter 3.1, `add`). The **normalisation** gives the next layer inputs of the same
size at any depth. The place of the norm decides whether a gradient can pass unchanged from the last
block to the first:

    post-LN   norm(x + f(x))      the paper's. Each block's norm also rescales the gradient on its
                                  way back. The gradient of the last block's weights does not
                                  shrink as blocks are added, so the first large steps can
                                  diverge, which is why the learning rate is warmed up
    pre-LN    x + f(norm(x))      GPT-2's. From the last block to the first there is a path without
                                  a norm. With four times as many blocks the gradient of the last
                                  block's weights halves: the sum x has grown, and one more norm,
                                  after the last block, divides by its size

(Xiong et al. 2020 derive both.) The class `Block` is post-LN unless norm_first=True. It also takes
masks and dropout, and can look at an encoder's output (cross-attention).

Legend: B batch, T positions, S positions of the memory, d_model features, d_ff inner features.

Exercise 24 of `python -m demos learn`: a block of your own rules learns to write backwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from attention.cache import KVCache
from attention.multi_head import MultiHeadAttention
from minigrad import Tensor, no_grad, recompute, relu, silu
from minigrad.nn import Dropout, LayerNorm, Linear, Module

Array = np.ndarray[Any, Any]
Activation = Callable[[Tensor], Tensor]


class FeedForward(Module):
    """activation(x W₁ + b₁) W₂ + b₂ at each position.   (…, d_model) → (…, d_model)

    Vaswani et al. 2017, section 3.3.

    Each column of W₁ tests a position for one feature, the activation keeps the tests that succeed,
    and the rows of W₂ are what each of them adds. The paper takes relu and d_ff = 4 d_model; GPT-2
    takes gelu.
    """

    def __init__(
        self, d_model: int, d_ff: int, *, activation: Activation = relu, rng: np.random.Generator
    ) -> None:
        self.activation = activation
        self.w_1 = Linear(d_model, d_ff, rng=rng)
        self.w_2 = Linear(d_ff, d_model, rng=rng)

    def __call__(self, x: Tensor) -> Tensor:
        """Apply the network to each position by itself."""
        return self.w_2(self.activation(self.w_1(x)))


class GatedFeedForward(Module):
    """(silu(x W₁) ⊙ x W₃) W₂: SwiGLU.   (…, d_model) → (…, d_model)

    One projection says how far the gate opens, another what goes through (Shazeer 2020). There are
    three matrices instead of two, so d_ff = 8/3 d_model gives as many parameters as d_ff =
    4 d_model gives without a gate. (W₁ and W₃ are Llama's names; Shazeer's are W and V.) `llama`
    (chapter 15.3) is built with it.
    """

    def __init__(self, d_model: int, d_ff: int, *, rng: np.random.Generator) -> None:
        self.w_1 = Linear(d_model, d_ff, bias=False, rng=rng)
        self.w_3 = Linear(d_model, d_ff, bias=False, rng=rng)
        self.w_2 = Linear(d_ff, d_model, bias=False, rng=rng)

    def __call__(self, x: Tensor) -> Tensor:
        """Apply the network to each position by itself."""
        return self.w_2(silu(self.w_1(x)) * self.w_3(x))


class Block(Module):
    """Attention, then perhaps cross-attention, then a feed-forward network, each with a residual.

    attention, cross  `MultiHeadAttention` layers; the queries of `cross` look at the encoder's
                      output
    feed_forward      a layer (…, d_model) → (…, d_model)
    norm_first        pre-LN instead of the paper's post-LN
    norm              makes a normalisation of d_model features: `LayerNorm`, `RMSNorm`
    dropout           the probability with which a number that a sublayer adds to x is dropped while
                      training (section 5.4 of the paper); it needs rng
    recompute         whether the block keeps its input alone for the backward pass, and computes
                      the rest again there (chapter 2.4). It may be set later
    """

    def __init__(
        self,
        attention: MultiHeadAttention,
        feed_forward: Module,
        *,
        cross: MultiHeadAttention | None = None,
        norm_first: bool = False,
        norm: Callable[[int], Module] = LayerNorm,
        dropout: float = 0.0,
        recompute: bool = False,
        rng: Any = None,
    ) -> None:
        if not isinstance(attention, Module):
            raise TypeError(
                "Block takes layers: Block(MultiHeadAttention(32, 2, rng=rng), "
                f"FeedForward(32, 128, rng=rng)); got {attention!r:.40}"
            )
        d_model = attention.w_q.weight.shape[0]
        self.attention = attention
        self.cross = cross
        self.feed_forward = feed_forward
        self.norm_attention = norm(d_model)
        self.norm_cross = norm(d_model) if cross is not None else None
        self.norm_feed_forward = norm(d_model)
        self.norm_first = norm_first
        self.recompute = recompute
        self.dropout = Dropout(dropout, rng=rng) if dropout else None

    def __call__(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        *,
        mask: Any = None,
        memory_mask: Any = None,
        score_bias: Any = None,
        cache: KVCache | None = None,
        positions: Any = None,
    ) -> Tensor:
        """(…, T, d_model) and, for cross-attention, memory (…, S, d_model) → (…, T, d_model)

        memory_mask is for cross-attention. The other options are for self-attention, and are those
        of `MultiHeadAttention`.
        """
        if (memory is None) != (self.cross is None):
            raise TypeError("a block with cross-attention needs a memory, and others take none")
        options = {"mask": mask, "score_bias": score_bias, "cache": cache}
        if positions is not None:  # (attention of another kind need not know them)
            options["positions"] = positions

        def applied(x: Tensor, memory: Tensor | None) -> Tensor:
            x = self._residual(x, self.norm_attention, lambda x: self.attention(x, **options))
            if self.cross is not None:
                cross = self.cross
                x = self._residual(x, self.norm_cross, lambda x: cross(x, memory, mask=memory_mask))
            return self._residual(x, self.norm_feed_forward, self.feed_forward)

        if self.recompute and cache is None:
            return recompute(drawing_the_same(applied, self), x, memory)
        return applied(x, memory)

    def _residual(self, x: Tensor, norm: Any, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Return x + f(norm(x)) for a sublayer f, or norm(x + f(x)); dropout is before the sum."""
        added = sublayer(norm(x) if self.norm_first else x)
        if self.dropout is not None:
            added = self.dropout(added)
        return x + added if self.norm_first else norm(x + added)


# ---------------------------------------------------- A first reading may stop here.
# What follows: dropout in a block that is computed again, the weights of a stack of blocks, and
# refusals.


def drawing_the_same(f: Callable[..., Tensor], module: Module) -> Callable[..., Tensor]:
    """Return f with the module's Dropouts drawing in each later call what they drew in the first.

    The first call keeps the state of each of their generators. A later one sets these states, and
    puts the generators back afterwards, so that they go on from where they were.
    """
    dropouts = [m for m in module.modules() if isinstance(m, Dropout) and m.p and m.training]
    sources = [*{m.rng.bit_generator for m in dropouts if m.rng}]  # one that is shared is here once
    first: list[Any] = []  # the states before the first call

    def run(*xs: Any) -> Tensor:
        now = [source.state for source in sources]
        if not first:
            first.extend(now)
            return f(*xs)
        set_states(first)
        try:
            return f(*xs)
        finally:
            set_states(now)

    def set_states(states: list[Any]) -> None:
        for source, state in zip(sources, states, strict=True):
            source.state = state

    return run


def block_weights(blocks: Sequence[Block], x: Tensor, *, mask: Any = None) -> list[Array]:
    """Return the attention weights of each block for x, arrays (B, H, T, T), without a record.

    Encoders and models have this as `maps` (chapters 15.2 and 15.3).
    """
    refuse_dropout(*blocks)
    found = []
    with no_grad():
        for block in blocks:
            seen = block.norm_attention(x) if block.norm_first else x
            found.append(block.attention.weights(seen, mask=mask).data)
            x = block(x, mask=mask)
    return found


def refuse_dropout(*models: Module) -> None:
    """Refuse a model in training mode: with dropout its text, or its maps, would be random."""
    every = (module for model in models for module in model.modules())
    if any(isinstance(m, Dropout) and m.p and m.training for m in every):
        raise ValueError(
            "the model is in training mode and drops at random: call model.eval() first"
        )
