"""6 · Functions: no new derivatives from here on.

How many derivatives does a tensor library need? Chapter 3 has 46 operations with a rule. Every
other function is composed of operations that have one, and gets its gradient, of every order, from
the chain rule alone. Nothing in this chapter mentions g.

    6.1  curves        elementwise: sinh, relu, gelu, clip, …
    6.2  arranging     the same elements at other places: stack, pad, sort, …
    6.3  reductions    and products: var, norm, prod, tensordot, …
    6.4  learning      losses, lookups, dropout
    6.5  vocabulary    which of NumPy's functions finds which operation
    6.6  pieces        more of NumPy's words: hstack, array_split, rot90, select, …
    6.7  more          and more: median, cumprod, cross, log10, sinc, …

Which word is which:

    rules, derived      abs add arctan astype broadcast_to concatenate cos cross_entropy cumsum
    (chapter 3)         divide einsum erf exp expm1 gelu_tanh getitem layer_norm linear log
                        log1p log_softmax logaddexp logsumexp masked_softmax matmul max maximum
                        mean min minimum multiply negative positive power remainder reshape
                        scatter_add sigmoid sign sin softmax sqrt subtract sum swapaxes tanh
                        transpose where
    composed            clip cosh elu gelu glu leaky_relu log2 logsigmoid reciprocal relu silu
    (this chapter)      sinh softplus square tan · diagonal expand_dims flip moveaxis pad ravel
                        repeat roll sort split squeeze stack take take_along_axis tile tril triu ·
                        cosine_similarity dot norm outer prod std tensordot trace var ·
                        binary_cross_entropy_with_logits dropout embedding huber kl_div mse nll
    constants           one_hot, comparisons, argmax, argsort, isnan, floor, round, …: plain arrays
    only as np.NAME     what no demo needs: the 13 rules of chapter 3.9, and chapters 6.6 and 6.7

When does a function deserve a rule of its own? When composing it is wrong somewhere (softmax of
large scores overflows), or slow (its record keeps what one formula does not need), or cannot be
done at all (sin). Otherwise a rule is one more derivation that may be wrong.

    >>> from minigrad import ops
    >>> len(ops.__all__)
    48
"""

from minigrad.functional.arranging import (
    diagonal,
    expand_dims,
    flip,
    moveaxis,
    pad,
    ravel,
    repeat,
    roll,
    sort,
    split,
    squeeze,
    stack,
    take,
    take_along_axis,
    tile,
    tril,
    triu,
)
from minigrad.functional.curves import (
    clip,
    cosh,
    elu,
    gelu,
    glu,
    leaky_relu,
    log2,
    logsigmoid,
    reciprocal,
    relu,
    silu,
    sinh,
    softplus,
    square,
    tan,
)
from minigrad.functional.learning import (
    binary_cross_entropy_with_logits,
    dropout,
    embedding,
    huber,
    kl_div,
    mse,
    nll,
    one_hot,
)
from minigrad.functional.reductions import (
    cosine_similarity,
    dot,
    norm,
    outer,
    prod,
    std,
    tensordot,
    trace,
    var,
)

__all__ = [
    "binary_cross_entropy_with_logits",
    "clip",
    "cosh",
    "cosine_similarity",
    "diagonal",
    "dot",
    "dropout",
    "elu",
    "embedding",
    "expand_dims",
    "flip",
    "gelu",
    "glu",
    "huber",
    "kl_div",
    "leaky_relu",
    "log2",
    "logsigmoid",
    "moveaxis",
    "mse",
    "nll",
    "norm",
    "one_hot",
    "outer",
    "pad",
    "prod",
    "ravel",
    "reciprocal",
    "relu",
    "repeat",
    "roll",
    "silu",
    "sinh",
    "softplus",
    "sort",
    "split",
    "square",
    "squeeze",
    "stack",
    "std",
    "take",
    "take_along_axis",
    "tan",
    "tensordot",
    "tile",
    "trace",
    "tril",
    "triu",
    "var",
]
