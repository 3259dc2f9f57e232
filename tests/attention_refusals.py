"""Chapters 11 to 18 · What attention refuses: each call, its error, and the words of its sentence.

`…` stands for any words. `test_scaled_dot_product.py` makes all the calls. A refusal that needs
more than a call, such as a look at what it left unchanged, stands with its chapter's tests.
"""

import re
from importlib import import_module

import numpy as np

from attention import (
    Block,
    FeedForward,
    KVCache,
    MultiHeadAttention,
    Transformer,
    additive_attention,
    attention,
    fused_attention,
    gpt2,
    llama,
    mapping,
    qk_norm,
)
from attention.positions import LearnedPositions, SinusoidalPositions
from minigrad import Tensor


def ones(*shape, dtype=float):
    return Tensor(np.ones(shape, dtype))


def yes(*shape):
    return np.ones(shape, bool)


def heads(d_model=17, num_heads=7, **options):
    return MultiHeadAttention(d_model, num_heads, rng=np.random.default_rng(5), **options)


def block(*, cross=None, **options):
    feed_forward = FeedForward(14, 17, rng=np.random.default_rng(5))
    return Block(heads(14), feed_forward, cross=cross, **options)


WIDE = {"d_k": 11, "d_v": 13}
SIZES = {"d_model": 14, "num_heads": 7, "num_blocks": 1, "rng": np.random.default_rng(5)}

TABLES = {
    "what attends": """
f(q.data, k, v) → TypeError: q must be a Tensor: got ndarray
f(q.data.tolist(), k, v) → TypeError: q must be a Tensor: got list
f(q, k.data, v) → TypeError: k must be a Tensor: got ndarray
f(q, k.data.tolist(), v) → TypeError: k must be a Tensor: got list
f(q, k, v.data) → TypeError: v must be a Tensor: got ndarray
f(q, k, v.data.tolist()) → TypeError: v must be a Tensor: got list
f(ones(3, 11, dtype=int), k, v) → TypeError: q must have a floating dtype: got int64
f(q, ones(5, 11, dtype=int), v) → TypeError: k must have a floating dtype: got int64
f(q, k, ones(4, 13)) → ValueError: v needs one row for each of the 5 keys: it has shape (4, 13)
f(q, k, ones(5)) → ValueError: v needs one row for each of the 5 keys: it has shape (5,)
f(q, k, v, mask=np.ones((3, 5), int))
    → TypeError: mask must be boolean, with True where a query may look: got dtype int64; compare
    first, for instance mask == 1 or mask == 0, whichever marks keys to look at
f(q, k, v, mask=yes(5, 3)) → ValueError: mask of shape (5, 3) does not broadcast to the scores'
    (3, 5), which end in (T queries, S keys)
""",
    "scaled dot products": """
f(q, ones(5, 2), v)
    → ValueError: q (…, T, d_k) and k (…, S, d_k) must have equally many features: q has shape (3,
    11), k has (5, 2)
f(ones(11), k, v)
    → ValueError: q (…, T, d_k) and k (…, S, d_k) must have at least two axes: q has shape (11,),
    k has (5, 11)
f(q, ones(11), v)
    → ValueError: q (…, T, d_k) and k (…, S, d_k) must have at least two axes: q has shape (3,
    11), k has (11,)
f(ones(3, 0), ones(5, 0), v)
    → ValueError: q and k have no features to compare: q has shape (3, 0)
f(q, k, v, scale=np.ones(2)) → ValueError: scale must be a single number: it has shape (2,)
f(q, k, v, scale=lambda d: ones(1))
    → ValueError: scale must be a single number: it has shape (1,)
f(q, k, v, mask=np.ma.masked_equal(yes(3, 5), 2))
    → TypeError: mask= would ignore the mask of a masked array: use np.where first
f(q, k, v, score_bias=np.ma.masked_equal(ones(3, 5).data, 2))
    → TypeError: score_bias= would ignore the mask of a masked array: use np.where first
f(q, k, v, mask=np.ones((3, 5))) → TypeError: mask must be boolean, with True where a query may
    look: got dtype float64; compare first, for instance mask == 1 or mask == 0, whichever marks
    keys to look at
f(q, k, v, mask=yes(2, 3, 5)) → ValueError: mask of shape (2, 3, 5) does not broadcast to the
    scores' (3, 5), which end in (T queries, S keys)
f(q, k, ones(2, 5, 13), mask=yes(2, 3, 5))
    → ValueError: mask of shape (2, 3, 5) does not broadcast to the scores' (3, 5), which end in
    (T queries, S keys)
f(q, k, ones(2, 5, 13), score_bias=np.ones((2, 3, 5)))
    → ValueError: score_bias of shape (2, 3, 5) does not broadcast to the scores' (3, 5)
f(q, k, v, score_bias=np.ones((5, 3)))
    → ValueError: score_bias of shape (5, 3) does not broadcast to the scores' (3, 5)
f(q, k, v, score_bias=np.ones(3))
    → ValueError: score_bias of shape (3,) does not broadcast to the scores' (3, 5)
f(q, k, v, score_bias=np.ones((2, 3, 5)))
    → ValueError: score_bias of shape (2, 3, 5) does not broadcast to the scores' (3, 5)
f(q, k, v, score_bias=np.ones((3, 6)))
    → ValueError: score_bias of shape (3, 6) does not broadcast to the scores' (3, 5)
f(q, k, v, score_bias=np.ones((1, 3, 5)))
    → ValueError: score_bias of shape (1, 3, 5) does not broadcast to the scores' (3, 5)
f(q, k, v, score_bias=np.where(window_mask(3, 5, size=2), 0, -np.inf))
    → ValueError: score_bias must be finite: to forbid a key pass mask=, with True where a query
    may look
f(q, k, v, score_bias=yes(3, 5))
    → TypeError: score_bias is added to the scores and has a floating dtype: got bool; a mask,
    with True where a query may look, is passed as mask=
f(q, k, v, score_bias=ones(3, 5, dtype=bool))
    → TypeError: score_bias is added to the scores and has a floating dtype: got bool; a mask,
    with True where a query may look, is passed as mask=
f(q, k, v, score_bias=np.ones((3, 5), int))
    → TypeError: score_bias is added to the scores and has a floating dtype: got int64; a mask,
    with True where a query may look, is passed as mask=
f(q, k, v, score_bias=ones(3, 5, dtype=int))
    → TypeError: score_bias is added to the scores and has a floating dtype: got int64; a mask,
    with True where a query may look, is passed as mask=
f(q, k, v, score_bias=np.ones((3, 5), np.uint8))
    → TypeError: score_bias is added to the scores and has a floating dtype: got uint8; a mask,
    with True where a query may look, is passed as mask=
f(q, k, v, score_bias=ones(3, 5, dtype=np.uint8))
    → TypeError: score_bias is added to the scores and has a floating dtype: got uint8; a mask,
    with True where a query may look, is passed as mask=
""",
    "fused attention": """
f(q, k, v, block=0) → ValueError: block must be a whole number, 1 or larger: got 0
f(q, k, v, block=-1) → ValueError: block must be a whole number, 1 or larger: got -1
f(q, k, v, block=2.5) → ValueError: block must be a whole number, 1 or larger: got 2.5
f(q, k, v, block=True) → ValueError: block must be a whole number, 1 or larger: got True
f(q, k, v, block="a") → ValueError: block must be a whole number, 1 or larger: got 'a'
f(ones(2, 3, 11), ones(3, 5, 11), ones(3, 5, 13)) → ValueError: …broadcast…
""",
    "additive attention": """
f(q, k, v, w.data) → TypeError: w must be a Tensor: got ndarray
f(q, k, v, w.data.tolist()) → TypeError: w must be a Tensor: got list
f(q, k, v, ones(7, dtype=int)) → TypeError: w must have a floating dtype: got int64
f(q, ones(5, 2), v, w)
    → ValueError: q (…, T, d), k (…, S, d) and w (d,) must agree in d: they have shapes (3, 7),
    (5, 2) and (7,)
f(ones(3, 2), k, v, w)
    → ValueError: q (…, T, d), k (…, S, d) and w (d,) must agree in d: they have shapes (3, 2),
    (5, 7) and (7,)
f(q, k, v, ones(2))
    → ValueError: q (…, T, d), k (…, S, d) and w (d,) must agree in d: they have shapes (3, 7),
    (5, 7) and (2,)
f(q, k, v, ones()) → ValueError: q (…, T, d), k (…, S, d) and w (d,) must agree in d: they have
    shapes (3, 7), (5, 7) and ()
f(q, k, v, ones(7, 7))
    → ValueError: q (…, T, d), k (…, S, d) and w (d,) must agree in d: they have shapes (3, 7),
    (5, 7) and (7, 7)
f(ones(3, 5), ones(5, 5), ones(5, 5), ones(5, 5))
    → ValueError: q (…, T, d), k (…, S, d) and w (d,) must agree in d: they have shapes (3, 5),
    (5, 5) and (5, 5)
f(ones(7), k, v, w)
    → ValueError: q (…, T, d), k (…, S, d) and w (d,) must agree in d: they have shapes (7,), (5,
    7) and (7,)
f(q, ones(7), v, w)
    → ValueError: q (…, T, d), k (…, S, d) and w (d,) must agree in d: they have shapes (3, 7),
    (7,) and (7,)
""",
    "masks": """
causal_mask(5, 3) → ValueError: a causal mask needs a key for each query: got T=5 queries, S=3 keys
window_mask(5, 3, size=2)
    → ValueError: a causal mask needs a key for each query: got T=5 queries, S=3 keys
window_mask(3, 5, size=0) → ValueError: a window holds at least one key: got size=0
window_mask(3, 5, size=-1) → ValueError: a window holds at least one key: got size=-1
padding_mask(np.ma.masked_equal([1, 3], 3), 3)
    → TypeError: padding_mask would ignore the mask of a masked array: use np.where first
padding_mask([3.0], 5) → TypeError: lengths must be a list of integers, one a sequence: got [3.0]
padding_mask(5, 5) → TypeError: lengths must be a list of integers, one a sequence: got 5
padding_mask([[3]], 5) → TypeError: lengths must be a list of integers, one a sequence: got [[3]]
padding_mask([True], 5) → TypeError: lengths must be a list of integers, one a sequence: got [True]
padding_mask([3, 6], 5) → ValueError: lengths must lie between 0 and S=5: got [3, 6]
padding_mask([-1, 3], 5) → ValueError: lengths must lie between 0 and S=5: got [-1, 3]
mean_over_positions(ones(7)) → ValueError: x has shape (…, S, d_model), …: got (7,)
mean_over_positions([[1.0]]) → TypeError: x must be a Tensor: got list
mean_over_positions(ones(2, 5, 7, dtype=int)) → TypeError: x must have a floating dtype: got int64
mean_over_positions(ones(2, 5, 7), mask=yes(2, 5))
    → ValueError: mask of shape (2, 5) does not broadcast to the scores' (2, 1, 5)…
mean_over_positions(ones(2, 5, 7), mask=np.ones((2, 1, 5)))
    → TypeError: mask must be boolean, with True where a query may look: got dtype float64…
check_mask([[True], [True, False]], (3, 5))
    → ValueError: mask must be one boolean array: got rows of different lengths
check_mask(np.ones((3, 5), np.uint8), (3, 5)) → TypeError: mask must be boolean, with True where a
    query may look: got dtype uint8; compare first…
check_mask(np.ones((3, 5), np.float32), (3, 5)) → TypeError: mask must be boolean, with True where a
    query may look: got dtype float32; compare first…
check_mask(yes(3, 6), (3, 5)) → ValueError: mask of shape (3, 6) does not broadcast to the scores'
    (3, 5)…
check_mask(yes(3), (3, 5)) → ValueError: mask of shape (3,) does not broadcast to the scores' (3, …
check_mask(yes(2, 3, 5), (1, 3, 5)) → ValueError: mask of shape (2, 3, 5) does not broadcast to the
    scores' (1, 3, 5)…
check_mask(yes(3, 3, 5), (2, 3, 5)) → ValueError: mask of shape (3, 3, 5) does not broadcast to the
    scores' (2, 3, 5)…
check_mask(yes(2, 2, 2, 2), (2, 3, 5)) → ValueError: mask of shape (2, 2, 2, 2) does not broadcast
    to the scores' (2, 3, 5)…
""",
    "layers": """
f(q.data, k) → TypeError: q must be a Tensor …: got ndarray
f(q.data.tolist(), k) → TypeError: q must be a Tensor …: got list
f(ones(17), k) → TypeError: q must be a Tensor …: got one of shape (17,)
f(ones(2, 5, 2), k) → ValueError: Linear takes 17 features on the last axis: got (2, 5, 2)
f(q, k.data) → TypeError: k must be a Tensor …: got ndarray
f(q, k.data.tolist()) → TypeError: k must be a Tensor …: got list
f(q, ones(17)) → TypeError: k must be a Tensor …: got one of shape (17,)
f(q, ones(2, 5, 2)) → ValueError: Linear takes 17 features on the last axis: got (2, 5, 2)
f(q, k, mask=np.ones((3, 5))) → TypeError: …True where a query may look: got dtype float64…
f(q, k, mask=np.ones((2, 3, 5), int))
    → TypeError: …True where a query may look: got dtype int64…
f(q, k, mask=yes(5, 3)) → ValueError: mask of shape (5, 3) does not broadcast…
f(q, k, mask=yes(7, 3, 5)) → ValueError: mask of shape (7, 3, 5) does not broadcast…
f(q, k, mask=yes(2, 3, 5, 1)) → ValueError: mask of shape (2, 3, 5, 1) does not broadcast…
f(q, k, mask=yes(1, 2, 7, 3, 5))
    → ValueError: mask of shape (1, 2, 7, 3, 5) does not broadcast…
f(q, k, score_bias=yes(3, 5)) → TypeError: …a mask, with True …, is passed as mask=
f(q, k, score_bias=ones(7, 3, 5, dtype=int)) → TypeError: …floating dtype: got int64…
f(q, k, score_bias=np.ones((5, 3)))
    → ValueError: score_bias of shape (5, 3) does not broadcast…
f(q, k, score_bias=np.ones((2, 3, 5)))
    → ValueError: score_bias of shape (2, 3, 5) does not broadcast…
""",
    "heads": """
heads(**WIDE)(q, k, k.data) → TypeError: v must be a Tensor …: got ndarray
heads(**WIDE)(q, k, k.data.tolist()) → TypeError: v must be a Tensor …: got list
heads(**WIDE)(q, k, ones(17)) → TypeError: v must be a Tensor …: got one of shape (17,)
heads(**WIDE)(q, k, ones(2, 5, 2)) → ValueError: …takes 17 features on the last axis: got (2, 5, 2)
heads(**WIDE)(q, k, q) → ValueError: …one row for each of the 5 keys…
heads(**WIDE)(q, ones(3, 5, 17), mask=yes(3, 5))
    → ValueError: the batch axes of q (2,), k (3,) and v (3,) do not fit…
heads(**WIDE)(q, k, ones(7, 2, 5, 17), mask=yes(3, 5))
    → ValueError: the batch axes of q (2,), k (2,) and v (7, 2) do not fit…
heads(**WIDE, dropout=-0.1) → ValueError: …0 ≤ p < 1: got -0.1
heads(**WIDE, dropout=1.0) → ValueError: …0 ≤ p < 1: got 1.0
heads(**WIDE, dropout=1.5) → ValueError: …0 ≤ p < 1: got 1.5
heads(8, 3) → ValueError: d_model=8 cannot be shared equally by num_heads=3
heads(8, 3, d_k=5) → ValueError: d_model=8 cannot be shared equally by num_heads=3
heads(8, 0) → ValueError: num_heads must be at least 1: got 0
heads(8, 4, num_kv_heads=3) → ValueError: num_heads=4 cannot share num_kv_heads=3 equally
heads(8, 4, num_kv_heads=8) → ValueError: num_heads=4 cannot share num_kv_heads=8 equally
heads(8, 4, num_kv_heads=0) → ValueError: num_heads=4 cannot share num_kv_heads=0 equally
split_heads(ones(3, 8), 3) → ValueError: 8 features cannot be shared equally by num_heads=3…
filled.joined(ones(3, 7, 1, 11), ones(3, 7, 1, 13))
    → ValueError: the cache holds keys (…, H, S, d) of shape (2, 7, 5, 11), the new ones have
    (3, 7, 1, 11): another batch needs another cache
filled.joined(ones(2, 7, 1, 1), ones(2, 7, 1, 13))
    → ValueError: the cache holds keys (…, H, S, d) of shape (2, 7, 5, 11), the new ones have
    (2, 7, 1, 1): another layer needs another cache
filled.joined(ones(2, 7, 1, 11), ones(2, 7, 1, 5))
    → ValueError: the cache holds values (…, H, S, d) of shape (2, 7, 5, 13), the new ones have
    (2, 7, 1, 5): another layer needs another cache
filled.joined(ones(2, 7, 1, 11), ones(1, 7, 1, 13))
    → ValueError: the cache holds values (…, H, S, d) of shape (2, 7, 5, 13), the new ones have
    (1, 7, 1, 13): another batch needs another cache
filled.joined(ones(2, 7, 1, 11), ones(2, 7, 3, 13))
    → ValueError: each new key needs a value: k has shape (2, 7, 1, 11), v has (2, 7, 3, 13)
KVCache().joined(ones(2, 7, 1, 11), ones(2, 7, 3, 13))
    → ValueError: each new key needs a value: k has shape (2, 7, 1, 11), v has (2, 7, 3, 13)
""",
    "positions": """
sinusoidal(3, 5) → ValueError: positions are written in pairs of features: 5 features…
rotary(ones(2, 3, 5)) → ValueError: positions are written in pairs of features: 5 features…
fixed(ones(2, 3, 5)) → ValueError: positions are written in pairs of features: 5 features…
learned(ones(2, 12, 34)) → ValueError: x has positions up to 11, and the learned ones end at 10
learned(ones(2, 3, 34), 9) → ValueError: x has positions up to 11, and the learned ones end at 10
learned(ones(2, 1, 34), 11) → ValueError: x has positions up to 11, and the learned ones end at 10
learned(ones(2, 3, 34), -1) → ValueError: learned positions of 34 features, from 0 on, do not fit…
learned(ones(2, 3, 1)) → ValueError: learned positions of 34 features, from 0 on, do not fit…
rotary(ones(4)) → TypeError: rotary turns a Tensor (…, T, d_k): got one of shape (4,)
rotary([[1.0, 2.0]]) → TypeError: rotary turns a Tensor (…, T, d_k): got list
rotary(ones(2, 4), base=-1) → ValueError: base must be a number above 0, and finite: got -1
rotary(ones(2, 4), base=0) → ValueError: base must be a number above 0, and finite: got 0
rotary(ones(2, 4), base=np.nan) → ValueError: base must be a number above 0, and finite: got nan
rotary(ones(2, 4), base=1j) → ValueError: base must be a number above 0, and finite: got 1j
rotary(ones(2, 4), base=True) → ValueError: base must be a number above 0, and finite: got True
rotary(ones(2, 4), base=10**400) → ValueError: base must be a number above 0, and finite: got 1…
sinusoidal(3, 4, base="a") → ValueError: base must be a number above 0, and finite: got 'a'
rotary(ones(2, 4), pairs="half")
    → ValueError: pairs of features are 'neighbours' or 'halves': got pairs='half'
rotary(ones(2, 4), pairs=None)
    → ValueError: pairs of features are 'neighbours' or 'halves': got pairs=None
rotary(ones(2, 4, dtype=int)) → TypeError: rotary turns vectors of a floating dtype: got int64
fixed(ones(2, 4, dtype=int)) → TypeError: positions are added to vectors of a floating dtype…
""",
    "words": """
f([[0, 19]]) → ValueError: embedding…
f([[-1]]) → ValueError: embedding…
f([[1.0]]) → TypeError: embedding: integers were asked for…
f([[1]], caches=[]) → ValueError: 1 blocks need as many caches: got 0
f([[1]], caches=[filled, KVCache()])
    → ValueError: 1 blocks need as many caches: got 2
gpt2(19, 11, **SIZES | {"num_blocks": 2})([[1]], caches=[filled, KVCache()])
    → ValueError: the blocks' caches hold 5, 0 positions: rewind all of them to 0, for instance
""",
    "models": """
block(cross=heads(14))(ones(3, 14))
    → TypeError: this block has cross-attention, and needs a memory…
block()(ones(3, 14), ones(5, 14)) → TypeError: this block has no cross-attention, but got a memory
block_weights([block(cross=heads(14))], ones(3, 14))
    → TypeError: this block has cross-attention, and needs a memory…
gpt2(19, 11, **SIZES).maps([[19]]) → ValueError: embedding: 19 is not between 0 and 18
gpt2(19, 11, **SIZES).maps(np.zeros((1, 12), int))
    → ValueError: x has positions up to 11, and the learned ones end at 10
gpt2(19, 11, dropout=0.1, **SIZES).maps([[1]]) → ValueError: the model is in training mode and…
bert(19, 11, dropout=0.1, **SIZES).maps([[1]]) → ValueError: the model is in training mode and…
bert(19, 11, **SIZES).maps([[1, 2]], mask=yes(1, 1, 3)) → ValueError: mask of shape (1, 1, 3) does…
bert(19, 11, **SIZES).maps([[1, 2]], kinds=[[0, 2]])
    → ValueError: embedding: 2 is not between 0 and 1
Classifier(bert(19, 11, **SIZES), 13, 2, rng=SIZES["rng"])([[1]])
    → ValueError: Linear takes 13 features on the last axis: got (1, …)
Block(32, 2) → TypeError: Block takes layers: Block(MultiHeadAttention(32, 2, rng=rng),
    FeedForward(32, 128, rng=rng)); got 32 and 2
block(dropout=0.1) → TypeError: …dropout needs rng=np.random.default_rng…
GPT(None, [block()], None, dropout=0.1) → TypeError: …dropout needs rng=np.random.default_rng…
gpt2(19, 11, **SIZES)(np.zeros((1, 12), int))
    → ValueError: x has positions up to 11, and the learned ones end at 10
Transformer(19, 4, **SIZES | {"d_model": 7})([[0]], [[0]])
    → ValueError: …written in pairs of features: 7 features are odd
Transformer(19, 4, **SIZES | {"d_model": 15})
    → ValueError: d_model=15 cannot be shared equally by num_heads=7
llama(19, max_length=3, **LLAMA_SIZES)([[1, 2, 3, 4]])
    → ValueError: 4 positions were asked for, and this model was trained with max_length=3: give it
    the last 3 tokens and no cache of earlier ones, or set its max_length to None
llama(19, **LLAMA_SIZES)(1) → ValueError: tokens have shape (…, T): got one token, 1
llama(19, pairs="half", **LLAMA_SIZES)([[1]])
    → ValueError: pairs of features are 'neighbours' or 'halves': got pairs='half'
decoder(x, x, mask=np.ma.masked_equal(yes(3, 3), 2))
    → TypeError: mask= would ignore the mask of a masked array: use np.where first
decoder(x, x, mask=np.ones((3, 3)))
    → TypeError: mask must be boolean, with True where a query may look: got dtype float64; …
decoder(x, x, mask=yes(2, 2))
    → ValueError: mask of shape (2, 2) does not broadcast to the scores' (3, 3), which end in…
decoder(x, x, mask=yes(2, 7, 3, 2))
    → ValueError: mask of shape (2, 7, 3, 2) does not broadcast to the scores' (2, 7, 3, 3), which…
Encoder(1, 14, 7, 17, rng=SIZES["rng"])(ones(2, 5, 6))
    → ValueError: …takes 14 features on the last axis: got …(2, 5, 6)
""",
    "generation": """
generate(llama, [1, 2], 1) → ValueError: a prompt has shape (B, T) with T ≥ 1: got (2,)
generate(llama, [[]], 1) → ValueError: a prompt has shape (B, T) with T ≥ 1: got (1, 0)
generate(llama, np.zeros((2, 0)), 1) → ValueError: a prompt has shape (B, T) with T ≥ 1: got (2, 0)
generate(llama, 3, 1) → ValueError: a prompt has shape (B, T) with T ≥ 1: got ()
generate(llama, [[1, 2, 3]], 1) → TypeError: drawing tokens needs rng=…; temperature=0 is greedy
generate(gpt2(19, 23, **SIZES), [[1, 2, 3]], 30, temperature=0)
    → ValueError: …and the learned ones end at 22
stream(llama, [], 1) → ValueError: a prompt has shape (B, T) with T ≥ 1: got (0,)
stream(llama, [[]], 1) → ValueError: a prompt has shape (B, T) with T ≥ 1: got (1, 0)
stream(llama, [[1], [1, 2]], 1)
    → ValueError: prompts of one batch have equal lengths: write them one by one
stream(llama, [[1, 19]], 1) → ValueError: the prompt: 19 is not between 0 and 18
stream(llama, [[1, -1]], 1) → ValueError: the prompt: -1 is not between 0 and 18
stream(llama, [[1.0]], 1) → TypeError: the prompt: integers were asked for, but the dtype is float…
stream(llama, [[np.nan]], 1) → TypeError: the prompt: integers were asked for…
stream(llama, [["a"]], 1) → TypeError: the prompt: integers were asked for…
stream(llama, [[1]], 1) → TypeError: drawing tokens needs rng=…; temperature=0 is greedy
stream(llama, [[1]], 1, rng=3) → TypeError: drawing tokens needs rng=…; …greedy: got 3
stream(llama, [[1]], -1, temperature=0) → ValueError: num_tokens must not be negative: got -1
stream(llama, [[1]], 2.0, temperature=0) → TypeError: num_tokens is a whole number: got 2.0
stream(llama, [[1]], True, temperature=0) → TypeError: num_tokens is a whole number: got True
stream(llama, [[1]], None, temperature=0) → TypeError: num_tokens is a whole number: got None
stream(llama, [[1]], 1, temperature=-1) → ValueError: a temperature is 0 or above: got -1
stream(llama, [[1]], 1, temperature=np.nan) → ValueError: a temperature is 0 or above: got nan
stream(llama, [[1]], 1, top_k=0) → ValueError: top_k keeps at least one token: got 0
stream(llama, [[1]], 1, top_p=2.0) → ValueError: top_p is a probability above 0: got 2.0
stream(llama, [[1]], 1, end=19) → ValueError: end is one of the 19 tokens from 0 on: got 19
stream(llama, [[1]], 1, end=-1) → ValueError: end is one of the 19 tokens from 0 on: got -1
stream(llama, [[1]], 1, end=3.0) → TypeError: end is a whole number: got 3.0
stream(llama, [[1]], 1, end=True) → TypeError: end is a whole number: got True
stream(llama, [[1]], 1, end=np.True_) → TypeError: end is a whole number: got np.True_
stream(llama, [[1]], 1, end="a") → TypeError: end is a whole number: got 'a'
stream(llama, [[1]], 1, end=[3]) → TypeError: end is a whole number: got [3]
generate(llama, [[1]], 1, end=19) → ValueError: end is one of the 19 tokens from 0 on: got 19
generate(llama, [[1]], -1, temperature=0) → ValueError: num_tokens must not be negative: got -1
generate(gpt2(19, 2, **SIZES), [[1, 2, 3]], 1, temperature=0)
    → ValueError: x has positions up to 2, and the learned ones end at 1
translate(paper, [[1, 2]], start=0, end=19, max_tokens=2)
    → ValueError: end is one of the 19 tokens from 0 on: got 19
translate(paper, [[1, 2]], start=0, end=1.0, max_tokens=2)
    → TypeError: end is a whole number: got 1.0
translate(paper, [[1, 2]], start=0, end=1, max_tokens=-1)
    → ValueError: max_tokens must not be negative: got -1
generate(llama, [[1]], 1, temperature="1") → TypeError: a temperature is a number: got '1'
generate(llama, [[1]], 1, temperature=None) → TypeError: a temperature is a number: got None
choose(np.ma.masked_equal([[1.0, 3.0]], 3), temperature=0, rng=None)
    → TypeError: choose would ignore the mask of a masked array: use np.where first
probabilities(np.ma.masked_equal([[1.0, 3.0]], 3))
    → TypeError: probabilities would ignore the mask of a masked array: use np.where first
generate(llama, np.ma.masked_equal([[1, 2]], 2), 1, temperature=0)
    → TypeError: a prompt would lose the mask of a masked array: write the tokens out
stream(short, [[1, 2, 3, 4, 5]], 1, temperature=0)
    → ValueError: 5 positions were asked for, and this model was trained with max_length=4: …
stream(gpt2(19, 2, **SIZES), [[1, 2, 3]], 1, temperature=0)
    → ValueError: x has positions up to 2, and the learned ones end at 1
generate(short, [[1, 2, 3]], 3, temperature=0)
    → ValueError: 5 positions were asked for, and this model was trained with max_length=4: …
translate(llama, [[1, 2]], start=0, end=1, max_tokens=2, num_beams=0) → ValueError: …num_beams…
translate(llama, [1, 2], start=0, end=1, max_tokens=2)
    → ValueError: sources have shape (B, S), a row for each text: got (2,)
choose([1.0, 2.0], rng=None) → ValueError: scores have shape (B, V), a row for each text: got (2,)
choose([[1.0]], temperature=-1.0, rng=None)
    → ValueError: a temperature is 0 or above: got -1.0
choose([[1.0]], top_k=0, rng=None) → ValueError: top_k keeps at least one token: got 0
choose([[1.0]], top_k=2.5, rng=None) → TypeError: top_k is a whole number: got 2.5
choose([[1.0]], rng=3) → TypeError: drawing tokens needs rng=…; temperature=0 is greedy: got 3
generate(llama, [[1, 2]], 2.5) → TypeError: num_tokens is a whole number: got 2.5
translate(llama, [[1, 2]], start=0, end=1, max_tokens=2, num_beams=2.5)
    → TypeError: num_beams is a whole number: got 2.5
KVCache().rewind(1.5) → ValueError: the cache holds 0 positions, and not 1.5
choose([[1.0]], top_p=0.0, rng=None) → ValueError: top_p is a probability above 0: got 0.0
choose([[1.0]], top_p=1.5, rng=None) → ValueError: top_p is a probability above 0: got 1.5
choose([[1.0], [np.nan]], rng=None) → ValueError: no token can be chosen…
choose([[1.0], [np.inf]], rng=None) → ValueError: no token can be chosen…
choose([[1.0], [-np.inf]], rng=None) → ValueError: no token can be chosen…
choose([[1.0], [np.nan]], temperature=0, rng=None) → ValueError: no token can be chosen…
choose([[1.0], [np.inf]], temperature=0, rng=None) → ValueError: no token can be chosen…
choose([[1.0], [-np.inf]], temperature=0, rng=None) → ValueError: no token can be chosen…
probabilities([[1.0]], temperature=0.0) → ValueError: …temperature…
probabilities([[1.0]], temperature=-1.0) → ValueError: …temperature…
probabilities([[1.0]], temperature=np.nan) → ValueError: …temperature…
""",
    "layouts": """
to_theirs({"w_q.bias": [1], "w_v.bias": [3]}, multi_head_layout()[1:2])
    → ValueError: this layout needs w_k.bias…
to_ours({"in_proj_weight": np.ones((20, 14))}, multi_head_layout())
    → ValueError: in_proj_weight (20, 14) cannot be cut into 3 equal parts
to_ours({"in_proj_weight": 3.0}, multi_head_layout())
    → ValueError: in_proj_weight () cannot be cut into 3 equal parts
to_theirs({"w_q.weight": 1.0, "w_k.weight": 2.0, "w_v.weight": 3.0}, multi_head_layout()[:1])
    → ValueError: in_proj_weight is made of equal parts: got w_q.weight ()…
to_theirs(heads(12, 4, num_kv_heads=2).state_dict(), multi_head_layout())
    → ValueError: in_proj_weight…
to_theirs(gpt2(19, 11, **SIZES | {"num_blocks": 2}).state_dict(), gpt2_layout(1))
    → ValueError: this layout has no place for blocks.1.attention…
to_theirs(gpt2(19, 11, **SIZES | {"num_blocks": 2}).state_dict(), gpt2_layout(3))
    → ValueError: this layout needs blocks.2.attention.w_q.weight…
to_ours({"model.embed_tokens.weight": np.ones((19, 14))}, llama_layout(0))
    → ValueError: this layout needs model.norm.weight, which the state does not have
to_ours({"model.layers.0.self_attn.rotary_emb.inv_freq": np.ones(3)}, llama_layout(0)[:0])
    → ValueError: this layout has no place for model.layers.0.self_attn.rotary_emb.inv_freq
Piece("a", "weight", False) → TypeError: ours are names: write ('weight',)
to_theirs({"a": one, "b": one}, [Piece("x", ("a",), False), Piece("x", ("b",), False)])
    → ValueError: this layout has two pieces that make x
to_ours({"x": one, "y": one}, [Piece("x", ("a",), False), Piece("y", ("a",), False)])
    → ValueError: this layout has two pieces that make a
Piece("x", (), False) → ValueError: x is made of one of our arrays at least: ours is empty
to_ours({1: one, "z": one}, []) → ValueError: this layout has no place for 1, z
to_ours({"a": np.ma.masked_equal([1.0], 1)}, [Piece("a", ("b",), False)])
    → TypeError: a would ignore the mask of a masked array: use np.where first
to_theirs({"b": np.ma.masked_equal([1.0], 1)}, [Piece("a", ("b",), False)])
    → TypeError: b would ignore the mask of a masked array: use np.where first
llama.load_state_dict(to_ours(to_theirs(narrow, llama_layout(1)), llama_layout(1)))
    → ValueError: this state does not fit GPT: blocks.0.feed_forward.w_1.weight has shape (14, 31),
    not (14, 37); blocks.0.feed_forward.w_3.weight has shape (14, 31), not (14, 37);
    blocks.0.feed_forward.w_2.weight has shape (31, 14), not (37, 14)
llama.load_state_dict(to_ours(to_theirs(tied, llama_layout(1)), llama_layout(1)))
    → ValueError: this state does not fit GPT: head.weight is missing
to_ours({}, [], ignore="bias") → TypeError: ignore is a list of names: write ['bias']
""",
}


# ---------------------------------------------------------------- the calls

NAMES = dict(vars(mapping))
CHAPTERS = (
    *("scaled_dot_product", "masks", "multi_head", "positions"),
    *("models", "encoders", "generation"),
)
for chapter in CHAPTERS:
    NAMES |= vars(import_module(f"attention.{chapter}"))
NAMES |= {"ones": ones, "yes": yes, "heads": heads, "block": block, "WIDE": WIDE, "SIZES": SIZES}
NAMES["LLAMA_SIZES"] = LLAMA_SIZES = SIZES | {"num_kv_heads": 1}


def calls(of, *tables, **names):
    """{what: (call, error, words)}, for each row of some tables; names are what they call so."""
    text = "".join(TABLES[name] for name in tables)
    rows = re.findall(r"(.+?)\s+→ (\w+): (.+(?:\n .+)*)\n", text)
    if len(rows) != len(re.findall(r"^(?![ #]).", text, re.MULTILINE)):
        raise AssertionError(f"a row of {tables} has no arrow and error")
    return {
        f"{of}: {call}": (
            lambda call=call: eval(call, NAMES | names),
            {"TypeError": TypeError, "ValueError": ValueError}[error],
            "^" + re.escape(" ".join(words.split())).replace("…", ".*") + "$",
        )
        for call, error, words in rows
    }


Q_K_V = {"q": ones(3, 11), "k": ones(5, 11), "v": ones(5, 13)}
ADDED = {"q": ones(3, 7), "k": ones(5, 7), "v": ones(5, 11)}
W = ones(7)
SEQUENCES = {"q": ones(2, 3, 17), "k": ones(2, 5, 17)}
SCALED = ("what attends", "scaled dot products")
LEARNED = LearnedPositions(11, 34, rng=np.random.default_rng(5))
GPT2, LLAMA = gpt2(19, 11, **SIZES), llama(19, **LLAMA_SIZES)
PAPER = Transformer(19, 19, **SIZES, d_ff=17)
SHORT = llama(19, max_length=4, **LLAMA_SIZES)
NARROW, TIED = (llama(19, **LLAMA_SIZES, **o).state_dict() for o in ({"d_ff": 31}, {"tied": True}))
FILLED = KVCache()
FILLED.k, FILLED.v = ones(2, 7, 5, 11), ones(2, 7, 5, 13)

REFUSED = {
    **calls("attention", *SCALED, f=attention, **Q_K_V),
    **calls("qk_norm", "what attends", f=qk_norm(), **Q_K_V),
    **calls("fused", *SCALED, "fused attention", f=fused_attention, **Q_K_V),
    **calls("additive", "what attends", f=lambda *x, **o: additive_attention(*x, W, **o), **ADDED),
    **calls("additive", "additive attention", f=additive_attention, w=W, **ADDED),
    **calls("masks", "masks"),
    **calls("heads", "heads", filled=FILLED, **SEQUENCES),
    **calls("heads", "layers", f=heads(**WIDE), **SEQUENCES),
    **calls("fused heads", "layers", f=heads(**WIDE, attend=fused_attention), **SEQUENCES),
    **calls("weights of heads", "layers", f=heads(**WIDE).weights, **SEQUENCES),
    **calls("positions", "positions", learned=LEARNED, fixed=SinusoidalPositions()),
    **calls("gpt2", "words", f=GPT2, filled=FILLED),
    **calls("llama", "words", f=LLAMA, filled=FILLED),
    **calls("models", "models", decoder=PAPER.decoder, x=ones(2, 3, 14)),
    **calls("generation", "generation", llama=LLAMA, paper=PAPER, short=SHORT),
    **calls("layouts", "layouts", llama=LLAMA, narrow=NARROW, tied=TIED, one=np.ones(1)),
}
