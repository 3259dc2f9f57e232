"""Exercise 24 · The check: the other files, the block, one step, then the training."""

from pathlib import Path

import numpy as np

from attention import attention, merge_heads, split_heads
from demos.learn._running import judged
from demos.learn._telling import Unsolved, given, law, same, tensor
from demos.learn.exercises import number
from minigrad import Tensor, gradients, layer_norm, no_grad, relu

SECONDS = 60.0
USES = (
    "e10_matmul",
    "e11_pick",
    "e13_softmax",
    "e14_cross_entropy",
    "e15_layer_norm",
    "e19_attention",
    "e21_heads",
    "e23_optimizer",
)
HINTS = (
    "Write the shapes beside the lines: x (B, T, d), q (B, H, T, d / H), what attention returns, "
    "what merge returns. Each of the two halves of the block ends in the shape of x.",
    "In both halves the layer norm is inside: x itself is added at the end, untouched. In step, "
    "`x.grad` holds the sum of all gradients since it was None, and `x.data` can be given a new "
    "array.",
    "`h = x + matmul(merge(attention(q, k, v, softmax)), p['w_o'])`, and the second half is built "
    "alike. In step: `x.grad = None` for all, `loss.backward()`, and for each name `x.data, "
    "*means[name] = adam_step(x.data, x.grad, *means[name], t, lr)`.",
)
T, V, D, HEADS, BATCH, STEPS = 5, 10, 16, 2, 32, 200


def check(answer):
    """Check the other files first, then the block, one step, and the training."""
    block, step = given(answer, "block"), given(answer, "step")
    for name in USES:
        solved(Path(answer.__file__).parent / f"{name}.py", name)
    rng = np.random.default_rng(0)
    right_block(block, rng)
    right_step(answer, step, rng)
    trains(answer, step, rng)


def solved(path, name):
    """Raise Unsolved, with the words of its own check, if another file is not solved."""
    found = judged(path, name)
    if not found.solved:
        said = f"{found.kind}: {found.said}" if found.kind else found.said
        raise Unsolved(
            f"{path.name} is used here, and exercise {number(name)} is not solved. Its check says: "
            f"{said}"
        )


def parameters(rng):
    """Return the model before the training."""
    shapes = {"embedding": (V, D), "positions": (T, D)}
    shapes |= dict.fromkeys(("w_q", "w_k", "w_v", "w_o"), (D, D))
    shapes |= {"w_1": (D, 2 * D), "w_2": (2 * D, D), "w_scores": (D, V)}
    p = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    for name, x in p.items():
        x /= np.sqrt(x.shape[0]) if name.startswith("w_") else 1.0
    for i in (1, 2, 3):
        p |= {f"gain_{i}": np.ones(D), f"bias_{i}": np.zeros(D)}
    return {name: Tensor(x, requires_grad=True, name=name) for name, x in p.items()}


def reference(x, p, heads=HEADS):
    """Return the block's output, by the book's own functions."""
    n = layer_norm(x, p["gain_1"], p["bias_1"])
    q, k, v = (split_heads(n @ p[name], heads) for name in ("w_q", "w_k", "w_v"))
    h = x + merge_heads(attention(q, k, v)) @ p["w_o"]
    return h + relu(layer_norm(h, p["gain_2"], p["bias_2"]) @ p["w_1"]) @ p["w_2"]


def right_block(block, rng):
    """Check the shape, the residuals, who feels whom, the value, and every gradient."""
    p = {name: Tensor(x.data + 0.1, requires_grad=True) for name, x in parameters(rng).items()}
    x = Tensor(rng.standard_normal((3, T, D)), requires_grad=True)
    asked = f"block(x, p, {HEADS}), for x of shape (3, {T}, {D}),"
    y = block(x, p, HEADS)
    tensor(asked, y, x.shape, "x")
    silent = p | {name: Tensor(np.zeros(p[name].shape)) for name in ("w_o", "w_2")}
    alone = block(x, silent, HEADS).data
    law(
        "if w_o and w_2 are 0, the block adds nothing, and x comes out as it went in",
        np.allclose(alone, x.data),
        f"element [0, 0, 0] of x is {x.data[0, 0, 0]:.3g}, and {alone[0, 0, 0]:.3g} comes out",
    )
    (felt,) = gradients(y[0, 0].sum(), [x], retain_graph=True)
    felt = [t for t in range(T) if felt[0, t].any()]
    law(
        "what comes out at a position depends on every position",
        felt == list(range(T)),
        f"at position 0 it depends on {', '.join(map(str, felt))} alone",
    )
    same(asked, y, reference(x, p))
    same(f"block(x, p, 4), for x of shape (3, {T}, {D}),", block(x, p, 4), reference(x, p, heads=4))
    used = [name for name in p if name[-1] in "12qkvo"]
    g = rng.standard_normal(y.shape)
    ours = gradients(reference(x, p), [x, *(p[name] for name in used)], g)
    mine = gradients(y, [x, *(p[name] for name in used)], g)
    for name, a, b in zip(["x", *used], mine, ours, strict=True):
        same(f"the gradient of {name} through the block", a, b)


def right_step(answer, step, rng):
    """Check that step 1 moves each element by lr against its gradient, and with lr = 0 none."""
    p = parameters(rng)
    means = {name: (np.zeros(x.shape), np.zeros(x.shape)) for name, x in p.items()}
    tokens = rng.integers(0, V, (BATCH, T))
    found = gradients(answer.loss_of(tokens, p, HEADS), list(p.values()))
    slopes = dict(zip(p, found, strict=True))
    for x in p.values():
        x.grad = np.full(x.shape, 100.0)  # left over from an earlier step
    before = {name: x.data for name, x in p.items()}
    step(answer.loss_of(tokens, p, HEADS), p, means, 1, 0.01)
    moved = {name: x.data - before[name] for name, x in p.items()}
    still = [name for name in p if not moved[name].any()]
    law("each step moves every parameter", not still, f"step 1 leaves {', '.join(still)} as before")
    for name in p:
        clear = np.abs(slopes[name]) > 1e-5
        steps = moved[name][clear] * np.sign(slopes[name][clear])
        law(
            "Adam's first step moves each element by lr, against its own gradient in this step",
            np.allclose(steps, -0.01, rtol=1e-2),
            f"with lr = 0.01 the elements of {name} move along their gradients by "
            f"{steps.min():.3g} to {steps.max():.3g}, and it should be -0.01",
        )
    same("means['w_q'][0] after step 1", means["w_q"][0], 0.1 * slopes["w_q"], rtol=1e-6)
    before = {name: x.data for name, x in p.items()}
    step(answer.loss_of(tokens, p, HEADS), p, means, 2, 0.0)
    law(
        "with lr = 0 no parameter moves",
        all(np.array_equal(x.data, before[name]) for name, x in p.items()),
        f"in step 2 w_q moves by up to {np.abs(p['w_q'].data - before['w_q']).max():.2g}",
    )


def trains(answer, step, rng):
    """Train, and check the share of new sequences that come out backwards."""
    p, losses = parameters(rng), []
    means = {name: (np.zeros(x.shape), np.zeros(x.shape)) for name, x in p.items()}
    for t in range(1, STEPS + 1):
        loss = answer.loss_of(rng.integers(0, V, (BATCH, T)), p, HEADS)
        losses.append(loss.item())
        step(loss, p, means, t, 0.01)
        if t == 1 or t % 100 == 0:
            print(f"step {t:3}: loss {losses[-1]:.3f}")
    tokens = rng.integers(0, V, (500, T))
    with no_grad():
        guesses = np.asarray(answer.scores(tokens, p, HEADS).data).argmax(axis=-1)
    exact = float((guesses == tokens[:, ::-1]).all(axis=-1).mean())
    print(f"{exact:.1%} of 500 new sequences are written backwards. The first:")
    print(*tokens[0], "→", *guesses[0])
    law(
        "after the training at least 95 % of new sequences are written backwards",
        exact >= 0.95,
        f"{exact:.1%} are; the loss went from {losses[0]:.2f} to {losses[-1]:.2f}",
    )
