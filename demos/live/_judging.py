"""Live · Judging: what a reader is told about a definition, by a small program that uses it.

A verdict is plain data, for JSON:

    right    True, False, or None: differences cannot tell, or the derivatives are right and what
             is computed is not what the book computes
    heading  the verdict in a sentence
    reason   a sentence or two more; "" if there is none
    numbers  what a line of the reader says and what moving the input says: `what` it is of, and
             `rows`, the worst first, each with its `place`, `yours`, `moving`, and the two `sums`;
             null if no gradient is wrong
    message  all that gradcheck says; "" if it says nothing
    picture  the program's graph, coloured by agreement, as SVG; null if nothing can draw it
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from attention import attention, causal_mask
from attention.scaled_dot_product import attention_backward
from demos.live._answers import compared, picture, stopped
from minigrad import (
    GradientError,
    Tensor,
    astype,
    broadcast_to,
    concatenate,
    cross_entropy,
    einsum,
    fused,
    gradcheck,
    graph,
    layer_norm,
    linear,
    masked_softmax,
    rotate_pairs,
    scatter_add,
    softmax,
    where,
)
from minigrad.checks.agreeing import Program, Verdict, by_elements
from minigrad.checks.comparing import Trial

Function = Callable[..., Tensor]
Inputs = dict[str, Any]  # by the names that the picture shows
SEED = 1136  # of an attention whose gradients are as long without ⟨y, g⟩ as with it
NO_REASON = "None of the mistakes that we know explains it: compare it with the formula."


def judged(of: str, name: str) -> dict[str, Any]:
    """Judge a definition by a program that uses it."""
    f, inputs = small_program(of, name)
    tensors = [Tensor(x, requires_grad=True, name=each) for each, x in inputs.items()]
    answer = {"right": True, "heading": "", "reason": "", "numbers": None, "message": ""}
    try:
        f(*tensors).backward()
        for t in tensors:
            if t.grad is None:
                raise ValueError(f"no gradient reaches {t.name}")
            if t.grad.shape != t.shape:
                raise ValueError(
                    f"the gradient of {t.name} has the shape {t.grad.shape}, and {t.name} has "
                    f"{t.shape}: the shares of a broadcast input belong added up"
                )
            t.grad = None
        y = f(*tensors)
        with np.errstate(all="ignore"):
            program = Program(y)
            verdicts = program.verdicts(np.random.default_rng(SEED))
    except BaseException as error:  # (exit() too)
        return answer | stopped(error) | {"picture": None}
    answer["picture"] = picture(graph(y, grads=True, verdicts=verdicts))
    spoiled = [t for t, verdict in verdicts.items() if verdict.agrees is False]
    if spoiled:
        answer["numbers"] = numbers(program, *first_wrong(verdicts), formula_of(of, name))
    return answer | checked(of, name, f, tensors, bool(spoiled))


def end(of: str, name: str) -> float:
    """Return L of the small program that uses a definition."""
    f, inputs = small_program(of, name)
    return float(f(*(Tensor(x) for x in inputs.values())).data)


def small_program(of: str, name: str) -> tuple[Function, Inputs]:
    """Return the small program that uses a definition, with its inputs."""
    program = program_for(of, name)
    if program is None:
        raise ValueError(f"no small program uses {name}")
    return program


def checked(
    of: str, name: str, f: Function, tensors: list[Tensor], spoiled: bool
) -> dict[str, Any]:
    """Return the verdict of gradcheck in words, for a definition of this name."""
    try:
        report = gradcheck(f, *tensors)
    except GradientError as error:
        by_hand = error.rule == "attention_backward"
        reason = " ".join(error.diagnoses) or (by_hand and slip_by_hand()) or NO_REASON
        fault = "the gradient is wrong"
        if error.rule and error.input is None:
            fault, reason = f"{error.rule} has another value than its definition", ""
        elif by_hand:
            fault = f"{name} gives a wrong gradient of {tensors[error.input or 0].name}"
        elif error.rule and of.startswith("minigrad.ops."):
            fault = f"the rule {error.rule} is wrong, in its VJP for input {error.input}"
        elif error.rule:  # (the lines are not a rule's: all rules use them)
            fault = f"with these lines the gradient of input {error.input} of {error.rule} is wrong"
        if error.order == 2 and not spoiled:
            fault = f"the first derivative is right. To second order {fault}"
        heading = f"gradcheck: {fault}."
        return {"right": False, "heading": heading, "reason": reason, "message": str(error)}
    except BaseException as error:
        return stopped(error)
    if spoiled or not report:
        heading = "gradcheck: the differences are too coarse to tell."
        return {"right": None, "heading": heading, "message": str(report)}
    return {"heading": "gradcheck: the first and the second derivative are right."}


def slip_by_hand() -> str:
    """Return which slip gives what `attention_backward` gives; "" if none of these does."""
    q, k, v, g = draws(q=(4, 3), k=(4, 3), v=(4, 2), g=(4, 2)).values()
    scale = 1 / np.sqrt(3)
    scores = scale * q @ k.T
    weights = np.asarray(softmax(scores))
    shares = weights * (g @ v.T)
    through_softmax = shares - weights * shares.sum(axis=-1, keepdims=True)

    def way_back(of_scores: Any, of_v: Any) -> tuple[Any, Any, Any]:
        return scale * of_scores @ k, scale * of_scores.T @ q, of_v

    slips = {
        "softmax's average, the sum of P ⊙ ∂L/∂P over each row, is not subtracted (chapter 3.6).": (
            way_back(shares, weights.T @ g)
        ),
        "∂L/∂V is made of the scores, and not of the weights.": (
            way_back(through_softmax, scores.T @ g)
        ),
    }
    claimed = attention_backward(q, k, v, g, scale=scale)
    for slip, gradients in slips.items():
        if all(np.allclose(*pair) for pair in zip(claimed, gradients, strict=True)):
            return f"Its numbers are those of one slip: {slip}"
    return ""


def first_wrong(verdicts: dict[Tensor, Verdict]) -> tuple[Tensor, str]:
    """Return the wrong gradient that is met first on the way back, and the rule that sent it."""
    for t, verdict in reversed(verdicts.items()):
        for i in verdict.wrong:
            return t.node.inputs[i], t.node.name
    first = next(t for t, verdict in reversed(verdicts.items()) if verdict.agrees is False)
    return first, ""


# ---------------------------------------------------------------- numbers


def numbers(program: Program, t: Tensor, rule: str, formula: str) -> dict[str, Any]:
    """Return the gradient at a tensor as the rules deliver it, and by differences."""
    trial = Trial(program.claims(t), 0, 0)
    what = t.name
    if not what:
        what = f"the input of {rule}" if rule else f"the result of {t.node.name}"
    return compared(f"{what} in {formula}", trial.gradient, by_elements(trial))


def formula_of(of: str, name: str) -> str:
    """Return the small program that uses a definition, as a formula."""
    if (of, name) in PROGRAMS:
        return f"L = {FORMULAS[PROGRAMS[of, name]]}"
    if (of, name) in QUERIES:
        return f"L = ⟨pull, attention(f(x), k, v)⟩, where f uses {name.lstrip('_')}"
    return f"L = ⟨pull, {name.lstrip('_')}⟩"


# ---------------------------------------------------------------- programs


def program_for(of: str, name: str) -> tuple[Function, Inputs] | None:
    """Return a small program that uses a definition, with its inputs; None if there is none."""
    if (of, name) in PROGRAMS:
        return PROGRAMS[of, name]()
    if (of, name) in QUERIES:
        return of_queries(*QUERIES[of, name])
    if not of.startswith("minigrad.ops."):  # (where the rules stand)
        return None
    operation = getattr(importlib.import_module(of), name, None)
    code = getattr(getattr(operation, "__wrapped__", None), "__code__", None)
    if code is None or not code.co_posonlyargcount:
        return None
    return of_one_rule(operation, code.co_posonlyargcount)


def draws(**shapes: tuple[int, ...]) -> Inputs:
    """Return random arrays by their names."""
    rng = np.random.default_rng(SEED)
    return {name: rng.standard_normal(shape) for name, shape in shapes.items()}


def pulled(f: Function, inputs: Inputs) -> tuple[Function, Inputs]:
    """Return the program L = ⟨pull, f(inputs)⟩. A pull that is not 1 everywhere shows more."""
    inputs = dict(inputs)
    pull = inputs.pop("pull")
    return lambda *xs: (f(*xs) * pull).sum(), inputs


def of_attention() -> tuple[Function, Inputs]:
    """Return attention of three queries to five keys."""
    return pulled(attention, draws(q=(3, 4), k=(5, 4), v=(5, 2), pull=(3, 2)))


def of_a_broadcast_bias() -> tuple[Function, Inputs]:
    """Return attention whose queries are x + b, one b for all rows."""
    inputs = draws(x=(3, 4), k=(5, 4), v=(5, 2), pull=(3, 2), b=(4,))
    order = {name: inputs[name] for name in ("x", "b", "k", "v", "pull")}
    return pulled(lambda x, b, k, v: attention(x + b, k, v), order)


def of_hand_written_attention() -> tuple[Function, Inputs]:
    """Return attention with `attention_backward` as its way back.

    Its scale is 1/√3: a scale of ½ that is forgotten looks like one of two uses that is forgotten.
    There are as many keys as queries, so exchanged gradients of the two are told by their numbers.
    """
    scale = 1 / np.sqrt(3)

    @fused(definition=lambda q, k, v: attention(q, k, v), name="attention_backward")
    def by_hand(q: Any, k: Any, v: Any, /) -> Any:
        def backward(g: Any, y: Any, needs: Any) -> Any:
            return attention_backward(q, k, v, g, scale=scale)

        return softmax(scale * q @ k.mT) @ v, backward

    return pulled(by_hand, draws(q=(4, 3), k=(4, 3), v=(4, 2), pull=(4, 2)))


def of_a_norm() -> tuple[Function, Inputs]:
    """Return a layer norm with a product behind it."""
    inputs = draws(x=(3, 4), gain=(4,), bias=(4,), w=(4, 2), pull=(3, 2))
    return pulled(lambda x, gain, bias, w: layer_norm(x, gain, bias) @ w, inputs)


def of_a_classifier() -> tuple[Function, Inputs]:
    """Return the cross-entropy of three classes."""
    inputs = draws(x=(4, 2), w=(2, 3))
    return lambda x, w: cross_entropy(x @ w, np.array([2, 0, 1, 2])), inputs


def of_queries(f: Function, shape: tuple[int, ...]) -> tuple[Function, Inputs]:
    """Return attention whose queries are f(x), of an x of this shape."""
    inputs = draws(x=shape, k=(5, 4), v=(5, 2), pull=(3, 2))
    return pulled(lambda x, k, v: attention(f(x), k, v), inputs)


def of_a_linear_layer() -> tuple[Function, Inputs]:
    """Return x w + b as one operation."""
    return pulled(linear, draws(x=(3, 4), w=(4, 2), b=(2,), pull=(3, 2)))


def of_one_rule(operation: Function, arity: int) -> tuple[Function, Inputs] | None:
    """Return a program of one operation, at inputs that it takes; None if it needs others."""
    names = ["x"] if arity == 1 else ["a", "b", "c", "d"][:arity]
    rng = np.random.default_rng(SEED)
    for shape in ((3, 4), (3, 3)):
        inputs = {name: rng.uniform(0.2, 0.9, shape) for name in names}
        try:
            with np.errstate(all="ignore"):
                y = operation(*inputs.values())
        except Exception:  # (a product of matrices, or a rule that needs options)
            continue
        return pulled(operation, inputs | {"pull": rng.standard_normal(np.shape(y))})
    return None


PROGRAMS: dict[tuple[str, str], Callable[[], tuple[Function, Inputs]]] = {
    ("minigrad.ops.softmaxes", "softmax"): of_attention,
    ("minigrad.ops.linalg", "_matmul"): of_attention,
    ("minigrad.engine.replay", "_fitted"): of_a_broadcast_bias,
    ("minigrad.ops.fused", "layer_norm"): of_a_norm,
    ("minigrad.ops.fused", "linear"): of_a_linear_layer,
    ("minigrad.ops.classification", "_cross_entropy"): of_a_classifier,
    ("attention.scaled_dot_product", "attention_backward"): of_hand_written_attention,
}
FORMULAS = {
    of_attention: "⟨pull, attention(q, k, v)⟩",
    of_a_broadcast_bias: "⟨pull, attention(x + b, k, v)⟩",
    of_a_norm: "⟨pull, layer_norm(x, gain, bias) w⟩",
    of_a_linear_layer: "⟨pull, x w + b⟩",
    of_a_classifier: "cross_entropy(x w, targets)",
    of_hand_written_attention: "⟨pull, attention(q, k, v)⟩",
}
ANGLES = np.arange(6.0).reshape(3, 2)
QUERIES: dict[tuple[str, str], tuple[Function, tuple[int, ...]]] = {  # f, and the shape of x
    ("minigrad.ops.shape", "reshape"): (lambda x: x.reshape(3, 4), (2, 6)),
    ("minigrad.ops.shape", "swapaxes"): (lambda x: x.swapaxes(0, 1), (4, 3)),
    ("minigrad.ops.shape", "broadcast_to"): (lambda x: broadcast_to(x, (3, 4)), (4,)),
    ("minigrad.ops.shape", "astype"): (lambda x: astype(x, float), (3, 4)),
    ("minigrad.ops.indexing", "_getitem"): (lambda x: x[[0, 2, 2]], (3, 4)),
    ("minigrad.ops.indexing", "_scatter_add"): (
        lambda x: scatter_add(x, (3, 4), [0, 2, 2]),
        (3, 4),
    ),
    ("minigrad.ops.indexing", "where"): (lambda x: where(np.eye(3, 4) > 0, x, x * x), (3, 4)),
    ("minigrad.ops.inverses", "arccosh"): (lambda x: np.arccosh(x * x + 1.5), (3, 4)),
    ("minigrad.ops.indexing", "_concatenate"): (lambda x: concatenate([x, x[:1] * 2]), (2, 4)),
    ("minigrad.ops.products", "_einsum"): (lambda x: einsum("ij,kj->ik", x, np.eye(4)), (3, 4)),
    ("minigrad.ops.fused", "_masked_softmax"): (
        lambda x: masked_softmax(x, causal_mask(4)[:3]),
        (3, 4),
    ),
    ("minigrad.ops.fused", "rotate_pairs"): (
        lambda x: rotate_pairs(x, np.cos(ANGLES), np.sin(ANGLES)),
        (3, 4),
    ),
}
