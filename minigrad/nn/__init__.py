"""Layers: functions that own their parameters.

What does a layer add to a function? Its parameters, so that an optimizer can find them, a file can
keep them, and each can be called by its name.

    7.1  module          Module: names, state, training and evaluation
    7.3  layers          Linear, Embedding, LayerNorm, RMSNorm, Dropout, Sequential

Two tools: `initial` draws the first weights, and explains how large they should be; `substitution`
calls a model with other parameters than its own.

    >>> import numpy as np
    >>> from minigrad import Tensor
    >>> layer = Linear(3, 2, rng=np.random.default_rng(0))
    >>> [(name, p.shape) for name, p in layer.named_parameters()]
    [('weight', (3, 2)), ('bias', (2,))]
    >>> layer(Tensor(np.ones((5, 3)))).shape
    (5, 2)
"""

from typing import TYPE_CHECKING

from minigrad.engine.hints import refuse_name
from minigrad.nn.initial import normal, xavier_uniform
from minigrad.nn.layers import Dropout, Embedding, LayerNorm, Linear, RMSNorm, Sequential
from minigrad.nn.module import Module
from minigrad.nn.substitution import functional_call

__all__ = [
    "Dropout",
    "Embedding",
    "LayerNorm",
    "Linear",
    "Module",
    "RMSNorm",
    "Sequential",
    "functional_call",
    "normal",
    "xavier_uniform",
]

if not TYPE_CHECKING:  # (a type checker would take every name)
    __getattr__ = lambda name: refuse_name(__name__, name)
