"""Site · Words: what PyTorch's code means here, where a name alone does not say it.

`minigrad.functional.vocabulary` has PyTorch's names for what a Tensor has under NumPy's. The rows
below have how PyTorch writes it, how the same is written here, and what the word does here.
"""

ELSEWHERE = (
    ("`dim=`", "`axis=`", ""),
    ("`keepdim=`", "`keepdims=`", ""),
    (
        *("`t.transpose(0, 1)`", "`t.swapaxes(0, 1)`"),
        "`t.transpose(axes)` takes all axes, as PyTorch's `permute` does",
    ),
    ("`t.repeat(2)`", "`np.tile(t, 2)`", "`np.repeat(t, 2)` repeats each element"),
    (
        *("`t.split(2)`", "`np.split(t, len(t) // 2)`"),
        "`np.split` takes the number of parts, not their length",
    ),
    ("`t.std()`, `t.var()`", "`t.std(ddof=1)`, `t.var(ddof=1)`", "divides by n, not by n - 1"),
    ("`t.max(0).values`", "`t.max(0)`", "gives the values alone; `t.argmax(0)` the places"),
    ("`t.size(0)`", "`t.shape[0]`", "`t.size` is a number"),
    ("`weight_decay=`", "`decay=`", ""),
    (
        *("`ignore_index=-100` by default", "`ignore_index=None`"),
        "every target counts unless you say which does not",
    ),
    (
        *("logits (N, C, T) of `cross_entropy`", "logits (N, T, C)"),
        "the classes are on the last axis",
    ),
    ("`pos_weight=`", '`reduction="none"`, times weights of your own', ""),
    (
        *("`attn_mask`, `key_padding_mask` of booleans", "`mask=`, `padding_mask(lengths, S)`"),
        "True means *may look*: the opposite of `nn.MultiheadAttention`",
    ),
)
