"""15.2 · Transformer: encoder, decoder, and the paper's model of both.

What can be built from blocks? It depends on which positions may look at which. In an **encoder**
every position may look at every other: it reads a whole text at once. In a **decoder** a position
may only look back. So a decoder can be trained to predict the next token at all positions at once,
and can then write a text, one token after the other. The paper's **Transformer** is both: an
encoder reads the source, and a decoder writes the target. The queries of the decoder's
cross-attention look at the encoder's output, the memory.

Legend: B batch, T positions (of the target), S positions of the source, V tokens in the target's
vocabulary, d_model features.

    >>> rng = np.random.default_rng(0)
    >>> model = Transformer(11, 13, d_model=8, num_heads=2, num_blocks=2, d_ff=16, rng=rng)
    >>> logits = model([[1, 2, 3, 4, 5]], [[1, 2, 3]])
    >>> logits.shape                                    # for each target position, 13 scores
    (1, 3, 13)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from attention.blocks import Activation, Array, Block, FeedForward, block_weights
from attention.masks import causal_mask, check_real, real_positions, without_padding
from attention.multi_head import MultiHeadAttention
from attention.positions import SinusoidalPositions
from minigrad import Tensor, relu
from minigrad.nn import Dropout, Embedding, LayerNorm, Module

Attend = Callable[..., Tensor]


class Stack(Module):
    """Blocks one after the other, and perhaps a norm: the common part of encoder and decoder.

    norm_first  pre-LN blocks, and a norm after the last of them, instead of the paper's post-LN
    dropout     the probability with which an attention weight, or a number that a sublayer adds,
                is dropped while training (section 5.4)
    attend      as for `MultiHeadAttention`
    recompute   whether each block keeps its input alone for the backward pass, and is computed
                again there, with the same dropout: less memory for more time (chapter 2.4)
    eps         what the norms add to the variance
    """

    looks_at_memory = False  # whether the blocks have cross-attention

    def __init__(
        self,
        num_blocks: int,
        d_model: int,
        num_heads: int,
        d_ff: int,
        *,
        activation: Activation = relu,
        norm_first: bool = False,
        dropout: float = 0.0,
        attend: Attend | None = None,
        recompute: bool = False,
        eps: float = 1e-5,
        rng: np.random.Generator,
    ) -> None:
        norm = partial(LayerNorm, eps=eps)
        options: dict[str, Any] = {"bias": True, "dropout": dropout, "attend": attend, "rng": rng}
        heads = partial(MultiHeadAttention, d_model, num_heads, **options)
        self.blocks = [
            Block(
                heads(),
                FeedForward(d_model, d_ff, activation=activation, rng=rng),
                cross=heads() if self.looks_at_memory else None,
                norm_first=norm_first,
                norm=norm,
                dropout=dropout,
                recompute=recompute,
                rng=rng,
            )
            for _ in range(num_blocks)
        ]
        self.final_norm: Any = norm(d_model) if norm_first else None


class Encoder(Stack):
    """A stack of blocks in which every position may look at every other.

    (…, S, d_model) → (…, S, d_model). The options are those of `Stack`.
    """

    def __call__(self, x: Tensor, *, mask: Any = None) -> Tensor:
        """Apply all blocks; mask is the padding's, (B, 1, S)."""
        for block in self.blocks:
            x = block(x, mask=mask)
        return x if self.final_norm is None else self.final_norm(x)

    def maps(self, x: Tensor, *, mask: Any = None) -> list[Array]:
        """Return every head's attention weights, without a record: (B, H, S, S) for each block."""
        return block_weights(self.blocks, x, mask=mask)


class Decoder(Stack):
    """A stack of blocks in which a position may look back, and at a memory.

    (…, T, d_model) and memory (…, S, d_model) → (…, T, d_model). The options are those of `Stack`.
    """

    looks_at_memory = True

    def __call__(self, x: Tensor, memory: Tensor, *, memory_mask: Any = None) -> Tensor:
        """Apply all blocks; memory_mask is the padding's of the memory, (B, 1, S)."""
        behind = causal_mask(x.shape[-2])
        for block in self.blocks:
            x = block(x, memory, mask=behind, memory_mask=memory_mask)
        return x if self.final_norm is None else self.final_norm(x)


class Transformer(Module):
    """The paper's model (figure 1): tokens in, scores of the next out.   (B, S), (B, T) → (B, T, V)

    The options are those of `Stack`.

    Section 3.4 multiplies embeddings by √d_model and gives no reason; with rows of variance
    1/d_model it makes them as large as the positions added to them. The output matrix is the
    target's embedding, transposed. Three things differ: the paper shares that matrix with the
    source too, its projections have no biases, and it trains with dropout 0.1 (section 5.4).
    """

    def __init__(
        self,
        source_vocab_size: int,
        target_vocab_size: int,
        *,
        d_model: int = 512,
        num_heads: int = 8,
        num_blocks: int = 6,
        d_ff: int = 2048,
        dropout: float = 0.0,
        rng: np.random.Generator,
        **options: Any,
    ) -> None:
        std = 1 / math.sqrt(d_model)
        self.source_tokens = Embedding(source_vocab_size, d_model, std=std, rng=rng)
        self.target_tokens = Embedding(target_vocab_size, d_model, std=std, rng=rng)
        self.positions = SinusoidalPositions()
        sizes = (num_blocks, d_model, num_heads, d_ff)
        options = options | {"rng": rng}
        self.encoder = Encoder(*sizes, dropout=dropout, **options)
        self.decoder = Decoder(*sizes, dropout=dropout, **options)
        self.dropout = Dropout(dropout, rng=rng)

    def encode(self, source: Any, *, source_mask: Any = None, real: Any = None) -> Tensor:
        """Return the memory of a source.   (B, S) → (B, S, d_model)"""
        places = 0 if real is None else real_positions(check_real(real, source))  # (B, S)
        x = self.embed(source, self.source_tokens, places)  # (B, S, d_model)
        return self.encoder(x, mask=without_padding(source_mask, real))

    def decode(self, target: Any, memory: Tensor, *, source_mask: Any = None) -> Tensor:
        """Return the next token's scores at each position.   (B, T), (B, S, d_model) → (B, T, V)"""
        x = self.embed(target, self.target_tokens)  # (B, T, d_model)
        y = self.decoder(x, memory, memory_mask=source_mask)  # (B, T, d_model)
        return y @ self.target_tokens.weight.mT  # (B, T, V)

    def __call__(
        self, source: Any, target: Any, *, source_mask: Any = None, real: Any = None
    ) -> Tensor:
        """Return the next token's scores at each position; source_mask (B, 1, S) is padding's.

        real, boolean (B, S), says which tokens of the sources are not padding. It makes that mask,
        and counts positions from each source's first token: padding may be on either side.
        (Targets need none. Pad them on the right: under the causal mask no token sees it.)
        """
        memory = self.encode(source, source_mask=source_mask, real=real)  # (B, S, d_model)
        mask = without_padding(source_mask, real)
        return self.decode(target, memory, source_mask=mask)  # (B, T, V)

    def embed(self, tokens: Any, table: Embedding, start: Any = 0) -> Tensor:
        """Return tokens as vectors with their positions.   (B, T) → (B, T, d_model)"""
        x = math.sqrt(table.weight.shape[1]) * table(tokens)
        return self.dropout(self.positions(x, start))
