"""Chapter 8 · Optimizers: PyTorch's trajectories, what is refused, and what a state remembers."""

import math

import numpy as np
import pytest

from minigrad import Tensor
from minigrad.optim import SGD, Adam, AdamW, clip_gradients, warmup_cosine

random = np.random.default_rng(3)
A, W, B = random.standard_normal((5, 3)), random.standard_normal((3, 2)), random.standard_normal(2)


def leaves(dtype=float):
    return [Tensor(x, requires_grad=True, dtype=dtype, name=n) for x, n in ((W, "w"), (B, "b"))]


def loss(w, b):
    return (np.tanh(A @ w + b) ** 2).sum()


def steps(optimizer, parameters, n):
    """Take n steps, and yield the parameters after each."""
    for _ in range(n):
        optimizer.zero_grad()
        loss(*parameters).backward()
        optimizer.step()
        yield [p.data.copy() for p in parameters]


def apart(parameters, **options):
    """Return two groups: the first parameter, and the others with these options."""
    return [{"params": parameters[:1]}, {"params": iter(parameters[1:]), **options}]


OPTIMIZERS = {
    "SGD": (lambda p: SGD(p, 0.1), lambda t, p: t.SGD(p, 0.1)),
    "momentum": (lambda p: SGD(p, 0.01, momentum=0.9), lambda t, p: t.SGD(p, 0.01, momentum=0.9)),
    "Adam": (lambda p: Adam(p, 0.1), lambda t, p: t.Adam(p, 0.1)),
    "Adam, other means": (
        lambda p: Adam(p, 0.1, betas=(0.5, 0.7), eps=1e-3),
        lambda t, p: t.Adam(p, 0.1, betas=(0.5, 0.7), eps=1e-3),
    ),
    "AdamW": (
        lambda p: AdamW(p, 0.1, weight_decay=0.05),
        lambda t, p: t.AdamW(p, 0.1, weight_decay=0.05),
    ),
    "AdamW, decay of matrices": (
        lambda p: AdamW(apart(p, weight_decay=0.0), 0.1, weight_decay=0.05),
        lambda t, p: t.AdamW(apart(p, weight_decay=0.0), 0.1, weight_decay=0.05),
    ),
    "SGD in groups": (
        lambda p: SGD(apart(p, momentum=0.9, lr=0.02), 0.05),
        lambda t, p: t.SGD(apart(p, momentum=0.9, lr=0.02), 0.05),
    ),
    "Adam in groups": (
        lambda p: Adam(apart(p, betas=(0.5, 0.7), eps=1e-3, lr=0.3), 0.1),
        lambda t, p: t.Adam(apart(p, betas=(0.5, 0.7), eps=1e-3, lr=0.3), 0.1),
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


def test_a_schedule_keeps_the_ratio_of_the_rates_of_groups_as_pytorchs_do():
    torch = pytest.importorskip("torch", reason="the comparison with PyTorch needs torch")
    factors = [0.0, 0.5, 1.0, 0.3]
    optimizer = SGD(apart(leaves(), lr=0.03), 0.05)
    other = torch.optim.SGD(
        apart([torch.tensor(x, requires_grad=True) for x in (W, B)], lr=0.03), 0.05
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(other, [*factors, 0.0].__getitem__)
    for factor in factors:
        optimizer.lr = 0.05 * factor
        rates = [group.lr for group in optimizer.groups]
        np.testing.assert_allclose(rates, [group["lr"] for group in other.param_groups], rtol=1e-15)
        other.step()
        schedule.step()


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


def test_schedules_rise_in_a_line_and_fall_as_they_say():
    rates = [warmup_cosine(t, peak=2.0, warmup=10, total=110, floor=0.5) for t in range(1, 111)]
    np.testing.assert_allclose(rates[:10], np.arange(1, 11) / 5, rtol=1e-14)
    assert rates[59] == pytest.approx(1.25) and rates[-1] == pytest.approx(0.5)
    assert (np.diff(rates[9:]) < 0).all()
    assert warmup_cosine(999, peak=2.0, warmup=10, total=110, floor=0.5) == 0.5


# ---------------------------------------------------------------- law


@each_optimizer
def test_a_run_that_goes_on_from_its_state_is_the_run_that_never_stopped(make):
    whole = leaves()
    *_, expected = steps(make[0](whole), whole, 20)
    first = leaves()
    optimizer = make[0](first)
    *_, _ = steps(optimizer, first, 11)
    second = [Tensor(p.data, requires_grad=True) for p in first]
    resumed, state = make[0](second), optimizer.state_dict()
    *_, _ = steps(optimizer, first, 1)  # which must not change the state
    resumed.lr = 9.0
    resumed.load_state_dict(state)
    *_, found = steps(resumed, second, 9)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_array_equal(x, y)
    assert resumed.steps == 20


def test_the_rate_of_one_group_can_be_set_and_is_in_the_state():
    w, b = leaves()
    optimizer, resumed = (AdamW(apart([w, b]), lr) for lr in (0.1, 0.2))
    optimizer.groups[0].lr = 0.0
    resumed.load_state_dict(optimizer.state_dict())
    assert [group.lr for group in resumed.groups] == [0.0, 0.1] and resumed.lr == 0.1
    (found,) = steps(resumed, [w, b], 1)
    assert np.array_equal(found[0], W) and not np.array_equal(found[1], B)
    resumed.lr = 0.3
    assert [group.lr for group in resumed.groups] == [0.3, 0.3]


@each_optimizer
def test_float32_stays_float32(make):
    parameters = leaves(np.float32)
    optimizer = make[0](parameters)
    *_, found = steps(optimizer, parameters, 3)
    assert {x.dtype for x in found} == {np.dtype(np.float32)}
    kept = [x for memory in optimizer.memory for x in memory.values() if x.ndim]
    assert {x.dtype for x in kept} <= {np.dtype(np.float32)}


def test_a_state_written_when_weight_decay_was_called_decay_goes_on():
    """A state holds no options, so it does not know the old name. (Written by hand.)"""
    parameters = leaves()
    optimizer = AdamW(parameters, weight_decay=0.05)
    as_bytes = lambda text: np.frombuffer(text.encode(), np.uint8)
    old = {"kind": as_bytes("AdamW of 2 parameters"), "names": as_bytes("0\n1")}
    old |= {"steps": np.array(7), "lr": np.array(0.1)}
    old |= {
        "0.m": W,
        "0.v": W**2,
        "0.t": np.array(7.0),
        "1.m": B,
        "1.v": B**2,
        "1.t": np.array(7.0),
    }
    optimizer.load_state_dict(old)
    assert (optimizer.steps, optimizer.lr, optimizer.weight_decay) == (7, 0.1, 0.05)
    assert optimizer.state_dict().keys() == old.keys()
    np.testing.assert_array_equal(optimizer.memory[1]["v"], B**2)
    (w, _) = next(steps(optimizer, parameters, 1))
    assert not np.array_equal(w, W)


def test_a_parameter_without_a_gradient_stays_where_it_is():
    w, b = leaves()
    optimizer = Adam([w, b], 0.1)
    (w * w).sum().backward()
    optimizer.step()
    assert not np.array_equal(w.data, W) and np.array_equal(b.data, B)


@each_optimizer
def test_what_is_frozen_stays_where_it_is_whatever_gradient_and_velocity_it_has(make):
    w, b = leaves()
    optimizer = make[0]([w, b])
    *_, (still, before) = steps(optimizer, [w, b], 2)
    w.requires_grad = False
    for forget in (lambda: None, optimizer.zero_grad):  # the old gradient first
        forget()
        loss(w, b).backward()
        assert clip_gradients([w, b], 1e9) == pytest.approx(np.linalg.norm(b.grad))
        optimizer.step()
        assert np.array_equal(w.data, still) and not np.array_equal(b.data, before)
    w.requires_grad = True
    *_, (moved, _) = steps(optimizer, [w, b], 1)
    assert not np.array_equal(moved, still)


def test_options_from_numpy_leave_float32_as_it_is():
    p, x = Tensor(np.ones(3, np.float32), requires_grad=True), np.float64(0.1)
    for optimizer in (SGD([p], x, momentum=x), AdamW([p], x, betas=(x, x), eps=x, weight_decay=x)):
        p.grad = np.ones(3, np.float32)
        optimizer.lr = np.float64(0.2)  # as a schedule may set it
        optimizer.step()
        assert p.dtype == np.float32 and type(optimizer.lr) is float
        assert {x.dtype for x in optimizer.memory[0].values() if x.ndim} == {np.dtype(np.float32)}


# ---------------------------------------------------------------- refusal


def test_a_gradient_that_is_not_finite_is_named():
    w, b = leaves()
    w.grad, b.grad = np.ones((3, 2)), np.array([1.0, np.nan])
    with pytest.raises(FloatingPointError, match=r"the gradient of 'b' \(2,\) is not finite"):
        clip_gradients([w, b], 1.0)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (lambda: SGD(leaves(), 0.1), "of Adam of 2 parameters, and not of SGD of 2 parameters"),
        (lambda: Adam(leaves()[:1]), "of Adam of 2 parameters, and not of Adam of 1 parameters"),
        (
            lambda: Adam(apart(leaves())),
            "2 parameters, and not of Adam of 2 parameters in 2 groups",
        ),
        (lambda: Adam(leaves()[::-1]), r"parameter 0, 'b' \(2,\), .*: 0.m is \(3, 2\)"),
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


def test_a_state_without_the_names_of_its_parameters_is_refused():
    state = Adam(leaves()).state_dict()
    del state["names"]
    with pytest.raises(ValueError, match="^this state does not name its parameters: train anew$"):
        Adam(leaves()).load_state_dict(state)


def test_a_rate_that_is_no_rate_cannot_be_set_later_either():
    optimizer = SGD(leaves(), 0.1)
    for rate in (-1.0, np.nan, "fast"):
        with pytest.raises(ValueError, match=f"^lr must be a number, 0 ≤ lr < ∞: got {rate!r}$"):
            optimizer.lr = rate
    assert optimizer.lr == 0.1


def test_a_momentum_is_not_lost_without_a_word():
    parameters = leaves()
    with_momentum, without = SGD(parameters, 0.1, momentum=0.9), SGD(parameters, 0.1)
    *_, _ = steps(with_momentum, parameters, 1)
    with pytest.raises(ValueError, match=r"this SGD remembers \(\): 0.velocity is \(3, 2\)"):
        without.load_state_dict(with_momentum.state_dict())


NO_GRADIENTS = [
    (np.ones(3), r"ndarray of shape \(3,\)"),
    (Tensor(np.ones((2, 3))), "Tensor of shape"),
    (np.ones((2, 3), int), "ndarray of shape"),
    (type("Tensor", (), {"__module__": "torch", "shape": (2, 3)})(), "Tensor of shape"),
]


@pytest.mark.parametrize(("grad", "got"), NO_GRADIENTS)
def test_a_grad_of_another_shape_or_kind_is_refused_by_name(grad, got):
    w = Tensor(np.zeros((2, 3)), requires_grad=True, name="w")
    w.grad = grad
    for use in (
        lambda: (w * w).sum().backward(),
        lambda: SGD([w], 0.1).step(),
        lambda: clip_gradients([w], 1.0),
    ):
        with pytest.raises(TypeError, match=rf"^the .grad of 'w' \(2, 3\) must be .*: got {got}"):
            use()
    assert not w.data.any() and w.grad is grad
