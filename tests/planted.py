"""Mistakes that people make, planted in rules, and what gradcheck says of each first."""

import numpy as np

from minigrad import primitive

rng = np.random.default_rng(5)
X, Z = rng.standard_normal((3, 3)), rng.standard_normal((3, 3))
P = rng.uniform(0.5, 2.0, (3, 3))
WIDE, LONG = rng.standard_normal((3, 7)), rng.standard_normal((5, 4))
A, B = rng.standard_normal((3, 4)), rng.standard_normal((4, 5))
ROW, COLUMN = rng.standard_normal(4), rng.standard_normal((3, 1))


def rule(value, *vjps, name="suspect"):
    """Return an operation of one input or two, with VJPs that are given g, y and the inputs."""
    if len(vjps) == 1:

        def one(a, /):
            return value(a), lambda g, y: vjps[0](g, y, a)

        return primitive(name=name)(one)

    def two(a, b, /):
        return value(a, b), lambda g, y: vjps[0](g, y, a, b), lambda g, y: vjps[1](g, y, a, b)

    return primitive(name=name)(two)


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def dot(g, y):
    return (g * y).sum(axis=-1, keepdims=True)


def length(x):
    return np.sqrt((x * x).sum(axis=-1, keepdims=True))


def normal(x):
    return (x - x.mean(axis=-1, keepdims=True)) / 2.0


def written(x, i, g):
    out = np.zeros(x.shape)
    out[i] = g
    return out


def stairs(x):
    return np.round(x * 1e3) / 1e3


def last_row_only(g):
    return np.where(np.arange(3)[:, None] == 2, g, 0)


def right(g, *_):
    return g


LAW = "the value stands still"
SIGN, FACTOR, USE, SUM = "sign", "factor", "a use is missing", "not summed"
AXIS, TURNED, OTHER, G = "the wrong axis", "transposed", "exchanged", "ignores g"
NONE = "none of the ten"  # then the rule is named, and no mistake
PLANTED = [
    # the kind of mistake, words of its sentence, which input, the rule, its inputs
    (
        NONE,
        "",
        1,
        rule(
            lambda a, b: a * np.log(b), lambda g, y, a, b: g * np.log(b), lambda g, y, a, b: g * a
        ),
        [X, P],
    ),
    (NONE, "", 0, rule(np.exp, lambda g, y, x: g), [A]),
    (
        NONE,
        "",
        0,
        rule(lambda x: np.log(x) * x - x + x**3 / 3, lambda g, y, x: g * (np.log(x) / x + x)),
        [P],
    ),
    (SIGN, "has the wrong sign", 0, rule(np.cos, lambda g, y, x: g * np.sin(x)), [X]),
    (
        SIGN,
        "-1 times",
        1,
        rule(np.divide, lambda g, y, a, b: g / b, lambda g, y, a, b: g * y / b),
        [X, P],
    ),
    (
        FACTOR,
        "the inner derivative 3 of 3x is missing",
        0,
        rule(lambda x: np.sin(3 * x), lambda g, y, x: g * np.cos(3 * x)),
        [A],
    ),
    (
        FACTOR,
        "2 times the true gradient",
        0,
        rule(np.tanh, lambda g, y, x: 2 * g * (1 - y * y)),
        [X],
    ),
    (
        FACTOR,
        "perhaps a mean stands where a sum belongs: 7 is the number of elements added up for one",
        0,
        rule(lambda x: x.sum(1), lambda g, y, x: g[:, None] * np.ones(x.shape) / 7),
        [WIDE],
    ),
    (
        FACTOR,
        "7 times .*: perhaps a sum stands where a mean belongs",
        0,
        rule(lambda x: x.mean(1), lambda g, y, x: g[:, None] * np.ones(x.shape)),
        [WIDE],
    ),
    (
        FACTOR,
        "perhaps a sum stands where a mean belongs: 21 is the number of elements",
        0,
        rule(lambda x: x.mean(), lambda g, y, x: g * np.ones(x.shape)),
        [WIDE],
    ),
    (
        FACTOR,
        "1/3 of .*: perhaps a mean stands where a sum belongs: 3 is the length of axis 0",
        0,
        rule(np.exp, lambda g, y, x: g * y / 3),
        [A],
    ),
    (
        FACTOR,
        "√d_k, is missing",
        0,
        rule(
            lambda q, k: q @ k.mT / np.sqrt(7),
            lambda g, y, q, k: g @ k,
            lambda g, y, q, k: g.mT @ q / np.sqrt(7),
        ),
        [WIDE, WIDE[:2]],
    ),
    (
        FACTOR,
        "√d_k, is one too many",
        1,
        rule(
            lambda q, k: q @ k.mT,
            lambda g, y, q, k: g @ k,
            lambda g, y, q, k: g.mT @ q / np.sqrt(7),
        ),
        [WIDE, WIDE[:2]],
    ),
    (
        FACTOR,
        "0.693147 times .* a constant",
        0,
        rule(lambda x: np.log(x) / np.log(2), lambda g, y, x: g / x),
        [P],
    ),
    (
        USE,
        "input 0 twice, .* not count multiply .its input 0.*The VJP gives 1/2 of",
        0,
        rule(lambda x: x * x, lambda g, y, x: g * x),
        [A],
    ),
    (
        USE,
        "does not count multiply .its input 0",
        0,
        rule(lambda x: x * np.exp(x), lambda g, y, x: g * y),
        [A],
    ),
    (
        USE,
        "the result of exp twice, .*does not count sum",
        0,
        rule(softmax, lambda g, y, x: g * y),
        [A],
    ),
    (USE, "does not count mean", 0, rule(normal, lambda g, y, x: g / 2), [A]),
    (USE, "does not count swapaxes", 0, rule(lambda x: x @ x.mT, lambda g, y, x: g @ x), [A]),
    (
        SUM,
        "Along axis 0 input 1 .* broadcast to .3, 4.*the first share",
        1,
        rule(np.add, right, lambda g, *_: g[0]),
        [A, ROW],
    ),
    (
        SUM,
        "Along axis 1 .* the first share",
        1,
        rule(np.multiply, lambda g, y, a, b: g * b, lambda g, y, a, b: (g * a)[:, :1]),
        [A, COLUMN],
    ),
    (SUM, r"the mean of them\.$", 1, rule(np.subtract, right, lambda g, *_: -g.mean(0)), [A, ROW]),
    (NONE, "", 0, rule(lambda x: x[[0, 2, 0]], lambda g, y, x: written(x, [0, 2, 0], g)), [A]),
    (
        AXIS,
        "along axis 1, and the VJP along axis 0",
        0,
        rule(softmax, lambda g, y, x: y * (g - (g * y).sum(0, keepdims=True))),
        [X],
    ),
    (
        AXIS,
        "along axis 1, and the VJP along axis 0",
        0,
        rule(lambda x: x.sum(1), lambda g, y, x: g[None, :] * np.ones(x.shape)),
        [X],
    ),
    (
        AXIS,
        "along axis 1, and the VJP along axis 0 and axis 1",
        0,
        rule(softmax, lambda g, y, x: y * (g - (g * y).sum())),
        [A],
    ),
    (
        AXIS,
        "along no axis here, and the VJP along axis 1",
        0,
        rule(np.exp, lambda g, y, x: (g * y).sum(1, keepdims=True) + 0 * x),
        [A],
    ),
    (
        TURNED,
        "right if input 1 is transposed",
        0,
        rule(np.matmul, lambda g, y, a, b: g @ b, lambda g, y, a, b: a.mT @ g),
        [X, Z],
    ),
    (
        TURNED,
        "right if input 0 is transposed",
        1,
        rule(np.matmul, lambda g, y, a, b: g @ b.mT, lambda g, y, a, b: a @ g),
        [X, Z],
    ),
    (
        TURNED,
        "the true gradient transposed",
        0,
        rule(np.sinh, lambda g, y, x: (g * np.cosh(x)).mT),
        [X],
    ),
    (
        TURNED,
        "right if g is transposed",
        0,
        rule(lambda a, b: a @ b, lambda g, y, a, b: g.mT @ b.mT, lambda g, y, a, b: a.mT @ g),
        [X, Z],
    ),
    (
        OTHER,
        "gradient of input 1: are the two exchanged",
        0,
        rule(np.multiply, lambda g, y, a, b: g * a, lambda g, y, a, b: g * b),
        [A, A + 1],
    ),
    (
        OTHER,
        "gradient of input 1",
        0,
        rule(np.multiply, lambda g, y, a, b: g * a, lambda g, y, a, b: g * a),
        [A, ROW],
    ),
    (
        OTHER,
        "gradient of input 0",
        1,
        rule(np.hypot, lambda g, y, a, b: g * a / y, lambda g, y, a, b: g * a / y),
        [A, A + 1],
    ),
    (LAW, "axis 1 rise .* sums to 0", 0, rule(softmax, lambda g, y, x: y * (g + dot(g, y))), [A]),
    (
        LAW,
        "an average with other weights",
        0,
        rule(softmax, lambda g, y, x: y * (g - g.mean(axis=-1, keepdims=True))),
        [A],
    ),
    (
        LAW,
        "axis 1 are multiplied by the same number, .* so input 0 ⊙ the gradient sums to 0",
        0,
        rule(lambda x: x / length(x), lambda g, y, x: (g + y * dot(g, y)) / length(x)),
        [A],
    ),
    (G, "multiply by g", 0, rule(np.exp, lambda g, y, x: y), [A]),
    (G, "does not depend on g", 0, rule(np.tanh, lambda g, y, x: y * y), [A]),
    (NONE, "", 0, rule(np.exp, lambda g, y, x: g * g * y), [A]),
    (
        NONE,
        "",
        0,
        rule(lambda x: x * x, lambda g, y, x: 2 * g * x * np.where(x > 0, 1.0, np.nan)),
        [A],
    ),
    (
        FACTOR,
        "gives 0 times .* 0 or None stands",
        1,
        rule(np.multiply, lambda g, y, a, b: g * b, lambda g, y, a, b: 0 * g),
        [A, A],
    ),
    (NONE, "", 0, rule(lambda x: x[::-1], lambda g, y, x: g), [A]),
    (NONE, "", 0, rule(np.exp, lambda g, y, x: last_row_only(g * y)), [A]),
    (NONE, "", 0, rule(lambda x: x**3, lambda g, y, x: g * 2 * x**2 * x), [A[:, :1]]),
    (NONE, "", 0, rule(lambda x: x / length(x), lambda g, y, x: g - y * dot(g, y)), [A]),
    (
        USE,
        "input 0 3 times, .* not count exp .its input 0. and sin .its input 0",
        0,
        rule(lambda x: x * np.exp(x) * np.sin(x), lambda g, y, x: g * np.exp(x) * np.sin(x)),
        [A],
    ),
    (NONE, "", 0, rule(softmax, lambda g, y, x: g - y), [A]),  # not proportional to g
    (
        NONE,  # whatever is compared with the slope of stairs
        "",
        0,
        rule(lambda a, b: np.tanh(a) + stairs(b), lambda g, y, a, b: g * np.cos(a), right),
        [A, B[:3, :4]],
    ),
]
