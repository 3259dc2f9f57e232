"""Tests: "The sky is blue …": one draw by its definition, the theory, its slips."""

import math

import numpy as np
import pytest

from attention import attention, causal_mask
from demos.texts.sources import agreeing
from demos.texts.sources import sky_is_blue_text as source
from demos.texts.sources.sky_is_blue_text import (
    PRINTED,
    REPAIRED,
    SENTENCE,
    complaint,
    expected_variance,
    layers,
    measure,
    token_ids,
)
from minigrad import Tensor

IDS = token_ids(REPAIRED)

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
    assert found.largest == pytest.approx(np.mean([p.max() for p, _ in rows]), rel=1e-9)
    assert found.dead() == np.mean([norm < 1e-3 for _, norm in rows])
    squares = np.sort([norm**2 for _, norm in rows])
    tenth = squares[-1] + 0.6 * squares[-2]  # 1.6 of 16
    assert found.top_tenth() == pytest.approx(tenth / squares.sum(), rel=1e-6)


def test_the_theory_holds_where_d_is_small_and_2d_is_not_small_beside_its_square():
    ids = np.array([0, 1, 1, 2])
    found = measure(ids, "N(0, 1)", 1.0, draws=200_000, seed=2, d_model=2).variance
    error = found.std() / np.sqrt(len(found))
    # (Without the 2 d of M² (d² + 2 d) the theory is 0.53 larger, or more.)
    assert error < 0.12 and abs(found.mean() - expected_variance(ids, 2)) < 4 * error
    assert expected_variance(np.zeros(8, int)) == 0  # one word alone has no variance


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


def test_the_ratio_is_32_for_any_numbers_and_inverted_if_one_divides_by_the_factor():
    before, after = (float(number) for number in PRINTED["variances"].split())
    assert before / after == 32
    assert np.divide(*source.ours()["variances"]) == pytest.approx(32, rel=1e-6)
    squares = np.arange(64.0) ** 2
    assert squares.var() / (squares / math.sqrt(32)).var() == pytest.approx(32, rel=1e-14)
    raw, divided = (measure(IDS, "N(0, 1)", s, draws=9, seed=0) for s in (1.0, math.sqrt(32)))
    np.testing.assert_allclose(divided.variance / raw.variance, 32, rtol=1e-12)


def test_the_first_class_is_one_attention_between_projections_with_biases():
    x, single, _ = layers()
    parts = single.w_q, single.w_k, single.w_v
    for i, part in enumerate(parts):  # biases of 0 would hide a mistake
        part.bias.data = np.random.default_rng(i).standard_normal(32)
    projected = (Tensor(x.data @ part.weight.data + part.bias.data) for part in parts)
    expected = attention(*projected, mask=causal_mask(8)).data
    np.testing.assert_allclose(single(x, mask=causal_mask(8)).data, expected, rtol=1e-10)


# ------------------------------------------------------------------ refusal


def test_what_is_never_imported_and_a_comment_without_its_mark_stop_the_code():
    with pytest.raises(NameError):
        exec("class Layer(nn.Module): pass", {"math": math, "torch": None})
    assert complaint("import math") == complaint("def forward(x): F.softmax(x)") == "nothing"
    for name, code in (("nn", "class Layer(nn.Module): pass"), ("F", "F.softmax(0)")):
        assert complaint(code) == f"NameError: name {name!r} is not defined"
    assert complaint("d_model = 32 features").startswith("SyntaxError: ")
