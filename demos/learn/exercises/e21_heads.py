"""Exercise 21 · Find the bug: heads that mix positions.

The features of each position are shared among H heads: the first d_k belong
to head 0, the next d_k to head 1, and so on. `split` makes the heads an axis,
and `merge` puts them side by side again. With the lines below every shape is
right, and split and merged x is x again, so the test passed. But a head does
not get its own features of all positions. Repair both functions.

    x        a Tensor (…, T, H · d_k), where … are batch axes
    heads    a Tensor (…, H, T, d_k)
    split(x, num_heads) → heads
    merge(heads) → (…, T, H · d_k)

Chapter 13, attention/multi_head.py.
"""


def split(x, num_heads):
    """(…, T, H · d_k) → (…, H, T, d_k)"""
    *batch, T, width = x.shape
    d_k = width // num_heads
    # Your lines begin.
    return x.reshape(*batch, T, num_heads, d_k).swapaxes(-3, -2)
    # The learner gets:
    #     return x.reshape(*batch, num_heads, T, d_k)
    # Your lines end.


def merge(heads):
    """(…, H, T, d_k) → (…, T, H · d_k)"""
    *batch, num_heads, T, d_k = heads.shape
    # Your lines begin.
    return heads.swapaxes(-3, -2).reshape(*batch, T, num_heads * d_k)
    # The learner gets:
    #     return heads.reshape(*batch, T, num_heads * d_k)
    # Your lines end.
