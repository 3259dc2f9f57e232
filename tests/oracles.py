"""What each operation is compared with: NumPy's function, or a definition, and PyTorch's.

NumPy's functions are called as a user calls them, and so take arrays and Tensors alike.
"""

import math

import numpy as np

from tests.cases import JOINING, OURS

try:
    import torch
    import torch.nn.functional as nn
except ImportError:
    torch = None

# ---------------------------------------------------------------- NumPy

# Where the call differs from np.NAME(*inputs, **options).
CALLS = {
    "concatenate": lambda *xs, axis=0: np.concatenate(xs, axis),
    "einsum": lambda *xs, subscripts, **options: np.einsum(subscripts, *xs, **options),
    "astype": lambda x, dtype: np.astype(x, dtype),
    "average": lambda a, weights=None, **options: np.average(a, weights=weights, **options),
    "hstack": lambda *xs: np.hstack(xs),
    "inv": np.linalg.inv,
    "norm": np.linalg.norm,
    "solve": np.linalg.solve,
    "vstack": lambda *xs: np.vstack(xs),
    "reshape": lambda x, shape: np.reshape(x, shape),  # (by name only from NumPy 2.1 on)
    "split": lambda x, indices_or_sections, axis=0: np.concatenate(
        np.split(x, indices_or_sections, axis)[::-1], axis
    ),
    "stack": lambda *xs, axis=0: np.stack(xs, axis),
}

# What NumPy lacks, written for arrays as a textbook writes it.


def reduced(losses, reduction="mean"):
    return {"mean": np.mean, "sum": np.sum, "none": np.asarray}[reduction](losses)


def linear(x, w, b):
    return np.einsum("...i,io->...o", x, w) + b


def masked_softmax(x, mask):
    e = np.where(mask, np.exp(x), 0)
    some = np.broadcast_to(mask, x.shape).any(-1, keepdims=True)
    return np.where(mask, e / np.where(some, e.sum(-1, keepdims=True), 1), 0)


def layer_norm(x, gain, bias, eps=1e-5):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * gain + bias


def cross_entropy(
    logits, targets, class_weights=None, ignore_index=None, label_smoothing=0.0, reduction="mean"
):
    C = np.shape(logits)[-1]
    weights = np.ones(C) if class_weights is None else np.asarray(class_weights)
    classes = np.shape(targets) != np.shape(logits)
    losses, n = np.zeros(np.shape(logits)[:-1]), 0.0
    for row in np.ndindex(losses.shape):
        target = np.asarray(targets)[row]
        if classes and target == ignore_index:
            continue
        truth = np.eye(C)[target] if classes else target
        truth = (1 - label_smoothing) * truth + label_smoothing / C
        log_p = np.log(softmax(np.asarray(logits)[row]))
        losses[row] = -np.where(truth == 0, 0, weights * truth * log_p).sum()
        n += weights[target] if classes else 1
    return losses.sum() / n if reduction == "mean" else reduced(losses, reduction)


def mse(prediction, target, reduction="mean"):
    return reduced((prediction - target) ** 2, reduction)


def binary_cross_entropy_with_logits(z, t, reduction="mean"):
    p = 1 / (1 + np.exp(-z))
    return reduced(-(t * np.log(p) + (1 - t) * np.log(1 - p)), reduction)


def rms_norm(x, gain, eps=1e-5):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * gain


def rotate_pairs(x, cos, sin, pairs):
    """Multiply the pairs as complex numbers a + ib by cos θ + i sin θ."""
    d = x.shape[-1]
    first = np.arange(0, d, 2) if pairs == "neighbours" else np.arange(d // 2)
    second = first + 1 if pairs == "neighbours" else first + d // 2
    turned = (x[..., first] + 1j * x[..., second]) * (cos + 1j * sin)
    y = np.empty(x.shape, x.dtype)
    y[..., first], y[..., second] = turned.real, turned.imag
    return y


def dropout(x, p):
    kept = np.random.default_rng(0).random(x.shape) >= p
    return np.where(kept, x / (1 - p), 0)


def scatter_add(x, shape, index):
    y = np.zeros(shape, x.dtype)
    places = np.arange(y.size).reshape(shape)[index]
    for place, value in zip(
        np.ravel(places), np.ravel(np.broadcast_to(x, np.shape(places))), strict=True
    ):
        y.flat[place] += value
    return y


def softmax(x, axis=-1):
    return np.exp(x) / np.exp(x).sum(axis, keepdims=True)


def each(f):
    """Return a function of one number as one for arrays."""
    return lambda x, **o: (
        np.array([f(v, **o) for v in np.ravel(x)])
        .astype(x.dtype if x.dtype.kind == "f" else float)
        .reshape(x.shape)
    )


def gelu_tanh(x):
    return x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2


DEFINITIONS = {
    "astype": lambda x, dtype: x.astype(dtype),
    "binary_cross_entropy_with_logits": binary_cross_entropy_with_logits,
    "cross_entropy": cross_entropy,
    "dropout": dropout,
    "embedding": lambda table, indices, padding_idx=None: np.where(
        np.equal(indices, padding_idx)[..., None], 0, table[np.asarray(indices)]
    ),
    "erf": each(math.erf),
    "gelu": each(lambda v: v * (1 + math.erf(v / math.sqrt(2))) / 2),
    "gelu_tanh": gelu_tanh,
    "getitem": lambda x, index: x[index],
    "layer_norm": layer_norm,
    "linear": linear,
    "masked_softmax": masked_softmax,
    "log_softmax": lambda x, axis=-1: x - np.log(np.exp(x).sum(axis, keepdims=True)),
    "logsumexp": lambda x, **options: np.log(np.exp(x).sum(**options)),
    "mse": mse,
    "relu": lambda x: np.where(x > 0, x, 0),
    "rms_norm": rms_norm,
    "rotate_pairs": rotate_pairs,
    "scatter_add": scatter_add,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "softmax": softmax,
    "softplus": lambda x: np.log(1 + np.exp(x)),
}


def oracle(case):
    """Return the function that computes the right value of a case."""
    name = case.name
    if name.startswith("t."):
        return OURS[name]  # arrays have the method as well
    return DEFINITIONS.get(name) or CALLS.get(name) or getattr(np, name)


def expected(case, inputs=None):
    """Return the value a case should have, from arrays."""
    arrays = case.inputs if inputs is None else inputs
    return np.asarray(oracle(case)(*arrays, **case.options))


def named(name):
    """Return the name of an operation's oracle, as the table shows it."""
    if name.startswith("t."):
        return f"array{name[1:]}"
    if name in DEFINITIONS:
        return {"getitem": "array[index]", "astype": "array.astype"}.get(name, "definition")
    return f"np.linalg.{name}" if name in ("norm", "inv", "solve") else f"np.{name}"


# ---------------------------------------------------------------- PyTorch

# Its functions take tensors where ours do and the options under our names. NotImplemented says
# that PyTorch has no word for these options.


def number(x):
    """Return a number as a tensor, since some functions of PyTorch take no plain numbers."""
    return torch.as_tensor(x, dtype=torch.float64)


def integers(x):
    return torch.tensor(np.asarray(x, int))


def over_axes(f):
    """Return a reduction over a tuple of axes. (PyTorch takes an empty one for all axes.)"""

    def reduction(x, axis=None, *, keepdims=False):
        if axis == ():
            return NotImplemented
        return f(x, tuple(range(x.ndim)) if axis is None else axis, keepdims)

    return reduction


def one_by_one(f):
    """Return a reduction over several axes from one over a single axis: the last ones first."""

    def reduction(x, axis=None, *, keepdims=False):
        axes = (
            tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        )
        for i in sorted((a % max(x.ndim, 1) for a in axes), reverse=True):
            x = f(x, i, keepdims)
        return x

    return reduction


def spread(x, axis=None, *, ddof=0, keepdims=False, of):
    if axis == () or x.shape == () or x.numel() == 0:
        return NotImplemented
    return of(x, dim=axis, correction=ddof, keepdim=keepdims)


def weights(f):
    def of_rows(x, axis=-1):
        return NotImplemented if axis is None or isinstance(axis, tuple) else f(x, axis)

    return of_rows


def getitem(x, index):
    """Index with NumPy's lists and arrays as tensors. PyTorch does not step backwards."""
    parts = index if isinstance(index, tuple) else (index,)
    if any(isinstance(part, slice) and (part.step or 1) < 0 for part in parts):
        return NotImplemented
    lists = any(isinstance(part, list | np.ndarray) for part in parts)
    if lists and any(part is ... for part in parts):
        return NotImplemented  # where NumPy puts the new axis then is its own affair
    found = []
    for part in parts:
        if isinstance(part, list) or (lists and isinstance(part, int)):
            part = integers(part)
        elif isinstance(part, np.ndarray):
            part = torch.tensor(part)
        found.append(int(part) if isinstance(part, np.integer) else part)
    return x[tuple(found)]


def scatter_add_(x, shape, index):
    places = np.arange(math.prod(shape)).reshape(shape)[index]
    flat = torch.zeros(math.prod(shape), dtype=x.dtype)
    return flat.index_add(0, integers(places.ravel()), x.expand(places.shape).ravel()).reshape(
        shape
    )


def pad(x, pad_width, constant_values=0):
    """Pad axis by axis, which is what NumPy does."""
    widths = np.broadcast_to(pad_width, (x.ndim, 2)).tolist()
    values = np.broadcast_to(constant_values, (x.ndim, 2)).tolist()
    for axis, ((before, after), (left, right)) in enumerate(zip(widths, values, strict=True)):
        x = nn.pad(x.movedim(axis, -1), (before, 0), value=left)
        x = nn.pad(x, (0, after), value=right).movedim(-1, axis)
    return x


def repeat(x, repeats, axis=None):
    return torch.repeat_interleave(
        x, repeats if isinstance(repeats, int) else integers(repeats), axis
    )


def roll(x, shift, axis=None):
    if axis is None:
        return torch.roll(x, shift)
    pairs = list(np.broadcast(shift, axis))
    return torch.roll(x, [int(s) for s, _ in pairs], [int(a) for _, a in pairs])


def take(x, indices, axis=None):
    x, axis = (x.ravel(), 0) if axis is None else (x, axis % x.ndim)
    return x[(slice(None),) * axis + (integers(indices),)]


def split(x, indices_or_sections, axis=0):
    at = indices_or_sections
    at = int(at) if isinstance(at, int | np.integer) else tuple(int(i) for i in at)
    return torch.cat(torch.tensor_split(x, at, axis)[::-1], axis)


def tril_or_triu(f):
    return lambda x, k=0: f(x, k) if x.ndim > 1 else NotImplemented


def dot(a, b):
    a, b = number(a), number(b)
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    return torch.tensordot(a, b, ([-1], [-2 if b.ndim > 1 else -1]))


def losses(f, ignore=-100):
    def loss(x, targets, ignore_index=None, class_weights=None, **options):
        rows = x.reshape(-1, x.shape[-1])
        if class_weights is not None:
            options["weight"] = torch.as_tensor(class_weights, dtype=x.dtype)
        if np.shape(targets) == x.shape:
            targets = torch.as_tensor(targets, dtype=x.dtype).reshape(rows.shape)
        else:
            options["ignore_index"] = ignore if ignore_index is None else ignore_index
            targets = integers(targets).reshape(-1)
        y = f(rows, targets, **options)
        return y.reshape(x.shape[:-1]) if options.get("reduction") == "none" else y

    return loss


def masked_softmax_(x, mask):
    mask = torch.as_tensor(np.broadcast_to(mask, x.shape).copy())
    p = torch.softmax(x.masked_fill(~mask, -torch.inf), -1)
    return torch.where(mask.any(-1, keepdim=True), p, 0.0)


def layer_norm_(x, gain, bias, eps=1e-5):
    if gain.shape != x.shape[-1:] or bias.shape != x.shape[-1:]:
        return NotImplemented
    return nn.layer_norm(x, x.shape[-1:], gain, bias, eps)


def dropped(x, p):
    kept = torch.tensor(np.random.default_rng(0).random(tuple(x.shape)) >= p)
    return torch.where(kept, x / (1 - p), 0.0)


def clip(x, a_min=None, a_max=None):
    is_tensor = [isinstance(limit, torch.Tensor) for limit in (a_min, a_max)]
    if any(is_tensor):
        a_min, a_max = number(a_min), number(a_max)
    return torch.clamp(x, a_min, a_max)


def rotate_pairs_(x, cos, sin, pairs):
    cos, sin = torch.tensor(cos), torch.tensor(sin)
    a, b = (x[..., ::2], x[..., 1::2]) if pairs == "neighbours" else x.chunk(2, -1)
    turned = a * cos - b * sin, a * sin + b * cos
    return torch.cat(turned, -1) if pairs == "halves" else torch.stack(turned, -1).flatten(-2)


def solve(a, b):
    if b.ndim > 1:
        return torch.linalg.solve(a, b)
    return torch.linalg.solve(a, b[..., None].expand(*a.shape[:-1], 1))[..., 0]


TORCH = {
    "add": lambda a, b: a + b,
    "astype": lambda x, dtype: x.to(torch.float64),
    "binary_cross_entropy_with_logits": lambda z, t, **o: nn.binary_cross_entropy_with_logits(
        z, t.to(torch.float64), **o
    ),
    "broadcast_to": lambda x, shape: torch.broadcast_to(x, shape),
    "clip": clip,
    "concatenate": lambda *xs, axis=0: torch.cat(xs, axis),
    "cross_entropy": losses(lambda *a, **o: nn.cross_entropy(*a, **o)),
    "diagonal": lambda x, offset=0, axis1=0, axis2=1: torch.diagonal(x, offset, axis1, axis2),
    "divide": lambda a, b: a / b,
    "dot": dot,
    "dropout": dropped,
    "einsum": lambda *xs, subscripts: torch.einsum(subscripts, *xs),
    "embedding": lambda table, indices, **o: nn.embedding(integers(indices), table, **o),
    "erf": lambda x: torch.special.erf(x),
    "expand_dims": lambda x, axis: x.unsqueeze(axis),
    "flip": lambda x, axis=None: torch.flip(
        x, tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    ),
    "gelu": lambda x: nn.gelu(x),
    "gelu_tanh": lambda x: nn.gelu(x, approximate="tanh"),
    "getitem": getitem,
    "layer_norm": layer_norm_,
    "linear": lambda x, w, b: nn.linear(x, w.T, b),
    "masked_softmax": masked_softmax_,
    "log_softmax": weights(lambda x, axis: torch.log_softmax(x, axis)),
    "logaddexp": lambda a, b: torch.logaddexp(number(a), number(b)),
    "logsumexp": over_axes(lambda x, axis, keep: torch.logsumexp(x, axis, keep)),
    "cumsum": lambda x, axis=None: x.ravel().cumsum(0) if axis is None else x.cumsum(axis),
    "max": over_axes(lambda x, axis, keep: torch.amax(x, axis, keep)),
    "maximum": lambda a, b: torch.maximum(number(a), number(b)),
    "mean": over_axes(lambda x, axis, keep: torch.mean(x, axis, keep)),
    "min": over_axes(lambda x, axis, keep: torch.amin(x, axis, keep)),
    "minimum": lambda a, b: torch.minimum(number(a), number(b)),
    "moveaxis": lambda x, source, destination: torch.movedim(x, source, destination),
    "mse": lambda a, b, **o: nn.mse_loss(a, b, **o),
    "multiply": lambda a, b: a * b,
    "norm": lambda x, axis=None, keepdims=False: torch.linalg.vector_norm(x, 2, axis, keepdims),
    "outer": lambda a, b: torch.outer(a.ravel(), b.ravel()),
    "pad": pad,
    "power": lambda a, b: a**b,
    "prod": one_by_one(lambda x, axis, keep: torch.prod(x, axis, keep)),
    "ravel": lambda x: torch.ravel(x),
    "repeat": repeat,
    "reshape": lambda x, shape: torch.reshape(x, shape if isinstance(shape, tuple) else (shape,)),
    "rms_norm": lambda x, gain, eps=1e-5: (
        nn.rms_norm(x, x.shape[-1:], gain, eps) if gain.ndim == 1 else NotImplemented
    ),
    "roll": roll,
    "rotate_pairs": rotate_pairs_,
    "scatter_add": scatter_add_,
    "silu": lambda x: nn.silu(x),
    "softmax": weights(lambda x, axis: torch.softmax(x, axis)),
    "softplus": lambda x: nn.softplus(x),
    "sort": lambda x, axis=-1: torch.sort(x, axis).values,
    "split": split,
    "squeeze": lambda x, axis=None: torch.squeeze(x) if axis is None else torch.squeeze(x, axis),
    "stack": lambda *xs, axis=0: torch.stack(xs, axis),
    "std": lambda x, axis=None, **o: spread(x, axis, **o, of=torch.std),
    "subtract": lambda a, b: a - b,
    "sum": over_axes(lambda x, axis, keep: torch.sum(x, axis, keep)),
    "swapaxes": lambda x, axis1, axis2: torch.swapaxes(x, axis1, axis2),
    "t.T": lambda x: x.permute(tuple(range(x.ndim))[::-1]),
    "t.copy": lambda x: x.clone(),
    "t.flatten": lambda x: x.flatten(),
    "t.mT": lambda x: x.mT,
    "t.reshape": lambda x, shape: x.reshape(*shape),
    "t.transpose": lambda x, axes: x.permute(axes or tuple(range(x.ndim))[::-1]),
    "take": take,
    "take_along_axis": lambda x, indices, axis=-1: torch.take_along_dim(x, integers(indices), axis),
    "tile": lambda x, reps: torch.tile(x, reps if isinstance(reps, tuple) else (int(reps),)),
    "transpose": lambda x, axes=None: x.permute(axes or tuple(range(x.ndim))[::-1]),
    "tril": tril_or_triu(lambda x, k: torch.tril(x, k)),
    "triu": tril_or_triu(lambda x, k: torch.triu(x, k)),
    "var": lambda x, axis=None, **o: spread(x, axis, **o, of=torch.var),
    "where": lambda condition, a, b: torch.where(condition.bool(), a, b),
    # 3.9 and NumPy's words
    **{name: (lambda *xs, name=name: getattr(torch, name)(xs)) for name in JOINING},
    "cross": lambda a, b, axis=-1: torch.linalg.cross(a, b, dim=axis),
    "diff": lambda x, n=1, axis=-1: torch.diff(x, n=n, dim=axis),
    "hypot": lambda a, b: torch.hypot(*torch.broadcast_tensors(a, b)),
    "inv": lambda a: torch.linalg.inv(a),
    "solve": solve,
}
OTHER_WORDS = ("average", "cbrt", "full_like", "median")  # (its median is the lower)


def in_torch(case, inputs):
    """Return a case's value in PyTorch, or NotImplemented."""
    function = TORCH.get(case.name) or getattr(torch, case.name)
    return function(*inputs, **case.options)
