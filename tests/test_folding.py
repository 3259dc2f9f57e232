"""Chapter 5 · Folding: what is a box, what stands inside one, and what is drawn once."""

import json
import re
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

from attention import Block, FeedForward, MultiHeadAttention, Transformer, attention, gpt2
from minigrad import Steps, Tensor, cross_entropy, graph, primitive, sigmoid
from minigrad.graphs import folding
from minigrad.graphs.folding import Folding
from minigrad.graphs.operations import TABLE
from minigrad.nn import Linear, Module, Sequential
from tests.cases import CASES

rng = np.random.default_rng(0)
WORDS = np.arange(4)[None]


def leaf(*shape, name=None):
    return Tensor(rng.standard_normal(shape), requires_grad=True, name=name)


def sized(make, **options):
    return make(11, 8, d_model=8, num_heads=2, rng=np.random.default_rng(0), **options)


def passed(net, *inputs):
    """Return the loss of a network, and the steps that led to it."""
    with Steps(net) as steps:
        y = net(*inputs)
        loss = (y * y).sum()
    return loss, steps


def post_norm_block():
    """Return a block with a relu and with dropout, whose masks differ in each call."""
    layers = MultiHeadAttention(8, 2, rng=rng), FeedForward(8, 16, rng=rng)
    return Block(*layers, dropout=0.1, rng=rng)


class Loop(Module):
    """Thirty steps of a recurrent network, the sum of their losses, and a mean of all outputs."""

    def __init__(self):
        self.w_x, self.w_h, self.out = (Linear(n, 4, rng=rng) for n in (3, 4, 4))

    def __call__(self, x):
        h, outputs = Tensor(np.zeros((2, 4))), []
        for t in range(30):
            h = np.tanh(self.w_x(x[t]) + self.w_h(h))
            outputs.append(self.out(h))
        losses = [(y * t).mean() for t, y in enumerate(outputs)]
        return sum(losses) + np.stack(outputs).mean()


MODELS = {
    "one block": lambda: passed(Sequential(*[post_norm_block()] * 12), leaf(1, 4, 8, name="x")),
    "a loop": lambda: passed(Loop(), leaf(30, 2, 3, name="x")),
    "a loop on data": lambda: passed(Loop(), Tensor(rng.standard_normal((30, 2, 3)))),
    "block": lambda: passed(
        Block(MultiHeadAttention(8, 2, rng=rng), Linear(8, 8, rng=rng)), leaf(1, 4, 8, name="x")
    ),
    "gpt2": lambda: passed(sized(gpt2, num_blocks=3), WORDS),
    "gpt2 by steps": lambda: passed(sized(gpt2, num_blocks=3, attend=attention), WORDS),
    "transformer": lambda: passed(
        Transformer(11, 13, d_model=8, num_heads=2, num_blocks=2, rng=rng), WORDS, WORDS
    ),
}
models = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
depths = pytest.mark.parametrize("depth", [0, 1, 2, None])


def test_the_large_network_of_the_first_sentence_has_as_many_operations_as_it_says():
    model = sized(gpt2, num_blocks=12, attend=attention)
    vertices = graph(cross_entropy(model(WORDS), WORDS)).vertices
    number = sum(v.kind == "operation" for v in vertices)
    sentence = f"has {number} operations on {len(model.parameters())} parameters."
    assert sentence in " ".join(folding.__doc__.split())


def moves(vertex):
    return vertex.operation in ("reshape", "swapaxes", "transpose", "broadcast_to")


@models
@depths
def test_each_operation_is_in_one_box_and_every_path_leads_to_the_result(make, depth):
    loss, steps = make()
    for drawing in (graph(loss, steps=steps, depth=depth), graph(loss, depth=depth)):
        held = [n for box in drawing.boxes for n in box.vertices]
        assert len(held) == len(set(held))
        done = {v.number for v in drawing.vertices if v.operation and not moves(v)}
        assert done == {n for n in held if drawing.vertices[n].operation}
        ids = [box.id for box in drawing.boxes]
        assert len(set(ids)) == len(ids)
        reached = {ids[-1]}
        for link in reversed(drawing.links):
            assert ids.index(link.source) < ids.index(link.target)
        for id in reversed(ids):
            if any(link.source == id and link.target in reached for link in drawing.links):
                reached.add(id)
        assert reached == set(ids)
        frames = [box.frame for box in drawing.boxes]
        for frame in set(frames) - {()}:  # its boxes stand together (the loss stands outside)
            inside = [f[: len(frame)] == frame for f in frames]
            assert inside[inside.index(True) :].index(False) == sum(inside)
        assert depth is None or max(map(len, frames)) <= depth


def test_every_use_of_a_tensor_is_an_arrow_or_stands_inside():
    met = set()
    for case in CASES:
        inputs = [Tensor(a, requires_grad=i in case.floating) for i, a in enumerate(case.inputs)]
        y = case.ours(*inputs)
        if not (isinstance(y, Tensor) and y.node is not None):
            continue
        drawing = graph(y * 1.0, depth=None)
        done = [v for v in drawing.vertices if v.operation and not moves(v)]
        met |= {v.operation for v in drawing.vertices}
        uses = sum(len(v.inputs) for v in done)
        left_out = sum(  # constants of 1 number that a fused operation has for options
            not (x.operation or x.named or x.shape) and x.kind == "constant"
            for v in done
            if v.rule.fused
            for x in (drawing.vertices[i] for i in v.inputs)
        )
        rows = sum(len(box.rows) for box in drawing.boxes)
        assert uses == len(drawing.links) + rows + left_out, case
    assert set(TABLE) <= met  # each name is that of an operation


@pytest.mark.parametrize("blocks", [3, 12])
def test_a_gpt_of_any_size_opens_with_fifteen_boxes_and_its_first_attention_with_few_more(blocks):
    model = sized(gpt2, num_blocks=blocks)
    with Steps(model) as steps:
        loss = cross_entropy(model(WORDS), WORDS)
    drawing = graph(loss, grads=True, steps=steps)
    assert len(drawing.boxes) == 15
    (repeat,) = [box for box in drawing.boxes if box.kind == "repeat"]
    assert [label for label, _ in repeat.strip] == [str(k) for k in range(1, blocks)]
    ends = {v.modules[0].path: v.grad_rms for v in drawing.vertices if len(v.modules) == 1}
    assert dict(repeat.strip) == {k: ends[f"blocks.{k}"] for k in map(str, range(1, blocks))}
    opened = graph(loss, grads=True, steps=steps, depth=2)
    assert len(opened.boxes) <= 60
    assert any(box.frame[-1:] == ("blocks.0.attention",) for box in opened.boxes)
    whole = graph(loss, steps=steps, depth=None)
    assert len(whole.boxes) > 12 * blocks and whole.source.count(" -> ") == len(whole.links)
    assert not any(row.text == "0" for box in whole.boxes for row in box.rows)


DRAWN_ONCE = {  # by model: the boxes at depth 0 and 1, and the names of the copies
    "one block": ((5, 12), ["layers.0#2 … layers.0#12"]),
    "a loop": ((19, 19), ["w_x#2 … out#30", "multiply … mean", "add"]),
    "a loop on data": ((18, 18), ["w_x#2 … out#30", "multiply … mean", "add"]),
    "transformer": ((13, 15), ["blocks.1", "blocks.1"]),
}


@pytest.mark.parametrize("name", DRAWN_ONCE)
def test_a_layer_used_again_and_each_of_two_stacks_is_drawn_once(name):
    (closed, opened), copies = DRAWN_ONCE[name]
    loss, steps = MODELS[name]()
    drawn = [graph(loss, steps=steps, depth=depth, grads=True) for depth in (0, 1)]
    assert [len(drawing.boxes) for drawing in drawn] == [closed, opened]
    assert [box.title for box in drawn[1].boxes if box.kind == "repeat"] == copies
    assert len(drawn[1].links) <= len(drawn[1].boxes) + 5  # (one for all of a box of copies)
    boxes, _ = Folding(drawn[0].vertices, sys.maxsize, closed=False).drawn()  # (as on a page)
    frames = {box.frame[0]: None for box in boxes if box.frame}
    assert [title for title in frames if "…" in title] == [x for x in copies if "…" in x]
    assert sum(box.kind == "constant" and not box.frame for box in boxes) <= 2  # (none of a copy)


def test_a_layers_parameters_stand_inside_with_their_own_gradients():
    layer, x = Linear(3, 2, rng=rng), leaf(4, 3, name="x")
    loss = layer(x).sum()
    drawing = graph(loss, grads=True)
    box = drawing.boxes[1]
    loss.backward()
    size = lambda p: np.sqrt(np.mean(p.grad**2))
    rows = {row.text: row.grad for row in box.rows}
    assert rows == pytest.approx({"weight": size(layer.weight), "bias": size(layer.bias)})
    assert [b.title for b in drawing.boxes] == ["x", "linear", "sum"]


def test_what_enters_a_closed_layer_stands_outside_and_its_parameters_do_not():
    class Cross(Module):
        def __init__(self):
            self.layer = MultiHeadAttention(8, 2, rng=rng)

        def __call__(self, x, memory):
            return self.layer(x, memory)

    loss, steps = passed(Cross(), leaf(1, 4, 8, name="x"), leaf(1, 4, 8, name="memory"))
    drawing = graph(loss, steps=steps, depth=0)
    assert [box.title for box in drawing.boxes] == ["x", "memory", "layer", "multiply", "loss"]
    assert not drawing.boxes[2].rows and len(drawing.links) == 5
    assert graph(loss, steps=steps, depth=1).boxes[0].frame == ()


def test_layers_that_differ_are_not_folded():
    widths = [(3, 4), (4, 4), (4, 4), (4, 3)]

    class Two(Module):
        def __init__(self, n, m):
            self.linear = Linear(n, m, rng=rng)

        def __call__(self, x):
            return np.tanh(self.linear(x))

    loss, steps = passed(Sequential(*[Two(*w) for w in widths]), leaf(2, 3, name="x"))
    titles = [box.title for box in graph(loss, steps=steps, depth=0).boxes]
    assert titles == ["x", "layers.0", "layers.1", "layers.2", "layers.3", "multiply", "loss"]
    assert graph(loss, steps=steps, depth=0).boxes[3].kind == "repeat"


class Scaled(Module):
    """x + factor · linear(f(linear(x))); what else may differ is given."""

    def __init__(self, factor=1.0, *, f=np.tanh, index=None, shared=False):
        self.a = Linear(4, 4, rng=rng)
        self.b = self.a if shared else Linear(4, 4, rng=rng)
        self.factor, self.f, self.index = factor, f, index

    def __call__(self, x):
        h = self.b(self.f(self.a(x))) * self.factor
        return x + (h if self.index is None else h[:, self.index])


ORDERS = [np.array(order) for order in ([0, 1, 2, 3], [0, 0, 0, 0], [3, 2, 1, 0])]
UNLIKE = {
    "constants": [Scaled(1.0), Scaled(1.0), Scaled(0.0), Scaled(-5.0)],
    "indices": [Scaled(index=order) for order in ORDERS],
    "operations": [Scaled(), Scaled(), Scaled(f=np.sin)],
    "weights shared within": [Scaled(), Scaled(shared=True), Scaled()],
}


def repeated(drawing):
    """Yield for each box of copies its blocks' numbers, after that of the block drawn before."""
    for box in drawing.boxes:
        if box.kind == "repeat" and box.title.startswith("layers."):
            labels = [int(label) for label, _ in box.strip]
            yield [labels[0] - 1, *labels]


@pytest.mark.parametrize("blocks", UNLIKE.values(), ids=UNLIKE)
def test_blocks_that_differ_are_not_called_alike(blocks):
    loss, steps = passed(Sequential(*blocks), leaf(2, 4, name="x"))
    for numbers in repeated(graph(loss, steps=steps)):
        some = [blocks[k] for k in numbers]
        assert len({(b.factor, b.f, b.a is b.b, id(b.index)) for b in some}) == 1


def test_a_users_rule_is_drawn_whatever_it_is_called():
    @primitive
    def reshape(x, /):
        s = 1 + np.abs(x)
        return x / s, lambda g, y: g / s**2

    drawing = graph((reshape(leaf(2, name="x")) * 2.0).sum())
    assert [box.title for box in drawing.boxes] == ["x", "reshape", "multiply", "sum"]


@pytest.mark.parametrize("value", [np.nan, np.inf, 5e-324])
def test_strange_gradients_are_drawn_and_are_strict_json(value, tmp_path):
    x = leaf(2, name="x")
    with np.errstate(all="ignore"):
        y = (x * value).sum()
        drawing = graph(y, grads=True)
        for ending in ("svg", "json", "dot", "html"):
            drawing.save(tmp_path / f"x.{ending}")
    refuse = lambda name: pytest.fail(name)
    saved = json.loads((tmp_path / "x.json").read_text(), parse_constant=refuse)
    assert saved["boxes"][0]["title"] == "x"
    root = ElementTree.parse(tmp_path / "x.svg")
    json.loads(root.find("{http://www.w3.org/2000/svg}metadata").text, parse_constant=refuse)
    assert "nan" not in root.getroot().get("aria-label")


def test_noise_does_not_move_the_limits_and_is_explained():
    model = sized(gpt2, num_blocks=2)
    for name, p in model.named_parameters():
        if name.endswith("bias"):
            p.data = rng.standard_normal(p.shape)
    with Steps(model) as steps:
        loss = cross_entropy(model(WORDS), WORDS)
    drawing = graph(loss, grads=True, steps=steps, depth=2)
    assert drawing.limits[0] >= 1e-12
    rows = {row.text: row.grad for box in drawing.boxes for row in box.rows if box.title == "w_k"}
    assert re.search('BGCOLOR="#ffffff"><FONT[^>]*>bias grad ≈ 0', drawing.source)
    for box in graph(loss, grads=True, steps=steps).boxes:
        assert not (box.of_several and drawing.noise & {row.vertex for row in box.rows})
    assert rows["bias"] < 1e-15
    assert "bias grad ≈ 0" in drawing.source and "≈ 0: the gradient is 0 on paper" in str(drawing)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_gradient_that_vanished_by_factors_or_is_a_small_sum_is_no_noise(dtype):
    x = Tensor(np.ones((4, 3), dtype), name="x")
    y = x
    layers = [Linear(3, 3, rng=rng).astype(dtype) for _ in range(20)]
    for layer in layers:
        y = sigmoid(layer(y))
    drawing = graph(y.sum(), grads=True)
    assert drawing.vertices[-1].grad_rms > 1e10 * min(
        v.grad_rms for v in drawing.vertices if v.grad_rms
    )
    assert not drawing.noise and "≈ 0" not in str(drawing)
    G = rng.standard_normal((4096, 8)).astype(dtype)
    G -= G.mean(axis=0) - 1e-5  # a sum that nearly cancels
    b = Tensor(np.zeros(8, dtype), requires_grad=True, name="bias")
    drawing = graph(((Tensor(G) + b) * G).sum(), grads=True)
    assert not drawing.noise


def test_a_closed_layer_tells_what_gets_least():
    model = sized(gpt2, num_blocks=3)
    block = model.blocks[2]
    block.attention.w_q.weight.data = block.attention.w_q.weight.data * 1e6
    with Steps(model) as steps:
        loss = cross_entropy(model(WORDS), WORDS)
    drawing = graph(loss, grads=True, steps=steps)
    (repeat,) = [box for box in drawing.boxes if box.kind == "repeat"]
    (least,) = repeat.rows
    assert "blocks.2.attention" in least.text and least.grad < 1e-12
    assert "least: blocks.2.attention" in str(drawing)


def test_gradients_beyond_given_limits_are_marked():
    x = leaf(3, name="x")
    drawing = graph((x * 1e-3).sum() * 1e3, grads=True, limits=(1e-1, 10.0))
    assert "grad 1e+03 ↑" in str(drawing) and "grad 1 " not in str(drawing)
    drawing = graph((x * 1e-3).sum(), grads=True, limits=(1e-1, 10.0))
    assert "grad 0.001 ↓" in str(drawing)


def test_where_an_axis_is_averaged_the_length_of_the_gradient_is_shown():
    x = leaf(100, name="x")
    text = str(graph(np.sin(x).mean(), grads=True))
    assert "sin(x)" in text and "grad 0.01, ‖g‖ 0.1" in text
