"""Tests: "Your journey starts with one step": PyTorch's draws, its slips, and its undone steps."""

import re

import numpy as np
import pytest

from attention import additive_attention, attention_weights, causal_mask
from attention.mapping import to_ours, to_theirs
from attention.maps import entropy
from demos.texts import _bias, _claimed
from demos.texts.sources import agreeing, as_torch_prints
from demos.texts.sources import your_journey as source
from demos.texts.sources.your_journey import (
    INPUTS,
    LAYOUT_V1,
    LAYOUT_V2,
    PRINTED,
    BiasedAttention,
    SelfAttention,
    as_text,
)
from minigrad import Tensor, exp, gradcheck, gradients, jacobian, softmax

VERSIONS = {"V1": source.version_1, "V2": source.version_2}
versions = pytest.mark.parametrize("name", VERSIONS)


def x_and(name):
    return Tensor(INPUTS, requires_grad=True, name="X"), VERSIONS[name]()


def spread(weights):
    return entropy(weights).mean() / np.log(6)


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


@pytest.mark.parametrize("seed", [0, 123, 789, 2**31])
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


@pytest.mark.parametrize("n", [4, 5, 6, 7])
def test_pytorch_adds_in_lanes(n):
    torch = pytest.importorskip("torch")
    rows = np.random.default_rng(n).random((500, n)).astype(np.float32)
    theirs = np.array([torch.tensor(row).sum().item() for row in rows], np.float32)
    np.testing.assert_array_equal([source.lane_sum(row) for row in rows], theirs)
    assert n == 4 or (theirs != rows.sum(axis=1)).any()  # another order shows


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


def test_dividing_by_the_sum_gives_negative_weights_and_cancels_a_scale():
    x, head = x_and("V2")
    scores = (x @ head.w_q @ (x @ head.w_k).mT).data
    divided = scores[0] / scores[0].sum()
    assert divided.min() == pytest.approx(-0.101, abs=5e-4) and divided.sum() == pytest.approx(1)
    assert softmax(scores[0]).min() > 0.14
    scaled = scores / np.sqrt(2)
    np.testing.assert_allclose(scaled[0] / scaled[0].sum(), divided, rtol=1e-13)
    assert not np.allclose(softmax(scaled[0]), softmax(scores[0]), rtol=1e-3)
    with np.errstate(divide="ignore"):
        assert np.isinf(np.array([1.0, -1.0]) / np.array([1.0, -1.0]).sum()).all()


def test_the_slope_of_softmax_is_at_most_a_half_and_that_of_a_division_has_no_bound():
    steepest = lambda f, s: np.linalg.norm(jacobian(f)(s).data, 2)
    divide, scores = (lambda s: s / s.sum()), INPUTS @ INPUTS[1]
    for factor in (1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0):
        p = softmax(factor * scores)
        expected = np.linalg.norm(np.diag(p) - np.outer(p, p), 2)
        assert steepest(softmax, factor * scores) == pytest.approx(expected, rel=1e-9)
        assert expected <= 0.5
        once = steepest(divide, scores)
        assert steepest(divide, factor * scores) == pytest.approx(once / factor, rel=1e-9)
    assert steepest(softmax, np.zeros(2)) == pytest.approx(0.5)
    assert steepest(softmax, 1e4 * scores) < 1e-80


def test_a_shift_of_a_row_leaves_the_slope_of_softmax_and_may_make_a_division_steep():
    scores = INPUTS @ INPUTS[1]
    whole, shifted, last = (_claimed.slopes(scores - c * scores.mean()) for c in (0, 0.99, 0.999))
    assert whole[1] == pytest.approx(shifted[1], rel=1e-12) == pytest.approx(last[1], rel=1e-12)
    assert whole[0] < 0.2 and 400 < shifted[0] < 430 and last[0] / shifted[0] > 50


def test_from_other_draws_too_heads_learn_more_with_softmax():
    found = _claimed.train_both(seed=20)
    assert all(each.shape == (_claimed.DRAWS, 2) for each in found.values())
    for name in VERSIONS:
        (by_sum, steep), (by_softmax, gentle) = (found[name, w].T for w in ("divided", "softmax"))
        assert np.median(by_softmax) < 0.45 < np.median(by_sum)
        assert gentle.max() < 0.1 and steep.max() > 1


def test_v2_needs_no_scale_at_a_large_width_only_while_inputs_are_about_1_long():
    lengths = np.linalg.norm(INPUTS, axis=1)
    assert 0.7 < lengths.min() < lengths.max() < 1.23
    left = {}
    for times in (1, 10):
        x = Tensor(times * INPUTS)
        looks = [source.version_2(2048, i).weights(x, scale=1.0).data for i in range(5)]
        left[times] = np.mean([entropy(p).mean() for p in looks]) / np.log(6)
    assert left[1] > 0.4 and left[10] < 0.1


@pytest.mark.parametrize(
    ("dtype", "highest", "lowest"), [("float64", 709, 745), ("float32", 88, 103)]
)
def test_the_naive_softmax_breaks_one_step_further_and_ours_does_not(dtype, highest, lowest):
    def first(f, *numbers):
        x = Tensor(numbers, dtype=dtype, requires_grad=True)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            y = f(x)
            return y[0].item(), gradients(y, [x], [1.0, 0.0])[0][0]

    naive = source.naive_softmax
    assert first(naive, highest, highest)[0] in (0.0, 0.5)  # the exps are finite, not their sum
    assert first(naive, highest, 0.0)[0] == 1.0
    assert np.isnan(first(naive, highest + 1, 0.0)).all()
    assert first(naive, -lowest, -lowest)[0] == 0.5
    assert np.isnan(first(naive, -lowest - 1, -lowest - 1)[0])
    assert first(softmax, highest + 1, 0.0)[0] == 1.0
    assert first(softmax, -lowest - 1, -lowest - 1) == (0.5, 0.25)
    for factor, finite in ((7, True), (8, dtype == "float64")):  # the text's own inputs, longer
        longer = (factor * INPUTS).astype(dtype)
        with np.errstate(over="ignore"):
            assert np.isfinite(exp(longer @ longer[1])).all() == finite


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


@pytest.mark.parametrize("d_in", [3, 17, 257])
def test_nn_linear_leaves_a_third_of_the_power_and_torch_rand_has_mean_one_half(d_in):
    w = source.torch_linear(np.random.RandomState(d_in), d_in, 200_000 // d_in)
    assert d_in * w.var() == pytest.approx(1 / 3, rel=0.01) and abs(w.mean()) < 0.01
    draw = source.torch_rand(np.random.RandomState(d_in), 200_000)
    assert draw.mean() == pytest.approx(0.5, rel=0.01)


@pytest.mark.parametrize(
    ("name", "evenness", "moved"), [("V1", 0.985, 0.050), ("V2", 0.998, 0.008)]
)
def test_both_versions_nearly_average_and_v2_more(name, evenness, moved):
    x, head = x_and(name)
    values, contexts = (x @ head.w_v).data, head(x).data
    assert spread(head.weights(x).data) == pytest.approx(evenness, abs=5e-4)
    varied = (contexts - contexts.mean(axis=0)).std() / (values - values.mean(axis=0)).std()
    assert varied == pytest.approx(moved, abs=5e-4)


# ------------------------------------------------------------------ value: loops and a product


@pytest.mark.parametrize("way", _claimed.WAYS.values(), ids=_claimed.WAYS)
@pytest.mark.parametrize("n", [1, 5, 7])
def test_every_way_gives_all_products_of_two_rows(way, n):
    x = np.random.default_rng(n).standard_normal((n, 3))
    expected = [[sum(a * b for a, b in zip(p, q, strict=True)) for q in x] for p in x]
    np.testing.assert_allclose(way(Tensor(x)), expected, rtol=1e-13, atol=1e-15)


def test_the_table_of_times_has_a_row_for_each_number_of_words(monkeypatch):
    monkeypatch.setattr(_claimed, "WORDS", (2, 3))
    seconds = _claimed.time_loops(seed=0)
    assert [(n, list(taken)) for n, taken in seconds.items()] == [
        (n, ["three loops, floats", "two loops, arrays", "two loops, tensors", "one product"])
        for n in (2, 3)
    ]
    made_up = dict(zip(_claimed.WAYS, (2e-3, 3e-3, 4e-2, 2e-5), strict=True))
    assert _claimed.loop_rows({6: made_up}) == [["6", "100", "150", "2,000", "20 µs"]]


def test_a_way_with_other_numbers_is_noticed(monkeypatch):
    monkeypatch.setattr(_claimed, "WORDS", (5,))
    assert _claimed.loops_apart(seed=0) < 1e-14
    wrong = lambda x: _claimed.one_product(x) + 1e-9 * np.eye(5)
    monkeypatch.setattr(_claimed, "WAYS", {**_claimed.WAYS, "wrong": wrong})
    assert _claimed.loops_apart(seed=0) == pytest.approx(1e-9, rel=1e-5)


# ------------------------------------------------------------------ value: the scale


@versions
def test_at_two_features_the_scale_makes_gradients_smaller(name):
    x, head = x_and(name)
    raw, scaled = (
        [np.linalg.norm(g) for g in gradients(head(x, scale=s).sum(), head.parameters())]
        for s in (1.0, None)
    )
    for i in (0, 1):  # W_q and W_k: little but the factor 1/√2 = .71 is at work
        assert 0.7 < scaled[i] / raw[i] < 0.8
    assert scaled[2] / raw[2] > 0.95
    assert spread(head.weights(x, scale=1.0).data) > 0.97  # far from saturation, unscaled


def test_only_the_root_of_two_gives_the_printed_weights():
    x, head = x_and("V1")
    for scale, right in ((1 / np.sqrt(2), 6), (1 / np.sqrt(3), 0), (1 / 2, 0), (1.0, 0)):
        found = as_torch_prints(head.weights(x, scale=scale).data[1])
        assert agreeing(PRINTED["weights of q₂"], found) == right


def test_scores_of_v1_s_recipe_grow_like_d_k():
    x, head = Tensor(INPUTS), source.version_1(d_k=100_000, seed=0)
    sums = INPUTS.sum(axis=1)
    expected = np.outer(sums, sums) / 4  # E[q·k] / d_k, with a mean of ½ in both matrices
    scores = (x @ head.w_q @ (x @ head.w_k).mT).data / 100_000
    np.testing.assert_allclose(scores, expected, rtol=0.01)
    weights = head.weights(x, scale=1e-5).data
    np.testing.assert_allclose(weights, softmax(expected), rtol=0.01)
    assert spread(weights) == pytest.approx(0.993, abs=5e-4)
    wide = source.version_1(d_k=2048, seed=0)
    centred = SelfAttention(
        *(w.data - 0.5 for w in wide.parameters())
    )  # it is the mean that does it
    assert spread(wide.weights(x).data) < 0.4 < 0.99 < spread(centred.weights(x).data)


# ------------------------------------------------------------------ derivative


@versions
@pytest.mark.parametrize("mask", [None, causal_mask(6)], ids=["all", "causal"])
@pytest.mark.parametrize("scale", [None, 1.0, 16.0])
def test_gradients_of_both_versions_are_right_to_second_order(name, mask, scale):
    x, head = x_and(name)
    report = gradcheck(
        lambda x, *w: SelfAttention(*w)(x, mask=mask, scale=scale), x, *head.parameters()
    )
    assert report and len(report.comparisons) == 24


def test_of_the_biases_only_that_of_keys_has_no_gradient_to_confirm():
    x, head = Tensor(INPUTS), source.version_2_biased()
    report = gradcheck(lambda *p: BiasedAttention(*p)(x), *head.parameters(), order=1)
    assert [c.what for c in report.unresolved] == ["∂L/∂b_k"]  # rounding: 0 on paper
    assert len(report.comparisons) == 6 and max(c.norm for c in report.unresolved) < 1e-14


def test_the_drawing_of_v2_with_biases_marks_that_of_keys_alone():
    drawing = _bias.drawn()
    assert [drawing.vertices[n].title for n in drawing.noise] == ["b_k"]
    lines = str(drawing).splitlines()
    assert [line.split()[0] for line in lines if line.endswith("grad ≈ 0")] == ["b_k"]
    assert "b_k: softmax does not see a shift of all its scores" in lines


def test_a_saturated_head_s_gradients_agree_as_far_as_differences_see():
    x, head = x_and("V2")
    report = gradcheck(lambda x, *w: SelfAttention(*w)(x, scale=128.0), x, *head.parameters())
    assert len(report.comparisons) == 24 and not report  # not confirmed, and not said to be
    small = {c.what for c in report.unresolved if c.order == 1}
    assert small == {"∂L/∂w_q", "∂L/∂w_k"}
    assert max(c.error for c in report.comparisons) < 1e-5
    g_q, g_k, g_v = gradients(head(x, scale=128.0).sum(), head.parameters())
    assert max(np.linalg.norm(g_q), np.linalg.norm(g_k)) < 1e-6 < 1 < np.linalg.norm(g_v)


# ------------------------------------------------------------------ law: the completed steps


def test_one_allowed_state_is_returned_as_it_is_and_no_other_gets_a_gradient():
    random = np.random.default_rng(3)
    q, k, v = (Tensor(random.standard_normal((5, 7)), requires_grad=True) for _ in range(3))
    w = Tensor(random.standard_normal(7))
    context = additive_attention(q, k, v, w, mask=np.arange(5) == 4)  # the demo's "last"
    np.testing.assert_array_equal(context.data, np.tile(v.data[4], (5, 1)))
    g_q, g_k, g_v = gradients(context.sum(), [q, k, v])
    assert not g_q.any() and not g_k.any() and not g_v[:4].any() and (g_v[4] == 5).all()


@pytest.mark.parametrize("mask", [None, causal_mask(7)], ids=["all", "causal"])
def test_a_bias_of_queries_adds_by_key_one_of_keys_adds_by_query_and_softmax_is_blind_to_it(mask):
    random = np.random.default_rng(5)
    x, g = Tensor(random.standard_normal((7, 5))), random.standard_normal((7, 3))
    w = [random.standard_normal((5, 3)) for _ in range(3)]
    b_q, b_k, b_v = b = [random.standard_normal(3) for _ in range(3)]
    head, plain = BiasedAttention(*w, *b), SelfAttention(*w)
    (q, k, _), (q_0, k_0, _) = (each.project(x) for each in (head, plain))
    by_key, by_query = k_0.data @ b_q, q.data @ b_k
    added = (q @ k.mT - q_0 @ k_0.mT).data
    np.testing.assert_allclose(added, by_key + by_query[:, None], rtol=1e-9, atol=1e-12)

    without = BiasedAttention(*w, b_q, 0 * b_k, b_v)
    looks, same = (each.weights(x, mask=mask).data for each in (head, without))
    np.testing.assert_allclose(looks, same, rtol=1e-9, atol=1e-15)
    assert not np.allclose(looks, plain.weights(x, mask=mask).data, atol=0.01)
    *_, g_q, g_k, g_v = gradients((head(x, mask=mask) * g).sum(), head.parameters())
    assert np.abs(g_k).max() < 1e-13 < 1e-3 < np.abs(g_q).max()
    np.testing.assert_allclose(g_v, g.sum(axis=0), rtol=1e-9)
    moved = head(x, mask=mask).data - BiasedAttention(*w, b_q, b_k, 0 * b_v)(x, mask=mask).data
    np.testing.assert_allclose(moved, np.tile(b_v, (7, 1)), rtol=1e-9)


def test_with_rotated_keys_or_dropped_weights_the_biases_do_something_else():
    for seed in (0, 1):
        found = _bias.measure(seed)
        assert found.dropped > 0.1 and found.apart < 1e-14
        assert found.rotated[1] > found.rotated[0] / 10 > 1e-4
    assert found.learned[1] < 1e-12 < min(found.learned[0], found.learned[2])


def test_two_heads_are_both_versions_side_by_side():
    x, layer = Tensor(INPUTS), source.two_heads(dropout=0.5).eval()
    for mask in (None, causal_mask(6)):
        joined = np.hstack([VERSIONS[name]()(x, mask=mask).data for name in VERSIONS])
        expected = joined @ layer.w_o.weight.data
        np.testing.assert_allclose(layer(x, mask=mask).data, expected, rtol=1e-12)
    assert not np.allclose(layer.train()(x).data, layer.eval()(x).data)


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
