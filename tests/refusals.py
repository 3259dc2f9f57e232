r"""Chapters 1 to 8 · What cannot be is refused: what is typed → the error, and what it says.

Each row is a statement and its answer, in which words are a regular expression. The names are
those of `names()` below, and minigrad's. `test_refusals.py` runs them all. A refusal that needs
more than one line stands in the tests of its chapter, and so does one that is asked of many
operations at once.
"""

import math
import re

import numpy as np

import minigrad
from minigrad import Tensor, graphs, nn, optim
from tests.making import A, B, M, leaf


def names():
    """Return the names that the rows use, made anew for each."""
    return {
        **vars(optim) | vars(nn) | vars(minigrad) | vars(graphs),
        "np": np,
        "math": math,
        "rng": np.random.default_rng(3),
        "A": A.copy(),
        "B": B.copy(),
        "M": M.copy(),
        "s": leaf(0.5, "s"),  # ()
        "t": leaf(A, "t"),  # (3,)
        "q": leaf(M, "q"),  # (2, 3)
        "c": Tensor(A, name="c"),  # constant
        "other": type("Tensor", (), {"__module__": "torch", "shape": ()})(),  # another library's
        "linear": nn.Linear(5, 7, rng=np.random.default_rng(5)),
    }


ROWS = r"""
# 1.1 Tensor
Tensor([1], requires_grad=True) → TypeError: an integer tensor cannot require
Tensor(1j) → TypeError: Tensor takes real numbers.*dtype complex128
Tensor(None) → TypeError: Tensor takes real numbers.*dtype object
Tensor("3", dtype=float) → TypeError: real numbers
Tensor([1.0], dtype=complex) → TypeError: real numbers.*dtype complex128
Tensor(np.ones(2, np.float16)) → TypeError: ^Tensor takes float32 or float64.* float16: use \.ast
Tensor([1.0], dtype=np.longdouble) → TypeError: ^Tensor takes float32 or float64, but
Tensor(300, dtype=np.uint8) → ValueError: ^Tensor cannot hold 300 as uint8: use another dtype$
Tensor(-1, dtype=np.uint8) → ValueError: ^Tensor cannot hold -1 as uint8
Tensor([1.0, np.nan], dtype=int) → ValueError: ^Tensor cannot hold nan as int64
Tensor([1.0, 1e300], dtype=np.float32) → ValueError: ^Tensor cannot hold 1e\+300 as float32
linear.astype(np.float32).bias.data = [1e300] * 7 → ValueError: ^data cannot hold 1e\+300 as float32
len(s) → TypeError: unsized
Tensor(q) → TypeError: cut t out of its record.*t\.detach\(\)
Tensor(np.ma.array([1.0], mask=[True])) → TypeError: ignore|drop the gradient
t * np.ma.array([1.0], mask=[True]) → TypeError: ignore|drop the gradient
t * 1j → TypeError: multiply takes real numbers.*complex128
np.array([1j, 2, 3]) + t → TypeError: ^add takes real numbers.*complex128
t + None → TypeError: add takes real numbers.*object
q.data = M * 1j → TypeError: real numbers.*complex128
q.data = A → ValueError: data of shape \(2, 3\) cannot become \(3,\)
Tensor([1, 2]).data = [1.7, 2.7] → TypeError: int64 cannot become flo
(q * q).data = M → TypeError: only a leaf.*result of multiply
(q * q).requires_grad = False → TypeError: multiply; use detach
q[0] = 1.0 → TypeError: cannot be changed in place.*np\.where
q.note = "lost" → AttributeError: note
bool(q) → ValueError: ambiguous
f"{q:.2f}" → ValueError: size 1
int(s) → TypeError: ^int\(\) would drop the gradient of 's' \(\): use .item
range(s) → TypeError: only integer scalar arrays

# 1.3 Rules
t * np.ones(7) → ValueError: ^multiply of 't' \(3,\) and \(7,\): .
t[7] → IndexError: ^getitem of 't' \(3,\): index 7 is out of bounds
q.astype(np.float16) → TypeError: ^astype takes float32 or float64, but got float16
linear.astype(np.float16) → TypeError: ^Linear\.astype takes float32 or float64, but got float16
layer_norm(M.astype(np.float16), 1.0, 0.0) → TypeError: ^layer_norm takes float32 or float64
primitive(lambda x, /: (x.astype("g"), None))(t) → TypeError: ^the value of <lambda> takes float
t.astype(np.float32) * c → TypeError: ^multiply of float32 would become float64 beside .* 'c'
c * Tensor(A.astype(np.float32)) → TypeError: 'c' \(3,\).*use \.astype\(np\.float32\) on
t.sum(axis=2) → ValueError: ^sum of 't' \(3,\): axis 2 is out of

# 1.4 Words
float(s) → TypeError: ^float\(\) would drop the gradient of 's' \(\): use .it
math.exp(s) → TypeError: ^float\(\) would drop the gradient of 's' \(\): use .it
q.transpose(-2, -1) → ValueError: ^transpose\(-2, -1\) of 'q' \(2, 3\) does not exchange two axes
q.transpose(0, 1) → ValueError: of all, as NumPy's does; use .mT, or .swapaxes\(0, 1\)$
q.transpose(0, -1) → ValueError: does not exchange
q.transpose(-2, 1) → ValueError: does not exchange
q[None].transpose(1, 2) → ValueError: ^transpose\(1, 2\) of \(1, 2, 3\) does .*swapaxes\(1, 2\)$
linear.to("cpu") → AttributeError: ^a Module has no \.to: use the model itself, as there is one dev

# 2.1 and 2.2 Replay and autograd
t.backward() → ValueError: needs a seed .* shape \(3,\), not \(\)
t.backward(1.0) → ValueError: shape \(\), but the root has \(3,\)
t.backward(1j * A) → TypeError: real numbers.*complex128
backward(c) → ValueError: from 'c' \(3,\): no input required
backward(2.0) → TypeError: starts at a Tensor of minigrad, but got <class .float
backward(other) → TypeError: starts at a Tensor of minigrad, but got <class .torch.Tensor.>$
gradients(t.sum(), [other]) → ValueError: xs\[0\], \(\), is not a Tensor of minigrad
no_grad(np.exp)(s).backward() → ValueError: or it was computed under no_grad\(\)
gradients(t.sum(), t) → TypeError: list of tensors: write \[x\]
gradients(t.sum(), [t, c]) → ValueError: xs\[1\], 'c' \(3,\), is not a T
gradients(t.sum(), [A]) → ValueError: xs\[0\].*is not a Tensor of minigrad
gradients(c, [t]) → ValueError: nothing leads back from 'c'
gradients(t, [t]) → ValueError: ^gradients\(\) needs a se

# 2.3 Derivatives
grad(np.exp)(M) → ValueError: needs a scalar: f returned shape \(2, 3\), not \(\)
hessian(np.exp)(M) → ValueError: needs a scalar: f returned shape \(2, 3\), not \(\)
grad(lambda x: [x])(1.0) → TypeError: f returned list
jacobian(lambda x: (x, x))(1.0) → TypeError: ^jacobian\(f\) needs one Tensor: f returned tuple$
grad(np.exp, 1)(2.0) → ValueError: argument 1, but f got 1 by position$
jacobian(np.exp, 3)(2.0) → ValueError: ^jacobian: argnums asks
jacobian(np.add, (0, 1))(2.0, 3.0) →
    TypeError: ^jacobian: argnums is a number, for grad also a tuple: got \(0, 1\)$
hessian(np.add, (0, 1))(2.0, 3.0) → TypeError: argnums is a number, .*: got \(0, 1\)$
grad(np.add, [0, 1])(2.0, 3.0) → TypeError: ^grad: argnums is a number, .*: got \[0, 1\]
grad(lambda x: x)("word") → TypeError: takes real numbers.*<U4
jvp(np.add, (1.0, 2.0), (1.0,)) → ValueError: the directions have shap
jvp(np.exp, 1.0, 1j) → TypeError: ^jvp takes real numbers.*complex
hvp(lambda x: x.sum(), [1.0], [1.0, 2.0]) →
    ValueError: ^hvp: the directions have shapes \[\(2,\)\], but the inputs \[\(1,\)\]$
vjp(np.exp, M)[1](A) →
    ValueError: ^vjp: the seed gradient has shape \(3,\), but the root has \(2, 3\)$
vjp(np.exp, M)[1](None) → ValueError: ^vjp needs a seed gradient

# 2.4 Recomputing
recompute(lambda x: (x, x), t) →
    TypeError: ^recompute\(f, …\): f must return one Tensor, but gave tuple

# 3.2 Shape
q.reshape(5) → ValueError: ^reshape of 'q' \(2, 3\): .*into shape \(5,\)
q.transpose(0, 2) → ValueError: ^transpose of 'q' \(2, 3\): axis 2 is out of bounds
broadcast_to(q, (2, 5)) → ValueError: ^broadcast_to of 'q' \(2, 3\): .*\(2,5\)
q.astype(int) → ValueError: ^astype of 'q' \(2, 3\): .*int64 is not a floating dtype

# 3.3 Indexing
q[2] → IndexError: getitem of 'q' \(2, 3\): index 2 is out of bounds
q[1.0] → IndexError: getitem of 'q' \(2, 3\): only integers
q[np.ones(5, bool)] → IndexError: getitem of 'q' \(2, 3\): boolean index
scatter_add(q, (2, 2), [[0, 5]]) →
    IndexError: index 5 is out of bounds
where(np.ones(5, bool), q, 0.0) → ValueError: where of \(5,\) and 'q' \(2, 3\) and \(\): .
concatenate([q, np.ones((2, 5))]) →
    ValueError: concatenate of 'q' \(2, 3\) and \(2, 5\): .*dimension 1
einsum(q, t) → TypeError: einsum takes its subscripts first, as text: einsum\("ij
concatenate([]) → ValueError: need at least one array

# 3.4 Reductions
softmax(q, axis=(0, 0)) → ValueError: ^softmax of 'q' \(2, 3\): dupl
max(q[:, :0], axis=1) → ValueError: ^max of \(2, 0\): zero-size array

# 3.5 Linear algebra
q @ 2.0 → ValueError: ^matmul of 'q' \(2, 3\) and \(\): for a scalar write \*
q @ M → ValueError: ^matmul of 'q' \(2, 3\) and \(2, 3\): .* rows of 3, .* columns of 2$
Tensor(np.ones((2, 3, 7))) @ np.ones((2, 5, 7)).T →
    ValueError: rows of 7, .* columns of 5 \(`\.T` of a stack turns all axes .*: is `\.mT` meant\?\)
Tensor(np.ones((2, 7, 3))).T @ np.ones((2, 7, 5)) → ValueError: rows of 2.*: is `\.mT` meant

# 4 Checks
gradcheck(lambda x: x * rng.standard_normal(3), A) →
    ValueError: two calls of f with equal inputs gave different values
gradcheck(lambda x: x * np.inf, A) → ValueError: not finite at the inputs
gradcheck(np.tanh, A * np.inf) → ValueError: is not finite, and no difference can move it
gradcheck(lambda x: 3.0, A) → ValueError: must return one Tensor, but gave float
gradcheck(lambda i: Tensor(1.0), np.arange(3)) → ValueError: no input has a floating dtype
gradcheck(np.tanh, A, order=3) → ValueError: got order=3
numerical_gradient(lambda x: x * x, A) → ValueError: needs a scalar: f returned shape \(3,\)

# 5 Graphs
graph(A) → TypeError: draws the record of a Tensor, but got ndarray
graph(t * 2.0, grads=True) → ValueError: needs a seed gradient: the root has shape \(3,\)
graph(t.sum(), grads=True, limits=(1.0, 1e-3)) → ValueError: two positive numbers, the lower first
graph(t.sum(), grads=True, limits=(0.0, 1.0)) → ValueError: two positive numbers, the lower first
graph(s * s, depth=-1) → ValueError: ^depth must be a whole number, 0 ≤ depth < ∞: got -1$
graph(s) → ValueError: 's' \(\) has no record to draw, because it is a leaf
graph(Tensor(1.0)) → ValueError: has no record to draw, because it does not require a gradient
Steps().backward(A) → TypeError: backward
Steps().backward(t * 2.0) → ValueError: needs a seed gradient: the root has shape

# 6.1 Elementwise
clip(q) → ValueError: clip needs a limit.*both None

# 6.2 Arranging
squeeze(q, 0) → ValueError: 'q' \(2, 3\): axis 0 has length 2
squeeze(q[None], (0, 2)) → ValueError: \(1, 2, 3\): axis 2 has length 3
np.take(t, [True, False, True]) → TypeError: ^take needs integers, but got booleans: x\[mask\]
take(q, True, 0) → TypeError: ^take needs integers
moveaxis(q, (0, 1), 0) → ValueError: zip\(\) argument 2 is longer
take_along_axis(q, [0, 1]) →
    ValueError: indices with as many axes as x: x has shape \(2, 3\), the indices \(2,\)
take(q, [3], 1) → IndexError: 'q' \(2, 3\): index 3 is out
pad(q, 1, "linear_ramp") →
    ValueError: pad has the mode 'constant', not 'linear_ramp': np.concatenate
stack([q, t]) → ValueError: stack joins tensors of one shape, but got 'q' \(2, 3\) and 't' \(3,\)
stack([]) → ValueError: but got nothing
split(q, 2, axis=1) →
    ValueError: split of 'q' \(2, 3\): 3 places along axis 1 do not make 2 equal parts
split(q, 0) → ValueError: do not make 0 equal parts
split(t, [1.5]) → TypeError: 'float' object cannot be interpreted as an integer
np.roll(q, (1, 0.5), (0, 1)) → TypeError: cannot be interpreted as an integer
diagonal(q, 0, 1, -1) → ValueError: repeated axis

# 6.3 Reductions and linear algebra
var(q, axis=0, ddof=2) →
    ValueError: var of 'q' \(2, 3\) over 2 elements with ddof=2: there is nothing to divide by
std(q[:, :0]) → ValueError: std of \(2, 0\) over 0 elements
norm(t, 3) → TypeError: norm has no rule for ord=3
np.linalg.norm(q, 2) → TypeError: norm has no rule for ord=2
np.median(t[:0]) → ValueError: ^median of \(0,\) over 0 elements: there is nothing in the middle
np.average(q, weights=A) → ValueError: ^average of 'q' \(2, 3\) takes.*\(3,\) with axis=None
np.average(q, 0, A) → ValueError: each place along it: got \(3,\) with axis=0$
dot(q, np.ones((2, 3, 5))) → ValueError: at most two axes of b, not \(2, 3, 5\): use @ or einsum
einsum("ii", q) → ValueError: 'ii' has a letter twice in one operand: use np.diagonal
dot(q, q) → ValueError: 'q' \(2, 3\) and 'q' \(2, 3\): the left

# 6.4 Learning
mse(t.reshape(3, 1), t) →
    ValueError: mse compares equal shapes, but got \(3, 1\) and \(3,\)
binary_cross_entropy_with_logits(q, t) →
    ValueError: equal shapes, but got \(2, 3\) and \(3,\)
masked_softmax(q, np.ones((3, 2), bool)) →
    ValueError: a boolean mask that broadcasts to them: got 'q' \(2, 3\) and bool \(3, 2\)
masked_softmax(q, np.ones((2, 3))) → ValueError: and float64 \(2, 3\)
masked_softmax(s, True) → ValueError: masked_softmax takes rows
cross_entropy(q, [0]) → ValueError: cross_entropy of 'q' \(2, 3\).*: one target for each row
cross_entropy(q, [0, -100]) → ValueError: -100 counts for nothing if ignore_index=-100 is given
cross_entropy(q, [0, 1], reduction="total") →
    ValueError: reduction is 'mean', 'sum' or 'none': got 'total'
cross_entropy(q, [[0], [1]]) → ValueError: classes on the last axis.* the logits \(2, 3\)$
cross_entropy(q, [[0, 1, 0], [1, 0, 0]]) → ValueError: one target for.*of one-hot rows take .argmax
binary_cross_entropy_with_logits(t, c * 10) → ValueError: targets are 0 or 1
cross_entropy(q, M) → ValueError: are probabilities: these do not sum to 1
cross_entropy(q, [True, False]) → TypeError: ^targets: integers were .* the dtype is bool
cross_entropy(q, ["a", "b"]) → TypeError: ^targets: integers were .* the dtype is <U1
cross_entropy(q, M / M.sum(1, keepdims=True), ignore_index=0) →
    ValueError: ignore_index is a class, and these targets are probabilities$
cross_entropy(q, [0, 1], label_smoothing=1.0) →
    ValueError: ^label_smoothing must be a number, 0 ≤ label_smoothing < 1: got 1.0$
cross_entropy(q, [0, 1], label_smoothing=True) → ValueError: got True$
embedding(t, [0]) → ValueError: ^embedding takes a table of rows, \(V, d\): got 't' \(3,\)$
cross_entropy(q, [0, 1], weight=A) → TypeError: instead of weight= use class_weights=$
cross_entropy(q, [0, 1], class_weights=[1, 2]) →
    ValueError: class_weights has a number for each of 3 classes: got int64 \(2,\)$
cross_entropy(q, [0, 1], class_weights=[1, 2, -3]) →
    ValueError: class_weights must be finite and not negative: got array
cross_entropy(q, [0, 1], class_weights=[1, np.inf, 3]) → ValueError: class_weights must be finite
cross_entropy(q, [0, 1], class_weights=[0, 0, 3]) → ValueError: no target is left to take the mean
cross_entropy(q, [0, 1], class_weights=t) → TypeError: would drop the gradient of 't' \(3,\)
embedding(q, [0], padding_idx=-1) → ValueError: ^padding_idx must be a whole number, 0 ≤ padding_idx
cross_entropy(q, q) → TypeError: would drop the gradient of 'q' \(2, 3\)
dropout(q, 0.5, rng=3) → TypeError: dropout needs rng=np.random.default_rng\(seed\): got int
dropout(q, 0.5) → TypeError: ^dropout.* missing .*'rng'; pass rng=np.random.default_rng\(seed\)$
dropout(q, 1.0, rng=rng) → ValueError: ^dropout must be a number, 0 ≤ dropout < 1: got 1.0$

# Vocabulary
np.linalg.det(M @ M.T * s) → TypeError: ^np.linalg.det has no rule for Tensors: compose it from what
q % 2 → TypeError: ^np.remainder has no rule for Tensors: use x - y \* \(x // y\)$
np.sum(q, where=np.ones(3, bool)) →
    TypeError: ^np.sum with where= has no rule for Tensors: its options here are axis, keepdims$
np.sum(q, out=np.zeros(())) → TypeError: ^np.sum with out= cannot be recorded: make a new tensor$
np.sum(q, 0, np.float32) → TypeError: sum
np.reshape(q, (3, 2), "F") → TypeError: reshape.*positional
np.linalg.norm(q, dim=1) →
    TypeError: norm\(\) got an unexpected|np.linalg.norm with dim= has no rule
np.exp(q, dtype=np.float32) → TypeError: ^np.exp with dtype= has no rule
np.add(M, 1, where=q) → TypeError: ^np.add with where= has no rule for Tensors

# 7 Layers
Embedding(11, 7, rng=rng)([[11]]) → ValueError: embedding
Embedding(11, 7, rng=rng)([[1.0]]) → TypeError: embedding
Embedding(11, 7, padding_idx=11, rng=rng) →
    ValueError: ^padding_idx must be a whole number, 0 ≤ padding_idx < 11: got 11$
functional_call(linear, {"weights": M}, M) →
    ValueError: ^weights is not a name in this Linear: weight, bias$
functional_call(linear, {"bias": M}, M) → ValueError: ^bias has shape \(7,\): got \(2, 3\)$
functional_call(softmax, {"w": M}, M) → ValueError: ^w is not a name in this function: $
Dropout(np.nan, rng=rng) → ValueError: ^dropout must be a number, 0 ≤ dropout < 1: got nan$
LayerNorm(3, eps=-1) → ValueError: ^eps must be a number, 0 ≤ eps < ∞: got -1$
RMSNorm(3, eps="a") → ValueError: ^eps must be a number, 0 ≤ eps < ∞: got 'a'$
Linear(0, 0, rng=rng) → ValueError: ^d_in must be a whole number, 1 ≤ d_in < ∞: got 0$
linear.astype(int) → ValueError: ^a model's parameters have a floating dtype: got
Linear(5, 7) → TypeError: ^Linear.* missing .*'rng'; pass rng=np.random.default_rng\(seed\)$
Sequential(Embedding(2, 3)) → TypeError: ^Embedding.* missing .*'rng'; pass
xavier_uniform((5,), rng=rng) → ValueError: ^fan-in and fan-out are the last two axes of a weight

# 8 Optimizers
Adam(Linear(2, 3, rng=rng)) → TypeError: ^an optimizer takes model.parameters\(\), or a list: got
Adam([]) → ValueError: an optimizer needs a parameter: got none
Adam(Tensor([1.0], requires_grad=True)) → TypeError: or a list: got a Tensor$
clip_gradients(t, 1.0) → TypeError: ^clip_gradients takes model.parameters\(\), or a list: got
grad(t, [t]) → TypeError: grad takes a function: of a tensor y, gradients
Linear(2, 3, rng=3) → TypeError: drawn from rng=np.random.default_rng\(seed\): got 3$
SGD([other], 0.1) → TypeError: a leaf of minigrad that requires a gradient, frozen or not: <
linear(["a"] * 5) → TypeError: ^Linear takes real numbers, but got an array of dtype <U1$
SGD([t * 2], 0.1) → TypeError: parameters\[0\] is not a leaf
SGD([c], 0.1) → TypeError: parameters\[0\] is not a leaf
SGD([t, t], 0.1) → ValueError: in the list twice
SGD([{"params": [t]}, {"params": [q, t]}], 0.1) → ValueError: ^a parameter .*or in two groups: it
SGD([{"params": [t], "speed": 3}], 0.1) →
    TypeError: ^SGD does not know speed, of group 0: use lr, momentum$
SGD([{"params": [q]}, t], 0.1) → TypeError: ^group 1 must be a dict with "params": got Tensor
SGD([{"lr": 0.1}], 0.1) → TypeError: ^group 0 must be a dict with "params": got {'lr': 0.1}$
SGD([{"params": t}], 0.1) → TypeError: ^group 0 takes model.parameters\(\), or a list: got a Tensor
SGD([{"params": [t], "lr": -1}], 0.1) → ValueError: ^lr must be a number, 0 ≤ lr < ∞: got -1$
SGD([{"params": [t], "lr": 0.1}], 0) → ValueError: ^a group's rate is a multiple of .* which is 0$
SGD([{"params": []}, {"params": [t]}], 0.1) → ValueError: an optimizer needs a parameter: got none
AdamW([t], matrices_only=True) → TypeError: instead of matrices_only= use groups: \[{"params": matr
SGD([t], 0.1).step() → RuntimeError: no parameter has a gradient: call loss.backward\(\) before step
SGD([t], -1) → ValueError: ^lr must be a number, 0 ≤ lr < ∞: got -1$
SGD([t], np.nan) → ValueError: ^lr must be a number, 0 ≤ lr < ∞: got nan$
SGD([t], True) → ValueError: ^lr must be a number, 0 ≤ lr < ∞: got True$
SGD([t], 1.0, momentum=1) → ValueError: ^momentum must be a number, 0 ≤ momentum < 1: got 1$
Adam([t], betas=(0.9, 1.0)) → ValueError: ^betas\[1\] must be a number, 0 ≤ betas.* < 1: got 1.0$
Adam([t], betas=(0.9,)) → ValueError: ^betas must be two numbers: got \(0.9,\)$
Adam([t], eps=0.0) → ValueError: ^eps must be a number, 0 < eps < ∞: got 0.0$
AdamW([t], weight_decay=-1) → ValueError: ^weight_decay must be a number, 0 ≤ weight_decay < ∞: got
clip_gradients([t], -1.0) → ValueError: ^max_norm must be a number, 0 < max_norm ≤ ∞: got -1.0$
"""

# A row is a line, and those below it that are indented.
REFUSALS = [
    (call.strip(), *" ".join(answer.split()).split(": ", 1))
    for call, answer in (
        row.split("→") for row in re.split(r"\n(?=\S)", ROWS) if row.strip() and row[0] != "#"
    )
]
