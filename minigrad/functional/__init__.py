"""6 · Functions: no new derivatives from here on.

How many derivatives does a tensor library need? Chapter 3 has 48 operations with a rule, and
chapter 3.9 eleven more. Every other function is composed of operations that have one, and gets its
gradient, of every order, from the chain rule alone. Nothing in this chapter mentions g.

    6.1  activations   elementwise: relu, gelu, sinh, clip, …
    6.3  reductions    and products: var, norm, prod, outer, …
    6.4  losses        and lookups, and dropout

Three files are tools, to be used and not read: `manipulation` puts the same elements at other
places (stack, pad, sort, …), `numpy_words` has more of NumPy's words, such as vstack, median and
cross, and `table` has the rows of chapter 1.4's table: which of NumPy's functions finds which
operation.

`ops.__all__` names the rules, `functional.__all__` the composed functions. `one_hot`, comparisons,
`argmax`, `np.isnan`, `np.round` and their like have no useful derivative and give plain arrays.

When does a function deserve a rule of its own? When composing it is wrong somewhere (softmax of
large scores overflows), or slow (its record keeps what one formula does not need), or cannot be
done at all (sin). Otherwise a rule is one more derivation that may be wrong.

    >>> from minigrad import ops
    >>> len(ops.__all__)
    48
"""

from minigrad.functional.activations import clip, gelu, relu, silu, sinh, softplus, square
from minigrad.functional.losses import (
    binary_cross_entropy_with_logits,
    dropout,
    embedding,
    mse,
    one_hot,
)
from minigrad.functional.manipulation import (
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
from minigrad.functional.reductions import dot, norm, outer, prod, std, var

__all__ = [
    "binary_cross_entropy_with_logits", "clip", "diagonal", "dot", "dropout", "embedding",
    "expand_dims", "flip", "gelu", "moveaxis", "mse", "norm", "one_hot", "outer", "pad", "prod",
    "ravel", "relu", "repeat", "roll", "silu", "sinh", "softplus", "sort", "split", "square",
    "squeeze", "stack", "std", "take", "take_along_axis", "tile", "tril", "triu", "var",
]  # fmt: skip
