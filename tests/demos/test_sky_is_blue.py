"""Tests: "The sky is blue …": its variance in theory and in draws, its slips, its dead queries."""

import math

import numpy as np
import pytest

from attention import (
    attention,
    attention_weights,
    causal_mask,
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
    token_ids,
    word_by_word,
)
from minigrad import GradientError, Tensor, gradcheck, softmax

IDS = token_ids(REPAIRED)
three_sentences = pytest.mark.parametrize("ids", [IDS, token_ids(SENTENCE), np.arange(8)], ids=str)


@pytest.fixture(scope="module")
def table():
    """The recipe and what it might have been, 2,000 draws each."""
    scales = {"1": 1.0, "1/√d": None, "1/d√d": 32**-1.5}
    return {
        (initial, name): measure(IDS, initial, scale, draws=2000, seed=0)
        for initial in INITIAL
        for name, scale in scales.items()
    }


def near(found, expected, errors=4.0, *, below):
    """The mean is as expected, in standard errors, which are small enough to tell."""
    error = found.std() / np.sqrt(len(found))
    assert error < below and abs(found.mean() - expected) < errors * error


# ------------------------------------------------------------------ value


def test_one_measurement_equals_its_definition_in_loops():
    found = measure(IDS, "N(0, 1)", draws=2, seed=3)
    rng = np.random.default_rng(3)
    g = rng.standard_normal((2, 8, 32))
    words = rng.standard_normal((2, 8, 32))
    w_q, w_k, w_v = (rng.standard_normal((2, 32, 32)) for _ in range(3))
    rows = []  # of each query: its weights, and its gradient's norm
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
            rows.append((p, norm))
    spread = [-(p * np.log(p)).sum() / math.log(8) for p, _ in rows]
    assert found.entropy == pytest.approx(np.mean(spread), rel=1e-9)
    assert found.largest == pytest.approx(np.mean([p.max() for p, _ in rows]), rel=1e-9)
    of_word = [max(sum(p[i == IDS]) for i in IDS) for p, _ in rows]
    assert found.decided(IDS) == np.mean(np.array(of_word) >= 0.9)
    assert found.dead() == np.mean([norm < 1e-3 for _, norm in rows])
    squares = np.sort([norm**2 for _, norm in rows])
    assert found.top_tenth() == pytest.approx(squares[-1] / squares.sum(), rel=1e-6)  # 1 of 16


@three_sentences
def test_the_mean_variance_is_what_theory_says_within_four_standard_errors(ids):
    found = measure(ids, "N(0, 1)", 1.0, draws=3000, seed=1).variance
    near(found, expected_variance(ids), below=350)  # so that half of it, or twice, could not pass


@pytest.mark.parametrize("ids", [[0, 0, 0, 1], [0, 1, 1, 2], [0, 1, 2, 3]], ids=str)
def test_the_theory_holds_where_d_is_small_and_2d_is_not_small_beside_its_square(ids):
    found = measure(np.array(ids), "N(0, 1)", 1.0, draws=200_000, seed=2, d_model=2).variance
    # (Without the 2 d of M² (d² + 2 d) the theory is 0.53 larger, or more.)
    near(found, expected_variance(np.array(ids), 2), below=0.12)


@three_sentences
def test_repeated_words_lower_the_theory_as_the_average_over_words_says(ids):
    words = np.random.default_rng(0).standard_normal((40_000, 8, 32))[:, ids]  # (n, T, d)
    trace, total = (words**2).sum(axis=(1, 2)), (words.sum(axis=1) ** 2).sum(axis=-1)
    near(32 / 63 * (trace**2 - total**2 / 64), expected_variance(ids), below=50)
    assert expected_variance(np.zeros(8, int)) == 0  # one word alone has no variance


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


def test_its_variance_is_an_ordinary_draw_and_one_draw_says_little(table):
    raw = table["N(0, 1)", "1"].variance
    assert 0.2 < np.mean(raw > 38521.3046875) < 0.35
    low, high = np.quantile(raw, (0.05, 0.95))
    assert 14_000 < low < 16_500 and 56_000 < high < 63_000


# ------------------------------------------------------------------ value: the slips


@pytest.mark.parametrize("sentence", [SENTENCE, REPAIRED, "b a b c a b"])
def test_a_number_for_each_word_is_what_a_dictionary_over_the_sorted_words_keeps(sentence):
    last = {word: place for place, word in enumerate(sorted(sentence.split()))}
    assert token_ids(sentence).tolist() == [last[word] for word in sentence.split()]


def test_the_printed_ids_are_of_another_sentence_and_leave_some_unused():
    ids, words = PRINTED["token ids"].split(), SENTENCE.split()
    assert ids[3] == ids[7] and words[3] != words[7]
    assert ids[2] == ids[6] and words[2] == words[6]
    assert len(set(ids)) == 6 and len(set(words)) == 7
    assert token_ids(SENTENCE).tolist() == [0, 6, 4, 2, 1, 7, 4, 5]
    assert agreeing(PRINTED["token ids"], source.as_text(token_ids(SENTENCE))) == 4
    unused = [set(range(8)) - set(token_ids(s).tolist()) for s in (REPAIRED, SENTENCE)]
    assert unused == [{2, 4}, {3}]
    assert token_ids(REPAIRED, distinct=True).tolist() == [0, 4, 3, 2, 1, 5, 3, 2]
    noisy = "The (sky) is blue; and, world's"  # the second replace changes nothing
    assert noisy.replace(source.IGNORED, "") == noisy
    assert len(source.IGNORED) == 9 and "." not in source.IGNORED


def test_the_ratio_is_32_for_any_numbers_and_inverted_if_one_divides_by_the_factor(table):
    before, after = (float(number) for number in PRINTED["variances"].split())
    assert before / after == 32
    assert np.divide(*source.ours()["variances"]) == pytest.approx(32, rel=1e-6)
    squares = np.arange(64.0) ** 2
    assert squares.var() / (squares / math.sqrt(32)).var() == pytest.approx(32, rel=1e-14)
    raw = table["N(0, 1)", "1"].variance
    divided = measure(IDS, "N(0, 1)", math.sqrt(32), draws=2000, seed=0)
    np.testing.assert_allclose(divided.variance / raw, 32, rtol=1e-12)


def test_scores_keys_and_values_have_the_variance_that_the_initialisation_gives(table):
    for (initial, name), m in table.items():
        of_w = {"N(0, 1)": 1.0, "N(0, 1/d)": 1 / 32, "U(±1/√d)": 1 / 96}[initial]
        assert m.key_variance == pytest.approx(32 * of_w, rel=0.03)
        assert m.value_variance == pytest.approx(32 * of_w, rel=0.03)
        scale = {"1": 1.0, "1/√d": 32**-0.5, "1/d√d": 32**-1.5}[name]
        expected = expected_variance(IDS) * (of_w * scale) ** 2
        assert m.variance.mean() == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(
    ("initial", "scale", "largest", "dead", "top_tenth"),
    [  # bounds of the last two
        ("N(0, 1)", "1/√d", 0.81, (0.5, 1), (0.98, 1)),
        ("N(0, 1/d)", "1", 0.68, (0.02, 0.06), (0.65, 1)),
        ("N(0, 1/d)", "1/√d", 0.32, (0, 0), (0, 0.45)),
        ("U(±1/√d)", "1", 0.46, (0, 0.001), (0, 0.5)),
        ("U(±1/√d)", "1/√d", 0.18, (0, 0.001), (0, 0.5)),
    ],
)
def test_the_recipe_is_dead_at_the_usual_scale(table, initial, scale, largest, dead, top_tenth):
    m = table[initial, scale]
    assert m.largest == pytest.approx(largest, abs=0.01)
    assert dead[0] <= m.dead() <= dead[1] and top_tenth[0] < m.top_tenth() <= top_tenth[1]


def test_one_word_takes_all_in_the_recipe_and_its_mean_gradient_hides_that(table):
    recipe, raw, unit = (
        table[key] for key in (("N(0, 1)", "1/√d"), ("N(0, 1/d)", "1"), ("N(0, 1/d)", "1/√d"))
    )
    assert recipe.decided(IDS) > 0.88 and unit.decided(IDS) < 0.01
    assert recipe.gradient.mean() > 2 * unit.gradient.mean()
    assert np.median(recipe.gradient) < 1e-3 * np.median(unit.gradient)
    assert np.median(raw.gradient) > np.median(unit.gradient)
    # A repeated word shares its weight with itself; other sentences have fewer such words, or none.
    for sentence, *expected in ((SENTENCE, 0.90, 0.34), ("a b c d e f g h", 0.97, 0.36)):
        for initial, largest in zip(("N(0, 1)", "N(0, 1/d)"), expected, strict=True):
            found = measure(token_ids(sentence), initial, draws=2000, seed=0).largest
            assert found == pytest.approx(largest, abs=0.01)


def test_softmax_over_queries_gives_rows_from_0_to_3_never_above_8(table):
    weights = softmax(Tensor(table["N(0, 1)", "1/√d"].scores), axis=-2).data
    np.testing.assert_allclose(weights.sum(axis=-2), 1, rtol=1e-12)
    rows = weights.sum(axis=-1)  # (draws, T)
    assert np.median(rows.min(axis=-1)) < 1e-6
    assert np.median(rows.max(axis=-1)) == pytest.approx(3, abs=0.01)
    assert 6 < rows.max() <= 8
    x, single, _ = layers()
    for axis in (-2, -1):
        weights = as_it_masks(single, x, causal_mask(8), axis).data
        np.testing.assert_allclose(weights.sum(axis=axis), 1, rtol=1e-12)


def test_the_printed_shapes_come_back_and_do_not_tell_heads_from_torn_ones():
    x, single, multi = layers()
    assert source.shapes(x, single, multi) == source.SHAPES
    parts = single.w_q, single.w_k, single.w_v
    for i, part in enumerate(parts):  # biases of 0 would hide a mistake
        part.bias.data = np.random.default_rng(i).standard_normal(32)
    projected = (Tensor(x.data @ part.weight.data + part.bias.data) for part in parts)
    expected = attention(*projected, mask=causal_mask(8)).data
    np.testing.assert_allclose(single(x, mask=causal_mask(8)).data, expected, rtol=1e-10)
    q, k, v = (split_heads(w(x), 4) for w in (multi.w_q, multi.w_k, multi.w_v))
    torn = [w(x).reshape(1, 4, 8, 8) for w in (multi.w_q, multi.w_k, multi.w_v)]
    shapes = {a.shape for a in (q, k, v, attention_weights(q, k), attention(q, k, v), *torn)}
    assert shapes == {(1, 4, 8, 8)}
    assert np.abs(attention(*torn).data - attention(q, k, v).data).max() > 0.1
    assert {8 * split_heads(multi.w_q(x), h).size for h in (1, 2, 4, 8)} == {8 * 8 * 32}  # Q Kᵀ


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
    for norm, *_, error, seen in found[:8]:
        assert seen.verdict == ("agrees" if norm > 1e-3 else "unresolved")
        assert (error > 1e-10) == (norm < 1e-5)
    x, w_q, w_k, w_v, g = (a.data for a in example(IDS, "N(0, 1)", 0))
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    for t, (norm, largest, *_) in enumerate(found[:8]):  # by the definition
        p = np.exp(q[t] @ (k - k[np.argmax(k @ q[t])]).T / math.sqrt(32))
        p /= p.sum()
        expected = np.linalg.norm(k.T @ (p * (v @ g[t] - p @ v @ g[t]))) / math.sqrt(32)
        assert (norm, largest) == pytest.approx((expected, p.max()), rel=1e-5)


# ------------------------------------------------------------------ law


def test_a_scale_of_d_to_minus_three_halves_repairs_the_weights_and_not_the_values(table):
    repaired, unit = table["N(0, 1)", "1/d√d"], table["N(0, 1/d)", "1/√d"]
    np.testing.assert_allclose(repaired.weights, unit.weights, rtol=0, atol=1e-12)
    np.testing.assert_allclose(repaired.gradient, unit.gradient, rtol=1e-9)
    assert repaired.value_variance == pytest.approx(32 * unit.value_variance, rel=1e-12)


# ------------------------------------------------------------------ refusal


def test_what_is_never_imported_and_a_comment_without_its_mark_stop_the_code():
    with pytest.raises(NameError):
        exec("class Layer(nn.Module): pass", {"math": math, "torch": None})
    assert complaint("import math") == complaint("def forward(x): F.softmax(x)") == "nothing"
    for name, code in (("nn", "class Layer(nn.Module): pass"), ("F", "F.softmax(0)")):
        assert complaint(code) == f"NameError: name {name!r} is not defined"
    assert complaint("d_model = 32 features").startswith("SyntaxError: ")


def test_a_scale_that_is_no_buffer_stays_behind_when_the_class_is_moved():
    torch = pytest.importorskip("torch")

    class Scaled(torch.nn.Module):  # what matters of the text's SelfAttention
        def __init__(self):
            super().__init__()
            self.query = torch.nn.Linear(32, 32)
            self.scale = torch.sqrt(torch.FloatTensor([32]))

        def forward(self, x):
            return self.query(x) / self.scale

    x = torch.zeros(8, 32)
    assert Scaled()(x).shape == (8, 32)
    moved = Scaled().to("meta")  # a device that every machine has
    assert (moved.query.weight.device.type, moved.scale.device.type) == ("meta", "cpu")
    with pytest.raises(RuntimeError, match="device"):
        moved(x.to("meta"))


def test_the_two_sentences_have_seven_and_six_words_and_the_ids_are_of_the_six():
    assert [len(set(sentence.split())) for sentence in (SENTENCE, REPAIRED)] == [7, 6]
    assert len(set(PRINTED["token ids"].split())) == 6
