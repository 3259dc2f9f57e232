"""Chapter 7 · Layers: parameters found by their names, state that travels, and the usual layers."""

import copy
import functools
import gc
import math
import pickle
import re
import weakref

import numpy as np
import pytest

from minigrad import Steps, Tensor, dropout, gradcheck, gradients, recompute, relu
from minigrad.nn import (
    Dropout,
    LayerNorm,
    Linear,
    Module,
    RMSNorm,
    Sequential,
    functional_call,
    normal,
    xavier_uniform,
)

random = np.random.default_rng(3)
B, T, D_IN, D_OUT = 2, 3, 5, 7


def linear(d_in=D_IN, d_out=D_OUT, **options):
    return Linear(d_in, d_out, rng=np.random.default_rng(5), **options)


class Scaled(Module):
    """A module with a parameter, a module, and attributes that are not parameters."""

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


def rng(seed=5):
    return np.random.default_rng(seed)


class Frozen(Module):
    """A module with a frozen parameter, a constant, a mask and a step: all leaves, all state."""

    def __init__(self):
        self.trained = Tensor(np.ones(D_IN), requires_grad=True)
        self.frozen = Tensor(np.full(D_IN, 2.0))
        self.inner = [linear(), {"mask": Tensor(np.array([True, False]))}]
        self.step = Tensor(np.array(7))
        self.text = "text"


STATE = ["trained", "frozen", "inner.0.weight", "inner.0.bias", "inner.1.mask", "step"]


# ---------------------------------------------------------------- value


def with_attributes(**attributes):
    model = Module()
    for name, value in attributes.items():
        setattr(model, name, value)
    return model


def in_a_circle():
    model = with_attributes(blocks=[linear(bias=False)], by_name={"head": linear(bias=False)})
    model.same, model.parent = model.blocks[0], model
    return model


def keeping_a_result():
    model = Scaled()
    x = Tensor(np.ones((T, D_IN)), requires_grad=True)  # of which somebody wants the gradient
    model.kept, model.spent = model(x), (2 * x).sum()
    model.spent.backward()
    model.total = model.spent + (x * x).sum()
    return model


NAMED = {
    "in the order they were set": (
        Nested,
        "last_in_the_alphabet.factor last_in_the_alphabet.inner.weight first.weight first.bias",
    ),
    "by their places in lists": (
        lambda: with_attributes(
            blocks=[linear(bias=False), (linear(), [linear(bias=False)])], words=["text", None]
        ),
        "blocks.0.weight blocks.1.0.weight blocks.1.0.bias blocks.1.1.0.weight",
    ),
    "once, in lists, dicts and circles": (in_a_circle, "blocks.0.weight by_name.head.weight"),
    "not a result": (keeping_a_result, "factor inner.weight"),
}


def member(owner, name):
    if isinstance(owner, Module):
        return getattr(owner, name)
    return owner[int(name) if name.isdigit() else name]


@pytest.mark.parametrize(("make", "names"), NAMED.values(), ids=NAMED)
def test_parameters_are_named_by_the_path_to_them(make, names):
    model = make()
    found = dict(model.named_parameters())
    assert list(found) == names.split()
    for name, p in found.items():
        assert functools.reduce(member, name.split("."), model) is p
    assert [id(p) for p in model.parameters()] == [id(p) for p in found.values()]


def test_a_frozen_parameter_is_still_one_and_a_constant_is_not():
    """So `for p in model.parameters(): p.requires_grad = True` unfreezes all, and nothing else."""
    model, names = Frozen(), ["trained", "inner.0.weight", "inner.0.bias"]
    for p in model.inner[0].parameters():
        p.requires_grad = False
    model.inner[0].weight.data = np.ones((D_IN, D_OUT))
    model.load_state_dict(model.astype(np.float32).state_dict())
    assert repr(model.inner[0]) == "Linear(\n    weight (5, 7) frozen\n    bias (7,) frozen)"
    assert {*Steps(model).model.names.values()} == {*names}
    with pytest.raises(ValueError, match=r"xs\[1\], 'weight' \(5, 7\), is not a T"):
        gradients((model.inner[0](np.ones(D_IN)) * model.trained[0]).sum(), model.parameters())
    for each in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert [name for name, _ in each.named_parameters()] == names
        assert [p.requires_grad for p in each.parameters()] == [True, False, False]
        for p in each.parameters():
            p.requires_grad = True
        assert not each.frozen.requires_grad and not each.frozen.detach()._parameter
        each.inner[0].weight.requires_grad = each.inner[0].bias.requires_grad = False


class Doubled(Linear):
    def forward(self, x):
        return 2 * (x @ self.weight)


class Torchs(Module):
    """A module in PyTorch's words, with a layer of ours in which one replaces `__call__`."""

    def __init__(self):
        super().__init__()
        self.first, self.second = linear(), Doubled(D_OUT, 3, rng=rng())

    def forward(self, x, *, power=1):
        return self.second(relu(self.first(x))) ** power


class Templated(Torchs):
    def __call__(self, x):
        return -self.forward(x, power=2)


def test_a_module_without_a_call_of_its_own_calls_forward_and_steps_know_it():
    x, model = np.ones((T, D_IN)), Torchs()
    with Steps(model) as steps:
        y = model(x, power=2)
    hidden = np.maximum(x @ model.first.weight.data, 0)
    np.testing.assert_allclose(y.data, (2 * hidden @ model.second.weight.data) ** 2)
    assert {"first", "second"} == {v.modules[-1].path for v in steps.vertices if v.modules}
    other = type("Other", (Templated,), {"forward": lambda self, x, power: power * x})()
    np.testing.assert_array_equal([Templated()(x).data[0, 0], other(x)[0, 0]], [-y.data[0, 0], -2])
    own = type("Own", (Module,), {"__call__": lambda self, x: x})
    assert type("Derived", (own,), {"forward": lambda self, x: 2 * x})()(1.0) == 2.0
    y.sum().backward()
    assert all(p.grad is not None for p in (model.first.weight, model.second.weight))
    model.zero_grad()
    assert all(p.grad is None for p in model.parameters())


def test_layers_in_a_sequence_are_applied_one_after_the_other_and_may_be_functions():
    one, other = linear(5, 7), linear(7, 2)
    model, x = Sequential(one, relu, other), Tensor(random.standard_normal((T, 5)))
    np.testing.assert_array_equal(model(x).data, other(relu(one(x))).data)
    assert Sequential()(x) is x


def test_state_is_every_leaf_under_its_name_also_what_is_not_trained():
    model = Frozen()
    state = model.state_dict()
    assert list(state) == STATE
    np.testing.assert_array_equal(state["frozen"], np.full(D_IN, 2.0), strict=True)
    np.testing.assert_array_equal(state["inner.1.mask"], [True, False], strict=True)
    assert state["step"] == 7 and state["step"].dtype.kind == "i"


def test_modules_are_found_wherever_they_stand_and_the_first_is_the_model_itself():
    model = Nested()
    model.more = [linear(), {"inside": (linear(),)}]
    expected = [model, model.last_in_the_alphabet, model.last_in_the_alphabet.inner, model.first]
    expected += [model.more[0], model.more[1]["inside"][0]]
    assert [id(m) for m in model.modules()] == [id(m) for m in expected]


def test_a_layer_says_what_it_is_and_what_it_has():
    assert repr(linear()) == "Linear(\n    weight (5, 7)\n    bias (7,))"
    assert repr(Dropout(0.1, rng=rng())) == "Dropout()"


# ---------------------------------------------------------------- derivative


LAYERS = {"Linear": linear, "LayerNorm": lambda: LayerNorm(D_IN), "RMSNorm": lambda: RMSNorm(D_IN)}


@pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)
def test_first_and_second_derivatives_by_input_and_parameters_agree_with_differences(make):
    layer = make()
    names, parameters = zip(*layer.named_parameters(), strict=True)

    def f(x, *parameters):
        for name, parameter in zip(names, parameters, strict=True):
            setattr(layer, name, parameter)
        return layer(x) ** 2

    shapes = [(B, T, D_IN), *(p.shape for p in parameters)]
    assert gradcheck(f, *map(random.standard_normal, shapes))


# ---------------------------------------------------------------- law


class Recomputed(Module):
    """Two layers with one tied weight and a list, in one record or in recomputed ones."""

    def __init__(self):
        self.first, self.second = linear(D_IN, D_IN), linear(D_IN, D_IN)
        self.second.weight = self.first.weight
        self.shifts = [Tensor(np.ones(D_IN), requires_grad=True)]

    def __call__(self, x, save=False):
        inner = lambda x: np.tanh(self.second(x)) * self.shifts[0]
        within = lambda x: recompute(inner, self.first(x)) if save else inner(self.first(x))
        return recompute(within, x) if save else within(x)


class CallingSo(Module):
    """A model that calls another with a parameter that it makes of two."""

    def __init__(self):
        self.inner, self.factor = Recomputed(), Tensor(2.0, requires_grad=True)

    def forward(self, x, **options):
        shift = self.inner.shifts[0] * self.factor
        return functional_call(self.inner, {"shifts.0": shift}, x, **options)


class Sloped(Recomputed):
    """The gradient of the model's output in its input, and after it what a parameter is."""

    def __call__(self, x):
        x = Tensor(x.data, requires_grad=True)
        (slope,) = gradients(super().__call__(x, save=True).sum(), [x], create_graph=True)
        return slope * self.shifts[0]


@pytest.mark.parametrize("make", [Recomputed, CallingSo])
@pytest.mark.parametrize("start", [0.0, 0.3])
def test_results_in_the_place_of_parameters_get_their_gradients_also_where_it_is_recomputed(
    start, make
):
    """With start 0 the model's value is the same as with its own: only the gradient can tell."""
    model, x = make(), Tensor(random.standard_normal((T, D_IN)))
    own = dict(model.named_parameters())
    added = {name: Tensor(np.full(p.shape, start), requires_grad=True) for name, p in own.items()}
    for p in own.values():
        p.requires_grad = False  # as where a frozen model is adapted
    found = []
    for save in (False, True):
        others = {name: p + added[name] for name, p in own.items()}
        y = functional_call(model, others, x, save=save)
        first = gradients((y * y).sum(), [*added.values()], create_graph=True)
        second = gradients(sum((g * g).sum() for g in first), [*added.values()])
        found.append([y.data, *[g.data for g in first], *second])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, strict=True)
        assert one.any()


def test_what_took_the_place_of_a_parameter_is_freed_with_the_last_result():
    model, x = CallingSo(), Tensor(random.standard_normal((T, D_IN)))
    gc.disable()  # (which would also find what refers to itself)
    try:
        other = 0.5 * model.inner.shifts[0]
        y, alive = (
            functional_call(model, {"inner.shifts.0": other}, x, save=True),
            weakref.ref(other),
        )
        del other
        assert alive() is not None
        y.sum().backward()
        del y
        assert alive() is None
    finally:
        gc.enable()


def test_a_backward_pass_within_the_call_leaves_the_other_parameters_in_their_places():
    model, x = Sloped(), Tensor(random.standard_normal((T, D_IN)))
    others = {name: 0.5 * p for name, p in model.named_parameters()}
    y = functional_call(model, others, x)
    model.load_state_dict({name: p.data for name, p in others.items()})
    np.testing.assert_allclose(y.data, model(x).data, rtol=1e-13)


def test_after_an_error_in_the_call_the_model_holds_its_own_parameters():
    model = Recomputed()
    own = dict(model.named_parameters())
    others = {name: 2 * p for name, p in own.items()}
    for save in (False, True):
        with pytest.raises(ValueError, match="^Linear takes 5 features on the last axis"):
            functional_call(model, others, np.ones((T, D_OUT)), save=save)
        assert all(p is own[name] for name, p in model.named_parameters())
        assert model.second.weight is model.first.weight and model.shifts[0] is own["shifts.0"]


@pytest.mark.parametrize("shape", [(211, 601), (5, 211, 101)])
@pytest.mark.parametrize(
    ("draw", "variance"),
    [
        (xavier_uniform, lambda d_in, d_out: 2 / (d_in + d_out)),
        (normal, lambda d_in, d_out: 0.02**2),
    ],
    ids=["xavier_uniform", "normal"],
)
def test_initial_values_have_mean_0_and_the_variance_that_their_fans_ask_for(draw, variance, shape):
    """Fan-in and fan-out are the last two axes; what stands before them is several matrices."""
    values = draw(shape, rng=rng())
    assert values.shape == shape
    expected = variance(*shape[-2:])
    assert values.var() == pytest.approx(expected, rel=0.02)
    assert abs(values.mean()) < 5 * math.sqrt(expected / values.size)
    bounded = abs(values).max() <= math.sqrt(3 * expected)
    assert bounded == (draw is xavier_uniform)
    np.testing.assert_array_equal(values, draw(shape, rng=rng()))
    np.testing.assert_array_equal(linear().weight.data, xavier_uniform((D_IN, D_OUT), rng=rng()))


def test_a_dropout_layer_is_the_function_with_its_own_generator_and_none_after_eval():
    layer, draw, x = Dropout(0.1, rng=rng()), rng(), Tensor(np.ones(211), requires_grad=True)
    for _ in range(2):
        y, same = layer(x), dropout(x, 0.1, rng=draw)
        np.testing.assert_array_equal(y.data, same.data)
        np.testing.assert_array_equal(*(gradients(each.sum(), [x])[0] for each in (y, same)))
    assert layer.eval()(x) is x
    assert (layer.train()(x).data != 1).any()
    assert Dropout(0.0, rng=rng())(x) is x


def test_train_and_eval_reach_every_module_and_return_the_model():
    model = Sequential(Dropout(0.5, rng=rng()), [Sequential(Dropout(0.5, rng=rng()))])
    for mode in (False, True):
        assert model.train(mode) is model
        assert [m.training for m in model.modules()] == [mode] * 4
    assert model.eval() is model and not model.training
    assert Sequential().training  # and the class is left as it was


def test_a_state_is_a_copy_and_loading_it_brings_everything_back():
    model = Frozen()
    state = model.state_dict()
    kept = {name: x.copy() for name, x in state.items()}
    for leaf in (model.trained, model.frozen, model.inner[0].weight, model.step):
        leaf.data = leaf.data + 1
    for name, x in state.items():
        np.testing.assert_array_equal(x, kept[name])
    model.load_state_dict(state)
    for name, x in model.state_dict().items():
        np.testing.assert_array_equal(x, kept[name], strict=True)
    for x in state.values():
        x[...] = 0  # what was loaded is the model's own memory
    for name, x in model.state_dict().items():
        np.testing.assert_array_equal(x, kept[name])


def test_loading_keeps_the_tensors_that_an_optimizer_holds_and_their_dtype():
    model = linear(dtype=np.float32)
    held = model.parameters()
    model.load_state_dict({"weight": np.ones((D_IN, D_OUT)), "bias": np.arange(7.0)})
    assert [id(p) for p in model.parameters()] == [id(p) for p in held]
    assert all(p.dtype == np.float32 for p in held)
    np.testing.assert_array_equal(held[1].data, np.arange(D_OUT))
    model.load_state_dict({"weight": Tensor(np.zeros((D_IN, D_OUT))), "bias": [1.0] * D_OUT})
    assert not held[0].data.any() and held[1].data.all()


def test_what_two_layers_share_is_saved_once_and_shared_still_after_loading():
    model = Module()
    model.one, model.other = linear(bias=False), linear(bias=False)
    model.other.weight = model.one.weight
    assert list(model.state_dict()) == ["one.weight"]
    model.load_state_dict({"one.weight": np.ones((D_IN, D_OUT))})
    assert model.other.weight is model.one.weight and (model.other.weight.data == 1).all()
    model.astype(np.float32)
    assert model.other.weight is model.one.weight and model.one.weight.dtype == np.float32


def test_a_models_dtype_changes_where_it_stands_and_only_that_of_its_numbers():
    model = Frozen()
    model.trained.grad = np.ones(D_IN)
    leaves = [model.trained, model.frozen, model.inner[0].weight]
    assert model.astype(np.float32) is model
    assert all(x.dtype == np.float32 for x in leaves)
    assert leaves[0] is model.trained and model.trained.requires_grad
    assert model.trained.grad is None
    assert [model.state_dict()[name].dtype.kind for name in ("inner.1.mask", "step")] == ["b", "i"]
    y = model.inner[0](Tensor(np.ones((T, D_IN)), dtype=np.float32))
    y.sum().backward()
    assert y.dtype == model.inner[0].weight.grad.dtype == np.float32


# ---------------------------------------------------------------- refusal


@pytest.mark.parametrize("name", LAYERS)
def test_rows_of_another_length_are_refused_also_where_they_would_broadcast(name):
    for shape in ((T, D_OUT), (T, 1), ()):
        words = f"{name} takes 5 features on the last axis: got 'x' {shape}"
        with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
            LAYERS[name]()(Tensor(np.ones(shape), name="x"))


@pytest.mark.parametrize("operation", ["multiply", "astype", "swapaxes"])
def test_a_parameter_that_is_a_result_is_refused_by_its_name_and_operation(operation):
    leaf = Tensor(np.ones((3, 2)), requires_grad=True)
    made = {"multiply": 0.1 * leaf, "astype": leaf.astype("f4"), "swapaxes": leaf.mT}[operation]
    model = with_attributes(inner=linear(), layers=[{"b": made}])
    words = (
        rf"^layers\.0\.b is the result of {operation}, and only leaves are trained and saved: make"
    )
    for ask in (model.parameters, model.state_dict, lambda: repr(model)):
        with pytest.raises(TypeError, match=words):
            ask()
    model.leaf = leaf  # which is trained and saved under this name
    assert len(model.parameters()) == 3
    tied = r"^weight is a parameter, and the result of swapaxes would not follow what it was made"
    with pytest.raises(TypeError, match=tied):
        model.inner.weight = leaf.mT
    model.leaf, model.inner.weight.requires_grad = None, False
    assert len(model.parameters()) == 2  # (b may be what a frozen model made of another's result)


def test_two_members_with_one_name_and_layers_in_a_set_are_refused():
    a, b = Tensor(1.0, requires_grad=True), Tensor([2.0], requires_grad=True)
    dotted = with_attributes(inner=with_attributes(w=a))
    setattr(dotted, "inner.w", b)
    both = r"^two tensors of this Module are called inner\.\S+, of shapes \(\) and \(1,\): a state"
    for model in (
        with_attributes(inner={1: a, "1": b}),
        with_attributes(inner={"b.c": a, "b": {"c": b}}),
        dotted,
    ):
        with pytest.raises(ValueError, match=both):
            model.state_dict()
    for kept in ({linear()}, frozenset([a])):
        with pytest.raises(TypeError, match="^layers is a set, in which nothing has a name: use a"):
            with_attributes(layers=kept).parameters()
    assert with_attributes(layers={1, 2}).parameters() == []


def test_a_state_that_does_not_fit_is_refused_with_all_that_is_wrong_and_nothing_is_loaded():
    model = Frozen()
    before = model.state_dict()
    state = {name: x + 1 if x.dtype.kind == "f" else x for name, x in before.items()}
    del state["frozen"], state["inner.0.bias"]
    state |= {"inner.0.weight": np.ones((D_OUT, D_IN)), "inner.0.wieght": np.ones(2), "x": 1.0}
    with pytest.raises(ValueError, match="^this state does not fit Frozen: ") as error:
        model.load_state_dict(state)
    said = str(error.value).removesuffix(
        " (a Tensor that a call keeps is state, too: keep its .data)"
    )
    assert said.split(": ", 1)[1].split("; ") == [
        "frozen is missing",
        "inner.0.bias is missing",
        "inner.0.wieght is unexpected",
        "x is unexpected",
        "inner.0.weight has shape (7, 5), not (5, 7)",
    ]
    for name, x in model.state_dict().items():
        np.testing.assert_array_equal(x, before[name])


@pytest.mark.parametrize(
    ("leaf", "fits", "refused"),
    [
        (np.float32, np.float64, np.uint16),
        (np.float32, np.float16, np.uint16),
        (int, np.int8, float),
        (bool, bool, np.uint8),
    ],
)
def test_a_leaf_takes_numbers_of_its_kind_alone(leaf, fits, refused):
    """Integers for floats may be the bits of bfloat16: NumPy has no name for that format."""
    model = linear()
    model.mask = Tensor(np.zeros(2, leaf))
    state = model.state_dict()
    said = f"mask has dtype {np.dtype(refused)}, which cannot become {np.dtype(leaf)}"
    with pytest.raises(ValueError, match=said):
        model.load_state_dict(state | {"mask": np.ones(2, refused)})
    assert not model.mask.data.any()
    if leaf is np.float32:
        with pytest.raises(ValueError, match=r"^mask cannot hold 1e\+300 as float32"):
            model.load_state_dict(state | {"weight": 0 * state["weight"], "mask": [1e300, 1.0]})
        assert model.weight.data.all()
    model.load_state_dict(state | {"mask": np.ones(2, fits)})
    np.testing.assert_array_equal(model.mask.data, np.ones(2, leaf), strict=True)


def test_a_module_that_computes_nothing_says_so_by_its_name():
    with pytest.raises(NotImplementedError, match="^Nested defines no __call__$"):
        Nested()(1)
