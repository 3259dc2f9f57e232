"""Source text 002, "The sky is blue …": what can come back, its slips, what it leaves undone."""

import math
import re
from decimal import Decimal

import numpy as np
import pytest

from attention import (
    MultiHeadAttention,
    attention,
    attention_weights,
    causal_mask,
    padding_mask,
    split_heads,
)
from demos.texts.sources import agreeing
from demos.texts.sources import sky_is_blue as source
from demos.texts.sources.sky_is_blue import (
    INITIAL,
    PRINTED,
    REPAIRED,
    SENTENCE,
    as_it_masks,
    complaint,
    example,
    expected_variance,
    layers,
    measure,
    moved_by,
    token_ids,
    word_by_word,
)
from minigrad import GradientError, Tensor, gradcheck, gradients, softmax
from tests.demos.running import whole

IDS = token_ids(REPAIRED)


@pytest.fixture(scope="module")
def table():
    """The recipe and what it might have been, 2,000 draws each."""
    scales = {"1": 1.0, "1/√d": None, "1/d√d": 32**-1.5}
    return {
        (initial, name): measure(IDS, initial, scale, draws=2000, seed=0)
        for initial in INITIAL
        for name, scale in scales.items()
    }


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The demo, run once as a user runs it: its folder and what it printed."""
    return whole("sky_is_blue", tmp_path_factory)


@pytest.fixture(scope="module")
def told(ran):
    """What the demo prints beneath each slip, 1, 2, …, on one line."""
    section = ran[1].partition("2 · Its slips")[2].partition("3 · What it leaves undone")[0]
    _, *parts = re.split(r"^ +(\d+)\. .*$", section, flags=re.MULTILINE)
    return {int(n): unwrapped(text) for n, text in zip(parts[::2], parts[1::2], strict=True)}


def unwrapped(text):
    return " ".join(text.split())


def numbers(text):
    """The numbers that a text prints, as texts. Names such as N(0, 1) and 1/√d are none."""
    text = re.sub(r"[NU]\([^)]*\)|1/d?√d", "", text)
    found = re.findall(r"(?<!\d)\.\d+|\d[\d,]*(?:\.\d+)?(?:e[+-]\d+)?", text)
    return [number.replace(",", "") for number in found]


def check(text, *expected):
    """The numbers in this text are these, each to the last digit that is printed."""
    for printed, number in zip(numbers(text), expected, strict=True):
        last = 10.0 ** Decimal(printed).as_tuple().exponent
        assert abs(float(printed) - number) <= 0.501 * last, (printed, number, text)


def test_the_check_of_printed_numbers_tells_the_last_digit():
    check("N(0, 1) at 1/d√d: 1,024, 58% of .9, 2e-08 (8, 3.0)", 1024.4, 58, 0.9, 1.6e-8, 8, 2.96)
    for wrong in ("1,025", "1023", "1,024.5", "1,024 1"):
        with pytest.raises((AssertionError, ValueError)):
            check(wrong, 1024.0)


# ------------------------------------------------------------------ value: the printed numbers


def test_the_text_prints_ten_numbers_of_which_eight_can_come_back(ran):
    ours = source.ours()
    assert list(ours) == list(PRINTED)
    assert sum(len(numbers.split()) for numbers in PRINTED.values()) == 10
    back = {name: agreeing(PRINTED[name], source.as_text(ours[name])) for name in PRINTED}
    assert back == {"token ids": 8, "variances": 0}
    assert source.as_text(ours["token ids"]) == PRINTED["token ids"].split()
    assert np.divide(*ours["variances"]) == pytest.approx(32, rel=1e-6)
    for name, array in ours.items():
        said = rf"{name} +text {PRINTED[name]}\n +ours {' '.join(source.as_text(array))}\n"
        assert re.search(said + f" +{back[name]} of {len(array)} agree", ran[1])


def test_the_printed_sentence_gives_back_four_of_its_eight_ids(told):
    assert token_ids(SENTENCE).tolist() == [0, 6, 4, 2, 1, 7, 4, 5]
    assert agreeing(PRINTED["token ids"], source.as_text(token_ids(SENTENCE))) == 4
    check(told[1], *token_ids(SENTENCE), 4, 8, 8)


def test_a_number_for_each_word_is_what_a_dictionary_over_the_sorted_words_keeps():
    for sentence in (SENTENCE, REPAIRED, "b a b c a b"):
        last = {word: place for place, word in enumerate(sorted(sentence.split()))}
        assert token_ids(sentence).tolist() == [last[word] for word in sentence.split()]


def test_the_shapes_come_back(ran):
    x, single, multi = layers()
    assert source.shapes(x, single, multi) == source.SHAPES
    assert sum(map(len, source.SHAPES.values())) == 11
    for name, shape in source.SHAPES.items():
        assert f"shape of {name}: text {shape}, ours {shape}\n" in ran[1]


def test_its_two_classes_equal_those_of_pytorch():
    torch = pytest.importorskip("torch")
    x, single, multi = layers()
    rng = np.random.default_rng(5)
    for layer in (single, multi):
        for parameter in layer.parameters():  # biases of 0 would hide a mistake
            parameter.data = rng.standard_normal(parameter.shape) / 8
    causal = causal_mask(8)
    to = lambda array: torch.from_numpy(array.copy())
    q, k, v = (
        to(x.data @ layer.weight.data + layer.bias.data)
        for layer in (single.w_q, single.w_k, single.w_v)
    )
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=to(causal))
    np.testing.assert_allclose(single(x, mask=causal).data, expected.numpy(), rtol=1e-10)
    oracle = torch.nn.MultiheadAttention(32, 4, batch_first=True, dtype=torch.float64)
    projections = (multi.w_q, multi.w_k, multi.w_v)
    with torch.no_grad():
        oracle.in_proj_weight.copy_(to(np.concatenate([p.weight.data.T for p in projections])))
        oracle.in_proj_bias.copy_(to(np.concatenate([p.bias.data for p in projections])))
        oracle.out_proj.weight.copy_(to(multi.w_o.weight.data.T))
        oracle.out_proj.bias.copy_(to(multi.w_o.bias.data))
        inputs = [to(x.data)] * 3
        output, weights = oracle(*inputs, attn_mask=to(~causal), average_attn_weights=False)
    np.testing.assert_allclose(multi(x, mask=causal).data, output.numpy(), rtol=1e-10)
    np.testing.assert_allclose(multi.weights(x, mask=causal).data, weights.numpy(), rtol=1e-10)


# ------------------------------------------------------------------ value: the variances


def test_the_ratio_of_its_variances_is_32_and_that_of_any_numbers(told):
    before, after = (float(number) for number in PRINTED["variances"].split())
    assert before / after == 32
    squares = np.arange(64.0) ** 2
    assert squares.var() / (squares / math.sqrt(32)).var() == pytest.approx(32, rel=1e-14)
    check(told[5], 0, 63, 32)


def test_the_ratio_is_32_in_every_draw_and_inverted_if_one_divides_by_the_factor(table, told):
    raw = table["N(0, 1)", "1"].variance
    np.testing.assert_allclose(raw / table["N(0, 1)", "1/√d"].variance, 32, rtol=1e-12)
    divided = measure(IDS, "N(0, 1)", math.sqrt(32), draws=2000, seed=0)
    np.testing.assert_allclose(divided.variance / raw, 32, rtol=1e-12)
    check(told[4], 32)


def test_one_measurement_equals_its_definition_in_loops():
    found = measure(IDS, "N(0, 1)", draws=2, seed=3)
    rng = np.random.default_rng(3)
    g = rng.standard_normal((2, 8, 32))
    words = rng.standard_normal((2, 8, 32))
    w_q, w_k, w_v = (rng.standard_normal((2, 32, 32)) for _ in range(3))
    for n in range(2):
        x = words[n, IDS]
        q, k, v = x @ w_q[n], x @ w_k[n], x @ w_v[n]
        s = np.array([[q[t] @ k[j] for j in range(8)] for t in range(8)]) / math.sqrt(32)
        assert found.variance[n] == pytest.approx(np.var(s, ddof=1), rel=1e-12)
        for t in range(8):
            p = np.exp(s[t] - s[t].max()) / np.exp(s[t] - s[t].max()).sum()
            np.testing.assert_allclose(found.weights[n, t], p, rtol=1e-10)
            jacobian = np.diag(p) - np.outer(p, p)
            norm = np.linalg.norm(k.T @ jacobian @ v @ g[n, t]) / math.sqrt(32)
            assert found.gradient[n, t] == pytest.approx(norm, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("ids", [IDS, token_ids(SENTENCE), np.arange(8)], ids=str)
def test_the_mean_variance_is_what_theory_says_within_four_standard_errors(ids):
    found = measure(ids, "N(0, 1)", 1.0, draws=3000, seed=1).variance
    error = found.std() / np.sqrt(len(found))
    assert error < 350  # so that half of it, or twice, could not pass
    assert abs(found.mean() - expected_variance(ids)) < 4 * error


@pytest.mark.parametrize("ids", [[0, 0, 0, 1], [0, 1, 1, 2], [0, 1, 2, 3]], ids=str)
def test_the_theory_holds_where_d_is_small_and_2d_is_not_small_beside_its_square(ids):
    found = measure(np.array(ids), "N(0, 1)", 1.0, draws=200_000, seed=2, d_model=2).variance
    error = found.std() / np.sqrt(len(found))
    assert error < 0.12  # without the 2 d of M² (d² + 2 d) the theory is 0.53 larger, or more
    assert abs(found.mean() - expected_variance(np.array(ids), 2)) < 4 * error


def test_one_word_alone_has_no_variance_in_theory_either():
    assert expected_variance(np.zeros(8, int)) == 0


def test_the_theory_holds_for_the_average_over_weights_of_any_words():
    """E[sᵢⱼ sₖₗ] = d Gᵢₖ Gⱼₗ, by the definition, over 40,000 pairs of small matrices."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 2))
    w_q, w_k = rng.standard_normal((2, 40_000, 2, 2))
    s = x @ w_q @ w_k.swapaxes(-1, -2) @ x.T  # (n, 3, 3)
    seen = np.einsum("nij,nkl->ijkl", s, s) / len(s)
    gram = x @ x.T
    claimed = 2 * np.einsum("ik,jl->ijkl", gram, gram)
    assert np.abs(seen - claimed).max() < 0.05 * np.abs(claimed).max()


@pytest.mark.parametrize("ids", [IDS, token_ids(SENTENCE), np.arange(8)], ids=str)
def test_repeated_words_lower_the_theory_as_the_average_over_words_says(ids):
    words = np.random.default_rng(0).standard_normal((40_000, 8, 32))[:, ids]  # (n, T, d)
    trace, total = (words**2).sum(axis=(1, 2)), (words.sum(axis=1) ** 2).sum(axis=-1)
    found = 32 / 63 * (trace**2 - total**2 / 64)
    error = found.std() / np.sqrt(len(found))
    assert error < 50
    assert abs(found.mean() - expected_variance(ids)) < 4 * error


def test_its_variance_is_an_ordinary_draw_and_one_draw_says_little(table, ran):
    raw = table["N(0, 1)", "1"].variance
    assert 0.2 < np.mean(raw > 38521.3046875) < 0.35
    low, high = np.quantile(raw, (0.05, 0.95))
    assert 14_000 < low < 16_500 and 56_000 < high < 63_000
    told = re.search(r"2000 draws of the recipe.*?slip 5", ran[1], re.DOTALL)[0]
    error, above = raw.std() / np.sqrt(2000), 100 * np.mean(raw > 38521.3046875)
    before, _, rounding = told.rpartition(" to ")
    check(
        before,
        *(2000, raw.mean(), error, expected_variance(IDS), 32**3, low, high, above, 32, 32),
    )
    assert 0 < float(numbers(rounding)[0]) < 1e-12  # measured twice, so not exactly 32


# ------------------------------------------------------------------ value: the slips


def test_the_printed_ids_say_which_words_are_equal():
    ids = PRINTED["token ids"].split()
    words = SENTENCE.split()
    assert ids[3] == ids[7] and words[3] != words[7]
    assert ids[2] == ids[6] and words[2] == words[6]
    assert len(set(ids)) == 6 and len(set(words)) == 7


def test_without_taking_repetitions_out_ids_stay_unused(told):
    assert set(range(8)) - set(IDS.tolist()) == {2, 4}
    assert set(range(8)) - set(token_ids(SENTENCE).tolist()) == {3}
    assert token_ids(REPAIRED, distinct=True).tolist() == [0, 4, 3, 2, 1, 5, 3, 2]
    check(told[2], 2, 4, 0, 4, 3, 2, 1, 5, 3, 2)


def test_the_second_replace_changes_nothing_and_the_full_stop_is_not_ignored(told):
    noisy = "The (sky) is blue; and, world's"
    assert len(source.IGNORED) == 9
    assert noisy.replace(source.IGNORED, "") == noisy
    assert "." not in source.IGNORED
    assert told[3] == "→ 'sky (blue);' becomes 'sky (blue);'"


def test_keys_and_values_grow_to_d_with_the_weights_and_not_with_the_scale(table, told):
    for name in ("1", "1/√d"):
        assert table["N(0, 1)", name].key_variance == pytest.approx(32, rel=0.03)
        assert table["N(0, 1)", name].value_variance == pytest.approx(32, rel=0.03)
        assert table["N(0, 1/d)", name].key_variance == pytest.approx(1, rel=0.03)
        assert table["N(0, 1/d)", name].value_variance == pytest.approx(1, rel=0.03)
        assert table["U(±1/√d)", name].value_variance == pytest.approx(1 / 3, rel=0.03)
    assert table["N(0, 1/d)", "1"].variance.mean() == pytest.approx(32, rel=0.05)
    one, unit = table["N(0, 1)", "1/√d"], table["N(0, 1/d)", "1"]
    grown = (m for pair in (one, unit) for m in (pair.key_variance, pair.value_variance))
    check(told[6], *grown, unit.variance.mean())


def test_the_scale_alone_leaves_the_example_saturated_and_with_the_initialisation_does_not(
    table, told
):
    scaled, unit = table["N(0, 1)", "1/√d"], table["N(0, 1/d)", "1/√d"]
    assert 950 < scaled.variance.mean() < 1100 and 0.95 < unit.variance.mean() < 1.1
    assert scaled.largest == pytest.approx(0.81, abs=0.01)
    assert unit.largest == pytest.approx(0.32, abs=0.01)
    assert scaled.decided(IDS) > 0.88 and unit.decided(IDS) < 0.01
    assert scaled.dead() > 0.5 and unit.dead() == 0
    first, its_sentence, last = told[7].split(" → ")
    shares = [100 * m.decided(IDS) for m in (scaled, unit)]
    check(first, scaled.variance.mean(), scaled.weights.max(-1).mean(), shares[0], 0.9)
    as_printed = (measure(token_ids(SENTENCE), i, draws=2000, seed=0) for i in list(INITIAL)[:2])
    check(its_sentence, *(m.weights.max(axis=-1).mean() for m in as_printed))
    check(last, unit.variance.mean(), unit.weights.max(axis=-1).mean(), shares[1])


@pytest.mark.parametrize(
    ("sentence", "recipe", "unit"),
    [(SENTENCE, 0.90, 0.34), ("a b c d e f g h", 0.97, 0.36)],
)
def test_a_repeated_word_shares_its_weight_with_itself(sentence, recipe, unit):
    ids = token_ids(sentence)
    assert measure(ids, "N(0, 1)", draws=2000, seed=0).largest == pytest.approx(recipe, abs=0.01)
    assert measure(ids, "N(0, 1/d)", draws=2000, seed=0).largest == pytest.approx(unit, abs=0.01)


def test_softmax_over_queries_gives_rows_from_0_to_3_never_above_8_and_lets_the_future_in(
    table, told
):
    scores = table["N(0, 1)", "1/√d"].scores
    weights = softmax(Tensor(scores), axis=-2).data
    np.testing.assert_allclose(weights.sum(axis=-2), 1, rtol=1e-12)
    rows = weights.sum(axis=-1)  # (draws, T)
    assert np.median(rows.min(axis=-1)) < 1e-6
    assert np.median(rows.max(axis=-1)) == pytest.approx(3, abs=0.01)
    assert 6 < rows.max() <= 8
    x, single, _ = layers()
    later = []
    for axis in (-2, -1):
        weights = as_it_masks(single, x, causal_mask(8), axis)
        np.testing.assert_allclose(weights.data.sum(axis=axis), 1, rtol=1e-12)
        (moved,) = gradients((weights @ single.w_v(x))[0, 0].sum(), [x])
        later.append(max(np.linalg.norm(word) for word in moved[0, 1:]))
    assert later[0] > 0.01 and later[1] == 0
    medians = (np.median(side) for side in (rows.min(axis=-1), rows.max(axis=-1)))
    check(told[8], *medians, rows.max(), *later)


def test_weights_and_values_need_not_have_one_size_nor_input_and_output(told):
    x, w_q, w_k, w_v, _ = example(IDS, "N(0, 1/d)", 0)
    assert attention_weights(x @ w_q, x @ w_k).shape == (8, 8)
    assert attention(x @ w_q, x @ w_k, (x @ w_v)[:, :5]).shape == (8, 5)
    check(told[9], 8, 8, *(x @ w_v).shape, 5, 8, 5)


def test_heads_do_the_same_multiplications_and_have_as_many_weights(told):
    q = Tensor(np.zeros((1, 8, 32)))
    assert {8 * split_heads(q, h).size for h in (1, 2, 4, 8)} == {8 * 8 * 32}
    check(told[10], 8 * 8 * 32, 8 * 8 * 32)
    rng = np.random.default_rng(0)
    for heads in (1, 4):
        layer = MultiHeadAttention(32, heads, rng=rng)
        assert sum(p.size for p in layer.parameters()) == 4 * 32 * 32


def test_the_printed_shape_does_not_tell_heads_from_torn_ones(told):
    x, _, multi = layers()
    q, k, v = (split_heads(w(x), 4) for w in (multi.w_q, multi.w_k, multi.w_v))
    torn = [w(x).reshape(1, 4, 8, 8) for w in (multi.w_q, multi.w_k, multi.w_v)]
    shapes = {a.shape for a in (q, k, v, attention_weights(q, k), attention(q, k, v), *torn)}
    assert shapes == {(1, 4, 8, 8)}
    assert np.abs(attention(*torn).data - attention(q, k, v).data).max() > 0.1
    check(told[11], 1, 4, 8, 8, 100 * np.mean(q.data != torn[0].data))


def test_a_query_that_may_look_nowhere_gets_nan_in_the_text_and_zeros_here(told):
    x, single, _ = layers()
    before = np.tril(np.ones((8, 8), bool), -1)
    leaves = [x, *(w.weight for w in (single.w_q, single.w_k, single.w_v))]
    with np.errstate(invalid="ignore"):
        sick = gradients((as_it_masks(single, x, before) @ single.w_v(x)).sum(), leaves)
    assert [np.isnan(g).mean() for g in sick] == [1, 0, 0, 1]  # X, W_Q, W_K, W_V
    output = single(x, mask=before)
    assert not output.data[0, 0].any() and output.data[0, 1:].all()
    assert all(np.isfinite(g).all() for g in gradients(output.sum(), leaves))
    assert told[14].count("X 100%, W_Q 0%, W_K 0%, W_V 100%") == 1
    check(told[14], 100, 0, 0, 100, 0, 0)


def test_a_mask_for_sequences_meets_heads_where_there_are_as_many(told):
    x, _, multi = layers()
    batch = Tensor(np.concatenate([x.data] * 4))
    mask = padding_mask([8, 6, 4, 2], 8)
    q, k = (split_heads(w(batch), 4) for w in (multi.w_q, multi.w_k))
    seen = lambda weights: (weights.data[:, :, 0] > 0).sum(axis=-1).tolist()  # (B, H)
    assert seen(attention_weights(q, k, mask=mask)) == [[8, 6, 4, 2]] * 4  # by head
    assert seen(multi.weights(batch, mask=mask)) == [[n] * 4 for n in (8, 6, 4, 2)]  # by sequence
    check(told[15], 8, 8, 6, 4, 2, 8, 8, 8, 8)


# ------------------------------------------------------------------ derivative


@pytest.mark.parametrize("initial", INITIAL)
def test_the_example_is_differentiated_to_second_order(initial):
    *inputs, g = example(IDS, initial, 0)
    report = gradcheck(lambda x, *w: (attention(*(x @ a for a in w)) * g).sum(), *inputs)
    assert report and len(report.comparisons) == 24


def test_a_wrong_gradient_of_the_example_would_be_found():
    *inputs, g = example(IDS, "N(0, 1)", 0)

    def cut(x, w_q, w_k, w_v):
        return (attention(x @ w_q, Tensor((x @ w_k).data), x @ w_v) * g).sum()

    with pytest.raises(GradientError):
        gradcheck(cut, *inputs, order=1)


def test_a_dead_words_gradient_is_right_as_far_as_its_digits_go_and_differences_cannot_say_so():
    found = [word for seed in range(8) for word in word_by_word(*example(IDS, "N(0, 1)", seed))]
    # The error is rounding of what softmax's rule subtracts: relative to that, 1e-16.
    assert all(error * norm < 1e-12 * max(1, norm) for norm, _, error, _ in found)
    large = [error for norm, _, error, _ in found if norm > 0.1]
    small = [error for norm, _, error, _ in found if norm < 1e-6]
    assert len(large) > 10 and len(small) > 10
    assert max(large) < 1e-12 and np.median(small) > 1e-7
    verdicts = [(norm, seen.verdict) for norm, *_, seen in found[:8]]
    assert {verdict for norm, verdict in verdicts if norm > 1} == {"agrees"}
    assert {verdict for norm, verdict in verdicts if norm < 1e-6} == {"unresolved"}
    assert {verdict for _, verdict in verdicts} == {"agrees", "unresolved"}


def test_the_demos_gradients_by_word_are_those_of_the_definition(ran):
    x, w_q, w_k, w_v, g = (a.data for a in example(IDS, "N(0, 1)", 0))
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    section = ran[1].partition("differences\n")[2].partition("\n\n")[0].splitlines()
    for t, (word, line) in enumerate(zip(REPAIRED.split(), section, strict=True)):
        p = np.exp(q[t] @ (k - k[np.argmax(k @ q[t])]).T / math.sqrt(32))
        p /= p.sum()
        norm = np.linalg.norm(k.T @ (p * (v @ g[t] - p @ v @ g[t]))) / math.sqrt(32)
        name, first, second, error, said = line.split(maxsplit=4)
        assert name == word
        check(f"{first} {second}", norm, p.max())
        assert 1e-17 < float(error) * norm < 1e-12 * max(1, norm)
        assert (float(error) > 1e-10) == (norm < 1e-5)
        assert said.startswith("agree" if norm > 1e-3 else "too coarse, ")


# ------------------------------------------------------------------ law


def test_a_scale_of_d_to_minus_three_halves_repairs_the_weights_and_not_the_values(table):
    repaired, unit = table["N(0, 1)", "1/d√d"], table["N(0, 1/d)", "1/√d"]
    np.testing.assert_allclose(repaired.weights, unit.weights, rtol=0, atol=1e-12)
    np.testing.assert_allclose(repaired.gradient, unit.gradient, rtol=1e-9)
    assert repaired.value_variance == pytest.approx(32 * unit.value_variance, rel=1e-12)


def test_from_1_over_d_the_missing_scale_costs_evenness_and_not_the_typical_gradient(table):
    raw, scaled = table["N(0, 1/d)", "1"], table["N(0, 1/d)", "1/√d"]
    assert 0.02 < raw.dead() < 0.06
    assert np.median(raw.gradient) > np.median(scaled.gradient)
    assert raw.top_tenth() > 0.65 and scaled.top_tenth() < 0.45


def test_the_mean_gradient_of_the_recipe_hides_that_most_queries_are_dead(table):
    recipe, unit = table["N(0, 1)", "1/√d"], table["N(0, 1/d)", "1/√d"]
    assert recipe.gradient.mean() > 2 * unit.gradient.mean()
    assert np.median(recipe.gradient) < 1e-3 * np.median(unit.gradient)
    assert recipe.top_tenth() > 0.98


def test_what_its_classes_draw_from_never_saturates(table):
    for name, largest in (("1", 0.46), ("1/√d", 0.18)):
        assert table["U(±1/√d)", name].dead() < 0.001
        assert table["U(±1/√d)", name].largest == pytest.approx(largest, abs=0.01)


def test_under_a_causal_mask_no_later_word_moves_an_earlier_output_and_every_other_does():
    x, single, multi = layers()
    for layer in (single, multi):
        for t, word in enumerate(layer(x, mask=causal_mask(8))[0]):
            size = moved_by(word, x)
            assert not size[t + 1 :].any() and (size[: t + 1] > 1e-4).all()


# ------------------------------------------------------------------ refusal


def test_what_is_never_imported_and_a_comment_without_its_mark_stop_the_code(told):
    with pytest.raises(NameError):
        exec("class Layer(nn.Module): pass", {"math": math, "torch": None})
    assert complaint("import math") == complaint("def forward(x): F.softmax(x)") == "nothing"
    named = "NameError: name '{}' is not defined"
    assert told[12] == (
        f"→ a class on nn: {named.format('nn')} "
        f"→ a method with F: nothing, until it is called: {named.format('F')}"
    )
    assert told[13].startswith("→ SyntaxError: ")


def test_our_masks_refuse_numbers_where_the_text_compares_them_with_0():
    x, single, _ = layers()
    with pytest.raises(TypeError, match="mask must be boolean"):
        single(x, mask=np.tril(np.ones((8, 8))))


# ------------------------------------------------------------------ the demo


def test_the_demo_says_every_slip_and_what_shows_it(ran):
    folder, printed = ran
    for number, slip in enumerate(source.SLIPS, 1):
        assert re.search(rf"^ +{number}\. {re.escape(slip)}\n +→ \S", printed, re.MULTILINE), slip
    assert f" {len(source.SLIPS) + 1}. " not in printed
    assert "8 of 8 agree" in printed and "0 of 2 agree" in printed
    assert printed.count(": passed") == 16 and "FAILED" not in printed
    lines = printed.replace(str(folder), "out/sky_is_blue").splitlines()
    assert all(len(line) <= 100 for line in lines)


def test_the_demos_table_holds_what_is_measured_by_definition(ran, table):
    rows = re.findall(r"^   (N\(0, 1(?:/d)?\)|U\(±1/√d\)) +(1\S*) (.*)$", ran[1], re.MULTILINE)
    assert len(rows) == 7
    for initial, scale, row in rows:
        check(row, *columns(table[initial, scale]))


def columns(m):
    """A row of the demo's table: percentages where it prints them."""
    gradient, p = m.gradient, np.where(m.weights > 0, m.weights, 1)
    n = m.gradient.size
    return (
        m.scores.reshape(2000, -1).var(axis=1, ddof=1).mean(),
        m.value_variance,
        -(p * np.log(p)).sum() / n / np.log(8),
        m.weights.max(axis=-1).mean(),
        gradient.mean(),
        np.median(gradient),
        100 * (gradient < 1e-3).mean(),
        100 * (np.sort(gradient, axis=None)[-n // 10 :] ** 2).sum() / (gradient**2).sum(),
    )


def test_the_demos_conclusions_repeat_its_table(ran, table):
    printed = ran[1].partition("The scale alone")[2]
    paragraphs = [unwrapped(text) for text in printed.split("\n\n")]
    recipe, rescued, unscaled, unit, its_classes = (
        columns(table[key])
        for key in (
            *(("N(0, 1)", "1/√d"), ("N(0, 1)", "1/d√d")),
            *(("N(0, 1/d)", "1"), ("N(0, 1/d)", "1/√d"), ("U(±1/√d)", "1")),
        )
    )
    check(paragraphs[0], recipe[6], rescued[1])
    dead, medians, shares = ((unscaled[i], unit[i]) for i in (6, 5, 7))
    check(paragraphs[1], *dead, *medians, *shares)
    check(paragraphs[2], its_classes[6])
    got = [line.rpartition("got ")[2] for line in ran[1].splitlines() if ": passed" in line]
    check(" ".join(got[6:9]), 24, 24, 35)
    marked = (recipe[0], recipe[6], recipe[3], unit[6], unit[3], unscaled[6])
    check(" ".join(got[9:15]), *marked)


def test_the_demo_says_that_its_maps_are_one_draw_and_how_far_from_the_mean(ran, table):
    names = [("N(0, 1)", "1/√d"), ("N(0, 1/d)", "1"), ("N(0, 1/d)", "1/√d"), ("U(±1/√d)", "1/√d")]
    one = []
    for name in names:
        p = table[name].weights[0]
        one.append(-(p * np.log(np.where(p > 0, p, 1))).sum() / 8 / np.log(8))
    said = unwrapped(ran[1].partition("weights.png is one draw")[2])
    check(said, *one, *(columns(table[name])[2] for name in names))


def test_the_demo_leaves_its_pictures(ran):
    stems = ("graph", "graph_unit", "spread", "weights")
    assert {path.name for path in ran[0].iterdir()} == {
        f"{stem}.{ending}" for stem in stems for ending in ("png", "svg")
    }


def test_the_graphs_show_where_a_typical_words_gradient_dies(ran):
    found = {}
    for stem in ("graph", "graph_unit"):
        labels = re.findall(r">([^<]+)</text>", (ran[0] / f"{stem}.svg").read_text())
        labels = [label.replace("&#45;", "-") for label in labels]
        at = labels.index("W_Q")
        found[stem] = float(labels[at + 2].removeprefix("grad "))
    assert found["graph"] < 1e-5 and found["graph_unit"] > 0.05
