"""Demos · Source text 003: its 310 numbers, its slips, and the steps that it leaves undone."""

import re
from decimal import Decimal

import numpy as np
import pytest

from attention import additive_attention, attention, attention_weights, causal_mask
from attention.mapping import to_ours, to_theirs
from attention.maps import entropy
from demos.texts.sources import agreeing, as_torch_prints, of_weights
from demos.texts.sources import your_journey as source
from demos.texts.sources.your_journey import (
    INPUTS,
    LAYOUT_V1,
    LAYOUT_V2,
    PRINTED,
    SelfAttention,
    as_text,
)
from minigrad import Tensor, exp, gradcheck, gradients, softmax
from minigrad.nn import Dropout, Sequential
from tests.demos.running import whole

VERSIONS = {"V1": source.version_1, "V2": source.version_2}
versions = pytest.mark.parametrize("name", VERSIONS)


def x_and(name):
    return Tensor(INPUTS, requires_grad=True, name="X"), VERSIONS[name]()


def spread(weights):
    return entropy(weights).mean() / np.log(6)


# ---------------------------------------------------------------- value: the printed numbers


def test_all_310_printed_numbers_come_out_identical_as_text():
    ours = source.ours()
    assert list(ours) == list(PRINTED)
    for name, array in ours.items():
        assert as_text(array) == PRINTED[name].split(), name
    assert sum(array.size for array in ours.values()) == 310 and source.LOST == ""


def test_307_have_four_decimals_and_three_are_sums():
    numbers = {name: printed.split() for name, printed in PRINTED.items()}
    short = [n for every in numbers.values() for n in every if re.fullmatch(r"-?\d\.\d{4}", n)]
    sums = [numbers[name] for name in ("their sum", *(n for n in numbers if n.startswith("sum ")))]
    assert len(PRINTED) == 31 and len(short) == 307
    assert sums == [["1.0000001192092896"], ["1.0"], ["1.0"]]


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


def test_as_text_prints_arrays_short_and_single_numbers_whole():
    assert as_text(np.array([0.5, -0.00005001])) == ["0.5000", "-0.0001"]
    assert as_text(np.float32(1) + np.float32(2**-23)) == ["1.0000001192092896"]


# ---------------------------------------------------------------- value: the slips


def test_the_numbers_called_key_matrix_are_the_query_matrix():
    called, one = PRINTED['W_q, called "Key matrix weights"'], source.version_1()
    assert agreeing(called, as_text(one.w_q.data)) == 6
    assert agreeing(called, as_text(one.w_k.data)) == 0


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
    assert first(naive, highest, highest)[0] in (
        0.0,
        0.5,
    )  # the exps are finite, their sum need not
    assert first(naive, highest, 0.0)[0] == 1.0
    assert np.isnan(first(naive, highest + 1, 0.0)).all()
    assert first(naive, -lowest, -lowest)[0] == 0.5
    assert np.isnan(first(naive, -lowest - 1, -lowest - 1)[0])
    assert first(softmax, highest + 1, 0.0)[0] == 1.0
    assert first(softmax, -lowest - 1, -lowest - 1) == (0.5, 0.25)


def test_the_text_s_own_inputs_overflow_when_eight_times_as_long():
    for factor, finite in ((7, True), (8, False)):
        longer = (factor * INPUTS).astype(np.float32)
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


@versions
def test_a_pytorch_module_with_these_weights_computes_the_same(name):
    torch = pytest.importorskip("torch")
    x, head = x_and(name)
    state = to_theirs(head.state_dict(), LAYOUT_V2)
    theirs = {}
    for letter in ("query", "key", "value"):
        linear = torch.nn.Linear(3, 2, bias=False).double()
        linear.load_state_dict({"weight": torch.tensor(state[f"W_{letter}.weight"])})
        theirs[letter] = linear(torch.tensor(INPUTS))
    expected = torch.nn.functional.scaled_dot_product_attention(*theirs.values())
    np.testing.assert_allclose(head(x).data, expected.detach().numpy(), rtol=1e-13)


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
    share = (contexts - contexts.mean(axis=0)).std() / (values - values.mean(axis=0)).std()
    assert share == pytest.approx(moved, abs=5e-4)


# ---------------------------------------------------------------- value: what the scale does here


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


def test_a_large_width_needs_another_scale_with_v1_s_weights_than_with_v2_s():
    x = Tensor(INPUTS)
    found = {
        (name, scale): spread(VERSIONS[name](d_k=2048, seed=0).weights(x, scale=scale).data)
        for name in VERSIONS
        for scale in (None, 1 / 2048)
    }
    assert found["V1", None] < 0.4 < 0.99 < found["V1", 1 / 2048]
    assert found["V2", None] > 0.99
    centred = [w.data - 0.5 for w in source.version_1(d_k=2048, seed=0).parameters()]
    assert spread(SelfAttention(*centred).weights(x).data) > 0.99  # it is the mean that did it


# ---------------------------------------------------------------- derivative


def test_gradients_without_weights_are_right_to_second_order():
    assert gradcheck(lambda x: attention(x, x, x, scale=1.0), INPUTS)


@versions
@pytest.mark.parametrize("mask", [None, causal_mask(6)], ids=["all", "causal"])
@pytest.mark.parametrize("scale", [None, 1.0, 16.0])
def test_gradients_of_both_versions_are_right_to_second_order(name, mask, scale):
    x, head = x_and(name)
    report = gradcheck(
        lambda x, *w: SelfAttention(*w)(x, mask=mask, scale=scale), x, *head.parameters()
    )
    assert report and len(report.comparisons) == 24


def test_gradients_with_dropped_weights_are_right_to_second_order():
    def f(x, *w):
        drop = Dropout(0.5, rng=np.random.default_rng(0))  # the same weights at each call
        return SelfAttention(*w)(x, mask=causal_mask(6), drop=drop)

    x, head = x_and("V1")
    assert gradcheck(f, x, *head.parameters())


def test_gradients_of_two_heads_are_right_to_second_order():
    layer = source.two_heads()
    f = of_weights(layer, mask=causal_mask(6))
    report = gradcheck(f, INPUTS, *layer.parameters())
    assert report and len(report.comparisons) == 35


def test_a_saturated_head_s_gradients_agree_as_far_as_differences_see():
    x, head = x_and("V2")
    report = gradcheck(lambda x, *w: SelfAttention(*w)(x, scale=128.0), x, *head.parameters())
    assert len(report.comparisons) == 24 and not report  # not confirmed, and not said to be
    small = {c.what for c in report.unresolved if c.order == 1}
    assert small == {"∂L/∂w_q", "∂L/∂w_k"}
    assert max(c.error for c in report.comparisons) < 1e-5
    g_q, g_k, g_v = gradients(head(x, scale=128.0).sum(), head.parameters())
    assert max(np.linalg.norm(g_q), np.linalg.norm(g_k)) < 1e-6 < 1 < np.linalg.norm(g_v)


# ---------------------------------------------------------------- law: the completed steps


def test_one_allowed_state_is_returned_as_it_is_and_no_other_gets_a_gradient():
    random = np.random.default_rng(3)
    q, k, v = (Tensor(random.standard_normal((5, 7)), requires_grad=True) for _ in range(3))
    w = Tensor(random.standard_normal(7))
    context = additive_attention(q, k, v, w, mask=np.arange(5) == 4)  # the demo's "last"
    np.testing.assert_array_equal(context.data, np.tile(v.data[4], (5, 1)))
    g_q, g_k, g_v = gradients(context.sum(), [q, k, v])
    assert not g_q.any() and not g_k.any() and not g_v[:4].any() and (g_v[4] == 5).all()


@versions
def test_a_causal_mask_shares_out_what_the_future_had(name):
    x, head = x_and(name)
    mask, weights = causal_mask(6), head.weights(x).data
    kept = np.where(mask, weights, 0)
    expected = kept / kept.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(head.weights(x, mask=mask).data, expected, rtol=1e-13)
    np.testing.assert_array_equal(head(x, mask=mask).data[0], (x @ head.w_v).data[0])
    for t in range(5):
        (g,) = gradients(head(x, mask=mask)[: t + 1].sum(), [x])
        assert not g[t + 1 :].any() and g[: t + 1].all()
        assert gradients(head(x)[: t + 1].sum(), [x])[0][t + 1 :].any()


def test_dropout_doubles_or_drops_and_keeps_the_mean():
    x, head = x_and("V1")
    weights = head.weights(x).data
    many = Tensor(np.broadcast_to((x @ head.w_q).data, (20_000, 6, 2)))
    drop = Dropout(0.5, rng=np.random.default_rng(0))
    dropped = drop(attention_weights(many, x @ head.w_k)).data
    assert set(np.unique(np.round(dropped / weights, 12))) == {0.0, 2.0}
    errors = (dropped.mean(axis=0) - weights) / (dropped.std(axis=0) / np.sqrt(len(dropped)))
    assert np.abs(errors).max() < 4.5
    masked = drop(attention_weights(many, x @ head.w_k, mask=causal_mask(6))).data
    assert (masked[:, 0].sum(axis=1) == 0).mean() == pytest.approx(0.5, abs=0.015)


def test_two_heads_are_both_versions_side_by_side():
    x, layer = Tensor(INPUTS), source.two_heads(dropout=0.5).eval()
    for mask in (None, causal_mask(6)):
        heads = [VERSIONS[name]()(x, mask=mask).data for name in VERSIONS]
        joined = np.hstack(heads)
        expected = joined @ layer.w_o.weight.data
        np.testing.assert_allclose(layer(x, mask=mask).data, expected, rtol=1e-12)
    layer.w_o = Sequential()
    for name, table in zip(VERSIONS, np.hsplit(layer(x).data, 2), strict=True):
        assert as_text(table) == PRINTED[name].split()
    assert not np.allclose(layer.train()(x).data, layer.eval()(x).data)


def test_slips_and_completed_steps_are_sentences():
    assert len(source.SLIPS) == 8 and len(source.COMPLETED) == 6
    assert all(s.endswith(".") for s in (*source.SLIPS, *source.COMPLETED))


# ---------------------------------------------------------------- refusal


def test_weights_that_are_not_turned_are_refused_unless_they_are_square():
    one = source.version_1()
    stored = to_theirs(one.state_dict(), LAYOUT_V2)
    unturned = dict(zip(one.state_dict(), stored.values(), strict=True))
    with pytest.raises(ValueError, match=r"w_q has shape \(2, 3\), not \(3, 2\)"):
        source.version_2().load_state_dict(unturned)
    square = source.version_1(d_k=3)
    stored = to_theirs(square.state_dict(), LAYOUT_V2)
    wrong = source.version_2(d_k=3)
    wrong.load_state_dict(dict(zip(square.state_dict(), stored.values(), strict=True)))
    assert not np.allclose(wrong(Tensor(INPUTS)).data, square(Tensor(INPUTS)).data)  # in silence


# ---------------------------------------------------------------- what the demo prints


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    return whole("your_journey", tmp_path_factory)[1]


def under(printed, words):
    """The one block of lines that has these words."""
    (block,) = [b for b in printed.split("\n\n") if words in " ".join(b.split())]
    return block


def after(block, label):
    """The numbers behind the label, in the one line that begins with it and goes on with one."""
    pattern = rf"^ *{re.escape(label)} *((?:-?\d|nan).*)$"
    (rest,) = re.findall(pattern, block, re.MULTILINE)
    return re.findall(r"-?\d[\d.]*(?:e[-+]\d+)?|nan", rest)


def got(printed, what):
    """What a mark says it got, and that it passed."""
    (text,) = re.findall(rf"^   {re.escape(what)}: .*, got (.*): passed$", printed, re.MULTILINE)
    return [text.rstrip("%")]


def agree(texts, expected):
    """The printed numbers are these, rounded to the digits that they show."""
    for text, number in zip(texts, np.ravel(expected), strict=True):
        unit = 10.0 ** Decimal(text).as_tuple().exponent
        assert abs(float(text) - number) <= 0.51 * unit, (texts, expected)


def test_the_demo_s_lines_are_short_and_its_slips_are_all_of_them(printed):
    assert max(map(len, printed.splitlines()[:-1])) <= 100  # the last one is a folder's name
    blocks = [" ".join(block.split()) for block in printed.split("\n\n")]
    slips = [block for block in blocks if block.startswith("- ")]
    for block, slip in zip(slips, source.SLIPS, strict=True):
        assert block.startswith(f"- {slip} ")  # and what shows it follows


def test_known_words_are_right_words_less_those_guessed(printed):
    block = under(printed, "the last state 2")
    rows = [[float(t) for t in after(block, str(T))] for T in (2, 4, 8, 16)]
    for T, row in zip((2, 4, 8, 16), rows, strict=True):
        for share, known in zip(row[::2], row[1::2], strict=True):
            assert known == pytest.approx(T * (share / 100 - 0.1) / 0.9, abs=0.06)
    assert min(row[0] for row in rows) >= 99 and np.all(np.diff([row[2] for row in rows]) < 0)
    agree(got(printed, "16 words, all states"), rows[3][0])
    agree(got(printed, "2 words, the last state: they fit"), rows[0][2])
    agree(got(printed, "ablation, 16 words, the last state"), rows[3][2])
    agree(got(printed, "most words known from the last state"), max(row[3] for row in rows))


def test_all_numbers_are_shown_and_judged_by_how_many_the_text_has(printed):
    block = under(printed, "scores of x₂ (6,)")
    rows = re.findall(r"^   text +(.*?)   ours +(.*)$", block, re.MULTILINE)
    assert all(text.split() == ours.split() for text, ours in rows)
    whole_arrays = re.findall(r"^   (.*) \(.*\): (\d+) of (\d+) agree$", block, re.MULTILINE)
    counts = {name: len(numbers.split()) for name, numbers in PRINTED.items()}
    assert all(counts[name] == int(a) == int(b) for name, a, b in whole_arrays)
    shown = [name for name, _, _ in whole_arrays]
    others = " ".join(PRINTED[name] for name in PRINTED if name not in shown)
    assert " ".join(text for text, _ in rows).split() == others.split()
    every = sum(counts.values())
    mark = f"numbers that are the same text: expected at least {every}, got {every}: passed"
    assert mark in printed


def test_the_order_of_additions_is_told(printed):
    block, scores = under(printed, "The six scores"), source.ours()["scores of x₂"]
    orders = {"in lanes": source.lane_sum, "left to right": np.sum}
    for name, add in orders.items():
        sums = [float(total(scores / add(scores))) for total in orders.values()]
        assert [float(t) for t in after(block, name)] == sums


def test_the_first_slips_are_shown(printed):
    scores = INPUTS @ INPUTS[1]
    powers, block = np.exp(scores), under(printed, "every other input token")
    agree(after(block, "in its code"), powers / powers.sum())
    assert max(after(block, "in its code")) == "0.2379" == after(block, "in its code")[1]
    powers[1] = 0
    agree(after(block, "of every other"), powers / powers.sum())

    one, block = source.version_1(), under(printed, "prints W_query once more")
    called = np.array(PRINTED['W_q, called "Key matrix weights"'].split())
    for name in ("w_q", "w_k"):
        same = (as_text(getattr(one, name).data) == called).sum()
        assert re.search(rf"^   {same} are those of {name}$", block, re.MULTILINE)

    w_q, w_k, _ = (w.data for w in source.version_2().parameters())
    block = under(printed, "negative weights")
    scores = INPUTS @ w_k @ (INPUTS[0] @ w_q)
    for said, scale in (("1", 1), ("1/√2", np.sqrt(1 / 2))):
        agree(after(block, f"sum, scale {said} "), scores / scores.sum())
        powers = np.exp(scale * scores)
        agree(after(block, f"softmax, scale {said} "), powers / powers.sum())


@pytest.mark.parametrize(
    ("dtype", "zs"), [("float64", (709, 710, 746)), ("float32", (88, 89, 104))]
)
def test_overflows_are_shown_where_they_are(printed, dtype, zs):
    block = under(printed, "may overflow")
    for z in zs:
        cells = []
        for pair, exact in (((z, 0), 1), ((-z, -z), 0.5)):
            with np.errstate(over="ignore", invalid="ignore"):
                powers = np.exp(np.array(pair, dtype=dtype))
                cells += [f"{(powers / powers.sum())[0]:.3g}", f"{exact}"]
        assert after(block, f"{dtype}, z = {z} ") == cells
    agree(
        after(block, "The inputs themselves, 8 times as long: x₂ · x₂ ="),
        64 * INPUTS[1] @ INPUTS[1],
    )


def test_the_two_versions_slips_are_shown(printed):
    assert under(printed, "never made equal").count(".weight (2, 3)") == 3
    assert got(printed, "numbers of V1's table that V2 gives with these") == ["12"]
    block = under(printed, "It calls nn.Linear")
    agree(after(block, "nn.Linear, 300,000 weights: d_in · variance ="), 1 / 3)
    for name in VERSIONS:
        x, head = x_and(name)
        values, contexts = (x @ head.w_v).data, head(x).data
        share = (contexts - contexts.mean(axis=0)).std() / (values - values.mean(axis=0)).std()
        row = re.search(rf"{name}: entropy (.*); contexts vary (.*)% as much", block).groups()
        agree(row, [spread(head.weights(x).data), 100 * share])


def test_mask_dropout_and_heads_are_shown(printed):
    x, one = x_and("V1")
    weights, block = one.weights(x).data, under(printed, "Your 1.0000")
    for t, word in enumerate(source.WORDS):
        agree(
            after(block, word),
            np.where(np.arange(6) <= t, weights[t], 0) / weights[t, : t + 1].sum(),
        )
    assert got(printed, "gradient from the first three words to the others") == ["0e+00"]

    block = under(printed, "Dropout with p")
    undropped, *draws = re.findall(r"^   ((?:\d\.\d{4} ?){6})$", block, re.MULTILINE)
    agree(undropped.split(), weights[1])
    factors = np.array([draw.split() for draw in draws], dtype=float) / weights[1]
    np.testing.assert_allclose(factors, 2 * factors.round().clip(0, 1), atol=1e-3)
    assert len(draws) == 3 == len(set(draws)) and 0 < (factors == 0).mean() < 1
    none = re.search(r'"Your" has one key, and in (\d+)% of the draws none', block).group(1)
    assert float(none) == pytest.approx(50, abs=1.5)
    assert float(*got(printed, "mean of 20,000 draws, in standard errors")) > 0
    assert got(printed, "numbers of V1 and V2 that two heads print") == ["24"]


def norms(name, scale, d_k=2, seed=None):
    x = Tensor(INPUTS, requires_grad=True)
    head = VERSIONS[name](d_k) if seed is None else VERSIONS[name](d_k, seed)
    loss = head(x, scale=scale).sum()
    return np.array([np.linalg.norm(g) for g in gradients(loss, [x, *head.parameters()])])


@versions
def test_the_way_back_is_shown(printed, name):
    block = under(printed, "‖∂L/∂…‖ X")
    for said, scale in (("1 ", 1.0), ("1/√2", 2**-0.5), ("128", 128.0)):
        agree(after(block, f"{name}, scale {said}"), norms(name, scale))
    share = norms(name, 2**-0.5)[1] / norms(name, 1.0)[1]
    agree(got(printed, f"{name}: ‖∂L/∂W_q‖ with the scale, over that without"), share)
    (best,) = re.findall(rf"{name}: ‖∂L/∂W_q‖ is largest at scale (.*), d_k = 2", printed)
    around = [norms(name, factor * float(best))[1] for factor in (0.8, 1, 1.25)]
    assert np.argmax(around) == 1


def test_what_gradcheck_confirmed_is_told(printed):
    block = under(printed, "without weights: 3 derivatives")
    for name, n in (("without weights", 1), ("V1", 4), ("V2", 4), ("two heads, causal", 5)):
        every = n * (n + 2)  # n gradients; each of them, by every input and by the seed
        assert after(block, f"{name}:")[0] == after(block, f"{name}:")[-1] == str(every)
        assert 0 < float(*got(printed, f"{name}, largest error")) < 1e-8
    x, head = x_and("V2")
    report = gradcheck(lambda x, *w: SelfAttention(*w)(x, scale=128.0), x, *head.parameters())
    coarse = report.unresolved
    numbers = re.search(
        r"128: (\d+) derivatives .*, (\d+) confirmed\n +of the (\d+) others: .* to (.*)$", block
    ).groups()
    assert [int(n) for n in numbers[:3]] == [24, 24 - len(coarse), len(coarse)]
    agree(numbers[3:], max(max(c.error, c.resolution) for c in coarse))


@versions
def test_the_scale_at_large_widths_is_shown(printed, name):
    block, widths = under(printed, "Entropy / log n at"), (2, 8, 32, 128, 512, 2048)
    assert f"d_k = {', '.join(map(str, widths))}; mean of 10 draws" in block
    found = {}
    for said, power in (("1 ", 0), ("1/√d_k", -0.5), ("1/d_k", -1)):
        shares = []
        for d_k in widths:
            weights = (VERSIONS[name](d_k, seed).parameters() for seed in range(10))
            scores = [INPUTS @ q.data @ (INPUTS @ k.data).T for q, k, _ in weights]
            shares.append(np.mean([spread(softmax(d_k**power * s)) for s in scores]))
        found[said] = after(block, f"{name}, scale {said}")
        agree(found[said], shares)
    for said in {"V1": ("1/√d_k", "1/d_k"), "V2": ("1/√d_k",)}[name]:
        assert got(printed, f"{name}'s recipe, d_k = 2048, {said}") == found[said][-1:]

    every = [[norms(name, s, 2048, seed) for s in (1.0, 2048**-0.5)] for seed in range(5)]
    through = np.mean([[raw[1] / raw[3], scaled[1] / scaled[3]] for raw, scaled in every], axis=0)
    agree(after(under(printed, "mean of 5 draws"), f"{name}:"), through)
    agree(got(printed, f"{name}'s recipe: times as much with the scale"), through[1] / through[0])
