"""15.3 · Models: what today's models changed.

How far is GPT-2, or Llama, from the paper? A few parts. GPT dropped the encoder and learned its
positions; GPT-2 put the norms first. Llama has RMSNorm instead of LayerNorm, a gated silu instead
of gelu, rotary positions instead of learned ones, and no biases; in its larger second version heads
also share keys and values. The functions `gpt2` and `llama` build these models from the same
blocks, so their source shows the differences.

Legend: B batch, T positions, V tokens in the vocabulary, d_model features.

    >>> rng = np.random.default_rng(0)
    >>> small = {"d_model": 8, "num_heads": 4, "num_blocks": 2, "rng": rng}
    >>> gpt2(11, 5, **small)([[1, 2, 3]]).shape, llama(11, **small)([[1, 2, 3]]).shape
    ((1, 3, 11), (1, 3, 11))
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from attention.blocks import Array, Block, GatedFeedForward, block_weights, refuse_dropout
from attention.cache import KVCache
from attention.masks import causal_mask, check_real, left_padded, real_positions, without_padding
from attention.multi_head import MultiHeadAttention
from attention.positions import LearnedPositions, SinusoidalPositions, positions_from, rotary
from attention.scaled_dot_product import Mask
from attention.transformer import Attend, Stack
from minigrad import Tensor, gelu_tanh
from minigrad.nn import Dropout, Embedding, Linear, Module, RMSNorm


class GPT(Module):
    """A decoder alone: the next token from those before it.   (B, T) → (B, T, V)

    tokens      an `Embedding`; blocks is a list of `Block`, and norm follows the last of them
    positions   added to the tokens' vectors, or None if the blocks turn queries and keys by their
                positions (rotary)
    head        a `Linear` to scores of tokens; None takes the embedding again, transposed
    max_length  how many positions the model was trained with; it refuses more. (Rotary positions
                never end, and beyond those of the training the scores get worse without an error.)
    dropout     the probability with which a number of the tokens' vectors is dropped while
                training; it needs rng
    """

    def __init__(
        self,
        tokens: Embedding,
        blocks: list[Block],
        norm: Module,
        *,
        positions: LearnedPositions | SinusoidalPositions | None = None,
        head: Linear | None = None,
        max_length: int | None = None,
        dropout: float = 0.0,
        rng: Any = None,
    ) -> None:
        self.tokens = tokens
        self.positions = positions
        self.blocks = blocks
        self.norm = norm
        self.head = head
        self.max_length = max_length
        self.dropout = Dropout(dropout, rng=rng) if dropout else None

    def __call__(
        self, tokens: Any, *, real: Any = None, caches: list[KVCache] | None = None
    ) -> Tensor:
        """Return the next token's scores at each position. With caches, pass new tokens only.

        tokens may also be a list of texts of unequal length. They are padded on the left: the last
        len(tokens[b]) scores of row b are those of text b. real, boolean (B, T), says where your
        own padding is: False at padding, which is before or after a text (ValueError if within).
        Each text is scored as if it were alone, its positions counted from its first token. (The
        scores at padding mean nothing: leave them out of a loss by `ignore_index`, chapter 3.10.)
        With caches, `real` is of the new tokens, and the caches know where the earlier ones are.
        """
        if real is None:
            tokens, real = left_padded(tokens)
        start: Any = caches[0].length if caches else 0
        T = np.shape(tokens)[-1]
        S = start + T
        real = real_so_far(real, tokens, caches[0] if caches else KVCache())  # (B, S)
        mask = causal_mask(T, S) if T > 1 else None  # the last position sees all
        options = {"mask": without_padding(mask, real)}
        if real is not None:
            start = real_positions(real)[:, start:]  # (B, T)
            options["positions"] = start
        x = self.embed(tokens, start)  # (B, T, d_model)
        each = [None] * len(self.blocks) if caches is None else caches
        for block, cache in zip(self.blocks, each, strict=True):
            x = block(x, cache=cache, **options)  # (B, T, d_model)
        for cache in caches or []:
            cache.real = real
        x = self.norm(x)
        return x @ self.tokens.weight.mT if self.head is None else self.head(x)  # (B, T, V)

    def embed(self, tokens: Any, start: Any = 0) -> Tensor:
        """Return tokens as vectors with positions.   (B, T) → (B, T, d_model)

        Positions run from `start`, or are `start`, if that is an array of integers (B, T).
        """
        x = self.tokens(tokens)  # (B, T, d_model)
        reached = positions_from(start, x.shape[-2]).max(initial=-1) + 1
        if self.max_length is not None and reached > self.max_length:
            raise ValueError(
                f"{reached} positions were asked for, and this model was trained with "
                f"max_length={self.max_length}: give it the last {self.max_length} tokens and no "
                "cache of earlier ones, or set its max_length to None"
            )
        if self.positions is not None:
            x = self.positions(x, start)  # (B, T, d_model)
        return x if self.dropout is None else self.dropout(x)

    def maps(self, tokens: Any) -> list[Array]:
        """Return every head's attention weights, without a record: (B, H, T, T) for each block.

        `plot_heads` (`attention/maps.py`) draws them. They are softmax weights: with an `attend`
        that computes others, the model does not use what is shown.
        """
        refuse_dropout(self)
        x = self.embed(tokens)  # (B, T, d_model)
        return block_weights(self.blocks, x, mask=causal_mask(x.shape[-2]))

    def caches(self) -> list[KVCache]:
        """Return an empty cache for each block."""
        return [KVCache() for _ in self.blocks]


def llama(
    vocab_size: int,
    *,
    d_model: int = 512,
    num_heads: int = 8,
    num_kv_heads: int = 2,
    num_blocks: int = 8,
    d_ff: int | None = None,
    d_k: int | None = None,
    tied: bool = False,
    eps: float = 1e-5,
    base: float = 10_000.0,
    pairs: str = "neighbours",
    max_length: int | None = None,
    attend: Attend | None = None,
    recompute: bool = False,
    rng: np.random.Generator,
) -> GPT:
    """Build Llama 2 (Touvron et al. 2023): rotary, RMSNorm, SwiGLU, shared keys, no biases.

    The first Llama, and the smaller models of the second, have num_kv_heads = num_heads. d_ff is
    8/3 d_model, which Llama rounds up to a multiple of 256; d_k is d_model / num_heads. A tied
    model scores tokens with the matrix of its embedding. Weights that somebody else has trained
    need the eps, base and pairs (of `rotary`) of their training: no shape depends on these, so a
    wrong one raises no error.
    """
    d_ff = 8 * d_model // 3 if d_ff is None else d_ff
    widths: dict[str, Any] = {"num_kv_heads": num_kv_heads, "d_k": d_k, "d_v": d_k}
    turn = partial(rotary, base=base, pairs=pairs)
    norm = partial(RMSNorm, eps=eps)
    blocks = [
        Block(
            MultiHeadAttention(d_model, num_heads, rotate=turn, attend=attend, rng=rng, **widths),
            GatedFeedForward(d_model, d_ff, rng=rng),
            norm_first=True,
            norm=norm,
            recompute=recompute,
        )
        for _ in range(num_blocks)
    ]
    return GPT(
        Embedding(vocab_size, d_model, std=0.02, rng=rng),
        blocks,
        norm(d_model),
        head=None if tied else Linear(d_model, vocab_size, bias=False, rng=rng),
        max_length=max_length,
    )


# ---------------------------------------------------- A first reading may stop here.
# What follows: GPT-2 in the same way, with the initial values that it is known for, and padding.


def gpt2(
    vocab_size: int,
    max_length: int,
    *,
    d_model: int = 768,
    num_heads: int = 12,
    num_blocks: int = 12,
    dropout: float = 0.0,
    rng: np.random.Generator,
    **options: Any,
) -> GPT:
    """Build GPT-2 (Radford et al. 2019): learned positions, pre-LN, gelu, biases; one token matrix.

    Its initial weights are Gaussian with standard deviation 0.02. The 2 · num_blocks matrices whose
    results are added to x have a standard deviation smaller by √(2 · num_blocks), so that their sum
    does not grow with the number of blocks. Other options are those of `Stack` (chapter 15.2).
    """
    options.setdefault("activation", gelu_tanh)
    if not options.setdefault("norm_first", True):
        raise ValueError("gpt2 is pre-LN: build blocks with norm_first=False by Stack or Encoder")
    body = Stack(num_blocks, d_model, num_heads, 4 * d_model, dropout=dropout, rng=rng, **options)
    for name, parameter in body.named_parameters():
        if parameter.ndim == 2:
            writes = name.endswith(("w_o.weight", "w_2.weight"))
            std = 0.02 / math.sqrt(2 * num_blocks) if writes else 0.02
            parameter.data = std * rng.standard_normal(parameter.shape)
    return GPT(
        Embedding(vocab_size, d_model, std=0.02, rng=rng),
        body.blocks,
        body.final_norm,
        positions=LearnedPositions(max_length, d_model, rng=rng),
        dropout=dropout,
        rng=rng,
    )


def real_so_far(real: Any, tokens: Any, cache: KVCache) -> Mask | None:
    """Return which of the cache's positions and the new ones are tokens, (B, S); None for all.

    ValueError if `real` is not boolean and of the tokens' shape, or if padding is within a text.
    """
    if real is None and cache.real is None:
        return None
    real = np.ones(np.shape(tokens), bool) if real is None else check_real(real, tokens)  # (B, T)
    earlier = np.ones((len(real), cache.length), bool) if cache.real is None else cache.real
    real = np.concatenate([earlier, real], axis=-1)  # (B, S)
    edges = np.diff(real, axis=-1, prepend=False, append=False).sum(axis=-1)  # (B,)
    if (edges > 2).any():
        raise ValueError(
            "a causal model takes padding before a text and after it, and not between its tokens: "
            f"in row {edges.argmax()} of real padding has tokens on both sides"
        )
    return None if real.all() else real
