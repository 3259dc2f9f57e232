"""15.3 · Models: what today's models changed.

How far is GPT-2, or Llama, from the paper? A few parts. GPT dropped the encoder and learned its
positions; GPT-2 put the norms first. BERT dropped the decoder instead, so that every token may look
to both sides. Llama has RMSNorm instead of LayerNorm, a gated silu instead of gelu, rotary
positions instead of learned ones, and no biases; in its larger second version heads also share keys
and values. The functions `gpt2`, `llama` and `bert` build these models from the same blocks, so
their source shows the differences.

Legend: B batch, T positions, S positions of an encoder's text, V tokens in the vocabulary, C
classes, d_model features.

    >>> rng = np.random.default_rng(0)
    >>> small = {"d_model": 8, "num_heads": 4, "num_blocks": 2, "rng": rng}
    >>> gpt2(11, 5, **small)([[1, 2, 3]]).shape, llama(11, **small)([[1, 2, 3]]).shape
    ((1, 3, 11), (1, 3, 11))
    >>> bert(11, 5, **small)([[1, 2, 3]]).shape
    (1, 3, 8)
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, ClassVar

import numpy as np

from attention.blocks import Block, FeedForward, GatedFeedForward
from attention.cache import KVCache, one_step
from attention.masks import causal_mask
from attention.multi_head import MultiHeadAttention
from attention.positions import LearnedPositions, SinusoidalPositions, rotary
from attention.scaled_dot_product import check_mask
from attention.transformer import Attend, Encoder
from minigrad import Tensor, gelu, gelu_tanh, where
from minigrad.nn import Dropout, Embedding, LayerNorm, Linear, Module, RMSNorm, renamed


class GPT(Module):
    """A decoder alone: the next token from those before it.   (B, T) → (B, T, V)

    GPT(tokens, blocks, norm, *, positions=None, head=None, max_length=None, dropout=0.0, rng=None)

    tokens      an `Embedding`; blocks is a list of `Block`, and norm follows the last of them
    positions   added to the tokens' vectors, or None if the blocks turn queries and keys by their
                positions (rotary)
    head        a `Linear` to scores of tokens; None takes the embedding again, transposed
    max_length  how many positions the model was trained with; it refuses more. Rotary positions
                never end, and beyond those of the training the scores get worse without an error.
                None allows any number, up to the end of learned positions
    dropout     the probability with which a number of the tokens' vectors is dropped while
                training; it needs rng
    """

    former_names: ClassVar = {"words": "tokens"}

    @renamed(words="tokens")
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
        rng: np.random.Generator | None = None,
    ) -> None:
        if dropout and rng is None:
            raise TypeError("a GPT with dropout needs rng=np.random.default_rng(seed)")
        self.tokens = tokens
        self.positions = positions
        self.blocks = blocks
        self.norm = norm
        self.head = head
        self.max_length = max_length
        self.dropout = Dropout(dropout, rng=rng) if rng is not None else None

    @renamed(words="tokens")
    def __call__(self, tokens: Any, *, caches: list[KVCache] | None = None) -> Tensor:
        """Scores of the next token at each position. With caches, pass the new tokens alone."""
        with one_step(caches, self.blocks) as start:
            x = self.tokens(tokens)  # (B, T, d_model)
            T = x.shape[-2]
            if self.max_length is not None and start + T > self.max_length:
                raise ValueError(
                    f"{start + T} positions were asked for, and this model was trained with "
                    f"max_length={self.max_length}: give it the last {self.max_length} tokens "
                    "without a cache, or set its max_length to None"
                )
            if self.positions is not None:
                x = self.positions(x, start)  # (B, T, d_model)
            if self.dropout is not None:
                x = self.dropout(x)
            mask = causal_mask(T, start + T) if T > 1 else None  # the last position sees all
            for i, block in enumerate(self.blocks):
                cache = None if caches is None else caches[i]
                x = block(x, mask=mask, cache=cache)  # (B, T, d_model)
            x = self.norm(x)
            return x @ self.tokens.weight.mT if self.head is None else self.head(x)  # (B, T, V)

    def caches(self) -> list[KVCache]:
        """An empty cache for each block."""
        return [KVCache() for _ in self.blocks]


@renamed(num_words="vocab_size")
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
    rng: np.random.Generator,
    dtype: Any = float,
) -> GPT:
    """Llama 2 (Touvron et al. 2023): rotary positions, RMSNorm, SwiGLU, shared keys, no biases.

    The first Llama, and the smaller models of the second, have num_kv_heads = num_heads. d_ff is
    8/3 d_model, which Llama rounds up to a multiple of 256; d_k is d_model / num_heads. A tied
    model scores tokens with the matrix of its embedding. base and pairs are `rotary`'s, and
    max_length is `GPT`'s.

    Weights that somebody else has trained need the eps, base and pairs of their training. No shape
    depends on these, so a wrong one raises no error. eps is 1e-5 in Llama 2, and 1e-6 in others.
    """
    norm = partial(RMSNorm, eps=eps, dtype=dtype)
    blocks = [
        Block(
            MultiHeadAttention(
                d_model,
                num_heads,
                num_kv_heads=num_kv_heads,
                d_k=d_k,
                d_v=d_k,
                rotate=partial(rotary, base=base, pairs=pairs),
                attend=attend,
                rng=rng,
                dtype=dtype,
            ),
            GatedFeedForward(d_model, d_ff or 8 * d_model // 3, rng=rng, dtype=dtype),
            norm_first=True,
            norm=norm,
        )
        for _ in range(num_blocks)
    ]
    return GPT(
        Embedding(vocab_size, d_model, std=0.02, rng=rng, dtype=dtype),
        blocks,
        norm(d_model),
        head=None if tied else Linear(d_model, vocab_size, bias=False, rng=rng, dtype=dtype),
        max_length=max_length,
    )


@renamed(num_words="vocab_size")
def gpt2(
    vocab_size: int,
    max_length: int,
    *,
    d_model: int = 768,
    num_heads: int = 12,
    num_blocks: int = 12,
    dropout: float = 0.0,
    eps: float = 1e-5,
    attend: Attend | None = None,
    rng: np.random.Generator,
    dtype: Any = float,
) -> GPT:
    """GPT-2 (Radford et al. 2019): learned positions, pre-LN, gelu, biases; one matrix of tokens.

    Its initial weights are Gaussian with standard deviation 0.02. The 2 · num_blocks matrices whose
    results are added to x have a standard deviation smaller by √(2 · num_blocks), so that their sum
    does not grow with the number of blocks.
    """
    norm = partial(LayerNorm, eps=eps, dtype=dtype)
    blocks = [
        Block(
            MultiHeadAttention(
                d_model, num_heads, bias=True, dropout=dropout, attend=attend, rng=rng, dtype=dtype
            ),
            FeedForward(d_model, 4 * d_model, activation=gelu_tanh, rng=rng, dtype=dtype),
            norm_first=True,
            norm=norm,
            dropout=dropout,
            rng=rng,
        )
        for _ in range(num_blocks)
    ]
    for block in blocks:
        for name, parameter in block.named_parameters():
            if parameter.ndim == 2:
                writes = name.endswith(("w_o.weight", "w_2.weight"))
                std = 0.02 / math.sqrt(2 * num_blocks) if writes else 0.02
                parameter.data = std * rng.standard_normal(parameter.shape)
    return GPT(
        Embedding(vocab_size, d_model, std=0.02, rng=rng, dtype=dtype),
        blocks,
        norm(d_model),
        positions=LearnedPositions(max_length, d_model, rng=rng, dtype=dtype),
        dropout=dropout,
        rng=rng,
    )


# Reference: no demo uses what follows.


class TextEncoder(Module):
    """Tokens, their positions and their kinds, through an encoder.   (B, S) → (B, S, d_model)

    kinds  an `Embedding` of what each token belongs to, such as the first or the second sentence
    norm   the normalisation of the three vectors' sum
    """

    former_names: ClassVar = {"words": "tokens"}

    @renamed(words="tokens")
    def __init__(
        self,
        tokens: Embedding,
        positions: LearnedPositions,
        kinds: Embedding,
        norm: Module,
        encoder: Encoder,
    ) -> None:
        self.tokens = tokens
        self.positions = positions
        self.kinds = kinds
        self.norm = norm
        self.encoder = encoder

    @renamed(words="tokens")
    def __call__(self, tokens: Any, *, kinds: Any = None, mask: Any = None) -> Tensor:
        """A vector for each token. kinds (B, S) is 0 by default; mask is padding's, (B, 1, S)."""
        kinds = np.zeros(np.shape(tokens), int) if kinds is None else kinds
        x = self.positions(self.tokens(tokens) + self.kinds(kinds))  # (B, S, d_model)
        return self.encoder(self.norm(x), mask=mask)  # (B, S, d_model)


@renamed(num_words="vocab_size")
def bert(
    vocab_size: int,
    max_length: int,
    *,
    d_model: int = 768,
    num_heads: int = 12,
    num_blocks: int = 12,
    num_kinds: int = 2,
    dropout: float = 0.0,
    eps: float = 1e-12,
    attend: Attend | None = None,
    rng: np.random.Generator,
    dtype: Any = float,
) -> TextEncoder:
    """BERT (Devlin et al. 2018): post-LN as in the paper, gelu, learned positions, two sentences.

    Its norms add 1e-12 to the variance, not 1e-5. Two things are left out: the pooler, and dropout
    after the embeddings' norm.
    """
    drawn: dict[str, Any] = {"rng": rng, "dtype": dtype}
    encoder = Encoder(
        num_blocks,
        d_model,
        num_heads,
        4 * d_model,
        activation=gelu,
        dropout=dropout,
        attend=attend,
        eps=eps,
        **drawn,
    )
    return TextEncoder(
        Embedding(vocab_size, d_model, std=0.02, **drawn),
        LearnedPositions(max_length, d_model, **drawn),
        Embedding(num_kinds, d_model, std=0.02, **drawn),
        LayerNorm(d_model, eps=eps, dtype=dtype),
        encoder,
    )


class Classifier(Module):
    """An encoder, the mean of its positions, and scores of classes.   (B, S, …) → (B, C)

    The encoder may be an `Encoder`, for vectors, or a `TextEncoder`, for tokens.
    """

    def __init__(
        self,
        encoder: Module,
        d_model: int,
        num_classes: int,
        *,
        rng: np.random.Generator,
        dtype: Any = float,
    ) -> None:
        self.encoder = encoder
        self.head = Linear(d_model, num_classes, rng=rng, dtype=dtype)

    def __call__(self, x: Any, *, mask: Any = None) -> Tensor:
        """Scores of the classes. With a padding mask (B, 1, S), padding does not count."""
        if mask is None:
            return self.head(self.encoder(x).mean(axis=-2))  # (B, C)
        each = (np.shape(x)[0], 1, np.shape(x)[1])
        mask = np.broadcast_to(check_mask(mask, each), each)  # (B, 1, S)
        y = self.encoder(x, mask=mask)  # (B, S, d_model)
        kept = mask.swapaxes(-1, -2)  # (B, S, 1)
        total = where(kept, y, 0).sum(axis=-2)  # (B, d_model)
        return self.head(total / np.maximum(kept.sum(axis=-2), 1).astype(y.dtype))  # (B, C)
