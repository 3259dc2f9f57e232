"""Exercise 24 · Reverse: your own rules learn to write backwards.

The model reads five digits, such as 3 1 4 1 5, and writes 5 1 4 1 3. It is
made of your own files: the rules of exercises 10, 11, 13, 14 and 15, and
attention, heads and Adam of 19, 21 and 23. First write the block. Its two
halves, with LN for layer_norm, are

    h = x + MultiHead(LN(x)) W_O        MultiHead: split, attention, merge
    y = h + max(LN(h) W₁, 0) W₂         (np.maximum works on Tensors)

Then write one step of the training: forget the old gradients, go backward
from the loss, and give every parameter the array that adam_step returns.

    x        a Tensor (B, T, d)
    p        a dictionary of parameters, as Tensors: w_q, w_k, w_v, w_o, and
             gain_1, bias_1 of the first LN; w_1, w_2, and gain_2, bias_2 of
             the second; and others, which only `scores` uses
    means    a dictionary: the name of a parameter → (m, v) of adam_step
    block(x, p, num_heads) → a Tensor (B, T, d)
    step(loss, p, means, t, lr) changes x.data of each x in p, and means

Chapter 15.1, attention/blocks.py.
"""

import numpy as np
from e10_matmul import matmul
from e11_pick import pick, reshape
from e13_softmax import softmax
from e14_cross_entropy import cross_entropy
from e15_layer_norm import layer_norm
from e19_attention import attention
from e21_heads import merge, split
from e23_optimizer import adam_step


def block(x, p, num_heads):
    """Attention, then a network at each position, both in pre-LN form."""
    # Your lines begin.
    n = layer_norm(x, p["gain_1"], p["bias_1"])
    q = split(matmul(n, p["w_q"]), num_heads)
    k = split(matmul(n, p["w_k"]), num_heads)
    v = split(matmul(n, p["w_v"]), num_heads)
    h = x + matmul(merge(attention(q, k, v, softmax)), p["w_o"])
    n = layer_norm(h, p["gain_2"], p["bias_2"])
    return h + matmul(np.maximum(matmul(n, p["w_1"]), 0), p["w_2"])
    # The learner gets:
    #     n = layer_norm(x, p["gain_1"], p["bias_1"])
    #     q = split(matmul(n, p["w_q"]), num_heads)
    #     ...
    # Your lines end.


def scores(tokens, p, num_heads):
    """How much each digit fits at each place: (B, T) → (B, T, V)."""
    x = pick(p["embedding"], tokens) + p["positions"]
    x = layer_norm(block(x, p, num_heads), p["gain_3"], p["bias_3"])
    return matmul(x, p["w_scores"])


def loss_of(tokens, p, num_heads):
    """How much the reversed digits surprise the model, as a Tensor."""
    found = scores(tokens, p, num_heads)
    rows = reshape(found, (tokens.size, found.shape[-1]))
    return cross_entropy(rows, tokens[:, ::-1].ravel())


def step(loss, p, means, t, lr):
    """Step t of the training: every parameter moves once."""
    # Your lines begin.
    for x in p.values():
        x.grad = None
    loss.backward()
    for name, x in p.items():
        x.data, *means[name] = adam_step(x.data, x.grad, *means[name], t, lr)
    # Your lines end.
