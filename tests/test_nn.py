"""Chapter 7 · Layers: parameters that an optimizer can find, and the linear layer."""

import math

import numpy as np
import pytest

from minigrad import Tensor, gradcheck, gradients
from minigrad.nn import Linear, Module

random = np.random.default_rng(3)
B, T, D_IN, D_OUT = 2, 3, 5, 7


def linear(d_in=D_IN, d_out=D_OUT, **options):
    return Linear(d_in, d_out, rng=np.random.default_rng(5), **options)


class Scaled(Module):
    """A parameter of its own, a module, and attributes that are no parameters."""

    def __init__(self):
        self.before = "text"
        self.factor = Tensor(2.0, requires_grad=True)
        self.inner = linear(bias=False)
        self.constant = Tensor(np.ones(3))
        self.nothing = None

    def __call__(self, x):
        return self.inner(x) * self.factor


class Nested(Module):
    def __init__(self):
        self.last_in_the_alphabet = Scaled()
        self.first = linear()


# ---------------------------------------------------------------- value


def test_a_linear_layer_equals_three_nested_loops():
    layer, x = linear(), random.standard_normal((T, D_IN))
    layer.bias.data = random.standard_normal(D_OUT)
    expected = np.tile(layer.bias.data, (T, 1))
    for t in range(T):
        for i in range(D_IN):
            for j in range(D_OUT):
                expected[t, j] += x[t, i] * layer.weight.data[i, j]
    np.testing.assert_allclose(layer(Tensor(x)).data, expected, rtol=1e-12)


@pytest.mark.parametrize("batch", [(), (T,), (B, T), (0, T), (2, 1, 3, 1)])
def test_any_number_of_axes_may_stand_before_the_features(batch):
    layer, x = linear(), random.standard_normal((*batch, D_IN))
    y = layer(Tensor(x))
    assert y.shape == (*batch, D_OUT)
    np.testing.assert_allclose(y.data, x @ layer.weight.data, rtol=1e-12, atol=1e-14)


def test_parameters_are_named_by_the_path_to_them_in_the_order_they_were_set():
    model = Nested()
    expected = {
        "last_in_the_alphabet.factor": model.last_in_the_alphabet.factor,
        "last_in_the_alphabet.inner.weight": model.last_in_the_alphabet.inner.weight,
        "first.weight": model.first.weight,
        "first.bias": model.first.bias,
    }
    assert [name for name, _ in model.named_parameters()] == list(expected)
    assert [id(p) for _, p in model.named_parameters()] == [id(p) for p in expected.values()]
    assert [id(p) for p in model.parameters()] == [id(p) for p in expected.values()]
    assert [name for name, _ in linear().named_parameters("head.")] == ["head.weight", "head.bias"]


def test_modules_in_lists_are_named_by_their_places():
    model = Module()
    model.blocks = [linear(bias=False), (linear(), [linear(bias=False)])]
    model.words = ["text", None]
    assert [name for name, _ in model.named_parameters()] == [
        "blocks.0.weight",
        "blocks.1.0.weight",
        "blocks.1.0.bias",
        "blocks.1.1.0.weight",
    ]


def test_a_parameter_that_two_layers_share_comes_once_so_that_it_is_trained_once():
    model = Module()
    model.one, model.other = linear(), linear()
    model.other.weight = model.one.weight
    names = [name for name, _ in model.named_parameters()]
    assert names == ["one.weight", "one.bias", "other.bias"]
    assert len(model.parameters()) == 3


def test_a_layer_without_parameters_has_none():
    assert Module().parameters() == []


def test_a_result_that_a_layer_keeps_is_no_parameter():
    """Only a leaf can be trained."""
    model = Scaled()
    model.kept = model(Tensor(np.ones((T, D_IN))))
    assert [name for name, _ in model.named_parameters()] == ["factor", "inner.weight"]


# ---------------------------------------------------------------- derivative


@pytest.mark.parametrize("batch", [(), (T,), (B, T)])
def test_first_and_second_derivatives_agree_with_finite_differences(batch):
    layer = linear()

    def f(x, weight, bias):
        layer.weight, layer.bias = weight, bias
        return layer(x) ** 2

    inputs = [random.standard_normal(s) for s in ((*batch, D_IN), (D_IN, D_OUT), (D_OUT,))]
    assert gradcheck(f, *inputs)


def test_the_bias_receives_the_sum_over_all_positions():
    layer, g = linear(), random.standard_normal((B, T, D_OUT))
    (db,) = gradients(layer(Tensor(np.ones((B, T, D_IN)))), [layer.bias], g)
    np.testing.assert_allclose(db, g.sum(axis=(0, 1)), rtol=1e-13)


def test_gradients_accumulate_in_the_parameters():
    model = Scaled()
    x = Tensor(random.standard_normal((T, D_IN)))
    model(x).sum().backward()
    once = [p.grad.copy() for p in model.parameters()]
    model(x).sum().backward()
    for p, g in zip(model.parameters(), once, strict=True):
        assert p.grad.any()
        np.testing.assert_array_equal(p.grad, 2 * g)


# ---------------------------------------------------------------- law


@pytest.mark.parametrize(("d_in", "d_out"), [(401, 401), (211, 601), (601, 211)])
def test_weights_are_drawn_evenly_between_the_bounds_of_xavier(d_in, d_out):
    layer = linear(d_in, d_out)
    weight, bound = layer.weight.data, math.sqrt(6 / (d_in + d_out))
    assert weight.shape == (d_in, d_out)
    assert abs(weight).max() <= bound
    assert abs(weight).max() > 0.999 * bound
    quarters = np.histogram(weight, 4, (-bound, bound))[0] / weight.size
    np.testing.assert_allclose(quarters, 0.25, atol=0.01)
    np.testing.assert_allclose(weight.var(), 2 / (d_in + d_out), rtol=0.02)
    assert not layer.bias.data.any()


def test_a_square_layer_keeps_unit_variance_forward_and_backward():
    layer = linear(401, 401)
    x = Tensor(random.standard_normal((101, 401)), requires_grad=True)
    y = layer(x)
    (dx,) = gradients(y, [x], random.standard_normal(y.shape))
    np.testing.assert_allclose([y.data.std(), dx.std()], 1.0, atol=0.03)


def test_the_rows_of_a_batch_do_not_mix():
    layer, x = linear(), Tensor(random.standard_normal((T, D_IN)), requires_grad=True)
    (dx,) = gradients(layer(x)[1].sum(), [x])
    np.testing.assert_array_equal((dx != 0).any(axis=-1), [False, True, False])


def test_a_float32_layer_stays_float32():
    layer = linear(dtype=np.float32)
    x = Tensor(random.standard_normal((T, D_IN)), dtype=np.float32, requires_grad=True)
    y = layer(x)
    assert y.dtype == np.float32
    for d in gradients(y.sum(), [x, *layer.parameters()]):
        assert d.dtype == np.float32


def test_equal_generators_give_equal_layers_and_one_generator_gives_different_ones():
    np.testing.assert_array_equal(linear().weight.data, linear().weight.data)
    rng = np.random.default_rng(5)
    one, other = (Linear(D_IN, D_OUT, rng=rng) for _ in range(2))
    assert not np.isin(one.weight.data, other.weight.data).any()


# ---------------------------------------------------------------- refusal


@pytest.mark.parametrize(
    ("shape", "got"),
    [((T, D_OUT), r"\(3, 7\)"), ((D_IN, T), r"\(5, 3\)"), ((), r"\(\)"), ((0,), r"\(0,\)")],
)
def test_an_input_of_the_wrong_width_is_refused_with_its_name_and_shape(shape, got):
    with pytest.raises(ValueError, match=f"takes 5 features on the last axis: got 'x' {got}$"):
        linear()(Tensor(np.ones(shape), name="x"))


def test_a_generator_must_be_given():
    with pytest.raises(TypeError, match="rng"):
        Linear(D_IN, D_OUT)


def test_modules_in_lists_and_dicts_count_once_and_cycles_end():
    class Tree(Module):
        def __init__(self):
            self.blocks = [Linear(2, 3, bias=False, rng=np.random.default_rng(0))]
            self.by_name = {"head": Linear(3, 5, bias=False, rng=np.random.default_rng(0))}
            self.same = self.blocks[0]
            self.parent = self

    assert [name for name, _ in Tree().named_parameters()] == [
        "blocks.0.weight",
        "by_name.head.weight",
    ]
