"""Chapter 8 · Optimizers: PyTorch's trajectories, what is refused, and what a state remembers."""

import math

import numpy as np
import pytest

from minigrad import Tensor
from minigrad.optim import SGD, Adam, AdamW, Optimizer, clip_gradients, inverse_sqrt, warmup_cosine

random = np.random.default_rng(3)
A, W, B = random.standard_normal((5, 3)), random.standard_normal((3, 2)), random.standard_normal(2)


def leaves(dtype=float):
    return [Tensor(x, requires_grad=True, dtype=dtype, name=n) for x, n in ((W, "w"), (B, "b"))]


def loss(w, b):
    return (np.tanh(A @ w + b) ** 2).sum()


def steps(optimizer, parameters, n):
    """n steps, and the parameters after each."""
    for _ in range(n):
        optimizer.zero_grad()
        loss(*parameters).backward()
        optimizer.step()
        yield [p.data.copy() for p in parameters]


OPTIMIZERS = {
    "SGD": (lambda p: SGD(p, 0.1), lambda t, p: t.SGD(p, 0.1)),
    "momentum": (lambda p: SGD(p, 0.01, momentum=0.9), lambda t, p: t.SGD(p, 0.01, momentum=0.9)),
    "Adam": (lambda p: Adam(p, 0.1), lambda t, p: t.Adam(p, 0.1)),
    "Adam, other means": (
        lambda p: Adam(p, 0.1, betas=(0.5, 0.7), eps=1e-3),
        lambda t, p: t.Adam(p, 0.1, betas=(0.5, 0.7), eps=1e-3),
    ),
    "AdamW": (lambda p: AdamW(p, 0.1, decay=0.05), lambda t, p: t.AdamW(p, 0.1, weight_decay=0.05)),
    "AdamW, matrices only": (
        lambda p: AdamW(p, 0.1, decay=0.05, matrices_only=True),
        lambda t, p: t.AdamW(
            [{"params": p[:1]}, {"params": p[1:], "weight_decay": 0.0}], 0.1, weight_decay=0.05
        ),
    ),
}
each_optimizer = pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)


# ---------------------------------------------------------------- value


@each_optimizer
def test_fifty_steps_are_pytorchs_to_twelve_digits(make):
    torch = pytest.importorskip("torch", reason="the comparison with PyTorch needs torch")
    ours, theirs = leaves(), [torch.tensor(x, requires_grad=True) for x in (W, B)]
    other = make[1](torch.optim, theirs)
    for found in steps(make[0](ours), ours, 50):
        other.zero_grad()
        (torch.tanh(torch.tensor(A) @ theirs[0] + theirs[1]) ** 2).sum().backward()
        other.step()
        for x, t in zip(found, theirs, strict=True):
            np.testing.assert_allclose(x, t.detach().numpy(), rtol=1e-12, atol=1e-12)


def test_clipping_keeps_the_direction_and_gives_the_length_before():
    w, b = leaves()
    w.grad, b.grad = np.full((3, 2), 3.0), np.full(2, 4.0)
    length = math.sqrt(6 * 9 + 2 * 16)
    assert clip_gradients([w, b], 1.0) == pytest.approx(length, rel=1e-14)
    np.testing.assert_allclose(w.grad, 3.0 / length, rtol=1e-14)
    assert clip_gradients([w, b], 5.0) == pytest.approx(1.0, rel=1e-14)
    np.testing.assert_allclose(b.grad, 4.0 / length, rtol=1e-14)


def test_clipping_bears_gradients_whose_squares_overflow():
    w, b = leaves(np.float32)
    w.grad, b.grad = np.full((3, 2), 1e30, np.float32), None
    assert clip_gradients([w, b], 1.0) == pytest.approx(1e30 * math.sqrt(6), rel=1e-6)
    np.testing.assert_allclose(w.grad, 1 / math.sqrt(6), rtol=1e-6)
    assert w.grad.dtype == np.float32


def test_clipping_takes_a_parameter_once_and_huge_gradients_whole():
    p = Tensor(np.zeros(2), requires_grad=True)
    p.grad = np.array([3.0, 4.0])
    assert clip_gradients([p, p], 1.0) == 5
    np.testing.assert_allclose(p.grad, [0.6, 0.8])
    q = Tensor(np.zeros(4), requires_grad=True)
    q.grad = np.full(4, 1.7e308)
    assert clip_gradients([q], 1.0) == np.inf  # the length is beyond float64
    np.testing.assert_allclose(q.grad, 0.5)


def test_schedules_rise_in_a_line_and_fall_as_they_say():
    rates = [warmup_cosine(t, peak=2.0, warmup=10, total=110, floor=0.5) for t in range(1, 111)]
    np.testing.assert_allclose(rates[:10], np.arange(1, 11) / 5, rtol=1e-14)
    assert rates[59] == pytest.approx(1.25) and rates[-1] == pytest.approx(0.5)
    assert (np.diff(rates[9:]) < 0).all()
    assert warmup_cosine(999, peak=2.0, warmup=10, total=110, floor=0.5) == 0.5
    paper = [inverse_sqrt(t, d_model=64, warmup=20) for t in range(1, 81)]
    assert np.argmax(paper) == 19
    np.testing.assert_allclose(paper[:20], np.arange(1, 21) * paper[0], rtol=1e-12)
    np.testing.assert_allclose(paper[79], paper[19] / 2, rtol=1e-12)


SHOWN = {
    "SGD": "SGD(lr=0.1, momentum=0.0), 2 parameters",
    "momentum": "SGD(lr=0.01, momentum=0.9), 2 parameters",
    "Adam, other means": "Adam(lr=0.1, betas=(0.5, 0.7), eps=0.001), 2 parameters",
    "AdamW, matrices only": "AdamW(lr=0.1, betas=(0.9, 0.999), eps=1e-08, decay=0.05, "
    "matrices_only=True), 2 parameters",
}


@pytest.mark.parametrize("name", SHOWN)
def test_an_optimizer_shows_its_options_as_they_are_now(name):
    optimizer = OPTIMIZERS[name][0](leaves())
    assert repr(optimizer) == SHOWN[name]
    optimizer.lr = 0.25
    assert "(lr=0.25, " in repr(optimizer)


def test_an_optimizer_of_ones_own_shows_the_options_that_it_keeps():
    class Signed(Optimizer):
        def __init__(self, parameters, lr=0.5, *, unkept=3):
            super().__init__(parameters, lr)

    assert repr(Signed(leaves()[:1])) == "Signed(lr=0.5), 1 parameter"


# ---------------------------------------------------------------- law


@each_optimizer
def test_a_run_that_goes_on_from_its_state_is_the_run_that_never_stopped(make):
    whole = leaves()
    *_, expected = steps(make[0](whole), whole, 20)
    first = leaves()
    optimizer = make[0](first)
    *_, _ = steps(optimizer, first, 11)
    second = [Tensor(p.data, requires_grad=True) for p in first]
    resumed = make[0](second)
    resumed.load_state_dict(optimizer.state_dict())
    *_, found = steps(resumed, second, 9)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_array_equal(x, y)
    assert resumed.steps == 20


@each_optimizer
def test_float32_stays_float32(make):
    parameters = leaves(np.float32)
    optimizer = make[0](parameters)
    *_, found = steps(optimizer, parameters, 3)
    assert {x.dtype for x in found} == {np.dtype(np.float32)}
    kept = [x for memory in optimizer.memory for x in memory.values() if x.ndim]
    assert {x.dtype for x in kept} <= {np.dtype(np.float32)}


def test_a_parameter_without_a_gradient_stays_where_it_is():
    w, b = leaves()
    optimizer = Adam([w, b], 0.1)
    (w * w).sum().backward()
    optimizer.step()
    assert not np.array_equal(w.data, W) and np.array_equal(b.data, B)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.longdouble])
@pytest.mark.parametrize("kind", [SGD, Adam, AdamW])
def test_a_gradient_of_another_precision_leaves_the_parameter_its_own(kind, dtype):
    values = np.array([1.0 + 1e-12, 2.0])
    p = Tensor(values, requires_grad=True)
    p.grad = np.zeros(2, dtype)
    options = {"decay": 0.0} if kind is AdamW else {}
    kind([p], lr=0.1, **options).step()
    assert p.dtype == np.float64
    np.testing.assert_array_equal(p.data, values)


@pytest.mark.parametrize("kind", [SGD, Adam, AdamW])
def test_a_step_between_the_passes_leaves_the_gradient_that_of_the_forward_pass(kind):
    w, b = leaves()
    optimizer, y = kind([w, b], 0.1), (w * w).sum()
    before = w.data
    w.grad, b.grad = np.ones((3, 2)), np.ones(2)
    optimizer.step()
    assert not np.allclose(w.data, before)
    w.grad = None
    y.backward()
    np.testing.assert_array_equal(w.grad, 2 * before)


def test_a_rate_from_numpy_leaves_float32_as_it_is():
    p = Tensor(np.ones(3, np.float32), requires_grad=True)
    for optimizer in (SGD([p], np.float64(0.1)), Adam([p], np.float64(0.1))):
        p.grad = np.ones(3, np.float32)
        optimizer.step()
        assert p.dtype == np.float32 and type(optimizer.lr) is float


# ---------------------------------------------------------------- refusal


def test_a_gradient_that_is_not_finite_is_named():
    w, b = leaves()
    w.grad, b.grad = np.ones((3, 2)), np.array([1.0, np.nan])
    with pytest.raises(FloatingPointError, match=r"the gradient of 'b' \(2,\) is not finite"):
        clip_gradients([w, b], 1.0)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (lambda: SGD(leaves(), 0.1), "of Adam with 2 parameters, not of SGD with 2"),
        (lambda: Adam(leaves()[:1]), "of Adam with 2 parameters, not of Adam with 1"),
        (lambda: Adam(leaves()[::-1]), "does not fit parameter 0"),
    ],
)
def test_a_state_of_something_else_is_refused_and_changes_nothing(other, words):
    parameters = leaves()
    optimizer = Adam(parameters, 0.5)
    *_, _ = steps(optimizer, parameters, 2)
    target = other()
    with pytest.raises(ValueError, match=words):
        target.load_state_dict(optimizer.state_dict())
    assert target.steps == 0 and target.lr != 0.5 and not any(target.memory)
    with pytest.raises(ValueError, match="an optimizer's state: count, kind, lr, steps is missing"):
        target.load_state_dict({})


USES = {
    "backward": lambda w: (w * w).sum().backward(),
    "step": lambda w: SGD([w], 0.1).step(),
    "Adam": lambda w: Adam([w], 0.1).step(),
    "clip_gradients": lambda w: clip_gradients([w], 1.0),
}
NO_GRADIENTS = {
    "another shape": (np.ones(3), r"ndarray of shape \(3,\)"),
    "a Tensor": (Tensor(np.ones((2, 3))), "Tensor of shape"),
    "a number": (1.0, r"float of shape \(\)"),
    "integers": (np.ones((2, 3), int), "ndarray of shape"),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize(("grad", "got"), NO_GRADIENTS.values(), ids=NO_GRADIENTS)
def test_a_grad_of_another_shape_or_kind_is_refused_by_name(use, grad, got):
    w = Tensor(np.zeros((2, 3)), requires_grad=True, name="w")
    w.grad = grad
    words = rf"^the .grad of 'w' \(2, 3\) must be an array of floats of its shape .*: got {got}"
    with pytest.raises(TypeError, match=words):
        use(w)
    assert not w.data.any() and w.grad is grad


def test_one_tensor_in_place_of_a_list_is_refused_where_gradients_are_clipped():
    w = Tensor(np.zeros((2, 3)), requires_grad=True)
    with pytest.raises(TypeError, match="takes a list of tensors.*: got a Tensor"):
        clip_gradients(w, 1.0)


@pytest.mark.parametrize("max_norm", [0.0, -1.0, np.nan])
def test_clipping_to_no_length_is_refused(max_norm):
    p = Tensor(np.zeros(2), requires_grad=True)
    p.grad = np.array([3.0, 4.0])
    with pytest.raises(ValueError, match="max_norm must be above 0"):
        clip_gradients([p], max_norm)
    np.testing.assert_array_equal(p.grad, [3, 4])


def test_a_momentum_is_not_lost_without_a_word():
    p = Tensor(np.zeros(2), requires_grad=True)
    p.grad = np.ones(2)
    with_momentum, without = SGD([p], 0.1, momentum=0.9), SGD([p], 0.1)
    with_momentum.step()
    with pytest.raises(ValueError, match="with momentum=0.9, and not with momentum=0.0"):
        without.load_state_dict(with_momentum.state_dict())


def stepped(optimizer):
    for p in optimizer.parameters:
        p.grad = np.ones(p.shape)
    optimizer.step()
    return optimizer


OTHERWISE = {
    SGD: {"momentum": 0.5},
    Adam: {"betas": (0.5, 0.9), "eps": 1e-3},
    AdamW: {"betas": (0.5, 0.9), "eps": 1e-3, "decay": 0.5, "matrices_only": True},
}


@pytest.mark.parametrize(
    ("kind", "option"),
    [(kind, option) for kind, options in OTHERWISE.items() for option in options],
)
def test_a_state_made_with_another_option_is_refused_and_one_without_options_is_not(kind, option):
    made, same, other = (
        kind(leaves(), 0.1, **o) for o in (*[{option: OTHERWISE[kind][option]}] * 2, {})
    )
    stepped(made)
    state = made.state_dict()
    same.load_state_dict(state)
    assert same.steps == 1
    words = f"with {option}=.*, and not with {option}=.*: make the optimizer with the same"
    with pytest.raises(ValueError, match=words):
        other.load_state_dict(state)
    assert other.steps == 0 and not any(other.memory)
    if option != "momentum":  # whose velocity an optimizer without momentum does not remember
        del state["options"]
        other.load_state_dict(state)
        assert other.steps == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [("t", -3.0), ("t", np.nan), ("v", -1e-9), ("v", np.nan), ("m", 1), ("v", True)],
)
def test_a_memory_that_no_step_can_have_left_is_refused(name, value):
    made, other = Adam(leaves(), 0.1), Adam(leaves(), 0.1)
    stepped(made)
    state = made.state_dict()
    state[f"1.{name}"] = np.full(state[f"1.{name}"].shape, value)
    with pytest.raises(
        ValueError, match=f"this state is damaged: 1.{name} of parameter 1 cannot be"
    ):
        other.load_state_dict(state)
    assert other.steps == 0 and not any(other.memory)


def test_a_rate_that_was_set_between_steps_is_looked_at_and_nothing_moves():
    w = Tensor(np.ones(3), requires_grad=True)
    w.grad = np.ones(3)
    optimizer = SGD([w], 0.1)
    for optimizer.lr in (np.nan, -1.0, np.inf, "0.1", None):
        with pytest.raises(ValueError, match="^lr must be a number, 0 or larger, and finite"):
            optimizer.step()
    assert (w.data == 1).all() and optimizer.steps == 0
    optimizer.lr = np.float32(0.5)
    optimizer.step()
    assert (w.data == 0.5).all() and type(optimizer.lr) is float
