"""Wrong answers to the exercises: for each, lines for the hole, and words that the check says.

An exercise with several holes has a tuple of texts, one for each hole.
"""

WRONG = {
    "e01_slope": [
        ("return (f(x + h) - f(x)) / h", "half the step"),
        ("return (f(x + h) - f(x - h)) / h", "3 x + 1 is 6; 3 was expected"),
        ("return (f(x - h) - f(x + h)) / (2 * h)", "is -3; 3 was expected"),
        ("return (f(x + h) - f(x - h)) / 2 * h", "is 0.75; 3 was expected"),
    ],
    "e02_product": [
        ("return a * b, lambda g: g * a, lambda g: g * b", "input 0"),
        ("return a * b, lambda g: b, lambda g: a", "input 0"),
        ("return a * b, lambda g: g * b, lambda g: -g * a", "input 1"),
        ("return a * b", "returns three results"),
        ("return a + b, lambda g: g, lambda g: g", "differs in 15 of 15 elements"),
    ],
    "e03_chain": [
        (
            "functions = []\n"
            "for rule in rules:\n"
            "    x, function = rule(x)\n"
            "    functions.append(function)\n"
            "for function in functions:\n"
            "    g = function(g)\n"
            "return x, g",
            "the last rule's is the first. But those of these rules were called, counted from 0: "
            "[0, 1, 2]",
        ),
        (
            "for rule in rules:\n    y, function = rule(x)\n    g = function(g)\nreturn y, g",
            "the value of chain(x, [first, second, third], g) differs",
        ),
        (
            "for rule in rules:\n    x, function = rule(x)\nreturn x, function(g)",
            "called, counted from 0: [2]",
        ),
    ],
    "e04_two_uses": [
        ("gradient = to_factor(g)", "back through the product alone"),
        ("gradient = to_x(to_sine(g))", "back through the sine alone"),
        ("gradient = to_factor(g) * to_x(to_sine(g))", "the product of what comes back"),
        ("gradient = to_factor(g) + to_sine(g)", "the gradient of twice(x, g) differs"),
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
        (
            "found = {root}\n"
            "for x in root.inputs:\n"
            "    found |= set(order(x))\n"
            "return sorted(found, key=lambda value: value.time)",
            "all values that were made from it. But for c = a + b the order is a, b, c",
        ),
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
        (
            "for value in order(root):\n"
            "    for x, function in zip(value.inputs, value.functions, strict=True):\n"
            "        x.grad = function(value.grad)",
            "the slope of 2ⁿ a is 2ⁿ",
        ),
        (
            "for value in reversed(order(root)):\n"
            "    for x, function in zip(value.inputs, value.functions, strict=True):\n"
            "        x.grad = x.grad + function(value.grad)",
            "after 2 doublings of a, ∂y/∂a is 0",
        ),
        (
            "for x, function in zip(root.inputs, root.functions, strict=True):\n"
            "    x.grad = x.grad + function(root.grad)\n"
            "    pass_on(x)\n"
            "    if x.inputs:\n"
            "        x.grad = 0.0",
            "every value between keeps its gradient",
        ),
    ],
}

_ADAM = (
    "m = b1 * m + (1 - b1) * g\n"
    "v = b2 * v + (1 - b2) * g * g\n"
    "corrected_m, corrected_v = m / (1 - b1**t), v / (1 - b2**t)\n"
    "return p - lr * corrected_m / (np.sqrt(corrected_v) + eps), m, v"
)
_MOMENTUM = "velocity = momentum * velocity + g\nreturn p - lr * velocity, velocity"
_PREDICTED = (
    'variance = 16\nmean = "stays"\nmedian = "falls"\ndead = "rises"\n'
    'scaled_median = "stays"\nmean_ratio = 10\nmedian_ratio = 1 / 50'
)
_SPLIT = "return x.reshape(*batch, T, num_heads, d_k).swapaxes(-3, -2)"
_MERGE = "return heads.swapaxes(-3, -2).reshape(*batch, T, num_heads * d_k)"
_BLOCK = (
    "n = layer_norm(x, p['gain_1'], p['bias_1'])\n"
    "q, k, v = (split(matmul(n, p[w]), num_heads) for w in ('w_q', 'w_k', 'w_v'))\n"
    "h = x + matmul(merge(attention(q, k, v, softmax)), p['w_o'])\n"
    "n = layer_norm(h, p['gain_2'], p['bias_2'])\n"
    "return h + matmul(np.maximum(matmul(n, p['w_1']), 0), p['w_2'])"
)
_STEP = (
    "for x in p.values():\n"
    "    x.grad = None\n"
    "loss.backward()\n"
    "for name, x in p.items():\n"
    "    x.data, *means[name] = adam_step(x.data, x.grad, *means[name], t, lr)"
)

WRONG |= {
    "e16_double": [
        (
            "array = x.data if isinstance(x, minigrad.Tensor) else x\n"
            "value = np.sqrt((array * array).sum(axis=-1, keepdims=True))\n"
            "return value, lambda g, y: g * x / value",
            "some of the uses of input 0 leave the record",
        ),
        (
            "value = np.sqrt((x * x).sum(axis=-1, keepdims=True))\n"
            "return value, lambda g, y: (g.data if isinstance(g, minigrad.Tensor) else g) * x / y",
            "because g leaves the record in the VJP for input 0",
        ),
        (
            "value = np.sqrt((x * x).sum(axis=-1, keepdims=True))\n"
            "return value, lambda g, y: x / y",
            "does not depend on g",
        ),
        (
            "value = np.sqrt((x * x).sum(axis=-1, keepdims=True))\n"
            "return value, lambda g, y: 2 * g * x / y",
            "gives 2 times the true gradient",
        ),
        ("return (x * x).sum(axis=-1, keepdims=True), lambda g, y: 2 * g * x", "is 25; 5 was"),
    ],
    "e17_predict": [
        (
            _PREDICTED.replace('mean = "stays"', 'mean = "falls"'),
            "mean = 'falls': the mean of ‖∂L/∂q‖ without a scale is 1.4 at d_k = 64",
        ),
        (_PREDICTED.replace("16", "4"), "variance = 4: the variance of the scores is 63"),
        (
            _PREDICTED.replace("= 10", "= 0.01").replace("1 / 50", "1"),
            "5 of 7 predictions are as measured.\nmean_ratio = 0.01: at d_k = 1024 the mean",
        ),
        (_PREDICTED.replace('dead = "rises"', 'dead = "more"'), "dead is 'more': write 'rises'"),
    ],
    "e18_bug": [
        (
            "e = np.exp(scores - scores.max(axis=1, keepdims=True))\n"
            "return e / e.sum(axis=-1, keepdims=True)",
            "do not depend on any other query",
        ),
        (
            "e = np.exp(scores - scores.max(axis=-1, keepdims=True))\n"
            "return e / e.sum(axis=1, keepdims=True)",
            "the weights of each query sum to 1",
        ),
        ("e = np.exp(scores)\nreturn e / e.sum(axis=-1, keepdims=True)", "however large"),
        (
            "e = np.exp(scores - scores.max())\nreturn e / e.sum(axis=-2, keepdims=True)",
            "for one sequence, weights(q, k) differs in 15 of 15 elements",
        ),
        (
            "e = np.exp(scores - scores.max(axis=2, keepdims=True))\n"
            "return e / e.sum(axis=2, keepdims=True)",
            "axis 2 is out of bounds",
        ),
    ],
    "e19_attention": [
        ("return softmax(q @ k.mT) @ v", "it is 16.1 for d_k = 16 and 263 for d_k = 256"),
        ("return softmax(q @ k.mT / q.shape[-1]) @ v", "it is 0.0"),
        (
            "return softmax((q @ k.mT / np.sqrt(q.shape[-1])).mT).mT @ v",
            "weights of each query sum",
        ),
        ("return q @ k.mT / np.sqrt(q.shape[-1]) @ v", "weights of each query sum to 1"),
        ("return softmax(q @ k.mT / np.sqrt(q.shape[-1]))", "(2, 3, 5); the shape (2, 3, 11)"),
        ("return softmax(q @ k / np.sqrt(q.shape[-1])) @ v", "matmul"),
        (
            "return softmax(q.data @ k.mT / np.sqrt(q.shape[-1])) @ v",
            "Nothing that f computes from input 0 leads back to it",
        ),
    ],
    "e20_mask": [
        ("return softmax(where(mask, scores, -np.inf))", "such a query are nan, nan, nan"),
        (
            "return where(mask, softmax(scores + np.where(mask, 0.0, -np.inf)), 0.0)",
            "15 of 60 elements of ∂L/∂scores are NaN, and 15 of these are in rows without a key",
        ),
        ("return softmax(where(mask, scores, -1e9))", "such a query are 0.2, 0.2, 0.2"),
        ("return where(mask, softmax(scores), 0.0)", "the sums of four queries"),
        (
            "return where(mask, softmax(scores + where(mask, 0.0, -1e9)), 0.0)",
            "however large it is. But when all forbidden scores",
        ),
        ("return where(mask, 0.0, softmax(where(mask, -np.inf, scores)))", "weights of 0. But"),
    ],
    "e21_heads": [
        (
            (_SPLIT, "return heads.reshape(*batch, T, num_heads * d_k)"),
            "x is x again. But 336 of 420 elements",
        ),
        (("return x.reshape(*batch, T, num_heads, d_k)", _MERGE), "the shape (5, 3, 2); the shape"),
        (
            ("return x.reshape(*batch, T, d_k, num_heads).swapaxes(-1, -3).swapaxes(-1, -2)",) * 2,
            "head 0 of 3 has the features 0 and 1 of each position",
        ),
        (("return x.reshape(T, num_heads, d_k).swapaxes(0, 1)", _MERGE), "reshape"),
    ],
    "e22_rotary": [
        (
            "a, b = x[..., 0::2], x[..., 1::2]\n"
            "return np.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)",
            "position 0 is turned by the angle 0",
        ),
        (
            "a, b = np.split(x, 2, axis=-1)\n"
            "return np.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)",
            "a pair of features is two neighbours",
        ),
        (
            "a, b = x[..., 0::2], x[..., 1::2]\n"
            "return np.stack([a * cos - b * sin, b * cos - a * sin], axis=-1).reshape(x.shape)",
            "a turn keeps the length of every vector",
        ),
        (
            "a, b = x[..., 0::2], x[..., 1::2]\n"
            "return np.stack([a * cos + b * sin, b * cos - a * sin], axis=-1).reshape(x.shape)",
            "whose row 1 is turned by the angle 1, differs in 1 of 4 elements",
        ),
        (
            "a, b = x[..., 0::2], x[..., 1::2]\n"
            "return np.stack([a * cos - b * sin, a * sin + b * cos], axis=-2).reshape(x.shape)",
            "position 0 is turned by the angle 0",
        ),
    ],
    "e23_optimizer": [
        (
            (_MOMENTUM, _ADAM.replace("m / (1 - b1**t), v / (1 - b2**t)", "m, v")),
            "1 and 1000 by 0.316, 0.316, 0.316",
        ),
        (
            (_MOMENTUM, _ADAM.replace("return p", "m, v = corrected_m, corrected_v\nreturn p")),
            "step 2 is",
        ),
        ((_MOMENTUM, _ADAM.replace("g * g", "g")), "Adam's first step is lr long"),
        (
            (_MOMENTUM, _ADAM.replace("np.sqrt(corrected_v)", "corrected_v")),
            "1 and 1000 by 99, 0.1, 0.0001",
        ),
        (("return p - lr * (g + momentum * velocity), g", _ADAM), "the velocity is 0.9; 1.8"),
        (
            (_MOMENTUM.replace("momentum * velocity + g", "momentum * velocity + 0.1 * g"), _ADAM),
            "p = 1: p",
        ),
        (
            ("velocity *= momentum\nvelocity += g\np -= lr * velocity\nreturn p, velocity", _ADAM),
            "+=",
        ),
        ((_MOMENTUM, _ADAM.replace(", m, v", "", 1).replace(", m, v", "")), "returns 3 results"),
    ],
    "e24_reverse": [
        (
            (_BLOCK.replace("h = x +", "h ="), _STEP),
            "the block adds nothing, and x comes out as it went in",
        ),
        (
            (_BLOCK.replace("attention(q, k, v, softmax)", "v"), _STEP),
            "depends on every position. But at position 0 it depends on 0 alone",
        ),
        (
            (_BLOCK.replace("layer_norm(h", "layer_norm(x"), _STEP),
            "for x of shape (3, 5, 16), diff",
        ),
        ((_BLOCK, _STEP.replace("x.grad = None", "pass")), "against its own gradient in this step"),
        ((_BLOCK, _STEP.replace("loss.backward()\n", "")), "unsupported"),
        (
            (_BLOCK, f"if t > 1:\n    return\n{_STEP}"),
            "95 % of new sequences are written backwards",
        ),
        ((_BLOCK, _STEP.replace("x.data, *means[name] = ", "_ = ")), "moves every parameter"),
    ],
}
