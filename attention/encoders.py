"""Encoders: models that read a text to both sides.

What if a text is to be understood and not continued? BERT dropped the decoder where GPT dropped the
encoder, so every token may look at those before it and at those after it. It cannot write, since
each position has seen the next token already. It gives a vector for each token, and their mean is
a vector for the whole text, from which a classifier decides.

Legend: B batch, S positions, C classes, d_model features.

    >>> rng = np.random.default_rng(0)
    >>> encoder = bert(11, 5, d_model=8, num_heads=4, num_blocks=2, rng=rng)
    >>> encoder([[1, 2, 3]]).shape, Classifier(encoder, 8, 2, rng=rng)([[1, 2, 3]]).shape
    ((1, 3, 8), (1, 2))
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attention.blocks import Array
from attention.masks import check_real, mean_over_positions, real_positions, without_padding
from attention.positions import LearnedPositions
from attention.transformer import Encoder
from minigrad import Tensor, gelu
from minigrad.nn import Embedding, LayerNorm, Linear, Module


class TextEncoder(Module):
    """Tokens, their positions and their kinds, through an encoder.   (B, S) → (B, S, d_model)

    kinds  an `Embedding` of what each token belongs to, such as the first or the second sentence
    norm   the normalisation of the three vectors' sum
    """

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

    def __call__(
        self, tokens: Any, *, kinds: Any = None, mask: Any = None, real: Any = None
    ) -> Tensor:
        """Return a vector for each token. kinds (B, S): 0 by default; mask (B, 1, S): padding's.

        real, boolean (B, S), says which tokens are not padding. It makes that mask, and counts
        positions from each text's first token: padding may be on either side.
        """
        x = self.embed(tokens, kinds, real)  # (B, S, d_model)
        return self.encoder(x, mask=without_padding(mask, real))  # (B, S, d_model)

    def embed(self, tokens: Any, kinds: Any = None, real: Any = None) -> Tensor:
        """Return tokens, positions and kinds, added and normalised.   → (B, S, d_model)"""
        places = 0 if real is None else real_positions(check_real(real, tokens))  # (B, S)
        kinds = np.zeros(np.shape(tokens), int) if kinds is None else kinds
        x = self.positions(self.tokens(tokens) + self.kinds(kinds), places)  # (B, S, d_model)
        return self.norm(x)  # type: ignore[no-any-return]

    def maps(self, tokens: Any, *, kinds: Any = None, mask: Any = None) -> list[Array]:
        """Return every head's attention weights, without a record: (B, H, S, S) for each block."""
        return self.encoder.maps(self.embed(tokens, kinds), mask=mask)


def bert(
    vocab_size: int,
    max_length: int,
    *,
    d_model: int = 768,
    num_heads: int = 12,
    num_blocks: int = 12,
    num_kinds: int = 2,
    eps: float = 1e-12,
    rng: np.random.Generator,
    **options: Any,
) -> TextEncoder:
    """Build BERT (Devlin et al. 2018): post-LN, gelu, learned positions, two sentences.

    Its norms add 1e-12 to the variance, not 1e-5. The pooler, and dropout after the embeddings'
    norm, are left out. Other options are those of `Stack` (chapter 15.2).
    """
    options.setdefault("activation", gelu)
    encoder = Encoder(num_blocks, d_model, num_heads, 4 * d_model, eps=eps, rng=rng, **options)
    return TextEncoder(
        Embedding(vocab_size, d_model, std=0.02, rng=rng),
        LearnedPositions(max_length, d_model, rng=rng),
        Embedding(num_kinds, d_model, std=0.02, rng=rng),
        LayerNorm(d_model, eps=eps),
        encoder,
    )


class Classifier(Module):
    """An encoder, the mean of its positions, and scores of classes.   (B, S, …) → (B, C)

    encoder  a layer whose result is (B, S, d_model): a `TextEncoder` such as `bert`, for tokens
             (B, S), or an `Encoder` (chapter 15.2), for vectors (B, S, d_model)

    The scores are for `cross_entropy` (chapter 6.4); the largest is the answer. With a padding mask
    (B, 1, S) (chapter 11.1) no position looks at padding, and the mean leaves it out.
    """

    def __init__(
        self, encoder: Module, d_model: int, num_classes: int, *, rng: np.random.Generator
    ) -> None:
        self.encoder = encoder
        self.head = Linear(d_model, num_classes, rng=rng)

    def __call__(self, x: Any, *, mask: Any = None) -> Tensor:
        """Return the scores of the C classes."""
        y = self.encoder(x) if mask is None else self.encoder(x, mask=mask)  # (B, S, d_model)
        return self.head(mean_over_positions(y, mask=mask))  # (B, C)
