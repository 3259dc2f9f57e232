"""Tests: "Your journey starts with one step": PyTorch's draws, its slips, and its undone steps."""

import re

import numpy as np
import pytest

from attention import attention_weights
from attention.mapping import to_ours, to_theirs
from demos.texts.sources import agreeing, as_torch_prints
from demos.texts.sources import your_journey_text as source
from demos.texts.sources.your_journey_text import (
    INPUTS,
    LAYOUT_V1,
    LAYOUT_V2,
    PRINTED,
    SelfAttention,
    as_text,
)
from minigrad import Tensor, gradients, softmax

VERSIONS = {"V1": source.version_1, "V2": source.version_2}
versions = pytest.mark.parametrize("name", VERSIONS)


def x_and(name):
    return Tensor(INPUTS, requires_grad=True, name="X"), VERSIONS[name]()


# ------------------------------------------------------------------ value: the printed numbers


def test_307_have_four_decimals_and_three_are_sums():
    every = [number for printed in PRINTED.values() for number in printed.split()]
    others = [number for number in every if not re.fullmatch(r"-?\d\.\d{4}", number)]
    assert len(every) == 310 and others == ["1.0000001192092896", "1.0", "1.0"]
    assert as_text(np.array([0.5, -0.00005001])) == ["0.5000", "-0.0001"]
    assert as_text(np.float32(1) + np.float32(2**-23)) == ["1.0000001192092896"]


@versions
def test_float32_which_the_text_uses_prints_the_same(name):
    x, head = x_and(name)
    single = head.astype(np.float32)(x.astype(np.float32))
    assert single.dtype == np.float32 and as_text(single.data) == PRINTED[name].split()


def test_the_draws_are_the_lowest_24_bits_of_the_mersenne_twister():
    words = np.random.RandomState(123).randint(0, 1 << 32, size=(5, 7), dtype=np.uint64)
    drawn = source.torch_rand(np.random.RandomState(123), 5, 7)
    np.testing.assert_array_equal(drawn, (words & 0xFFFFFF) / 2**24)
    np.testing.assert_array_equal(drawn, drawn.astype(np.float32))  # nothing is rounded


@pytest.mark.parametrize("seed", [0, 789])
def test_pytorch_draws_the_same_bit_for_bit(seed):
    torch = pytest.importorskip("torch")
    torch.manual_seed(seed)
    draw = np.random.RandomState(seed)
    for shape in ((3, 2), (11,), (5, 7, 2)):
        theirs = torch.rand(shape).numpy()
        np.testing.assert_array_equal(source.torch_rand(draw, *shape), theirs, strict=False)
    for d_in, d_out in ((3, 2), (7, 11), (512, 5)):
        theirs = torch.nn.Linear(d_in, d_out, bias=False).weight.detach().numpy()
        np.testing.assert_array_equal(source.torch_linear(draw, d_in, d_out), theirs)


def test_v2_with_qkv_bias_draws_and_computes_what_pytorch_does():
    torch = pytest.importorskip("torch")
    torch.manual_seed(789)
    layers = [torch.nn.Linear(3, 2, bias=True) for _ in range(3)]
    head, x = source.version_2_biased(), torch.tensor(INPUTS.astype("f4"))
    for layer, name in zip(layers, "qkv", strict=True):
        weight, bias = getattr(head, f"w_{name}").data, getattr(head, f"b_{name}").data
        np.testing.assert_array_equal(layer.weight.detach().numpy().T, weight)
        np.testing.assert_array_equal(layer.bias.detach().numpy(), bias)
    q, k, v = (layer(x) for layer in layers)
    theirs = torch.softmax(q @ k.T / k.shape[-1] ** 0.5, dim=-1) @ v
    np.testing.assert_allclose(head(Tensor(INPUTS)).data, theirs.detach().numpy(), rtol=1e-5)


def test_the_sum_that_is_not_1_depends_on_the_order_of_additions():
    scores = source.ours()["scores of x₂"]
    lanes, plain = source.lane_sum, np.sum
    found = {(a, b): float(b(scores / a(scores))) for a in (lanes, plain) for b in (lanes, plain)}
    assert found[lanes, lanes] == 1.0000001192092896
    assert found[lanes, plain] == 1.0000001192092896  # the divisor's order is enough
    assert found[plain, lanes] == 1.0 and found[plain, plain] == 0.9999998807907104
    wide = scores.astype(float)
    assert (wide / wide.sum()).sum() == 1.0
    # Scores that are rounded once, and not at each addition, give it from left to right too.
    once = (INPUTS.astype(np.float32).astype(float) @ INPUTS[1].astype(np.float32)).astype("f4")
    assert float((once / once.sum()).sum()) == 1.0000001192092896


# ------------------------------------------------------------------ value: the slips


def test_the_largest_weight_of_x2_is_its_own_unless_a_mask_leaves_it_out():
    powers = np.exp(INPUTS @ INPUTS[1])
    for mask in (np.ones(6, bool), np.arange(6) != 1):
        expected = powers * mask / (powers * mask).sum()
        weights = attention_weights(Tensor(INPUTS[1:2]), Tensor(INPUTS), scale=1.0, mask=mask)
        np.testing.assert_allclose(weights.data[0], expected, rtol=1e-12)
    assert powers.argmax() == 1 and f"{powers[1] / powers.sum():.4f}" == "0.2379"


def test_the_naive_softmax_breaks_one_step_further_and_ours_does_not():
    def first(f, *numbers):
        x = Tensor(numbers, dtype="float32", requires_grad=True)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            y = f(x)
            return y[0].item(), gradients(y, [x], [1.0, 0.0])[0][0]

    naive = source.naive_softmax
    assert first(naive, 88, 88)[0] in (0.0, 0.5)  # the exps are finite, not their sum
    assert first(naive, 88, 0.0)[0] == 1.0 and np.isnan(first(naive, 89, 0.0)).all()
    assert first(naive, -103, -103)[0] == 0.5 and np.isnan(first(naive, -104, -104)[0])
    assert first(softmax, 89, 0.0)[0] == 1.0 and first(softmax, -104, -104) == (0.5, 0.25)


def test_the_two_versions_differ_and_become_equal_in_each_other_s_storage():
    x, one = x_and("V1")
    two = source.version_2()
    assert agreeing(PRINTED["V1"], as_text(two(x).data)) == 0
    for head, name, layout, other in ((one, "V1", LAYOUT_V2, two), (two, "V2", LAYOUT_V1, one)):
        stored = to_theirs(head.state_dict(), layout)
        assert {a.shape for a in stored.values()} == ({(2, 3)} if name == "V1" else {(3, 2)})
        again = SelfAttention(*(p.data.copy() for p in other.parameters()))
        again.load_state_dict(to_ours(stored, layout))
        assert as_text(again(x).data) == PRINTED[name].split()
        np.testing.assert_array_equal(again(x).data, head(x).data)


# ------------------------------------------------------------------ value: the scale


def test_only_the_root_of_two_gives_the_printed_weights():
    x, head = x_and("V1")
    for scale, right in ((1 / np.sqrt(2), 6), (1 / np.sqrt(3), 0), (1 / 2, 0), (1.0, 0)):
        found = as_torch_prints(head.weights(x, scale=scale).data[1])
        assert agreeing(PRINTED["weights of q₂"], found) == right


# ------------------------------------------------------------------ refusal


def test_weights_that_are_not_turned_are_refused_unless_they_are_square():
    def unturned(head):
        stored = to_theirs(head.state_dict(), LAYOUT_V2)
        return dict(zip(head.state_dict(), stored.values(), strict=True))

    with pytest.raises(ValueError, match=r"w_q has shape \(2, 3\), not \(3, 2\)"):
        source.version_2().load_state_dict(unturned(source.version_1()))
    square, wrong = source.version_1(d_k=3), source.version_2(d_k=3)
    wrong.load_state_dict(unturned(square))
    assert not np.allclose(wrong(Tensor(INPUTS)).data, square(Tensor(INPUTS)).data)  # in silence
