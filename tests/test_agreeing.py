"""Agreeing: the verdicts on the gradients of a program, with a right rule and with wrong ones."""

import functools

import numpy as np
import pytest

from attention import attention, causal_mask, fused_attention
from minigrad import Tensor, agreement, gradients, graph, maximum, no_grad, primitive, recompute
from minigrad.checks.agreeing import Verdict
from minigrad.engine.replay import behind
from minigrad.functional import relu

SEED = 1136  # of an attention in which a softmax without ⟨y, g⟩ changes no size


def program(way=attention, dtype=float, **options):
    """Return a loss on attention of 3 queries to 5 keys, and the tensors by their names."""
    rng = np.random.default_rng(SEED)
    shapes = {"q": (3, 4), "k": (5, 4), "v": (5, 2), "pull": (3, 2)}
    draws = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    pull = draws.pop("pull").astype(dtype)
    named = {n: Tensor(a, requires_grad=True, name=n, dtype=dtype) for n, a in draws.items()}
    return (way(**named, **options) * pull).sum()


def ordered(y):
    return sorted(behind(y), key=lambda t: t._time)


def changed(rule, position, change):
    """Return the rule with the VJP of one input changed."""

    @functools.wraps(rule)
    def wrong(*inputs, **options):
        value, *vjps = rule(*inputs, **options)
        right = vjps[position]
        vjps[position] = lambda g, y: change(right(g, y))
        return value, *vjps

    return wrong


CHANGES = {
    "too large": lambda g: 1.0005 * g,
    "negated": lambda g: -g,
    "lost": lambda g: 0 * g,
    "turned": lambda g: g[::-1] if g.ndim else 2 * g,
    "one element": lambda g: g * np.where(np.arange(g.size).reshape(g.shape) == 0, 1.5, 1.0),
}
PLACES = [
    (number, i)
    for number, t in enumerate(ordered(program()))
    for i, x in enumerate(t.node.inputs if t.node else ())
    if x.requires_grad
]


@pytest.mark.parametrize("way", [attention, fused_attention])
@pytest.mark.parametrize("mask", [None, causal_mask(5)[:3]])
@pytest.mark.parametrize("dtype", [float, np.float32])
def test_a_right_program_is_right_everywhere(way, mask, dtype):
    y = program(way, dtype, mask=mask)
    verdicts = agreement(y)
    assert list(verdicts) == sorted(verdicts, key=lambda t: (t.node is not None, t._time))
    assert set(verdicts) == set(behind(y))
    assert {str(verdict) for verdict in verdicts.values()} == {"✓"}


@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize(("number", "i"), PLACES)
def test_a_wrong_rule_spoils_what_is_behind_it_and_nothing_else(number, i, how):
    """(The gradient of the sum is the same everywhere in a row, so turning changes nothing.)"""
    y = program()
    t = ordered(y)[number]
    t.node.rule = changed(t.node.rule, i, CHANGES[how])
    unchanged = how == "turned" and t.node.name == "sum"
    spoiled = set() if unchanged else set(behind(t.node.inputs[i]))
    verdicts = agreement(y)
    assert {x for x, verdict in verdicts.items() if not verdict.agrees} == spoiled
    expected = [(t, (i,))] if spoiled else []
    assert [(x, v.wrong) for x, v in verdicts.items() if v.wrong] == expected
    if how == "too large":
        assert all(np.isclose(verdicts[x].deviation, 0.0005) for x in spoiled)
    if how == "lost":
        assert all(verdicts[x].deviation == 1 for x in spoiled)


def forgotten():
    """Return a softmax without ⟨y, g⟩, in the form of chapter 11."""

    @primitive
    def softmax(x, /):
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True), lambda g, y: y * g

    return lambda q, k, v: softmax(q @ k.mT / 2) @ v


def test_size_shows_nothing_of_it():
    sizes = []
    for way in (attention, forgotten()):
        y = program(way)
        scores = next(t for t in ordered(y) if t.node and t.node.name in ("divide", "multiply"))
        (gradient,) = gradients(y, [scores], retain_graph=True)
        sizes.append(float(np.sqrt((gradient**2).mean()).round(4)))
    assert sizes == [0.2456, 0.2457]
    verdicts = {t.name or t.node.name: verdict for t, verdict in agreement(y).items()}
    assert str(verdicts["divide"]) == "63 % off"
    assert str(verdicts["softmax"]) == "✓ (its rule is wrong: input 0)"
    assert verdicts["v"].agrees and not verdicts["q"].agrees and not verdicts["k"].agrees


def test_where_differences_cannot_decide_it_is_unresolved():
    @primitive
    def relu(x, /):
        return np.maximum(x, 0.0), lambda g, y: g * (x > 0)

    x = Tensor([0.0, 1.0], requires_grad=True, name="x")  # at the kink
    verdicts = agreement(relu(3 * x).sum())
    assert [str(v) for v in verdicts.values()] == ["? unresolved", "? unresolved", "✓", "✓"]
    far = Tensor([1e9, 1.0], requires_grad=True)  # sin goes around within one step
    assert agreement(np.sin(far).sum())[far].agrees is None


def test_a_slope_where_there_is_none_is_infinitely_off():
    @primitive
    def flat(x, /):
        return 0 * x + 1, lambda g, y: g

    x = Tensor([1.0, 2.0], requires_grad=True)
    verdict = agreement(flat(x).sum())[x]
    assert (verdict.deviation, str(verdict)) == (np.inf, "should be 0")


def test_a_gradient_that_is_not_a_number():
    @primitive
    def broken(x, /):
        return x * x, lambda g, y: g * np.nan

    x = Tensor([1.0, 2.0], requires_grad=True)
    verdict = agreement(broken(x).sum())[x]
    assert str(verdict) == "not a number"
    half = Verdict(False, 0.5)
    for several in ([half, verdict], [verdict, half]):
        assert max(several, key=lambda each: each.badness) is verdict


def test_a_large_tensor_is_estimated():
    @primitive
    def louder(x, /):
        return np.tanh(x), lambda g, y: 1.25 * g * (1 - y * y)

    x = Tensor(np.random.default_rng(0).standard_normal((20, 20)), requires_grad=True)
    verdict = agreement((louder(x) ** 2).sum())[x]
    assert np.isclose(verdict.deviation, 0.25, rtol=1e-6)


def test_a_rule_that_ignores_g_is_right_at_the_end_and_wrong_before_it():
    @primitive
    def ignores(x, /):
        return (x * x).sum(), lambda g, y: 2 * x

    x = Tensor([1.0, 2.0], requires_grad=True)
    assert str(agreement(ignores(x))[x]) == "✓"
    y = 3 * ignores(x)
    assert not agreement(y)[x].agrees
    assert [v.wrong for t, v in agreement(y).items() if t.node] == [(0,), ()]


def test_at_a_tie_nothing_is_called_wrong_and_what_a_comparison_decided_stays():
    x = Tensor([[1.0, 2.0], [1.5, 0.0]], requires_grad=True)
    verdicts = agreement((maximum(x, 1.5) * x).sum())
    assert all(v.agrees is not False for v in verdicts.values())
    assert all(v.agrees for v in agreement(relu(x).sum()).values())


def test_refusals():
    x = Tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(ValueError, match="call f itself"):
        agreement(recompute(np.exp, x).sum())
    with pytest.raises(ValueError, match="needs a seed gradient"):
        agreement(x * x)
    y = (x * x).sum()
    with no_grad():
        x -= 0.5
    with pytest.raises(ValueError, match="was a leaf changed after the forward pass"):
        agreement(y)
    rng = np.random.default_rng(0)

    @primitive
    def noisy(x, /):
        noise = rng.standard_normal(x.shape)
        return x * noise, lambda g, y: g * noise

    with pytest.raises(ValueError, match="does a rule draw random numbers"):
        agreement(noisy(x).sum())


def test_a_graph_has_the_verdicts_as_text_as_boxes_and_on_an_arrow():
    y = program(forgotten())
    drawing = graph(y, grads=True, verdicts=agreement(y))
    lines = str(drawing).splitlines()
    assert [line.split()[0] for line in lines if line.endswith("% off")] == ["q", "k", "t3", "t5"]
    (softmax,) = [line for line in lines if "softmax(" in line]
    assert softmax.endswith("✓; ✗ input 0")
    assert lines[-3:] == [
        "✓: the gradient equals the difference",
        "dashed: the gradient is off by so much",
        "✗: the VJP that is wrong",
    ]
    dot = drawing.source
    assert (
        dot.count('style="filled,dashed"') == 2 and dot.count('style="filled,rounded,dashed"') == 2
    )
    assert dot.count("✗") == 2  # on the arrow, and in the notes
    assert drawing.limits is None
    assert "✓" in graph(y, verdicts=agreement(y)).source  # without sizes, too


def test_the_wrong_rule_of_readme_is_drawn():
    @primitive
    def swish(x, /):
        s = 1 / (1 + np.exp(-x))
        return x * s, lambda g, y: g * (y * (1 - s))  # a term is forgotten

    x = Tensor(np.linspace(-3.0, 3.0, 7), requires_grad=True, name="x")
    y = (np.exp(swish(x)) * x).sum()
    lines = str(graph(y, verdicts=agreement(y))).splitlines()
    assert lines[0].endswith("66 % off") and lines[1].endswith("✓; ✗ input 0")
    assert all(line.endswith("✓") for line in lines[2:5])


def test_inside_of_a_closed_layer_the_worst_verdict_counts():
    from minigrad import Steps
    from minigrad.nn import Linear, Sequential

    x = Tensor(np.random.default_rng(0).standard_normal((2, 3)), requires_grad=True)
    model = Sequential(Linear(3, 4, rng=np.random.default_rng(0)), np.tanh)
    with Steps(model) as steps:
        y = (model(x) ** 2).sum()
    t = next(t for t in ordered(y) if t.node and t.node.name == "linear")
    t.node.rule = changed(t.node.rule, 2, lambda g: 2 * g)  # of the bias alone
    closed = graph(y, steps=steps, depth=0, verdicts=agreement(y))
    (layer,) = [line for line in str(closed).splitlines() if "layers.0" in line]
    assert "bias 100 % off" in layer and closed.source.count("100 % off") == 1
