"""Refusals of attention: each call, its error, and the words of its sentence.

`…` stands for any words. `test_scaled_dot_product.py` makes all the calls. A refusal that needs
more than a call, such as a look at what it left unchanged, stands with its chapter's tests.
"""

import builtins
import re

import numpy as np

import attention
from attention import generation, mapping, maps
from minigrad import Tensor


def ones(*shape, dtype=float):
    return Tensor(np.ones(shape, dtype))


def yes(*shape):
    return np.ones(shape, bool)


RNG = np.random.default_rng(5)
SIZES = {"d_model": 14, "num_heads": 7, "num_blocks": 2, "rng": RNG}

TABLE = """
attention(q, ones(5, 2), v) → ValueError: …equally many features, not 0: got (3, 11) and (5, 2)
attention(ones(3, 0), ones(5, 0), v) → ValueError: …features, not 0: got (3, 0) and (5, 0)
attention(q, ones(11), v) → ValueError: …at least two axes…: got (3, 11) and (11,)
attention(q, k, ones(4, 13)) → ValueError: …rows of 5, the right has columns of 4
attention(q, k, v, mask=np.ones((3, 5), int))
    → TypeError: mask must be boolean, with True where a query may look: got dtype int64; compare
    first, for instance mask == 1 or mask == 0, whichever marks keys to look at
attention(q, k, v, mask=yes(5, 3)) → ValueError: mask of shape (5, 3) does not broadcast to the
    scores' (3, 5), which end in (T queries, S keys)
attention(q, k, v, mask=yes(2, 3, 5)) → ValueError: mask of shape (2, 3, 5) does not broadcast…
attention(q, k, v, score_bias=np.ones((5, 3))) → ValueError: score_bias of shape (5, 3) does not…
attention(q, k, v, score_bias=np.where(yes(3, 5), -np.inf, 0))
    → ValueError: score_bias holds finite numbers of a floating dtype: to forbid a key pass mask=,
    with True where a query may look
attention(q, k, v, score_bias=yes(3, 5)) → ValueError: …to forbid a key pass mask=…
fused_attention(q, ones(5, 2), v) → ValueError: …equally many features, not 0: got (3, 11)…
fused_attention(q, k, v, block=0) → ValueError: block must be a whole number, 1 ≤ block < ∞: got 0
fused_attention(q, k, ones(7, 13)) → ValueError: v (7, 13) needs one row for each of the 5 keys
fused_attention(q, k, v, mask=yes(5, 3)) → ValueError: mask of shape (5, 3) does not broadcast…
fused_attention(q, k, v, score_bias=np.ones(3)) → ValueError: score_bias of shape (3,) does not…
additive_attention(q, k, v, ones(2)) → ValueError: q (…, T, d), k (…, S, d) and w (d,) must agree
    in d: they have shapes (3, 11), (5, 11) and (2,)
causal_mask(5, 3) → ValueError: a causal mask needs a key for each query: got T=5 queries, S=3 keys
window_mask(3, 5, size=0) → ValueError: size must be a whole number, 1 ≤ size < ∞: got 0
padding_mask([3, 6], 5) → ValueError: lengths must lie between 0 and S=5: got [3, 6]
padding_mask([-1, 3], 5) → ValueError: lengths must lie between 0 and S=5: got [-1, 3]
padding_mask([2.5, 3], 5) → ValueError: padding_mask takes B lengths, whole numbers, or booleans
    (B, S) with S=5: got float64 (2,)
padding_mask([[3]], 5) → ValueError: padding_mask takes B lengths, …: got int64 (1, 1)
padding_mask(yes(2, 3), 5) → ValueError: padding_mask takes B lengths, …: got bool (2, 3)
mean_over_positions(ones(2, 5, 7), mask=yes(2, 5)) → ValueError: mask of shape (2, 5) does not…
heads(ones(2, 3, 2)) → ValueError: Linear takes 14 features on the last axis: got (2, 3, 2)
heads(x, mask=yes(2, 3)) → ValueError: mask of shape (2, 3) does not broadcast to the scores'
    (2, 7, 3, 3), …: of one (B, S), True at tokens … make padding_mask(mask, S)
heads(x, cache=KVCache()) → ValueError: each of 3 new positions would see those after it: with a
    cache pass mask=causal_mask(T, cache.length + T)
heads(x, mask=np.ones((3, 3))) → TypeError: mask must be boolean…
heads(x, mask=yes(5, 3, 3)) → ValueError: mask of shape (5, 1, 3, 3) does not broadcast…
heads(x, ones(2, 5, 14), cache=KVCache()) → ValueError: a cache is for self-attention: …
MultiHeadAttention(8, 3, rng=RNG) → ValueError: d_model=8 cannot be shared equally by num_heads=3
MultiHeadAttention(8, 0, rng=RNG) → ValueError: d_model=8 cannot be shared equally by num_heads=0
MultiHeadAttention(8, 4, num_kv_heads=3, rng=RNG)
    → ValueError: num_heads=4 cannot be shared equally by num_kv_heads=3
MultiHeadAttention(8, 2, dropout=1.0, rng=RNG) → ValueError: …0 ≤ dropout < 1: got 1.0
split_heads(ones(3, 8), 3) → ValueError: 8 features cannot be shared equally by num_heads=3
rotary(ones(2, 3, 5)) → ValueError: positions are written in pairs of features: 5 features are odd
rotary(ones(2, 4), base=0) → ValueError: base must be a number, 0 < base < ∞: got 0
rotary(ones(2, 4), pairs="half") → ValueError: pairs of features are 'neighbours' or 'halves': got…
LearnedPositions(11, 4, rng=RNG)(ones(2, 3, 4), 9)
    → ValueError: x has positions up to 11, and the learned ones end at 10
LearnedPositions(11, 1, rng=RNG)(ones(2, 3, 4))
    → ValueError: LearnedPositions adds rows of 1 features: got (2, 3, 4)
Block(32, 2) → TypeError: Block takes layers: Block(MultiHeadAttention(32, 2, rng=rng),
    FeedForward(32, 128, rng=rng)); got 32
Block(heads, heads, cross=heads)(x) → TypeError: a block with cross-attention needs a memory, and…
Block(heads, heads)(x, x) → TypeError: a block with cross-attention needs a memory, and others…
Block(heads, heads, dropout=0.1)(x) → TypeError: …dropout needs rng=np.random.default_rng…
gpt2(19, 11, norm_first=False, **SIZES) → ValueError: gpt2 is pre-LN: build blocks with…
gpt([[0, 19]]) → ValueError: embedding: 19 is not between 0 and 18
gpt([[1.0]]) → TypeError: embedding: integers were asked for…
gpt([[1]], caches=[KVCache()]) → ValueError: zip() argument 2 is shorter…
gpt(np.zeros((1, 12), int)) → ValueError: x has positions up to 11, and the learned ones end at 10
gpt.train().maps([[1]]) → ValueError: the model is in training mode and drops at random: call
    model.eval() first
bert(19, 11, dropout=0.1, **SIZES).maps([[1]]) → ValueError: the model is in training mode and…
llama(19, max_length=3, num_kv_heads=1, **SIZES)([[1, 2, 3, 4]])
    → ValueError: 4 positions were asked for, and this model was trained with max_length=3: give it
    the last 3 tokens and no cache of earlier ones, or set its max_length to None
generate(gpt.eval(), [1, 2], 1) → ValueError: texts have shape (B, T) with T ≥ 1, …: got (2,)
generate(gpt.eval(), [[]], 1) → ValueError: texts have shape (B, T) with T ≥ 1, …: got (1, 0)
generate(gpt.eval(), [[1], []], 1) → ValueError: an empty text has no token…: got texts of [1, 0]…
generate(gpt.eval(), [[1, 2], [4]], 1, rng=[RNG])
    → ValueError: rng is one generator, or one for each of 2 texts: got 1
translate(both, [[1, 2, 3], [4]], start=0, end=1, max_tokens=2) → ValueError: texts of one batch are
    of equal length: got [3, 1] tokens; pass them one by one
gpt([[1, 2]], real=[[1, 0]]) → ValueError: real is boolean (B, S), True at tokens and False at
    padding, such as tokens != PAD: got int64 (1, 2) for tokens of shape (1, 2)
bert(19, 11, **SIZES)([[1, 2]], real=yes(1, 3)) → ValueError: real is boolean…: got bool (1, 3)…
rotary(ones(2, 4), [0, 1, 2]) → ValueError: start is one position, or one for each of 2 rows: got…
LearnedPositions(11, 4, rng=RNG)(ones(1, 2, 4), [[-1, 0]]) → ValueError: embedding: -1 is not…
generate(gpt.eval(), [[1]], -1) → ValueError: max_new_tokens must be a whole number, 0 ≤ max_new…
generate(gpt.eval(), [[1]], 1, end=19) → ValueError: end must be a whole number, 0 ≤ end < 19: …
generate(gpt.eval(), [[1]], 1, end=True) → ValueError: end must be …: got True
generate(gpt.eval(), [[1.5]], 1) → TypeError: …rule 'same_kind'
generate(gpt.eval(), [[1]], 1) → TypeError: drawing tokens needs rng=…; temperature=0 is greedy
generate(gpt.eval(), [[1]], 1, rng=3) → TypeError: …, and got 3; temperature=0 is greedy
generate(gpt.eval(), [[1, 2]], 30, temperature=0) → ValueError: …and the learned ones end at 10
choose([[1.0], [np.nan]], temperature=0, rng=None) → ValueError: no token can be chosen…
probabilities([[1.0]], temperature=0.0) → ValueError: a temperature to divide by is above 0: got 0.0
probabilities([[1.0]], top_k=0) → ValueError: top_k is 1 or more…: got 0 and None
probabilities([[1.0]], top_p=0.0) → ValueError: …top_p a probability: got None and 0.0
probabilities([[1.0]], top_p=90) → ValueError: …top_p a probability: got None and 90
plot_heads(np.ones((1, 2, 3)), "ab", "cd") → ValueError: 2 queries and 2 keys do not name (1, 2, 3)
to_theirs({"w_q.bias": [1], "w_v.bias": [3]}, multi_head_layout()[1:2])
    → ValueError: this layout needs w_k.bias, which the state does not have
to_theirs(MultiHeadAttention(12, 4, num_kv_heads=2, rng=RNG).state_dict(), multi_head_layout())
    → ValueError: in_proj_weight is made of equal parts: got w_q.weight (12, 12)…
to_theirs({"a": [1], "b": [2]}, [Piece("x", ("a",), False), Piece("x", ("b",), False)])
    → ValueError: this layout has two pieces that make x
to_ours({"a": [1], "b": [2]}, [Piece("a", ("x",), False), Piece("b", ("x",), False)])
    → ValueError: this layout has two pieces that make x
to_theirs(gpt.state_dict(), gpt2_layout(1)) → ValueError: this layout has no place for blocks.1.at…
"""


def names():
    """Return the names that the rows use."""
    heads = attention.MultiHeadAttention(14, 7, rng=RNG)
    x = ones(2, 3, 14)
    given = {"ones": ones, "yes": yes, "RNG": RNG, "SIZES": SIZES, "heads": heads, "x": x}
    given |= {"q": ones(3, 11), "k": ones(5, 11), "v": ones(5, 13)}
    given["gpt"] = attention.gpt2(19, 11, dropout=0.1, **SIZES)
    given["both"] = attention.Transformer(19, 19, d_ff=17, **SIZES)
    return vars(maps) | vars(mapping) | vars(generation) | vars(attention) | given


ROWS = re.findall(r"(.+?)\s+→ (\w+): (.+(?:\n .+)*)\n", TABLE)
REFUSED = {
    call: (
        lambda call=call: eval(call, names()),
        getattr(builtins, error),
        "^" + re.escape(" ".join(words.split())).replace("…", ".*") + "$",
    )
    for call, error, words in ROWS
}
