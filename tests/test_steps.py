"""Chapter 5 · Steps: what is noted of both passes, and the names of layers and variables."""

import gc
import html
import inspect
import json
import re
import weakref

import numpy as np
import pytest

import attention as attention_package
import minigrad.nn
import minigrad.optim
from attention import MultiHeadAttention, attention, gpt2
from minigrad import (
    Steps,
    Tensor,
    cross_entropy,
    functional,
    gradients,
    graph,
    no_grad,
    ops,
    primitive,
    recompute,
    softmax,
    unfused,
)
from minigrad.engine.record import WATCHERS
from minigrad.nn import Linear, Module, Sequential
from minigrad.nn.module import CALLS
from tests.cases import CASES

rng = np.random.default_rng(0)
WORDS = np.arange(4)[None]


def leaf(*shape, name=None):
    return Tensor(rng.standard_normal(shape), requires_grad=True, name=name)


def gpt(blocks=2, **options):
    sizes = {"d_model": 8, "num_heads": 2, "num_blocks": blocks}
    return gpt2(11, 8, **sizes, rng=np.random.default_rng(0), **options)


def operations(steps):
    return [v for v in steps.vertices if v.operation]


def titles(steps):
    return [v.title for v in operations(steps)]


def paths(steps):
    return [v.modules[-1].path if v.modules else "" for v in operations(steps)]


def test_the_gradients_are_those_of_backward_and_every_sum_is_shown():
    for case in CASES:
        inputs = [Tensor(a, requires_grad=i in case.floating) for i, a in enumerate(case.inputs)]
        with Steps() as steps:
            y = case.ours(*inputs)
        if not (isinstance(y, Tensor) and y.requires_grad):
            continue
        seed = rng.standard_normal(y.shape)
        found = steps.backward(y, seed)
        assert all(x.grad is None for x in inputs)
        y.backward(seed)
        for x in inputs:
            if x in found:
                np.testing.assert_array_equal(found[x], x.grad)
            else:
                assert x.grad is None
        received = {}
        for c in steps.contributions:
            before = received.get(c.target)
            assert (c.before is None) == (before is None) == (c.nth == 1)
            if c.after.whole is not None:
                total = c.contribution.whole if before is None else before + c.contribution.whole
                np.testing.assert_array_equal(c.after.whole, total)
                received[c.target] = c.after.whole
            if c.source is not None:
                assert steps.vertices[c.source].inputs[c.position] == c.target
                assert c.nth <= c.of == sum(d.target == c.target for d in steps.contributions)


def test_a_backward_in_the_block_is_noted_as_steps_backward_is(tmp_path):
    x = leaf(2, 3, name="x")

    def passed(send):
        with Steps() as steps:
            h = np.tanh(x * x)
            loss = (h * h).mean()
            found = send(loss, steps)
        return loss, steps, found

    loss, steps, _ = passed(lambda loss, steps: loss.backward())
    kept, other, found = passed(lambda loss, steps: steps.backward(loss))
    np.testing.assert_array_equal(x.grad, found[x])
    assert steps.data() == other.data() and steps.contributions
    for grads in (False, True):  # (the record of the first is dropped)
        boxes = graph(loss, grads=grads, steps=steps).boxes
        expected = graph(kept, grads=grads).boxes
        assert [box.grad for box in boxes] == [box.grad for box in expected]
    pages = [each.save(tmp_path / "x.html").read_text() for each in (steps, other)]
    assert pages[0] == pages[1]
    loss, steps, _ = passed(
        lambda loss, steps: steps.backward(loss, 2.0)
    )  # (a drawing's seed is 1)
    boxes = graph(loss, grads=True, steps=steps).boxes
    assert [box.grad for box in boxes] == [box.grad for box in expected]
    loss, steps, _ = passed(lambda loss, steps: None)
    with pytest.raises(ValueError, match=r"^no backward pass was noted: call steps\.backward"):
        steps.save(tmp_path / "x.html")
    loss.backward()
    np.testing.assert_array_equal(x.grad, 2 * found[x])
    assert len(graph(loss, steps=steps).boxes) == len(expected) and not steps.contributions
    with pytest.raises(RuntimeError, match="the record of mean .* was already dropped"):
        graph(loss, grads=True, steps=steps)


def test_of_several_passes_the_first_whole_one_is_noted_and_there_is_no_page(tmp_path):
    w = leaf(3, name="w")
    half = primitive(lambda x, /: (x / 2, lambda g, y: g[:2]))
    with Steps() as steps:
        with pytest.raises(ValueError, match="gave shape"):
            half(w * w).sum().backward()
        assert w.grad is None and not steps.contributions
        for k in (1.0, 2.0, 3.0):
            (w * k).sum().backward()
    assert w.grad.tolist() == [6.0] * 3
    assert [c.after.whole.tolist() for c in steps.contributions] == [1.0, [1.0] * 3, [1.0] * 3]
    with pytest.raises(ValueError, match="shows one backward pass, and 3 ran in the block of"):
        steps.save(tmp_path / "x.html")


def test_a_pre_norm_block_has_four_sums_and_x_times_x_has_one():
    block = gpt(1).blocks[0]
    x = leaf(3)
    for net, f, sums in ((block, lambda: block(leaf(1, 4, 8)), 4), (None, lambda: x * x, 1)):
        with Steps(net) as steps:
            y = f()
        steps.backward(y, np.ones(y.shape))
        found = [c for c in steps.contributions if c.before is not None]
        assert len(found) == sums and all(1 < c.nth <= c.of for c in found)


def test_a_result_that_no_variable_names_is_printed_with_its_layer_and_operation():
    model = gpt()
    with Steps(model) as steps:
        loss = cross_entropy(model(WORDS), WORDS)
    steps.backward(loss)
    backward = str(steps).partition("\nbackward\n")[2]
    assert re.search(r" blocks\.1\.norm_feed_forward: layer_norm \(t\d+\) → x#\d", backward)
    assert re.search(
        r" blocks\.1\.attention\.w_q: linear \(t\d+\) → blocks\.1\.attention\.w_q\.weight: ",
        backward,
    )
    for layer, operation, number in re.findall(r"(?:([\w.]+): )?(\w+) \(t(\d+)\)", backward):
        v = steps.vertices[int(number)]
        assert v.operation == operation and (not layer or v.modules[-1].path == layer)
    assert not re.search(r"(^ +\d+\.|→) t\d", backward, re.M)
    assert re.search(r" = linear\(t\d+, weight, bias\) ", str(steps))


def test_what_was_computed_before_the_block_is_noted_without_a_line():
    x = leaf(3, name="x")
    h = np.sin(x)
    with Steps() as steps:
        y = (h * h).sum()
    found = steps.backward(y)
    np.testing.assert_allclose(found[x], 2 * np.sin(x.data) * np.cos(x.data))
    lines = {v.operation: v.line for v in operations(steps)}
    assert lines["sin"] == "" and "test_steps.py, line" in lines["multiply"]
    assert "outside of the block" in str(steps)
    later = h * 3.0
    y.backward()
    with Steps() as steps:
        last = later * 2.0  # (half of its record has been dropped)
    assert titles(steps)[-1] == "last" and last.node


def test_layers_lines_and_names_of_a_gpt():
    model = gpt(attend=attention)
    with Steps(model) as steps:
        logits = model(WORDS)
        loss = cross_entropy(logits, WORDS)
    steps.backward(loss)
    assert titles(steps)[-2:] == ["logits", "loss"]
    assert {"scores", "weights", "heads"} <= set(titles(steps))
    assert "blocks.1.attention.w_q" in paths(steps) and paths(steps)[-1] == ""
    assert all(v.line.startswith(("attention/", "test_steps.py")) for v in operations(steps))
    names = [v.title for v in steps.vertices if v.kind == "leaf"]  # (a tied weight is one leaf)
    assert sorted(names) == sorted(name for name, _ in model.named_parameters())


def test_an_inner_line_names_before_an_outer_one_and_a_loop_names_each():
    def inner(x):
        doubled = x * 2.0
        return np.sin(doubled)

    def outer(x):
        y = inner(x)
        return y + 1.0

    x = leaf(2, name="x")
    with Steps() as steps:
        a = outer(x)
        for _ in range(3):
            a = a * 2.0 + 1.0
        z = (
            np.exp(a)
            - x
        )  # fmt: skip
        z.sum()
    loop = ["multiply", "a"] * 3
    assert titles(steps) == ["doubled", "y", "a", *loop, "exp", "z", "sum"]


NAMED = {  # a line, and the names that its operations get
    "y = (h := x * 2.0) + 1.0": ["h", "y"],
    "net = (lambda t: t * t); net(x)": ["multiply"],
    "y = x * 2.0; z = y.sum(); w = 3": ["y", "z"],
    "d = {'k': np.cos(x)}": ["cos"],
    "many = [np.sin(x), x * 2.0]": ["sin", "multiply"],
    "many = [x * k for k in (1.0, 2.0)]": ["multiply"] * 2,
    "y = np.concatenate([np.sin(x), x])": ["sin", "y"],
    "(a, b) = x * 1.0, x * 2.0": ["multiply"] * 2,
    "y = (lambda t: t * 2.0)(x) + 1.0": ["multiply", "y"],
    "y: object = x * 2.0": ["y"],
    "y = (x * 2.0, x * 3.0)[0]": ["y", "multiply"],
    "y = x; y += 1.0": ["y"],
    "y = z = x * 2.0": ["multiply"],
    "d = [x * 2.0]\ny = d[0]\ny = (x * x * x).sum()": ["multiply"] * 3 + ["y"],
    "def f():\n    z = x * 2.0\n    return z\ny = f()": ["z"],
}


@pytest.mark.parametrize("source", NAMED)
def test_what_a_line_assigns_gets_the_name_and_nothing_else_does(source, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(source)
    code = compile(source, str(path), "exec")
    x = Tensor([1.0, 2.0], requires_grad=True, name="x") * 1.0  # (a result, which += may replace)
    with Steps() as steps:
        exec(code, {"np": np, "x": x})
    assert [v.title for v in operations(steps) if v.line] == NAMED[source]


class Twice(Module):
    """A model that calls one layer twice, and computes in a method of another name."""

    def __init__(self):
        self.layer = Linear(3, 3, rng=rng)

    def __call__(self, x):
        return self.helper(self.layer(np.tanh(self.layer(x))))

    def helper(self, x):
        return np.exp(x)


def test_a_layer_called_twice_is_numbered_and_a_method_belongs_to_its_caller():
    model = Sequential(Twice(), Twice())
    with Steps(model) as steps:
        model(leaf(2, 3))
    assert paths(steps) == [
        f"layers.{k}{rest}" for k in (0, 1) for rest in (".layer", "", ".layer#2", "")
    ]


class Doubled(Linear):
    """A layer that calls the __call__ that it inherits."""

    def __call__(self, x):
        return super().__call__(x) * 2.0


class Energy(Module):
    """A model that takes a gradient in the middle of its call."""

    def __init__(self):
        self.inner, self.outer = Linear(3, 3, rng=rng), Linear(3, 3, rng=rng)

    def __call__(self, x):
        energy = np.tanh(self.inner(x)).sum()
        (force,) = gradients(energy, [x], create_graph=True)
        return self.outer(force)


class Plain(Module):
    def __init__(self):
        self.inner = Linear(3, 3, rng=rng)

    def __call__(self, x):
        return np.tanh(self.inner(x)) * 2.0


def test_a_call_that_fails_has_ended():
    net = Sequential(Plain())
    with pytest.raises(ValueError), Steps(net) as steps:
        y = np.sin(leaf(2, 5))
        net(y)
    assert WATCHERS.get() == () and CALLS.running == [] and titles(steps) == ["y"]


def test_steps_are_freed_with_their_last_name_even_if_their_block_never_ended():
    gc.disable()
    try:
        for ends in (True, False):
            steps = Steps().__enter__()
            np.sin(leaf(3))
            if ends:
                steps.__exit__()
            freed = weakref.ref(steps)
            del steps
            assert freed() is None and np.sin(leaf(3)).node
    finally:
        gc.enable()
        WATCHERS.set(())


def test_super_is_no_second_call_and_a_layer_in_recompute_is_not_counted():
    net = Sequential(Doubled(3, 3, rng=rng), Linear(3, 3, rng=rng))
    with Steps(net) as steps:
        recompute(net.layers[1], net.layers[0](leaf(2, 3)))
        net(leaf(2, 3))
    assert paths(steps) == [
        "layers.0",
        "layers.0",
        "",
        "layers.0#2",
        "layers.0#2",
        "layers.1",
    ]


@pytest.mark.parametrize("depth", [0, 1, 2, None])
def test_each_call_of_a_layer_is_one_frame_or_one_box_whatever_stands_between(depth):
    net = Sequential(Energy())
    x = leaf(2, 3)
    with Steps(net) as steps:
        y = net(x)
        y = net(y + 1.0).sum()
    drawing = graph(y, steps=steps, depth=depth)
    frames = [box.frame for box in drawing.boxes]
    for frame in set(frames) - {()}:
        inside = [f[: len(frame)] == frame for f in frames]
        first = inside.index(True)
        assert all(inside[first : first + sum(inside)])
    closed = [box.title for box in drawing.boxes if box.kind == "module"]
    assert len(closed) == len(set(closed))


def test_a_fused_operation_is_one_step_and_unfused_all_of_them():
    layer, x = MultiHeadAttention(4, 2, rng=rng), leaf(1, 3, 4)
    with Steps(layer) as steps:
        layer(x)
    assert "fused_attention" in [v.operation for v in operations(steps)]
    with Steps(layer) as steps, unfused():
        layer(x)
    assert {"softmax", "matmul"} <= {v.operation for v in operations(steps)}


def test_recompute_is_one_step_and_what_it_runs_again_is_none():
    x = leaf(3)
    with Steps() as steps:
        y = recompute(ops.exp, recompute(lambda x: np.tanh(x * x), x)).sum()
        found = steps.backward(y)
        y.backward()
    assert [v.operation for v in operations(steps)] == ["recompute", "recompute", "sum"]
    assert not operations(steps)[0].rule.fused
    np.testing.assert_array_equal(found[x], x.grad)


def stepped(w):
    with no_grad():
        w -= 0.1


@pytest.mark.parametrize("change", [stepped, lambda w: None])
def test_with_steps_a_graph_has_the_leaves_and_the_gradients_that_it_has_without(change):
    w, x = leaf(3, name="w"), leaf(3, name="x")
    with Steps() as steps:
        first = (w * x).sum()
        change(w)
        with no_grad():
            frozen = np.exp(x)
        start = Tensor(frozen.data, requires_grad=True, name="start")
        second = (w * w * start * frozen).sum()
        change(w)
    weights = [v.value.whole.tolist() for v in steps.vertices if (v.title, v.kind) == ("w", "leaf")]
    assert len(weights) == len({str(w) for w in weights}) >= 1 + (change is stepped)
    for y in (first, second):
        plain, noted = (graph(y, grads=True, **known) for known in ({}, {"steps": steps}))
        known = [[v for v in drawing.vertices if v.gradient] for drawing in (plain, noted)]
        found = [sorted((v.title, v.gradient.whole.tobytes()) for v in each) for each in known]
        leaves = [[pair for pair in each if pair[0] in ("w", "x", "start")] for each in found]
        assert leaves[0] == leaves[1] and leaves[0]
        for t, g in steps.backward(y).items():
            (expected,) = gradients(y, [t], retain_graph=True)
            np.testing.assert_array_equal(g, expected)
        for c in steps.contributions[1:]:
            assert steps.vertices[c.source].inputs[c.position] == c.target
        reached = {c.target for c in steps.contributions}  # (of this pass, and of none before)
        assert reached == {v.number for v in steps.vertices if v.gradient is not None}


def test_what_is_kept_has_no_absolute_path_and_can_be_written_as_json():
    model = gpt(1)
    with Steps(model) as steps, np.errstate(all="ignore"):
        loss = cross_entropy(model(WORDS), WORDS) * np.inf
        steps.backward(loss)
    text = json.dumps(steps.data(), allow_nan=False)
    assert '"/' not in text and json.loads(text)["contributions"]


def test_a_notebook_shows_the_page_of_one_pass_in_a_frame_and_text_otherwise(tmp_path):
    x = leaf(2, name='<"x">')
    with Steps() as steps:
        y = (x * x).sum()
    assert steps._repr_html_() is None
    steps.backward(y)
    frame = r'<iframe sandbox="allow-scripts" [^>]* srcdoc="([^"]*)"></iframe>'
    (inside,) = re.fullmatch(frame, steps._repr_html_()).groups()
    assert html.unescape(inside) == steps.save(tmp_path / "x.html").read_text("utf-8")


def test_steps_that_noted_nothing_can_be_asked_and_say_what_they_are(tmp_path):
    with Steps() as steps:
        pass
    assert (str(steps), repr(steps)) == ("forward", "Steps(0 operations, 0 contributions)")
    assert steps.vertices == steps.contributions == ()
    assert steps.data()["vertices"] == steps.data()["contributions"] == []
    with pytest.raises(RuntimeError, match="have noted a pass already: make new ones"):
        steps.__enter__()
    with pytest.raises(ValueError, match="nothing to save: these Steps have noted no op"):
        steps.save(tmp_path / "x.html")
    y = np.sin(leaf(3, name="mine")).sum()
    assert str(graph(y, grads=True, steps=Steps())) == str(graph(y, grads=True))
    assert len(steps.backward(y)) == 1 and titles(steps) == ["sin", "sum"]


def test_each_operation_tells_the_first_line_of_its_docstring_and_what_that_sets_apart():
    with Steps() as steps:
        softmax(leaf(3))
    (step,) = operations(steps)
    rule = step.rule
    assert rule.formula.startswith("yᵢ = exp(xᵢ) / Σⱼ exp(xⱼ)") and rule.letters == ("x",)
    doc = inspect.getdoc(softmax)
    assert rule.displayed and all(f"\n    {line}\n" in doc for line in rule.displayed)
    double = lambda x, /: (x * 2.0, lambda g, y: g * 2.0)
    double.__doc__ = "y = 2x.\n\n    f′ = 2\n\n>>> double([1.0])\n    [2.0]"
    double.__name__ = "sin"  # (the name of one of ours)
    with Steps() as steps:
        primitive(double)(leaf(3))
    (step,) = operations(steps)
    assert (step.rule.formula, step.rule.displayed) == ("y = 2x.", ("f′ = 2",))
    silent = set()
    for case in CASES:
        inputs = [Tensor(a, requires_grad=i in case.floating) for i, a in enumerate(case.inputs)]
        with Steps() as steps:
            case.ours(*inputs)
        for v in operations(steps):
            silent |= set() if v.rule.formula else {v.operation}
            assert ">>>" not in "".join(v.rule.displayed)
    assert silent == set()


def test_the_first_line_of_every_public_name_ends_a_sentence():
    found = {
        f"{package.__name__}.{name}": inspect.getdoc(getattr(package, name)).splitlines()[0]
        for package in (minigrad, minigrad.nn, minigrad.optim, attention_package, ops, functional)
        for name in package.__all__
        if inspect.getdoc(getattr(package, name))
    }
    assert len(found) > 200
    assert {name: line for name, line in found.items() if not re.search("[.)]$|→", line)} == {}


def test_what_leaves_no_record_is_a_constant_and_a_gradient_of_a_gradient_has_its_steps():
    x = leaf(3, name="x")
    with Steps() as steps:
        with no_grad():
            scale = np.exp(x)
        y = (x**3 / scale).sum()
        (slope,) = gradients(recompute(lambda x: np.sin(x), x).sum(), [x], create_graph=True)
        total = (slope * slope).sum()
    assert "exp" not in titles(steps) and [v.kind for v in steps.vertices].count("leaf") == 1
    np.testing.assert_allclose(steps.backward(y)[x], (3 * x.data**2) / np.exp(x.data))
    found = steps.backward(total)[x]
    np.testing.assert_allclose(found, -2 * np.cos(x.data) * np.sin(x.data))
    assert {"cos", "total"} <= set(titles(steps))
