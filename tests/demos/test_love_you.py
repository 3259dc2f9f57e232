"""Source text 001, "I love you": its numbers, its slips, its undone steps, and the way back."""

import re

import numpy as np
import pytest

from attention import MultiHeadAttention, attention, attention_weights, merge_heads
from attention.maps import entropy
from attention.positions import sinusoidal
from demos.texts.sources import agreeing, numbers, of_weights
from demos.texts.sources import love_you as source
from minigrad import Tensor, gradcheck, gradients, graph, mse, softmax
from minigrad.optim import Adam
from tests.demos.running import whole

USUAL = (1.0, 1 / 8, 1 / 64, 1 / 512)
GAP = 24 * 2496 * (2617 - 2503)  # how far the second score is behind, where it is least
ALIVE = 2 / (8 * GAP)
LAST = 745.1332191019411  # exp(-z) is 0 in float64 from here on


def head(scale=None):
    return lambda x, w_q, w_k, w_v: attention(x @ w_q, x @ w_k, x @ w_v, scale=scale)


def inputs(*, constant=True, unit=False, seed=0):
    """x and the first head's three matrices, each (512, 64)."""
    rows = source.rows(np.random.default_rng(seed)).astype(float)
    layer = source.layer(constant=constant, seed=seed)
    projections = (layer.w_q, layer.w_k, layer.w_v)
    arrays = [source.unit(rows) if unit else rows, *(p.weight.data[:, :64] for p in projections)]
    names = ("x", "w_q", "w_k", "w_v")
    return [Tensor(a, requires_grad=True, name=n) for a, n in zip(arrays, names, strict=True)]


def largest(gradient):
    return np.abs(gradient).max()


def way_back(scale, tensors):
    """∂(Σ context)/∂(x, W_Q, W_K, W_V)."""
    return gradients(head(scale)(*tensors).sum(), tensors)


def layer_and_rows(*, unit=False, seed=0, **options):
    rows = source.rows(np.random.default_rng(seed)).astype(float)
    return source.layer(seed=seed, **options), Tensor(source.unit(rows) if unit else rows)


def heads_apart(layer, x):
    found = attention(*source.heads(x, layer), scale=layer.scale).data
    return np.abs(found - found[0]).max() / np.abs(found).max()


def trained(seed, w_o=None):
    """20 steps at the scale ALIVE: how far W_Q moved, and the heads from one another."""
    layer, x = layer_and_rows(scale=ALIVE, seed=seed)
    if w_o is not None:
        layer.w_o.weight.data = w_o
    target = 13085 * np.random.default_rng(seed).standard_normal((3, 512))
    optimizer = Adam(layer.parameters(), 0.01)
    for _ in range(20):
        optimizer.zero_grad()
        mse(layer(x), target).backward()
        optimizer.step()
    return largest(layer.w_q.weight.data - 1), heads_apart(layer, x)


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """The demo of seed 1: its folder, and what it printed."""
    return whole("love_you", tmp_path_factory, "--seed", 1)


@pytest.fixture
def told(left):
    """What it printed, every run of spaces as one."""
    return " ".join(left[1].split())


# ------------------------------------------------------------------ value


def test_it_prints_552_numbers_and_82_come_back_as_text():
    counts = {name: len(printed.split()) for name, printed in source.PRINTED.items()}
    assert counts == {"I": 470, "scores": 9, "weights": 9, "context": 64}
    ours = source.ours()
    assert [array.shape for array in ours.values()] == [(3, 3), (3, 3), (64,)]
    for name, array in ours.items():
        assert source.as_text(array) == source.PRINTED[name].split(), name
    assert sum(counts[name] for name in ours) == 82 and sum(counts.values()) == 552


def test_the_printed_part_of_the_first_row_sums_to_2308():
    known = numbers(source.PRINTED["I"])
    assert known.sum() == 2308 and set(known) == set(range(1, 10))
    assert list(known[:5]) == [8, 5, 6, 7, 7] and list(known[-5:]) == [5, 1, 8, 4, 2]
    assert 42 <= 2496 - 2308 <= 42 * 9  # so the other 42 can make up the sum


def test_the_diagonal_gives_three_sums_and_they_give_all_nine_scores():
    assert list(source.sums()) == [2496, 2503, 2617]
    expected = [[24 * a * b for b in (2496, 2503, 2617)] for a in (2496, 2503, 2617)]
    assert [int(n) for n in numbers(source.PRINTED["scores"])] == np.ravel(expected).tolist()
    assert source.ours()["scores"].tolist() == expected


@pytest.mark.parametrize("seed", range(5))
def test_our_rows_have_the_sums_and_begin_as_printed(seed):
    rows = source.rows(np.random.default_rng(seed))
    assert rows.shape == (3, 512) and rows.min() >= 1 and rows.max() <= 9
    assert list(rows.sum(axis=1)) == [2496, 2503, 2617]
    assert list(rows[0, :470]) == list(numbers(source.PRINTED["I"]))


def test_steps_7_and_8_by_its_own_numbers_give_13085_everywhere():
    layer, x = layer_and_rows()
    context = np.array([[0, 0, 1]] * 3) @ (x.data @ np.full((512, 64), 5.0))  # by hand
    joined = merge_heads(attention(*source.heads(x, layer)))
    assert (context == 13085).all() and 13085 == 5 * 2617
    assert joined.shape == layer(x).shape == (3, 512)
    assert (joined.data == 13085).all() and (layer(x).data == 13085).all()


@pytest.mark.parametrize("unit", [False, True])
def test_step_8_with_other_weights_is_three_nested_loops(unit):
    layer, x = layer_and_rows(constant=False, unit=unit)
    w_q, w_k, w_v, w_o = (p.data for p in layer.parameters())
    joined = np.zeros((3, 512))
    for h in range(8):
        columns = slice(64 * h, 64 * h + 64)
        q, k, v = (x.data @ w[:, columns] for w in (w_q, w_k, w_v))
        for t in range(3):
            weights = np.array([np.exp((q[t] @ k[s] - q[t] @ k[0]) / 8) for s in range(3)])
            joined[t, columns] = weights @ v / weights.sum()
    np.testing.assert_allclose(layer(x).data, joined @ w_o, rtol=1e-9, atol=1e-9)


# ------------------------------------------------------------------ its slips


def test_without_an_axis_nine_weights_sum_to_1_and_two_contexts_are_0():
    layer, x = layer_and_rows()
    q, k, v = (t[0] for t in source.heads(x, layer))
    over_all = softmax(q @ k.mT / 8, axis=None).data
    assert over_all.tolist() == [[0, 0, 0], [0, 0, 0], [0, 0, 1]]
    assert (over_all @ v.data).tolist() == [[0] * 64, [0] * 64, [13085] * 64]
    assert layer.weights(x).data.tolist() == [[[0, 0, 1]] * 3] * 8


def test_constant_weights_make_equal_columns_rank_1_and_one_head():
    layer, x = layer_and_rows()
    q, k, v = (t.data for t in source.heads(x, layer))
    for projected, factor in ((q, 1), (k, 3), (v, 5)):
        assert projected.shape == (8, 3, 64)
        assert (projected == factor * source.sums()[:, None]).all()
    assert np.linalg.matrix_rank(q[0] @ k[0].T) == 1
    assert heads_apart(layer, x) == 0
    assert round(q.mean()) == 2539 and round(k.mean()) == 7616


def test_only_the_sum_of_a_row_counts_and_the_largest_takes_all():
    layer, x = layer_and_rows()
    rng = np.random.default_rng(1)
    shuffled = Tensor(rng.permuted(x.data, axis=1))
    np.testing.assert_array_equal(layer.weights(shuffled).data, layer.weights(x).data)
    np.testing.assert_array_equal(layer(shuffled).data, layer(x).data)
    for _ in range(20):
        words = rng.integers(1, 10, (3, 512))
        if len(set(words.sum(axis=1))) == 3:
            looks = layer.weights(Tensor(words, dtype=float)).data.argmax(axis=-1)
            assert (looks == words.sum(axis=1).argmax()).all()
    mixed = source.layer(constant=False)
    assert largest(mixed(shuffled).data - mixed(x).data) > 0.1  # there the order counts


def test_exchanged_words_have_exchanged_outputs_so_there_is_no_position_in_it():
    layer, x = layer_and_rows(constant=False, unit=True)
    np.testing.assert_allclose(layer(x[::-1]).data, layer(x).data[::-1], rtol=0, atol=1e-12)
    assert largest(layer(x).data[0] - layer(x).data[2]) > 0.1


def test_one_product_does_what_step_7_would_repeat():
    layer, x = layer_and_rows(constant=False, unit=True)
    one_by_one = [layer(x[i : i + 1], x).data for i in range(3)]
    np.testing.assert_allclose(np.concatenate(one_by_one), layer(x).data, rtol=0, atol=1e-12)


def test_every_slip_has_its_computation_and_every_part_its_sentence():
    assert len(source.SLIPS) == 7 and len(source.COMPLETED) == 4
    assert all(sentence.endswith(".") for sentence in (*source.SLIPS, *source.COMPLETED))


# ------------------------------------------------------------------ derivative


@pytest.mark.parametrize(
    ("case", "scale", "zeros"),
    [
        ({}, None, 18),  # the text's own: of 24 derivatives 18 are exactly 0
        ({}, ALIVE, 1),  # (the one zero: L is linear in W_V)
        ({"constant": False}, None, 1),
        ({"constant": False, "unit": True}, None, 1),
    ],
    ids=["text", "text, other scale", "Xavier, integers", "Xavier, unit variance"],
)
def test_every_derivative_to_order_2_is_confirmed_and_dead_ones_are_zero(case, scale, zeros):
    report = gradcheck(head(scale), *inputs(**case))
    verdicts = [c.verdict for c in report.comparisons]
    assert report, report
    assert len(verdicts) == 24 and verdicts.count("zero") == zeros


def test_the_whole_layer_with_eight_heads_has_the_same_two_zeros():
    """First order alone, for time: the second is checked above, on one of the equal heads."""
    layer, x = layer_and_rows()
    output = of_weights(layer)
    total = lambda *points: output(*points).sum()
    report = gradcheck(total, x, *layer.parameters(), order=1)
    assert report, report
    zero = {c.what for c in report.comparisons if c.verdict == "zero"}
    assert zero == {"∂L/∂w_q.weight", "∂L/∂w_k.weight"}


@pytest.mark.parametrize("scale", USUAL)
def test_w_q_and_w_k_get_exactly_nothing_while_w_v_learns(scale):
    tensors = inputs()
    seed = np.random.default_rng(2).standard_normal((3, 64))  # whatever is asked of the output
    _, w_q, w_k, w_v = gradients(head(scale)(*tensors), tensors, seed)
    assert not w_q.any() and not w_k.any()
    assert largest(w_v) > 1


def test_only_the_word_with_the_largest_sum_is_told_anything():
    x, *_ = way_back(None, inputs())
    assert not x[:2].any() and (x[2] == 3 * 64 * 5).all()


@pytest.mark.parametrize("scale", USUAL)
def test_moving_w_q_or_w_k_by_an_eighth_changes_no_weight(scale):
    """So the zeros above are the truth and no failing of ours: moving finds nothing either."""
    x, w_q, w_k, _ = inputs()
    rng = np.random.default_rng(3)
    for _ in range(5):
        moved = [Tensor(w.data * (1 + rng.standard_normal(w.shape) / 8)) for w in (w_q, w_k)]
        weights = attention_weights(x @ moved[0], x @ moved[1], scale=scale).data
        assert weights.tolist() == [[0, 0, 1]] * 3


def test_the_gradient_returns_where_the_gap_says_one_in_73000_of_the_raw_scores():
    tensors, returns = inputs(), LAST / (8 * GAP)
    assert returns == pytest.approx(1.364e-5, rel=1e-3)  # of QKᵀ
    assert 8 * returns == pytest.approx(1.09e-4, rel=2e-3)  # of what is already divided by 8
    assert 73_000 < 1 / returns < 74_000
    for factor, alive in ((1.002, False), (0.998, True)):
        _, w_q, w_k, _ = way_back(factor * returns, tensors)
        assert w_q.any() == w_k.any() == alive


def test_a_norm_that_squares_calls_a_small_gradient_zero():
    _, w_q, _, _ = way_back(1e-5, inputs())
    assert 1e-240 < largest(w_q) < 1e-230 and np.linalg.norm(w_q) == 0


def test_pytorch_finds_the_same_zeros_and_the_same_gradients():
    torch = pytest.importorskip("torch")
    for scale, case in ((1 / 8, {}), (ALIVE, {}), (1 / 8, {"constant": False, "unit": True})):
        tensors = inputs(**case)
        x, w_q, w_k, w_v = theirs = [torch.tensor(t.data, requires_grad=True) for t in tensors]
        weights = torch.softmax(scale * (x @ w_q) @ (x @ w_k).T, dim=-1)
        (weights @ (x @ w_v)).sum().backward()
        for ours, t in zip(way_back(scale, tensors), theirs, strict=True):
            atol = 1e-10 * largest(ours)
            np.testing.assert_allclose(ours, t.grad.numpy(), rtol=1e-7, atol=atol)


# ------------------------------------------------------------------ law


def test_equal_heads_stay_equal_under_training_until_w_o_differs():
    moved, apart = trained(4)
    assert moved > 0.01 and apart < 1e-9
    moved, apart = trained(4, source.layer(constant=False).w_o.weight.data)
    assert moved > 0.01 and apart > 1e-3


def test_the_scale_fits_rows_of_unit_variance_and_not_integers():
    """At 1/√d_k: entropy, and W_Q's gradient beside W_V's."""
    found = {}
    for name, case in (
        ("text", {}),
        ("integers", {"constant": False}),
        ("unit", {"constant": False, "unit": True}),
    ):
        x, w_q, w_k, _ = tensors = inputs(**case)
        weights = attention_weights(x @ w_q, x @ w_k).data
        _, g_q, _, g_v = way_back(None, tensors)
        found[name] = entropy(weights).mean() / np.log(3), largest(g_q) / largest(g_v)
    assert found["text"] == (0, 0)
    assert found["integers"][0] < 0.1 and found["integers"][1] < 0.05
    assert 0.6 < found["unit"][0] < 0.95 and found["unit"][1] > 0.3
    layer, x = layer_and_rows(constant=False, unit=True)
    assert heads_apart(layer, x) > 0.5


def test_the_graph_shows_the_dead_half_and_the_living():
    tensors = inputs()
    drawing = graph(head()(*tensors).sum(), grads=True)
    strength = {v.title.split()[0]: v.grad_rms for v in drawing.vertices}
    assert strength["w_q"] == strength["w_k"] == strength["multiply"] == 0
    assert strength["w_v"] > 1 and strength["softmax"] > 1e5


# ------------------------------------------------------------------ refusal


def test_one_changed_digit_is_noticed():
    printed = source.PRINTED["scores"]
    texts = source.as_text(source.ours()["scores"])
    assert agreeing(printed, texts) == 9
    assert agreeing(printed.replace("1.64368536e+08", "1.64368537e+08"), texts) == 8
    with pytest.raises(ValueError, match="zip"):
        agreeing(printed, texts[:8])


def test_512_features_are_not_shared_among_seven_heads():
    with pytest.raises(ValueError, match="d_model=512 cannot be shared equally by num_heads=7"):
        MultiHeadAttention(512, 7, rng=np.random.default_rng(0))


# ------------------------------------------------------------------ what the demo prints


def test_the_demo_prints_the_text_beside_ours_and_tells_used_from_predicted(told):
    assert "the rows sum to 2496, 2503, 2617" in told
    for name, times in (("scores", 1), ("weights", 3)):
        for row in np.reshape(source.PRINTED[name].split(), (3, 3)):
            assert told.count(f"{' '.join(row)} {' '.join(row)}") == times
    assert 'context of "I" (64,): the text prints 64 zeros, ours has 64' in told
    assert "82 of 552 printed numbers come back: 3 used, the diagonal, and 79 predicted." in told
    assert source.LOST in told
    assert (
        'The 470 printed values of "I" sum to 2308. The diagonal leaves 188 to the other 42' in told
    )


def test_under_each_slip_the_demo_prints_what_shows_it(told):
    mixed, x = layer_and_rows(constant=False, seed=1)
    shuffled = Tensor(np.random.default_rng(1).permuted(x.data, axis=1))
    differ = largest(mixed(x[::-1]).data - mixed(x).data)
    _, back = source.exchanged(lambda x: mixed(x + sinusoidal(3, 512)), x)
    assert back > 0.1  # with positions in it
    shown = (
        "sums of the rows: [0. 0. 1.], and by row [1. 1. 1.]",
        '"I" without an axis: [0.], by rows: [13085.]',
        "different columns of Q, K and V: [1, 1, 1], with Xavier's weights [64, 64, 64]; the rank "
        "of the scores is 1",
        "features shuffled, each row by itself: the outputs change by 0e+00, with Xavier's weights "
        f"by {largest(mixed(shuffled).data - mixed(x).data):.0e}",
        f"the means of Q and K are {x.data.sum() / 3:.0f} and {x.data.sum():.0f}; the second word "
        f"is {GAP:.1e} behind, and exp(-{GAP:.1e}) is 0.0",
        f"I and you exchanged, Xavier's weights: the outputs differ by {differ:.0e}, and exchanged "
        "back by TINY",
        "one word at a time or one product: apart by TINY, without an axis by 13085",
    )
    for number, (slip, computed) in enumerate(zip(source.SLIPS, shown, strict=True), 1):
        line = re.escape(f"{number}. {slip} → {computed} ").replace("TINY", r"(\S+)")
        (match,) = re.finditer(line, told)
        assert all(float(tiny) < 1e-12 for tiny in (re.sub(",$", "", g) for g in match.groups()))


def test_the_demo_prints_steps_7_and_8(told):
    assert re.findall(r"\[([\d.]+)\] in \((.*?)\)", told) == [
        ("13085.", "3, 64"),
        ("13085.", "3, 512"),
        ("13085.", "3, 512"),
    ]
    assert "entropy / log 3, by head rank, head 1 heads apart / largest output" in told
    for what, case, rank in (
        ("constant weights, integers", {}, 1),
        ("Xavier weights, integers", {"constant": False}, 3),
        ("Xavier weights, unit variance", {"constant": False, "unit": True}, 3),
    ):
        layer, x = layer_and_rows(seed=1, **case)
        spread = entropy(layer.weights(x).data).mean(axis=-1) / np.log(3)
        assert (
            f"{what} {spread.min():.2f} to {spread.max():.2f} {rank} {heads_apart(layer, x):.2f} "
        ) in told
        assert source.apart(layer, Tensor(-x.data)) == heads_apart(layer, x)  # outputs negated


def test_the_demo_prints_the_gradients_over_the_scale(told):
    names = ("1", "1/√d_k", "1/d_k", "1/d_model")
    scales = dict(zip(names, USUAL, strict=True))
    scales |= {f"{scale:.1e}": scale for scale in (1.4e-5, 1.3e-5, 1e-6, ALIVE, 1e-9)}
    tensors = x, w_q, w_k, _ = inputs(seed=1)
    for name, scale in scales.items():
        spread = entropy(attention_weights(x @ w_q, x @ w_k, scale=scale).data).mean() / np.log(3)
        row = (8 * GAP * scale, spread, *map(largest, way_back(scale, tensors)[1:]))
        assert f" {name} {' '.join(f'{number:.1e}' for number in row)} " in told
    by_word = [float(largest(row)) for row in way_back(1 / 8, tensors)[0]]
    assert by_word == [0, 0, 960]
    assert f"∂L/∂x at 1/8, word by word: {by_word}. Only the row of you gets any." in told


def test_the_demo_prints_where_the_gradient_returns(told):
    last, divided, share, predicted = (
        float(number.replace(",", ""))
        for number in re.search(
            r"exactly 0 down to a scale of (\S+) of QKᵀ \((\S+) of the scores already divided by "
            r"8\): one in (\S+)\. The gap predicts (\S+)\. ",
            told,
        ).groups()
    )
    tensors = inputs(seed=1)
    assert [way_back(last * f, tensors)[1].any() for f in (0.9994, 1.0006)] == [True, False]
    assert divided == pytest.approx(8 * last, rel=5e-3) and share == pytest.approx(
        1 / last, rel=5e-4
    )
    assert predicted == pytest.approx(LAST / (8 * GAP), rel=5e-4)


def test_the_demo_prints_what_gradcheck_confirms_and_what_training_moves(told):
    for what, agree, zero in (
        ("the text's, 1/8", 6, 18),
        (f"the text's, {ALIVE:.1e}", 23, 1),
        ("Xavier, unit variance, 1/8", 23, 1),
    ):
        (error,) = re.findall(rf"{what} {agree} {zero} 24 (\S+) ", told)
        assert 1e-17 < float(error) < 1e-7
    assert "got 72: passed" in told
    moved, apart = trained(1)
    assert f"20 steps at the scale {ALIVE:.1e}: W_Q moved by {moved:.2f}. " in told and apart < 1e-9


def test_the_demo_leaves_its_pictures_which_say_what_they_show(left):
    folder, printed = left
    assert max(map(len, printed.replace(str(folder), "out").splitlines())) <= 100
    stems = ("head_text", "head_unit", "scale", "weights")
    expected = {f"{stem}.{ending}" for stem in stems for ending in ("png", "svg")}
    assert {path.name for path in folder.iterdir()} == expected
    svg = {stem: (folder / f"{stem}.svg").read_text(encoding="utf-8") for stem in stems}
    assert svg["weights"].count("<!-- Xavier weights, unit variance -->") == 8
    assert "<!-- the plot ends at 1e-12 -->" in svg["scale"]
    assert "<!-- (constant weights: 0 from 1.36e-05 on) -->" in svg["scale"]
    for stem in stems[:2]:  # no gradient is beyond the colour scale, which is the same in both
        texts = re.findall(">([^<>]+)</text>", svg[stem].replace("&#45;", "-"))
        sizes = [float(text.split()[1]) for text in texts if text.startswith("grad ")]
        low, high = (float(text) for text in texts if re.fullmatch(r"1e[+-]\d\d", text))
        assert (low, high) == (1e-4, 1e6) and len(sizes) == 13
        assert all(low <= size <= high for size in sizes if size)
