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
from minigrad import Tensor, nn, optim
from tests.making import A, B, M, leaf


def names():
    """What the rows speak of, made anew for each."""
    return {
        **vars(optim) | vars(nn) | vars(minigrad),
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
        "linear": nn.Linear(5, 7, rng=np.random.default_rng(5)),
    }


ROWS = r"""
# 1.1 Tensor
Tensor([1], requires_grad=True) → TypeError: an integer tensor cannot require
Tensor(1j) → TypeError: Tensor takes real numbers.*dtype complex128
Tensor(None) → TypeError: Tensor takes real numbers.*dtype object
Tensor(np.array([1 + 5j]), dtype=float) → TypeError: real numbers
Tensor(None, dtype=float) → TypeError: real numbers
Tensor("3", dtype=float) → TypeError: real numbers
Tensor(1e300, dtype=np.float32) → ValueError: 1e\+300 is too large for float32
Tensor(300, dtype=np.uint8) → ValueError: 300 is not a number of uint8
Tensor([1.0, math.nan], dtype=int) → ValueError: nan is not a number of int64
Tensor([1.0], dtype=complex) → TypeError: real numbers, but was asked for dtype complex128
Tensor([1.0], dtype=object) → TypeError: real numbers, but was asked for dtype object
len(s) → TypeError: a tensor without axes has no length
Tensor(q) → TypeError: cut t out of its record.*t\.detach\(\)
Tensor(np.ma.array([1.0], mask=[True])) → TypeError: ignore|drop the gradient
t * np.ma.array([1.0], mask=[True]) → TypeError: ignore|drop the gradient
np.ma.array([1.0], mask=[True]) * t → TypeError: ignore|drop the gradient
t * 1j → TypeError: multiply takes real numbers.*complex128
np.array([1j, 2, 3]) + t → TypeError: add takes real numbers.*complex128
t + None → TypeError: add takes real numbers.*object
q.data = M * 1j → TypeError: real numbers.*complex128
q.data = M.astype(object) → TypeError: real numbers.*object
q.data = A → ValueError: data of shape \(2, 3\) cannot become \(3,\)
Tensor([1, 2]).data = [1.7, 2.7] → TypeError: int64 cannot become flo
(q * q).data = M → TypeError: only a leaf.*result of multiply
(q * q).requires_grad = False → TypeError: multiply; use detach
q[0] = 1.0 → TypeError: cannot be changed in place.*np\.where
q.note = "lost" → AttributeError: note
bool(q) → ValueError: shape \(2, 3\) is ambiguous
f"{q:.2f}" → TypeError: ^the format '.2f' is for one element: .* \(2, 3\)$

# 1.3 Rules
t * np.ones(7) → ValueError: ^multiply of 't' \(3,\) and \(7,\): .
t[7] → IndexError: ^getitem of 't' \(3,\): index 7 is out of bounds
t.sum(axis=2) → ValueError: ^sum of 't' \(3,\): axis 2 is out of
fused(definition=None)(lambda x, /: (x, lambda g, y, needs: (g,))) → TypeError: definition
fused(definition=3.0)(lambda x, /: (x, lambda g, y, needs: (g,))) → TypeError: definition

# 1.4 Words
float(s) → TypeError: ^float\(\) would drop the gradient of 's' \(\): use .it
complex(s) → TypeError: ^float\(\) would drop the gradient of 's' \(\): use .it
"%f" % s → TypeError: ^float\(\) would drop the gradient of 's' \(\): use .it
math.exp(s) → TypeError: ^float\(\) would drop the gradient of 's' \(\): use .it
math.fsum([s]) → TypeError: ^float\(\) would drop the gradient of 's' \(\): use .it
int(s) → TypeError: ^int\(\) would drop the gradient of 's' \(\)
[2, 3, 5][s] → TypeError: only integer

# 2.1 and 2.2 Replay and autograd
t.backward() → ValueError: needs a seed .* shape \(3,\), not \(\)
t.backward(np.ones(5)) → ValueError: \(5,\), but the root has \(3,\)
t.backward(1.0) → ValueError: shape \(\), but the root has \(3,\)
t.backward(1j * A) → TypeError: real numbers.*complex128
backward(c) → ValueError: from 'c' \(3,\): no input required
backward(2.0) → TypeError: starts at a Tensor, but got float
no_grad(np.exp)(s).backward() → ValueError: or it was computed under no_grad\(\)
gradients(t.sum(), t) → TypeError: list of tensors: write \[x\]
gradients(t.sum(), [t, c]) → ValueError: xs\[1\], 'c' \(3,\), does
gradients(t.sum(), [A]) → ValueError: xs\[0\].*not require a gradient
gradients(t, [t]) → ValueError: ^gradients\(\) needs a se

# 2.3 Derivatives
grad(np.exp)(M) → ValueError: needs a scalar: f returned shape \(2, 3\), not \(\)
hessian(np.exp)(M) → ValueError: needs a scalar: f returned shape \(2, 3\), not \(\)
hvp(np.exp, M, M) → ValueError: needs a scalar: f returned shape \(2, 3\), not \(\)
grad(lambda x: [x])(1.0) → TypeError: f returned list
grad(lambda x: None)(1.0) → TypeError: f returned NoneType
jvp(lambda x: (x, x), 1.0, 1.0) → TypeError: ^jvp\(f\) needs one Tensor: f returned tuple$
vjp(lambda x: (x, x), 1.0) → TypeError: ^vjp\(f\) needs one Tens
jacobian(lambda x: (x, x))(1.0) → TypeError: ^jacobian\(f\) needs one Tensor: f returned tuple$
grad(np.exp, 1)(2.0) → ValueError: argument 1, but f got 1 by position$
grad(np.exp, (0, -2))(2.0) → ValueError: argument -2, but f got 1 by
grad(lambda x: x)(x=2.0) → ValueError: argument 0, but f got 0 by
jacobian(np.exp, 3)(2.0) → ValueError: ^jacobian: argnums asks
grad(np.exp, 0.5) → TypeError: 'float' object cannot be interpreted
grad(lambda x: x)("word") → TypeError: takes real numbers.*<U4
grad(lambda x: x)(1j) → TypeError: takes real numbers.*complex
jvp(np.exp, (1.0,), 1.0) → TypeError: ^jvp takes two tuples, or one array and one direction$
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
recompute(lambda x: A, t) →
    TypeError: ^recompute\(f, …\): f must return one Tensor, but gave ndarray
recompute(lambda x: None, t) →
    TypeError: ^recompute\(f, …\): f must return one Tensor, but gave None

# 3.2 Shape
q.reshape(5) → ValueError: ^reshape of 'q' \(2, 3\): .*into shape \(5,\)
q.reshape(-1, -1) → ValueError: ^reshape of 'q' \(2, 3\): can only specify one unknown
q.transpose(0, 2) → ValueError: ^transpose of 'q' \(2, 3\): axis 2 is out of bounds
q.transpose(0, 0) → ValueError: ^transpose of 'q' \(2, 3\): repeated axis
transpose(q, (0,)) → ValueError: ^transpose of 'q' \(2, 3\): axes don't match
q.swapaxes(0, 2) → ValueError: ^swapaxes of 'q' \(2, 3\): .*axis 2 is out of bounds
q[0, 0].mT → ValueError: ^swapaxes of \(\): .*out of bounds
broadcast_to(q, (2, 5)) → ValueError: ^broadcast_to of 'q' \(2, 3\): .*\(2,5\)
broadcast_to(q, (3,)) → ValueError: ^broadcast_to of 'q' \(2, 3\): .
q.astype(int) → ValueError: ^astype of 'q' \(2, 3\): .*int64 is not a floating dtype
q.astype(complex) → ValueError: ^astype of 'q' \(2, 3\): .*complex128 is not a floating dtype

# 3.3 Indexing
q[2] → IndexError: getitem of 'q' \(2, 3\): index 2 is out of bounds
q[[0, 5]] → IndexError: getitem of 'q' \(2, 3\): index 5 is out of bounds
q[0, 0, 0] → IndexError: getitem of 'q' \(2, 3\): too many indices
q[1.0] → IndexError: getitem of 'q' \(2, 3\): only integers
q[np.ones(5, bool)] → IndexError: getitem of 'q' \(2, 3\): boolean index
scatter_add(q, (2, 2), [[0, 5]]) →
    IndexError: scatter_add of 'q' \(2, 3\): index 5 is out of bounds
scatter_add(q, (5,), [0, 1]) → ValueError: scatter_add of 'q' \(2, 3\): .
where(np.ones(5, bool), q, 0.0) → ValueError: where of \(5,\) and 'q' \(2, 3\) and \(\): .
concatenate([q, np.ones((2, 5))]) →
    ValueError: concatenate of 'q' \(2, 3\) and \(2, 5\): .*dimension 1
concatenate([q, np.ones(3)]) →
    ValueError: concatenate of 'q' \(2, 3\) and \(3,\): .*same number of dimensions
concatenate([q, q], axis=2) →
    ValueError: concatenate of 'q' \(2, 3\) and 'q' \(2, 3\): axis 2 is out of bounds
einsum(q, t) → TypeError: einsum takes its subscripts first, as text.* as integers below 52
np.einsum(q, [0, -1]) → TypeError: einsum takes its subscripts first, as text.* as integers below 52
np.einsum(q, [0, 60]) → TypeError: einsum takes its subscripts first, as text.* as integers below 52
concatenate([]) → ValueError: need at least one array

# 3.5 Linear algebra
q @ 2.0 → ValueError: ^matmul of 'q' \(2, 3\) and \(\): for a scalar write \*
s @ A → ValueError: ^matmul of 's' \(\) and \(3,\): for a scalar write \*
q @ M → ValueError: ^matmul of 'q' \(2, 3\) and \(2, 3\): .* rows of 3, .* columns of 2
q @ A[:2] → ValueError: ^matmul of 'q' \(2, 3\) and \(2,\): .* rows of 3, .* columns of 2
q @ np.ones((5, 7, 2, 3)) →
    ValueError: ^matmul of 'q' \(2, 3\) and \(5, 7, 2, 3\): .* rows of 3, .* columns of 2

# 4 Checks
gradcheck(lambda x: x * rng.standard_normal(3), A) →
    ValueError: two calls of f with equal inputs gave different values
gradcheck(lambda x: x * np.inf, A) → ValueError: not finite at the inputs
gradcheck(lambda x: 3.0, A) → ValueError: must return one Tensor, but gave float
gradcheck(lambda i: Tensor(1.0), np.arange(3)) → ValueError: no input has a floating dtype
gradcheck(np.tanh, A, order=0) → ValueError: got order=0
gradcheck(np.tanh, A, order=3) → ValueError: got order=3
numerical_gradient(lambda x: x * x, A) → ValueError: needs a scalar: f returned shape \(3,\)

# 5 Graphs
graph(A) → TypeError: draws the record of a Tensor, but got ndarray
graph(t * 2.0, grads=True) → ValueError: needs a seed gradient: the root has shape \(3,\)
graph(t.sum(), grads=True, limits=(1.0, 1e-3)) → ValueError: two positive numbers, the lower first
graph(t.sum(), grads=True, limits=(0.0, 1.0)) → ValueError: two positive numbers, the lower first
graph(t.sum(), grads=True, limits=(-1.0, 1.0)) → ValueError: two positive numbers, the lower first
graph(t.sum(), limits=1.0) → ValueError: two positive numbers, the lower first: got 1.0
graph(s) → ValueError: 's' \(\) has no record to draw, because it is a leaf
graph(Tensor(1.0)) → ValueError: has no record to draw, because it does not require a gradient
graph(t.sum(), depth=-1) → ValueError: depth must be a whole number from 0 on, or None: got -1
graph(t.sum(), depth="all") → ValueError: depth must be a whole number from 0 on, or None: got 'all'
graph(t.sum(), depth=1.5) → ValueError: depth must be a whole number from 0 on, or None: got 1.5
graph(t.sum(), depth=True) → ValueError: depth must be a whole number from 0 on, or None: got True
graph(t.sum(), limits=(1e-3, "a")) → ValueError: two positive numbers, the lower first
graph(t.sum(), steps=[]) → TypeError: graph\(steps=…\) takes Steps: got list
Steps(3) → TypeError: Steps\(net\) takes a Module: got int
Steps().backward(A) → TypeError: backward
Steps().backward(t * 2.0) → ValueError: needs a seed gradient: the root has shape

# 6.1 Elementwise
clip(q) → ValueError: clip needs a limit.*both None

# 6.2 Arranging
squeeze(q, 0) → ValueError: 'q' \(2, 3\): axis 0 has length 2
moveaxis(q, (0, 1), 0) → ValueError: 2 axes cannot move to 1
take_along_axis(q, [0, 1]) →
    ValueError: integer indices with as many axes as x: x has shape \(2, 3\), the indices \(2,\)
take_along_axis(q, [[0.0]]) → ValueError: integer indices.*dtype float64
take(q, [3], 1) → IndexError: 'q' \(2, 3\): index 3 is out
pad(q, 1, "linear_ramp") →
    ValueError: constant, edge, reflect, symmetric and wrap, but was asked for 'linear_ramp'
stack([q, t]) → ValueError: stack joins tensors of one shape, but got 'q' \(2, 3\) and 't' \(3,\)
stack([]) → ValueError: but got nothing
split(q, 2, axis=1) →
    ValueError: split of 'q' \(2, 3\): 3 places along axis 1 do not make 2 equal parts
split(q, 0) → ValueError: do not make 0 equal parts
split(t, [1.5]) →
    TypeError: split of 't' \(3,\) takes a number of parts or a list of integers.* got \[1.5\]$
split(t, 1.5) → TypeError: split of 't' \(3,\) takes a number of parts or a list.* got 1.5$
roll(t, 1.5) → TypeError: roll of 't' \(3,\) moves by whole places: got shift=1.5$
np.roll(q, (1, 0.5), (0, 1)) → TypeError: roll of 'q' \(2, 3\) moves by whole places
diagonal(q, 0, 1, -1) → ValueError: diagonal of 'q' \(2, 3\): axis1 and axis2 are one axis

# 6.3 Reductions and linear algebra
var(q, axis=0, ddof=2) →
    ValueError: var of 'q' \(2, 3\) over 2 elements with ddof=2: there is nothing to divide by
std(q[:, :0]) → ValueError: std of \(2, 0\) over 0 elements
norm(t, 3) → TypeError: norm has ord 1, 2.*asked for ord=3
norm(q, 2) →
    TypeError: ord=2 over two axes would be a norm of matrices, which has no rule: give one axis
tensordot(q, q, 1) →
    ValueError: tensordot of 'q' \(2, 3\) and 'q' \(2, 3\): the paired axes have lengths
    \(3,\) and \(2,
dot(q, q) → ValueError: 'q' \(2, 3\) and 'q' \(2, 3\): the left

# 6.4 Learning
mse(t.reshape(3, 1), t) →
    ValueError: mse compares equal shapes: the prediction has \(3, 1\), the target \(3,\)
binary_cross_entropy_with_logits(q, t) →
    ValueError: equal shapes: the logits have \(2, 3\), the targets \(3,\)
huber(q, t) →
    ValueError: huber compares equal shapes: the prediction has \(2, 3\), the target \(3,\)
huber(t, t, delta=0.0) → ValueError: huber changes from a square to a line at delta > 0: got 0.0
kl_div(q, t) →
    ValueError: kl_div compares two distributions.* have \(2, 3\), the probabilities \(3,\)
masked_softmax(q, np.ones((3, 2), bool)) →
    ValueError: a boolean mask that broadcasts to them: got 'q' \(2, 3\) and bool \(3, 2\)
masked_softmax(q, np.ones((2, 2, 3), bool)) → ValueError: a boolean mask that broadcasts to them
masked_softmax(q, np.ones((2, 3))) → ValueError: and float64 \(2, 3\)
masked_softmax(s, True) → ValueError: masked_softmax takes rows
glu(t) → ValueError: glu of 't' \(3,\): axis 0 does not have two equal halves
nll(q, [0]) → ValueError: target for each row.*\(2, 3\) and \(1,\)
cross_entropy(q, [0]) → ValueError: cross_entropy of 'q' \(2, 3\).*: one target for each row
cross_entropy(q, [0, 1], label_smoothing=1.0) →
    ValueError: label_smoothing lies between 0 and 1, but is 1.0
cross_entropy(q, [0, 1], reduction="total") →
    ValueError: reduction is 'mean', 'sum' or 'none': got 'total'
mse(q, q, reduction=None) → ValueError: reduction is 'mean', 'sum' or 'none': got None
cross_entropy(q, [0, 1], weight=[1.0, 2.0]) →
    ValueError: weight is a number, 0 or more, for each of the 3 classes: got \[1. 2.\]
nll(q, [0, 1], weight=[1.0, -2.0, 1.0]) → ValueError: weight is a number, 0 or more
cross_entropy(q, [0, 1], weight=[1.0, math.nan, 1.0]) → ValueError: weight is a number, 0 or more
cross_entropy(q, [0, 1], weight=[0.0, 0.0, 1.0]) →
    ValueError: no target is left to take the mean over
cross_entropy(q, [0, 1], weight=t) → TypeError: weight must be a constant, but 't'
cross_entropy(q, M / M.sum(axis=1, keepdims=True), weight=2.0) → ValueError: weight is a number, 0
cross_entropy(q, [0, 1], weight=[1j, 1, 1]) → TypeError: weight takes real numbers
cross_entropy(q, [[0, 1, 0], [1, 0, 0]]) → TypeError: probabilities.*of one-hot rows take .argmax
cross_entropy(q, [0, 1], ignore_index=[0, 1]) → TypeError: ignore_index is one integer: got \[0, 1\]
nll(q, [0, 1], ignore_index=1.0) → TypeError: ignore_index is one integer: got 1.0
kl_div(q, np.log(M)) → ValueError: some are negative; of log-probabilities take np.exp
binary_cross_entropy_with_logits(t, c * 10) → ValueError: targets are 0 or 1
cross_entropy(q, M) → ValueError: rows that sum to 1: these are not
cross_entropy(q, np.ones((2, 3)) / 3, ignore_index=0) →
    ValueError: ignore_index is for targets that are classes: these are probabilities
cross_entropy(q, q) → TypeError: targets must be a constant, but 'q' \(2, 3\) requires a gradient
binary_cross_entropy_with_logits(t, [0.0, 2.0, 1.0]) →
    ValueError: targets are 0 or 1, or probabilities between: got 2.0
embedding(t, [0]) → ValueError: embedding takes a table \(V, d\): got 't' \(3,\)
dropout(q, 0.5, rng=3) → TypeError: dropout needs rng=np.random.default_rng\(seed\): got int
dropout(q, 0.5) → TypeError: rng
dropout(q, 1.0, rng=rng) → ValueError: probability p, 0 ≤ p < 1: got 1.0
dropout(q, -0.1, rng=rng) → ValueError: got -0.1

# 6.5 Vocabulary
np.sum(q, where=np.ones(3, bool)) →
    TypeError: ^np.sum with where= has no rule for Tensors: its options here are axis, keepdims;
    instead of where= use np.where before it$
np.where(q) → TypeError: ^np.where of one Tensor has no rule: use np.nonzero\(t\)
np.std(q, mean=0.0) → TypeError: ^np.std with mean= has no rule
np.sum(q, out=np.zeros(())) → TypeError: ^np.sum with out= cannot be recorded: make a new tensor$
np.sum(q, 0, np.float32) → TypeError: sum
np.reshape(q, (3, 2), "F") → TypeError: reshape.*positional
np.linalg.norm(q, dim=1) →
    TypeError: norm\(\) got an unexpected|np.linalg.norm with dim= has no rule
np.exp(q, dtype=np.float32) → TypeError: ^np.exp with dtype= has no rule
np.exp(q, casting="same_kind") → TypeError: ^np.exp with casting= has no rule
np.add(q, 1, where=M > 1.0) → TypeError: ^np.add with where= .* use np.where$
np.add(M, 1, where=q) → TypeError: ^np.add with where= .* use np.where$

# 7 Layers
Embedding(11, 7, rng=rng)([[11]]) → ValueError: embedding
Embedding(11, 7, rng=rng)([[-1]]) → ValueError: embedding
Embedding(11, 7, rng=rng)([[1.0]]) → TypeError: embedding
Dropout(-0.1, rng=rng) → ValueError: ^dropout drops with a probability p, 0 ≤ p < 1: got -0.1$
Dropout(1.0, rng=rng) → ValueError: ^dropout drops with a probability p, 0 ≤ p < 1: got 1.0$
Dropout(1.5, rng=rng) → ValueError: ^dropout drops with a probability p, 0 ≤ p < 1: got 1.5$
Dropout(np.nan, rng=rng) → ValueError: ^dropout drops with a probability p, 0 ≤ p < 1: got nan$
linear.astype(int) → ValueError: ^a model's parameters have a floating dtype: got
linear.astype(bool) → ValueError: ^a model's parameters have a floating dtype: got
linear.astype(complex) → ValueError: ^a model's parameters have a floating dtype: got
Linear(5, 7) → TypeError: rng

LayerNorm(3, eps=-1) → ValueError: ^eps must be a number, 0 or larger, and finite: got -1$
LayerNorm(3, eps=np.nan) → ValueError: ^eps must be a number, 0 or larger, and finite: got nan$
RMSNorm(3, eps="a") → ValueError: ^eps must be a number, 0 or larger, and finite: got 'a'$
layer_norm(q, t, t, eps=-1.0) → ValueError: eps must be a number, 0 or larger, and finite: got -1.0$

# 8 Optimizers
Adam(Linear(2, 3, rng=rng)) → TypeError: such as model.parameters\(\): got a Linear$
Linear(0, 0, rng=rng) → ValueError: a weight needs inputs or outputs
Linear(2, 3, rng=3) → TypeError: drawn from rng=np.random.default_rng\(seed\): got 3$
Linear(2, 3, rng=rng)([1.0, 2.0]) → TypeError: Linear takes a Tensor: got a list$
Tensor([[1], [1, 2]]) → ValueError: ^Tensor takes rows of equal length
t.sum(dim=0) → TypeError: ^Tensor\.sum\(\) got an unexpected keyword argument 'dim'$
Tensor([1.0], dtype=np.float32).data = [1e300] → ValueError: 1e\+300 is too large for float32$
binary_cross_entropy_with_logits(t, [0, 1, 2]) → ValueError: targets are 0 or 1, or prob
SGD([], 0.1) → ValueError: the list is empty
SGD([t * 2], 0.1) → TypeError: parameters\[0\] is not a leaf
SGD([c], 0.1) → TypeError: parameters\[0\] is not a leaf
SGD([t, t], 0.1) → ValueError: in the list twice
SGD([t], 0.1).step() → RuntimeError: no parameter has a gradient: call loss.backward\(\) before it$
SGD([t], -1) → ValueError: lr must be a number, 0 or larger, and finite: got -1
SGD([t], np.nan) → ValueError: lr must be a number, 0 or larger, and finite
SGD([t], np.inf) → ValueError: lr must be a number, 0 or larger, and finite
SGD([t], "0.1") → ValueError: lr must be a number.*: got '0.1'
SGD([t], -0.1) → ValueError: lr must be a number, 0 or larger, and finite
SGD([t], 1, momentum=1) → ValueError: between 0 and 1: got 1
Adam([t], betas=(0.9, 1.0)) → ValueError: betas lie between
Adam([t], betas=(0.9,)) → ValueError: betas lie between 0 and 1, and are two: got \(0.9,\)
Adam([t], eps=-1.0) → ValueError: eps must be above 0
Adam([Tensor(np.zeros(3, np.float16), requires_grad=True)]) →
    ValueError: eps must be above 0 in .*float16: got 1e-08
AdamW([t], decay=-1) → ValueError: decay must not be negative
warmup_cosine(0, peak=1, warmup=1, total=2) → ValueError: from 1: got 0
inverse_sqrt(0, d_model=4) → ValueError: from 1: got 0
inverse_sqrt(1, d_model=8, warmup=0) → ValueError: warmup is a number of steps, 1 or more
"""

# A row is a line, and those below it that are indented.
REFUSALS = [
    (call.strip(), *" ".join(answer.split()).split(": ", 1))
    for call, answer in (
        row.split("→") for row in re.split(r"\n(?=\S)", ROWS) if row.strip() and row[0] != "#"
    )
]
