"""Wrong answers to the exercises: for each, lines for the hole, and words that the check says.

An exercise with several holes has a tuple of texts, one for each hole. TYPICAL stands for the
mistake in demos/learn/_mistakes.py, which the site shows too.
"""

TYPICAL = "the typical mistake"

WRONG = {
    "e01_slope": [
        (TYPICAL, "half the step"),
        ("h = 1e-5\nreturn (f(x + h) - f(x - h)) / (2 * h)", "the result is 3, whatever h is"),
        ("return (f(x + h) - f(x - h)) / h", "3 x + 1 is 6; 3 was expected"),
    ],
    "e02_product": [
        ("return a * b, lambda g: g * a, lambda g: g * b", "exchanged"),
        (TYPICAL, "does not depend on g"),
        ("return a * b, lambda g: g @ b.T, lambda g: a.T @ g", "(@) written where * belongs?"),
        (
            "return a * b, lambda g: g @ b, lambda g: g * a",
            "in <lambda>: ValueError: is a matrix product (@) written where * belongs? (in the VJP",
        ),
        ("return a * b", "should return 3 results; it returned 1 result, an array"),
        ("return a * b, b, a", "result 1 of product(a, b) is of type ndarray; a function of g was"),
        (
            "return a * b, lambda g, y: g * b, lambda g, y: g * a",
            "takes (g, y); in this exercise a VJP takes g alone",
        ),
        (
            "y = a\ny *= b\nreturn y, lambda g: g * b, lambda g: g * a",
            "line 21, in product: ValueError: output array is read-only (an array that you are "
            "given stays as it is: += and the like would write to it)",
        ),
    ],
    "e03_chain": [
        (
            TYPICAL,
            "the last rule's is the first. But those of these rules were called, counted from 0: "
            "[0, 1, 2]",
        ),
        (
            "for rule in rules:\n    y, function = rule(x)\n    g = function(g)\nreturn y, g",
            "the first one with x. But something else was given to these rules, counted from 0: "
            "[1, 2]",
        ),
        (
            "functions = []\n"
            "for rule in rules:\n"
            "    x, function = rule(x)\n"
            "    functions.append(function)\n"
            "gradient = 1\n"
            "for function in reversed(functions):\n"
            "    gradient = gradient * function(g)\n"
            "return x, gradient",
            "the last one with g. But something else was given to the functions of these rules, "
            "counted from 0: [1, 0]",
        ),
    ],
    "e04_two_uses": [
        ("gradient = to_factor(g)", "back through the product alone"),
        ("gradient = to_x(to_sine(g))", "back through the sine alone"),
        (TYPICAL, "the product of what comes back"),
        ("gradient = to_factor(g) + to_sine(g)", "But this gradient is to_factor(g) + to_sine(g)"),
        (
            "gradient = to_x(to_factor(g)) + to_sine(g)",
            "But this gradient is to_x(to_factor(g)) + to_sine(g)",
        ),
        (
            "gradient = to_factor(1) + to_x(to_sine(1))",
            "twice as large, so is every gradient that comes from it. But this gradient is the "
            "same for every g",
        ),
    ],
    "e05_order": [
        (
            "found, waiting = [], [root]\n"
            "while waiting:\n"
            "    value = waiting.pop(0)\n"
            "    found.append(value)\n"
            "    waiting += value.inputs\n"
            "return found",
            "in the order once. But for b = a · a, c = b · b the order is c, b, b, a, a",
        ),
        (
            "found, waiting = [], [root]\n"
            "while waiting:\n"
            "    value = waiting.pop()\n"
            "    if value not in found:\n"
            "        found.append(value)\n"
            "        waiting += value.inputs\n"
            "return found",
            "the order is d, a, c, b, and b was made from a",
        ),
        (TYPICAL, "all values that were made from it. But for c = a + b the order is a, b, c"),
        (
            "found, done = [], set()\n"
            "def visit(value):\n"
            "    if value not in done:\n"
            "        done.add(value)\n"
            "        for x in value.inputs:\n"
            "            visit(x)\n"
            "        found.append(value)\n"
            "visit(root)\n"
            "return found[::-1]",
            "RecursionError",
        ),
    ],
    "e06_bug": [
        (TYPICAL, "the slope of 2ⁿ a is 2ⁿ"),
        (
            "for x, function in zip(root.inputs, root.functions, strict=True):\n"
            "    x.grad = x.grad + function(root.grad)\n"
            "    pass_on(x)",
            "after 2 doublings of a, ∂y/∂a is 6. 2 a passed on 1, 1, 2, 2",
        ),
        (
            "def walk(value, g):\n"
            "    for x, function in zip(value.inputs, value.functions, strict=True):\n"
            "        share = function(g)\n"
            "        x.grad = x.grad + share\n"
            "        walk(x, share)\n"
            "walk(root, root.grad)",
            "the gradients are right, and a value passes its gradient on once to each input, when "
            "it is complete. But after 2 doublings of a, 2 a has 2 inputs, and at the end the "
            "gradient 2. It passed on 1, 1, 1, 1: n doublings take 2ⁿ calls",
        ),
        (
            "waiting = [root]\n"
            "while waiting:\n"
            "    value = waiting.pop(0)\n"
            "    for x, function in zip(value.inputs, value.functions, strict=True):\n"
            "        x.grad = x.grad + function(value.grad)\n"
            "        if x not in waiting:\n"
            "            waiting.append(x)",
            "when it is complete. But for b = a², c = a b + b and y = b c + c, b has 2 inputs, and "
            "at the end the gradient 9.28125. It passed on 6.07812, 6.07812, 9.28125, 9.28125",
        ),
    ],
}

# ---------------------------------------------------------------- 7 to 15: rules

SUM = "return x.sum(axis=axis, keepdims=keepdims), "
RESHAPE = "return x.reshape(shape), lambda g, y: g.reshape(x.shape)"
WEIGHTS = (
    "e = np.exp(x - x.max(axis=axis, keepdims=True))\nreturn e / e.sum(axis=axis, keepdims=True), "
)
LOGARITHM = (
    "x = x - x.max(axis=-1, keepdims=True)\n"
    "return x - np.log(np.exp(x).sum(axis=-1, keepdims=True)), "
)
LOSS = "log_p = log_softmax(logits)\nreturn -(truth * log_p).sum() / n, "
RIGHT_LOGARITHM = f"{LOGARITHM}lambda g, y: g - np.exp(y) * g.sum(axis=-1, keepdims=True)"
RIGHT_LOSS = f"{LOSS}lambda g, y: g * (np.exp(log_p) - truth) / n"


def to_x(gradient, *, to_gain="g * n"):
    """Return the VJPs of layer norm, with this line in that of x."""
    mean = "mean(axis=-1, keepdims=True)"
    return (
        f"def to_x(g, y):\n    h = g * gain\n    return {gradient.replace('mean()', mean)}\n\n"
        f"return y, to_x, lambda g, y: {to_gain}, lambda g, y: g"
    )


WRONG |= {
    "e07_exp": [
        ("return np.exp(x), lambda g, y: -g * y", "has the wrong sign"),
        (
            TYPICAL,
            "The rule exp is wrong: its VJP for input 0, shape (3, 5).\n15 of 15 elements differ. "
            "Element [0, 4]",
        ),
        (
            "return np.exp(x), lambda g, y: g * np.exp(np.asarray(getattr(x, 'data', x)))",
            "The first derivative is right and the second one is not, because input 0, or y,",
        ),
        ("np.exp(x), lambda g, y: g * y", "but it returned None: is a return missing?"),
        ("return np.exp(x), lambda g, y: None", "for input 0 gave None: is a return missing?"),
        ("return np.exp(x)", "must return its value and one VJP for its input, as a tuple"),
    ],
    "e08_sum": [
        (
            TYPICAL,
            "sum(x, axis=1) for x of shape (3, 5).\n"
            "e08_sum.py, line 29, in <lambda>: ValueError: operands could not be broadcast "
            "together with shapes (3,) (3,5) (in the VJP of sum for input 0, ",
        ),
        (
            f"kept = x.sum(axis=axis, keepdims=True).shape\n{SUM}"
            "lambda g, y: np.broadcast_to(g.reshape(kept) / x.size, x.shape)",
            "gives 1/15 of the true gradient",
        ),
        (
            "if axis is None:\n    return x.sum(keepdims=keepdims), lambda g, y: g * "
            f"np.ones(x.shape)\n{SUM}lambda g, y: np.expand_dims(g, axis) * np.ones(x.shape)",
            "sum(x, axis=1, keepdims=True) for x of shape (3, 5).\nThe VJP of sum for input 0 gave "
            "shape (3, 3, 5)",
        ),
        (
            f"{SUM}lambda g, y: np.full(x.shape, g)",
            "in <lambda>: TypeError: np.full does not take a Tensor: write np.broadcast_to (in the",
        ),
        (
            f"{SUM}lambda g, y: g * x",
            "added up for one result get the same gradient, that of the result. But in sum(x)",
        ),
        (
            "kept = [1 if axis in (None, i, i - x.ndim) else n for i, n in enumerate(x.shape)]\n"
            f"{SUM}lambda g, y: np.broadcast_to(g.reshape(kept), x.shape)",
            "cannot reshape array of size 14 into shape (2,3,5,7)",
        ),
    ],
    "e09_unbroadcast": [
        (
            "while g.ndim > len(shape):\n    g = g.mean(axis=0)\nreturn g",
            "Along axis 0 input 0 of shape (5,) was broadcast to (3, 5): the shares of its copies "
            "belong added up, and the VJP gives the mean of them",
        ),
        ("import numpy as np\nreturn np.resize(g, shape)", "the VJP gives the first share"),
        ("return np.broadcast_to(g, shape)", "stretches an array, and here g has to become small"),
        (TYPICAL, "for g of shape (3, 5) has the shape (3,); the shape (3, 1) was expected"),
    ],
    "e10_matmul": [
        (TYPICAL, "right if input 1 is transposed"),
        (
            "return a @ b, lambda g, y: b.mT @ g, lambda g, y: g @ a.mT",
            "But in matmul(a, b) for a of shape (3, 3) and b of shape (3, 3) g stands on the wrong",
        ),
        (
            "return a @ b, lambda g, y: g @ b.mT, lambda g, y: g @ a.mT",
            "column j of ∂L/∂B is made of column j of G",
        ),
        (
            "return a @ b, lambda g, y: g @ b.T, lambda g, y: a.T @ g",
            "matmul(a, b) for a of shape (2, 3, 5) and b of shape (2, 5, 7).\n"
            "e10_matmul.py, line 25, in <lambda>: ValueError: `.T` of a stack turns all axes",
        ),
        (
            "return a @ b, lambda g, y: a.mT @ g, lambda g, y: g @ b.mT",
            "The VJP of input 0 gives the gradient of input 1: are the two exchanged?",
        ),
        (
            "return a @ b, lambda g, y: g @ b.mT, lambda g, y: g.mT @ a",
            "The VJP gives the true gradient transposed",
        ),
    ],
    "e11_pick": [
        (
            TYPICAL,
            "in pick(x, [3, 0, 3, 3]) for x of shape (4, 3) element [3, 0] is picked 3 times",
        ),
        (
            (RESHAPE, "gradient = np.ones(x.shape)\ngradient[index] = g"),
            "in pick(x, 2) for x of shape (4, 3) element [0, 0] is picked 0 times, and its "
            "gradient is 1",
        ),
        (
            (RESHAPE, "gradient = np.zeros((4, 3))\nnp.add.at(gradient, index, g)"),
            "pick(x, [4, 0]) for x of shape (5, 2, 3)",
        ),
        (
            ("return x.reshape(shape), lambda g, y: g.T", "..."),
            "for x of shape (3, 5), reshaped to (5, 3), it is another one",
        ),
    ],
    "e12_double": [
        (
            "array = x.data if isinstance(x, minigrad.Tensor) else x\n"
            "value = np.sqrt((array * array).sum(axis=-1, keepdims=True))\n"
            "return value, lambda g, y: g * x / value",
            "because a use of input 0, or y, leaves the record in the VJP",
        ),
        (
            "value = np.sqrt((x * x).sum(axis=-1, keepdims=True))\n"
            "return value, lambda g, y: (g.data if isinstance(g, minigrad.Tensor) else g) * x / y",
            "because g leaves the record in the VJP, as by `.data`",
        ),
        (TYPICAL, "gives 2 times the true gradient"),
        (
            "return np.sqrt((x * x).sum(axis=1, keepdims=True)), lambda g, y: g * x / y",
            "length(x) for x of shape (2, 3, 5) has the shape (2, 1, 5)",
        ),
    ],
    "e13_softmax": [
        (
            "e = np.exp(x - x.max())\nreturn e / e.sum(axis=axis, keepdims=True), "
            "lambda g, y: y * (g - (y * g).sum(axis=axis, keepdims=True))",
            "do not depend on other rows: 0, 1, 3 and 1000, 1001, 1003 have the same. But as two "
            "rows of one array they have nan, nan, nan",
        ),
        (
            f"{WEIGHTS}lambda g, y: g * y",
            "The value uses the result of exp twice, and the VJP does not count sum (its input 0)",
        ),
        (TYPICAL, "mixes the elements of input 0 along axis 1, and the VJP along no axis"),
        (
            f"{WEIGHTS}lambda g, y: y * (g - (y * g).sum())",
            "along axis 1, and the VJP along axis 0 and axis 1",
        ),
        (
            f"{WEIGHTS}lambda g, y: y * (g - (y * g).sum(axis=-1, keepdims=True))",
            "softmax(x, axis=0) for x of shape (3, 5).\nThe rule softmax is wrong: its VJP for "
            "input 0, shape (3, 5).\nThe value mixes the elements of input 0 along axis 0, and the "
            "VJP along axis 1",
        ),
        (
            f"{WEIGHTS}lambda g, y: y * (g - g.mean(axis=axis, keepdims=True))",
            "If all elements of input 0 along axis 1 rise by the same amount, the value stays as",
        ),
        (
            WEIGHTS.replace("axis=axis", "axis=-1")
            + "lambda g, y: y * (g - (y * g).sum(axis=-1, keepdims=True))",
            "sum to 1 along axis 1, not along axis 0",
        ),
        (
            "e = np.exp(x)\nreturn e / e.sum(axis=axis, keepdims=True), "
            "lambda g, y: y * (g - (y * g).sum(axis=axis, keepdims=True))",
            "keep their weights. But for the scores 1000, 1001, 1003 the weights are nan, nan, nan",
        ),
    ],
    "e14_cross_entropy": [
        (TYPICAL, "mixes the elements of input 0 along axis 1, and the VJP along no axis"),
        (
            (f"{LOGARITHM}lambda g, y: g - np.exp(y)", RIGHT_LOSS),
            "sum to 0. But for scores of shape (3, 5) the sums are -1.139, 0.8277, -2.809",
        ),
        (
            (
                "e = np.exp(x - x.max(axis=-1, keepdims=True))\n"
                "return np.log(e / e.sum(axis=-1, keepdims=True)), "
                "lambda g, y: g - np.exp(y) * g.sum(axis=-1, keepdims=True)",
                RIGHT_LOSS,
            ),
            "for scores of 1,000 log_softmax(x) stays finite. But its value is [[0.0, -inf, -inf]",
        ),
        (
            (RIGHT_LOGARITHM, f"{LOSS}lambda g, y: g * (np.exp(log_p) - truth)"),
            "gives 3 times the true gradient: perhaps a sum stands where a mean belongs: 3 is the "
            "length of axis 0 of the input",
        ),
        (
            (RIGHT_LOGARITHM, f"{LOSS}lambda g, y: (np.exp(log_p) - truth) / n"),
            "The VJP does not depend on g, the gradient that arrives at the output: multiply by g",
        ),
        (
            (
                RIGHT_LOGARITHM,
                "log_p = log_softmax(logits)\n"
                "def vjp(g, y):\n    p = np.exp(log_p)\n    p[np.arange(n), targets] -= 1\n"
                "    return g * p / n\n\nreturn -(truth * log_p).sum() / n, vjp",
            ),
            "line 41, in vjp: TypeError: a Tensor cannot be changed in place",
        ),
        (
            (RIGHT_LOGARITHM, f"{LOSS}lambda g, y: -g * truth / n"),
            "rise by the same amount, the value stays as it is, so the gradient sums to 0 along",
        ),
    ],
    "e15_layer_norm": [
        (TYPICAL, "input 0 along axis 1, and the VJP along no axis"),
        (
            to_x("(h - h.mean()) / sigma"),
            "The value uses the result of subtract 3 times, and the VJP does not count multiply",
        ),
        (
            to_x("(h - n * (n * h).mean()) / sigma"),
            "The value uses input 0 twice, and the VJP does not count mean (its input 0)",
        ),
        (
            to_x("(h - h.mean() - n * (n * h).mean())"),
            "has the same y, and a gradient half as large (with eps = 0). But element",
        ),
        (
            to_x("(h - h.mean() - n * (n * h).mean()) / sigma", to_gain="g"),
            "The VJP of input 1 gives the gradient of input 2",
        ),
        (
            to_x("(h - h.mean() - n * (n * h).mean()) / sigma", to_gain="(g * n).mean(axis=0)"),
            "Along axis 0 input 1 of shape (5,) was broadcast to (3, 5)",
        ),
    ],
}

# ---------------------------------------------------------------- 16 to 24

ADAM = (
    "m = b1 * m + (1 - b1) * g\n"
    "v = b2 * v + (1 - b2) * g * g\n"
    "corrected_m, corrected_v = m / (1 - b1**t), v / (1 - b2**t)\n"
    "return p - lr * corrected_m / (np.sqrt(corrected_v) + eps), m, v"
)
MOMENTUM = "velocity = momentum * velocity + g\nreturn p - lr * velocity, velocity"
PREDICTED = (
    'mean = "stays"\nmedian = "falls"\ndead = "rises"\n'
    'small_median = "falls"\nsmall_ratio_64 = 1 / 8\nmedian_ratio = 1 / 30\nmean_ratio = 10\n'
    "ties = 0.564\nplateau = 0.45"
)
PENCIL = (
    'p_1 = 2 / 3\ndp_1 = 12\naverage = 6\ndz_1 = 4\ndq = 6\ndk_2 = -4\ndv_1 = 4 / 3\nfalls = "loss"'
)
SCORES = "dP = G @ V.mT\nreturn P * (dP - (P * dP).sum(axis=-1, keepdims=True))"
LAST = "dQ = scale * dZ @ K\ndK = scale * dZ.mT @ Q\ndV = P.mT @ G"
MERGE = "return heads.swapaxes(-3, -2).reshape(*batch, T, num_heads * d_k)"
BLOCK = (
    "n = layer_norm(x, p['gain_1'], p['bias_1'])\n"
    "q, k, v = (split(matmul(n, p[w]), num_heads) for w in ('w_q', 'w_k', 'w_v'))\n"
    "h = x + matmul(merge(attention(q, k, v, softmax)), p['w_o'])\n"
    "n = layer_norm(h, p['gain_2'], p['bias_2'])\n"
    "return h + matmul(np.maximum(matmul(n, p['w_1']), 0), p['w_2'])"
)
STEP = (
    "for x in p.values():\n"
    "    x.grad = None\n"
    "loss.backward()\n"
    "for name, x in p.items():\n"
    "    x.data, *means[name] = adam_step(x.data, x.grad, *means[name], t, lr)"
)

WRONG |= {
    "e16_pencil": [
        (TYPICAL, "p_1 = 0.8 is not right: the scale is missing in the scores"),
        (PENCIL.replace("2 / 3", "'2/3'"), "p_1 is '2/3': write a number, such as 2/7 or 0.286"),
        (PENCIL.replace("12", "8"), "dp_1 = 8 is not right: the weight does not belong here yet"),
        (PENCIL.replace("12", "7"), "not right: look again at the step from o back to the weights"),
        (PENCIL.replace("average = 6", "average = 3"), "this is the plain average"),
        (PENCIL.replace("dz_1 = 4", "dz_1 = 8"), "the average is not subtracted"),
        (PENCIL.replace("dz_1 = 4", "dz_1 = 6"), "dz_1 = 6 is not right: the weight is missing"),
        (PENCIL.replace("dq = 6", "dq = 12"), "dq = 12 is not right: the scale is missing"),
        (PENCIL.replace("dq = 6", "dq = -6"), "dq = -6 is not right: the sign is the other one"),
        (PENCIL.replace("4 / 3", "2"), "dv_1 = 2 is not right: the weight is missing"),
        (PENCIL.replace('"loss"', '"scores"'), "the rate 0.01, q·k₁ goes from 1 to 1.04"),
        (PENCIL.replace('"loss"', '"key 1"'), """falls is 'key 1': write "loss" or "scores\""""),
    ],
    "e17_predict": [
        (
            PREDICTED.replace('mean = "stays"', 'mean = "falls"'),
            "mean = 'falls': the mean of ‖∂L/∂q‖ without a scale is 1.4 at d_k = 64",
        ),
        (
            PREDICTED.replace("= 10", "= 0.01").replace("1 / 30", "1"),
            "7 of 9 predictions are as measured.\nmedian_ratio = 1: at d_k = 1024 the median",
        ),
        (
            PREDICTED.replace("0.564", "0.282").replace("0.45", "0"),
            "plateau is 0: write a number above 0",
        ),
        (
            PREDICTED.replace("0.564", "0.282").replace("0.45", "0.01"),
            "ties = 0.282: `ties(2)` of the chapter is 0.564\nplateau = 0.01: with two keys",
        ),
        (TYPICAL, "dead is 'more': write 'rises'"),
    ],
    "e18_bug": [
        (TYPICAL, "do not depend on any other query"),
        (
            "e = np.exp(scores - scores.max(axis=-1, keepdims=True))\n"
            "return e / e.sum(axis=1, keepdims=True)",
            "the weights of each query sum to 1",
        ),
        ("e = np.exp(scores)\nreturn e / e.sum(axis=-1, keepdims=True)", "however large"),
    ],
    "e19_attention": [
        (TYPICAL, "it is 16.1 for d_k = 16 and 263 for d_k = 256"),
        (
            "return softmax((q @ k.mT / np.sqrt(q.shape[-1])).mT).mT @ v",
            "weights of each query sum",
        ),
        ("return softmax(q @ k.mT / np.sqrt(q.shape[-1]))", "(2, 3, 5); the shape (2, 3, 11)"),
        ("return softmax(q @ k / np.sqrt(q.shape[-1])) @ v", "matmul"),
        (
            "return softmax(q.data @ k.mT / np.sqrt(q.shape[-1])) @ v",
            "f leaves the record on every way from (input 0)",
        ),
        (
            "return (softmax(q @ k.mT / np.sqrt(q.shape[-1])) @ v).data",
            "attention(q, k, v) is an array, not a Tensor: the gradient of q is lost",
        ),
    ],
    "e20_mask": [
        (TYPICAL, "such a query are nan, nan, nan"),
        (
            "return where(mask, softmax(scores + np.where(mask, 0.0, -np.inf)), 0.0)",
            "15 of 60 elements of ∂L/∂scores are NaN, and 15 of these are in rows without a key",
        ),
        (
            "return where(mask, softmax(where(mask, scores, -1e4)), 0)",
            "if all scores fall by 1,000,000 no weight changes",
        ),
        ("return where(mask, softmax(scores), 0.0)", "the sums of four queries"),
        (
            "return where(mask, softmax(scores + where(mask, 0.0, -1e9)), 0.0)",
            "however large it is. But when all forbidden scores",
        ),
        ("return where(mask, 0.0, softmax(where(mask, -np.inf, scores)))", "weights of 0. But"),
    ],
    "e21_heads": [
        (TYPICAL, "x is x again. But 336 of 420 elements"),
        (("return x.reshape(*batch, T, num_heads, d_k)", MERGE), "the shape (5, 3, 2); the shape"),
        (
            ("return x.reshape(*batch, T, d_k, num_heads).swapaxes(-1, -3).swapaxes(-1, -2)",) * 2,
            "head 0 of 3 has the features 0 and 1 of each position",
        ),
    ],
    "e22_backward": [
        (
            ("return P * (G @ V.mT)", LAST),
            "so each row of ∂L/∂Z sums to 0. But here it is P ⊙ ∂L/∂P, and the average of each row",
        ),
        (TYPICAL, "here the plain mean of each row is subtracted"),
        ((SCORES.replace("V.mT", "V.T"), LAST), "in scores_back: ValueError: `.T` of a stack"),
        ((SCORES, LAST.replace("dZ.mT", "dZ.T")), "in backward: ValueError: `.T` of a stack"),
        (
            (SCORES, LAST.replace("dQ = scale *", "dQ =")),
            "a factor of ∂L/∂Q and of ∂L/∂K. But ∂L/∂Q",
        ),
        ((SCORES, LAST.replace("dZ.mT", "dZ")), "value s. But ∂L/∂K is scale · ∂L/∂Z Q here"),
        ((SCORES, LAST.replace("P.mT", "P")), "value s. But ∂L/∂V is P G here"),
        ((SCORES, LAST.replace("dZ @", "dZ.mT @")), "But ∂L/∂Q is scale · (∂L/∂Z)ᵀ K here"),
        ((SCORES, LAST.replace("dZ @", "P @")), "so ∂L/∂Q is 0. But its largest"),
        (
            (SCORES, f"dZ = scores_back(weights(Q, K, scale, True), V, G)\n{LAST}"),
            "a query without a key gets the gradient 0",
        ),
        (
            (SCORES, f"P = weights(Q, K, scale, True)\n{LAST}"),
            "a value that no query may look at gets the gradient 0",
        ),
    ],
    "e23_optimizer": [
        (TYPICAL, "1 and 1000 by 0.316, 0.316, 0.316"),
        (
            (MOMENTUM, ADAM.replace("return p", "m, v = corrected_m, corrected_v\nreturn p")),
            "step 2 is",
        ),
        (("return p - lr * (g + momentum * velocity), g", ADAM), "the velocity is 0.9; 1.8"),
        (
            ("velocity *= momentum\nvelocity += g\np -= lr * velocity\nreturn p, velocity", ADAM),
            "+=",
        ),
    ],
    "e24_reverse": [
        (TYPICAL, "the block adds nothing, and x comes out as it went in"),
        (
            (BLOCK.replace("attention(q, k, v, softmax)", "v"), STEP),
            "depends on every position. But at position 0 it depends on 0 alone",
        ),
        ((BLOCK, STEP.replace("x.grad = None", "pass")), "against its own gradient in this step"),
        ((BLOCK, f"if t > 1:\n    return\n{STEP}"), "95 % of new sequences are written backwards"),
        ((BLOCK, STEP.replace("x.data, *means[name] = ", "_ = ")), "moves every parameter"),
    ],
}

# ---------------------------------------------------------------- right, and not as we write it

RIGHT = {
    "e02_product": ["return [a * b, lambda g: g * b, lambda g: g * a]"],
    "e09_unbroadcast": [
        "class Axes: ...\n"
        "rest = ...\n"
        "while g.ndim > len(shape):\n"
        "    g = g[rest].sum(axis=0)\n"
        "for axis, n in enumerate(shape):\n"
        "    if n == 1:\n"
        "        g = g.sum(axis=axis, keepdims=True)\n"
        "return g"
    ],
    "e05_order": [
        "found, waiting = [], [root]\n"
        "while waiting:\n"
        "    value = max(waiting, key=lambda value: value.time)\n"
        "    waiting = [x for x in waiting if x is not value]\n"
        "    found.append(value)\n"
        "    waiting += [x for x in value.inputs if x not in waiting]\n"
        "return found"
    ],
    "e06_bug": [
        "waiting = {root}\n"
        "while waiting:\n"
        "    value = max(waiting, key=lambda value: value.time)\n"
        "    waiting.remove(value)\n"
        "    for x, function in zip(value.inputs, value.functions, strict=True):\n"
        "        x.grad += function(value.grad)\n"
        "        waiting.add(x)"
    ],
    "e16_pencil": [
        PENCIL.replace("2 / 3", "0.667").replace("4 / 3", "1.33"),
        f"from fractions import Fraction\n{PENCIL.replace('2 / 3', 'Fraction(2, 3)')}",
    ],
    "e17_predict": [
        PREDICTED.replace('mean = "stays"', 'mean = "rises"'),
        "import numpy as np\nfrom fractions import Fraction\n"
        + PREDICTED.replace("= 10", "= np.int64(10)").replace("1 / 30", "Fraction(1, 30)"),
    ],
    "e20_mask": [
        "return where(mask, softmax(where(mask, scores, -np.inf)), 0)",
        "return np.nan_to_num(softmax(where(mask, scores, -np.inf)))",
        "return softmax(where(mask, scores, -1e30)) * mask",
    ],
}
