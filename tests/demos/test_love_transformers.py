"""Text 000, "I love Transformers": its numbers, its slips, and the gradients it does not show."""

import functools
import re

import numpy as np
import pytest

from attention import attention, merge_heads, sinusoidal, split_heads
from attention.maps import entropy
from demos.texts.sources import agreeing, numbers, of_weights
from demos.texts.sources import love_transformers as source
from minigrad import Tensor, concatenate, gradcheck, gradients, jacobian, softmax
from minigrad.nn import xavier_uniform
from minigrad.optim import SGD, Adam
from tests.demos.running import whole

OURS = source.ours()
RAW = OURS["Q'"] @ np.stack([OURS["K'₁"], OURS["K'₂"]]).mT  # (H, T, S)
CASES = [("text", 1), ("text", 2), ("unit", 1), ("unit", 2)]
INPUTS = {
    "text": lambda v: v,
    "divided by std": lambda v: v / v.std(),
    "mean 0": lambda v: v - v.mean(),
    "unit": lambda v: (v - v.mean()) / v.std(),
}
SCALES = {"none": 1.0, "1/√d_k": 2**-0.5, "1/d_k": 0.5, "1/32": 1 / 32}
NUMBER = r"-?\d+\.?\d*(?:e[-+]\d+)?"


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demo, run once: its folder and what it printed."""
    return whole("love_transformers", tmp_path_factory)


@pytest.fixture(scope="module")
def shown(demo):
    """A label ↦ the numbers behind it, on the one line of the demo that it begins."""

    def behind(label):
        start = rf"^ *{re.escape(label)}[: \[(]*(?:expected at \w+ )?"
        (line,) = re.findall(rf"{start}({NUMBER}.*)", demo[1], re.MULTILINE)
        return [float(number) for number in re.findall(NUMBER, line)]

    return behind


def thousandths(values):
    """What three decimals may differ from."""
    return pytest.approx(list(np.ravel(values)), abs=6e-4)


def two_digits(values):
    """What two digits may differ from."""
    return pytest.approx(list(np.ravel(values)), rel=0.06)


def head(number, *, unit=False):
    """Σ output of one head as a function, and its points X, W_Q, W_K, W_V, W_O."""
    x, layer = source.layer(unit=unit)
    alone = source.one_head(layer, number - 1)
    return source.sum_of_head(alone), [x, *alone.parameters()]


def arrays(points):
    return [point.data for point in points]


# ------------------------------------------------------------------ value: the printed numbers


@pytest.mark.parametrize("name", source.PRINTED)
def test_every_printed_number_comes_back_as_text(name):
    texts = source.as_text(OURS[name])
    assert texts == source.PRINTED[name].split()
    assert agreeing(source.PRINTED[name], texts) == OURS[name].size
    np.testing.assert_allclose(OURS[name].ravel(), numbers(source.PRINTED[name]), rtol=0, atol=6e-9)


def test_the_text_prints_121_numbers_in_twelve_arrays():
    counts = {name: len(numbers.split()) for name, numbers in source.PRINTED.items()}
    assert list(counts) == list(OURS)
    assert list(counts.values()) == [12, 16, 12, 6, 6, 6, 6, 18, 3, 12, 12, 12]
    assert sum(counts.values()) == 121 and source.LOST == ""


def test_one_changed_digit_is_noticed():
    changed = source.PRINTED["output"].replace("7.3765234", "7.3765235")
    assert agreeing(changed, source.as_text(OURS["output"])) == 11


def test_another_order_of_the_draws_gives_other_weights():
    draw = np.random.RandomState(0)
    draw.uniform(-1, 1, (4, 2))  # W_Q before the input
    assert not np.array_equal(draw.randint(10, size=(3, 4)), OURS["input"])


def test_slips_and_completed_steps_are_sentences():
    assert len(source.SLIPS) == 9 and len(source.COMPLETED) == 4
    assert all(sentence.endswith(".") for sentence in (*source.SLIPS, *source.COMPLETED))


def test_the_decimals_compute_the_same_head():
    for number in (1, 2):
        total, points = head(number)
        value = source.slope_in_decimals(arrays(points))
        assert value == pytest.approx(total(*points).item(), rel=1e-14)


def test_pytorch_agrees_on_the_output_and_the_living_gradients():
    torch = pytest.importorskip("torch")
    x, layer = source.layer()
    exact = gradients(layer(x).sum(), [x, *layer.parameters()])
    points = [torch.tensor(a, requires_grad=True) for a in arrays([x, *layer.parameters()])]
    q, k, v = ((points[0] @ w).reshape(3, 2, 2).transpose(0, 1) for w in points[1:4])  # (H, T, d_k)
    heads = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    output = heads.transpose(0, 1).reshape(3, 4) @ points[4]
    np.testing.assert_allclose(output.detach().numpy(), OURS["output"], rtol=1e-13)
    output.sum().backward()
    for ours, theirs in zip(exact, points, strict=True):
        np.testing.assert_allclose(ours, theirs.grad.numpy(), rtol=1e-11, atol=1e-12)


# ------------------------------------------------------------------ value: its slips


def test_shapes_are_told_heads_last_and_stored_heads_first(shown):
    stored = {name: OURS[name].shape for name in source.TOLD_SHAPES}
    assert stored == {"W_Q": (2, 4, 2), "weights": (2, 3, 3), "heads": (2, 3, 2)}
    for name, told in source.TOLD_SHAPES.items():
        assert np.moveaxis(OURS[name], 0, -1).shape == told != stored[name]
        assert shown(f"{name}: told") == [*told, *stored[name]]


def test_concatenation_takes_the_head_axis_apart_and_joins_features(shown):
    heads = Tensor(OURS["heads"])
    joined = concatenate([heads[0], heads[1]], axis=1).data
    np.testing.assert_array_equal(joined, merge_heads(heads).data)
    assert source.as_text(joined) == source.PRINTED["concatenated"].split()
    other = heads.reshape(3, 4).data
    assert other.shape == joined.shape and not np.allclose(other, joined)
    np.testing.assert_array_equal(other[1, 2:], joined[0, 2:])  # another word's, so words mix
    assert shown("'love', head by head") == thousandths(joined[1])
    assert shown("'love', by reshape alone") == thousandths(other[1])


def test_what_is_called_scores_are_weights(shown):
    np.testing.assert_allclose(OURS["weights"].sum(axis=-1), 1, rtol=1e-15)
    scores = RAW / np.sqrt(2)
    assert scores.min() < -80 and scores.max() > 13  # neither bounded nor positive
    np.testing.assert_allclose(softmax(scores), OURS["weights"], rtol=1e-12)
    for name, array in (("scores", scores), ("weights", OURS["weights"])):
        row = array[0, 0]
        assert shown(f"head 1, 'I': {name}") == thousandths([*row, row.sum()])


def test_weighted_scores_are_averages_of_values():
    for number, values in enumerate((OURS["V'₁"], OURS["V'₂"])):
        outputs = OURS["heads"][number]
        assert (outputs <= values.max(axis=0) + 1e-12).all()
        assert (outputs >= values.min(axis=0) - 1e-12).all()


def test_each_head_reads_all_four_features_of_a_word(shown):
    x, layer = source.layer()
    reads = jacobian(lambda x: split_heads(layer.w_q(x), 2))(x.data).data[:, 1, :, 1]
    lengths = np.linalg.norm(reads, axis=1)  # (H, d_model)
    np.testing.assert_allclose(lengths, np.linalg.norm(OURS["W_Q"], axis=-1), rtol=1e-12)
    assert lengths.min() > 0.2
    for number in (1, 2):
        assert shown(f"head {number}, ‖∂q/∂feature‖") == thousandths(lengths[number - 1])
    assert shown("the least of them")[-1:] == thousandths(lengths.min())
    split_first = jacobian(lambda x: split_heads(x, 2))(x.data)[:, 1, :, 1]
    assert (np.linalg.norm(split_first, axis=1) == 0).sum() == 4  # half of them


def test_two_printed_weights_exceed_the_bound_of_the_layer_and_none_that_of_a_head(shown):
    sizes = np.abs(numbers(source.PRINTED["W_Q"]))
    assert sorted(sizes[sizes > np.sqrt(6 / 8)]) == [0.88657405, 0.91431032]
    assert sizes.max() < np.sqrt(6 / 6) == 1
    assert shown("bounds") == thousandths([1, np.sqrt(6 / 8), 2])


@pytest.mark.parametrize(("what", "d_out", "variance"), [("head", 2, 4 / 3), ("layer", 4, 1.0)])
def test_the_bound_of_a_head_lets_the_variance_grow_by_a_third(shown, what, d_out, variance):
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((200, 4))
    outputs = inputs / np.sqrt(np.mean(inputs**2)) @ xavier_uniform((5000, 4, d_out), rng=rng)
    assert np.mean(outputs**2) == pytest.approx(variance, rel=0.03)
    (grown,) = shown(f"variance of x W, from 1, with the {what}'s bound")
    assert grown == pytest.approx(variance, rel=0.03)
    assert shown(f"that and {variance:.3f}: apart")[-1] == pytest.approx(
        abs(grown - variance), abs=2e-3
    )


def test_what_xavier_multiplies_is_the_mean_square_and_not_the_variance(shown):
    x, _ = source.layer()
    assert (x.data.mean(), x.data.var(), np.mean(x.data**2)) == (4.5, 5.75, 26.0)
    drawn = x.data @ xavier_uniform((20000, 4, 2), rng=np.random.default_rng(0))
    assert np.mean(drawn**2) == pytest.approx(4 / 3 * 26, rel=0.02)
    assert shown("X has mean") == [4.5, 5.75, 26]
    projected = (*OURS["Q'"], OURS["K'₁"], OURS["K'₂"])
    sizes = [np.mean(array**2) for array in projected]
    assert shown("those of Q'₁ Q'₂ K'₁ K'₂") == pytest.approx([*sizes, 4, 3, 4 / 3 * 26], abs=0.06)


def test_the_maximum_is_what_keeps_softmax_finite_at_every_scale(shown):
    for name, scale in (("scaled", 2**-0.5), ("unscaled", 1.0)):
        large = 100 * scale * RAW
        with np.errstate(over="ignore", invalid="ignore"):
            lost = np.isnan(np.exp(large) / np.exp(large).sum(axis=-1, keepdims=True)).sum()
        assert lost > 0 and np.isfinite(softmax(large)).all()
        assert shown(f"100 times larger scores, {name}") == [lost, 0]
        assert np.isfinite(np.exp(scale * RAW)).all()  # the text's own need no help, scaled or not
    assert shown("scaled / raw, all 18") == pytest.approx([2**-0.5] * 2, abs=6e-7)


def test_head_2_is_one_hot_and_its_three_printed_rows_are_the_same(shown):
    rows = np.array(source.PRINTED["heads"].split()).reshape(2, 3, 2)
    assert (rows[1] == rows[1, 0]).all() and not (rows[0] == rows[0, 0]).all()
    assert 1 - numbers(source.PRINTED["weights"]).reshape(2, 3, 3)[1, :, 0].min() < 2e-9
    left = OURS["weights"][1][:, 1:].sum(axis=1)
    np.testing.assert_allclose(left, [7.0228e-10, 7.323e-23, 3.9108e-22], rtol=1e-4)
    spread = entropy(OURS["weights"][1]).mean() / np.log(3)
    assert spread < 1e-8
    assert shown("what is left for the other two words") == pytest.approx(left, rel=1e-6)
    second = OURS["heads"][1]
    assert shown("its rows differ by at most") == two_digits((second.max(0) - second.min(0)).max())
    assert shown("head 2, entropy / log n")[-1:] == two_digits(spread)


# ------------------------------------------------------------------ derivative


@pytest.mark.parametrize(("inputs", "number"), CASES)
def test_the_norms_of_the_gradients_are_shown_head_by_head(shown, inputs, number):
    total, points = head(number, unit=inputs == "unit")
    norms = [np.linalg.norm(g) for g in gradients(total(*points), points)]
    expected = pytest.approx([*norms, norms[1] / norms[3]], rel=6e-3)
    assert shown(f"{inputs}, head {number} ") == expected


@pytest.mark.parametrize(("inputs", "number"), [c for c in CASES if c != ("text", 2)])
def test_gradcheck_confirms_a_living_head_to_order_2(shown, inputs, number):
    total, points = head(number, unit=inputs == "unit")
    report = gradcheck(total, *points)
    assert report and len(report.comparisons) == 35
    assert shown(f"{inputs}, head {number}:") == [35, 35, 0]


def test_gradcheck_confirms_the_whole_layer_at_unit_inputs():
    x, layer = source.layer(unit=True)
    g = np.random.default_rng(0).standard_normal((3, 4))
    output = of_weights(layer)
    assert gradcheck(lambda *points: (output(*points) * g).sum(), x, *layer.parameters())


def test_gradcheck_cannot_tell_about_21_derivatives_of_head_2(shown):
    total, points = head(2)
    report = gradcheck(total, *points)
    assert not report
    assert len(report.comparisons) == 35 and len(report.unresolved) == 21
    assert max(c.norm for c in report.unresolved) < 1e-5
    assert min(c.norm for c in report.comparisons if c.verdict == "agrees") > 1
    assert shown("text, head 2:") == [14, 35, 21]


@pytest.mark.parametrize("unit", [False, True])
def test_decimals_confirm_every_element_of_a_living_head(unit):
    total, points = head(1, unit=unit)
    for i, exact in enumerate(gradients(total(*points), points)):
        true = source.gradient_in_decimals(arrays(points), i)
        np.testing.assert_allclose(exact, true, rtol=1e-11)


def test_decimals_confirm_head_2_as_far_as_float64_can_hold_it(shown, demo):
    """Each norm to 1e-6, and each element to what rounding at the size of ∂L/∂weights leaves."""
    total, points = head(2)
    said = re.findall(r"‖error‖ / ‖gradient‖: expected at most 1.0e-06, got (.+):", demo[1])
    for i, exact in enumerate(gradients(total(*points), points)):
        true = source.gradient_in_decimals(arrays(points), i)
        relative = np.linalg.norm(exact - true) / np.linalg.norm(true)
        assert relative <= 1e-6
        np.testing.assert_allclose(exact, true, rtol=1e-13, atol=1e-12)
        assert float(said[i]) == pytest.approx(relative, rel=0.06, abs=1e-15)
        off = np.abs(exact / true - 1)
        worst, far = shown(f"{points[i].name:11} worst element")
        assert far == pytest.approx(off.max(), rel=0.06, abs=1e-15)
        assert [worst] == two_digits(true.flat[off.argmax()]) or off.max() < 1e-15
    true = source.gradient_in_decimals(arrays(points), 1)
    np.testing.assert_allclose(true[1], [1.49366226e-19, 6.6139075e-20], rtol=1e-8)


def test_decimals_confirm_the_second_order_of_head_2(shown):
    total, points = head(2)
    recorded = gradients(total(*points), points, create_graph=True)
    off = [source.off_at_order_2(recorded, points, np.random.default_rng(s)) for s in (0, 1)]
    assert off[0].shape == (5, 5) and np.max(off) <= 1e-5
    assert shown("order 2, the furthest of 25 off by")[-1:] == two_digits(off[0].max())
    for i, g in enumerate(recorded):
        for j, row in enumerate(gradients(g.sum(), points, retain_graph=True)):
            assert (np.linalg.norm(row) == 0) == (i == j and i in (3, 4))  # linear in W_V, in W_O
    wrong = [1.0005 * g for g in recorded]
    assert source.off_at_order_2(wrong, points, np.random.default_rng(1)).max() > 4e-4


@pytest.mark.parametrize("factor", [1.0005, 0.9995])
def test_decimals_refuse_a_gradient_of_head_2_that_is_slightly_wrong(factor):
    total, points = head(2)
    wrong = factor * gradients(total(*points), points)[1]
    true = source.gradient_in_decimals(arrays(points), 1)
    assert np.linalg.norm(wrong - true) > 4e-4 * np.linalg.norm(true)


# ------------------------------------------------------------------ law


def test_the_layer_is_the_sum_of_its_heads():
    x, layer = source.layer()
    heads = [source.one_head(layer, number)(x).data for number in (0, 1)]
    np.testing.assert_allclose(sum(heads), layer(x).data, rtol=1e-14)


def test_all_heads_at_once_are_the_heads_one_by_one():
    x, layer = source.layer()
    q, k, v = (split_heads(project(x), 2) for project in (layer.w_q, layer.w_k, layer.w_v))
    loop = np.stack([attention(q[h], k[h], v[h]).data for h in (0, 1)])
    np.testing.assert_allclose(attention(q, k, v).data, loop, rtol=1e-15)


def test_without_positions_the_layer_knows_no_order_and_with_them_it_does():
    x, layer = source.layer()
    words = x.data
    turned = layer(Tensor(words[::-1])).data[::-1]
    np.testing.assert_allclose(turned, layer(x).data, rtol=1e-13)
    places = sinusoidal(3, 4)
    there, back = (layer(Tensor(w + places)).data for w in (words, words[::-1]))
    assert np.abs(there - back[::-1]).max() > 1


def test_head_2_keeps_1e_8_of_the_gradient_and_head_1_a_sixth():
    (_, spread_2), (left_1, left_2) = source.measure(source.layer()[0].data)
    assert left_2 == pytest.approx(8.17e-9, rel=0.01) and left_1 == pytest.approx(0.171, rel=0.01)
    assert spread_2 == pytest.approx(4.70e-9, rel=0.01)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("text", 1e-9, 1e-8),
        ("divided by std", 0.04, 0.06),
        ("mean 0", 2e-3, 3e-3),
        ("unit", 0.6, 0.62),
    ],
)
def test_head_2_needs_mean_0_as_well_as_variance_1(shown, name, low, high):
    values = INPUTS[name](source.layer()[0].data)
    assert low < source.measure(values)[1, 1] < high
    for scale in SCALES if name in ("text", "unit") else ("1/√d_k",):
        expected = source.measure(values, scale=SCALES[scale])
        assert shown(f"{name:17}{scale:8}") == two_digits(expected)


def test_the_usual_scales_leave_head_2_dead_and_a_thirty_second_revives_it():
    digits = source.layer()[0].data
    left = [source.measure(digits, scale=s)[1, 1] for s in (1.0, 2**-0.5, 0.5, 1 / 32)]
    assert left == sorted(left) and left[2] < 1e-5 and left[3] > 0.1
    assert source.measure(digits)[1, 1] == pytest.approx(left[1], rel=1e-6)  # None is 1/√d_k


def test_a_third_of_the_heads_of_other_seeds_are_dead_and_none_at_unit_inputs(shown):
    drawn = [source.layer(seed=seed)[0].data for seed in range(1, 201)]
    dead = {}
    for name, prepare in INPUTS.items():
        left = [source.measure(prepare(v), seed=seed)[1] for seed, v in enumerate(drawn, 1)]
        dead[name] = np.mean(np.array(left) < 1e-3)
    assert 0.25 < dead["text"] < 0.45 and dead["unit"] == 0
    for name, share in dead.items():
        assert shown(f"inputs {name}") == [pytest.approx(100 * share, abs=0.06)]


@functools.cache
def trained(inputs, scale, method=SGD):
    """The loss of giving each word back, as a share of a constant's, how far W_Qs moved, a look."""
    x, layer = source.layer(unit=inputs == "unit")
    layer.scale, before = SCALES[scale], layer.w_q.weight.data.copy()
    optimizer = method(layer.parameters(), 0.01)
    for _ in range(500):
        loss = ((layer(Tensor(x.data)) - x.data) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    change = (layer.w_q.weight.data - before).reshape(4, 2, 2)
    looks = layer.weights(x).data.max(axis=-1)  # (H, T)
    return loss.item() / x.data.var(axis=0).mean(), np.linalg.norm(change, axis=(0, 2)), looks


def test_descent_from_the_texts_numbers_ends_at_a_constant_answer():
    share, moved, _ = trained("text", "1/√d_k")
    assert share == pytest.approx(1, abs=1e-3)
    assert moved[1] < 1e-5 < 0.1 < moved[0]


@pytest.mark.parametrize("how", [("unit", "1/√d_k"), ("text", "1/32")])
def test_descent_from_living_heads_gives_the_words_back(how):
    share, moved, _ = trained(*how)
    assert share < 0.05 and moved.min() > 0.1


@pytest.mark.parametrize(
    "how",
    [
        ("text", "1/√d_k", SGD),
        ("text", "1/√d_k", Adam),
        ("text", "1/32", SGD),
        ("unit", "1/√d_k", SGD),
    ],
)
def test_the_trainings_end_as_shown(shown, how):
    share, moved, looks = trained(*how)
    numbers = shown(f"{how[0]}, {how[1]}, {how[2].__name__} ")
    moved = moved / np.linalg.norm(OURS["W_Q"])
    assert numbers[:3] == two_digits([share, *moved])
    assert numbers[3:] == pytest.approx(list(looks.ravel()), abs=6e-3)


# ------------------------------------------------------------------ the demo


def test_the_demo_keeps_what_it_claims_and_names_every_slip(demo):
    _, printed = demo
    assert "numbers that agree as text: expected at least 121, got 121: passed" in printed
    assert printed.count(": passed") == 24 and "FAILED" not in printed
    words = " ".join(printed.split())
    assert all(f" - {slip} " in words for slip in source.SLIPS)
    assert max(map(len, printed.splitlines())) <= 100


def test_the_demo_shows_every_printed_number_and_ours_beside_it(demo):
    sides = re.findall(r"^   text (.+?)\s+ours (.+)$", demo[1], re.MULTILINE)
    theirs, ours = (" ".join(side).split() for side in zip(*sides, strict=True))
    assert theirs == " ".join(source.PRINTED.values()).split()
    assert ours == [number for array in OURS.values() for number in source.as_text(array)]


def test_the_demo_leaves_its_pictures_on_one_colour_scale(demo):
    folder, _ = demo
    stems = ("head_2_text", "head_2_unit", "weights", "scale")
    assert {path.name for path in folder.iterdir() if path.suffix != ".safetensors"} == {
        f"{stem}.{ending}" for stem in stems for ending in ("png", "svg")
    }
    legends = [
        re.findall(r">(\de[^<]*\d)</text>", (folder / f"head_2_{name}.svg").read_text())
        for name in ("text", "unit")
    ]
    assert legends[0] == legends[1] == ["1e&#45;09", "1e+02"]
