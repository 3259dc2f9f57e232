"""Shape comments are executed: each `# (…, T, S)` in attention/ is compared with a real call.

The source of a chapter is parsed, and on every line with such a comment the expression that ends
there is wrapped in a check. Then the chapter runs on prime sizes, where no two axes can be
confused. The other chapters are imported as they are: each is traced in its own call.
"""

import ast
import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from attention import MultiHeadAttention
from attention.blocks import Block, FeedForward
from attention.models import llama
from attention.positions import LearnedPositions
from attention.transformer import Encoder, Transformer
from minigrad import Tensor, gradients, unfused
from minigrad.nn import Embedding, LayerNorm, Linear

FOLDER = Path(__file__).parents[1] / "attention"
AXIS = r"(?:…|\w+(?: (?:·|//) \w+)*)"
COMMENT = re.compile(rf"#\s+(?:\S+, )?\(({AXIS}(?:,\s*{AXIS})*,?)\)$")
SIZES = {"B": 2, "T": 3, "S": 5, "H": 7, "d_k": 11, "d_v": 13, "d_model": 17, "V": 19, "d": 23}
SIZES["H_kv"] = SIZES["H"]
B, T, S, H, V = (SIZES[letter] for letter in "BTSHV")
D_K, D_V, D_MODEL, D = (SIZES[letter] for letter in ("d_k", "d_v", "d_model", "d"))


def commented_lines(source):
    """Return line number → the shape that its trailing comment states."""
    found = {}
    for number, line in enumerate(source.splitlines(), 1):
        if match := COMMENT.search(line):
            found[number] = match.group(1)
    return found


def fits(shape, stated, sizes=SIZES):
    """Return True if a shape is the stated one; … stands for any number of axes."""
    parts = [part.strip() for part in stated.rstrip(",").split(",")]
    free = parts[0] == "…"
    named = [eval(part.replace("·", "*"), {}, sizes) for part in parts[free:] if part]
    return tuple(shape[len(shape) - len(named) :]) == tuple(named) and (
        free or len(shape) == len(named)
    )


class Wrap(ast.NodeTransformer):
    """Put `_check(expression, line)` around the outermost expression ending on each such line."""

    def __init__(self, lines):
        self.lines, self.done = lines, set()

    def visit(self, node):
        if isinstance(node, ast.AugAssign):  # what is added has the shape that the comment states
            node.value = self.visit(node.value)
            return node
        line = getattr(node, "end_lineno", None)
        value = isinstance(node, ast.expr) and not isinstance(getattr(node, "ctx", None), ast.Store)
        if value and line in self.lines and line not in self.done:
            self.done.add(line)
            inside = self.generic_visit(node)
            call = ast.Call(ast.Name("_check", ast.Load()), [inside, ast.Constant(line)], [])
            return ast.copy_location(call, node)
        return self.generic_visit(node)


# ---------------------------------------------------------------- a call of each chapter


def random(*shape):
    return Tensor(np.random.default_rng(5).standard_normal(shape), requires_grad=True)


def masks(chapter):
    chapter.padding_mask(chapter.padding_mask([2, 5], S)[:, 0], S)
    chapter.window_mask(T, S, size=2)
    for mask in (None, chapter.padding_mask([2, 5], S)):
        chapter.mean_over_positions(random(B, S, D_MODEL), mask=mask)
    real = chapter.check_real(np.arange(S) > np.array([[2], [0]]), np.ones((B, S), int))
    chapter.real_positions(real)
    chapter.without_padding(chapter.causal_mask(T, S), real)
    chapter.left_padded([[1] * T, [2]])


def scaled_dot_product(chapter):
    q, k, v = random(B, H, T, D_K), random(B, H, S, D_K), random(B, H, S, D_V)
    y = chapter.attention(q, k, v, mask=np.ones((T, S), bool), score_bias=np.zeros((H, T, S)))
    chapter.attention_backward(q.data, k.data, v.data, np.ones(y.shape), scale=0.3)


def additive(chapter):
    chapter.additive_attention(random(B, T, D), random(B, S, D), random(B, S, D_V), random(D))


def fused(chapter):
    """Run blocks of 4 (between T and S), of 2 (the last are of 1), and of 8, with n = 4."""
    inputs = random(B, H, T, D_K), random(B, H, S, D_K), random(B, H, S, D_V), random(H, T, S)
    for block in (4, 2, 8):
        mask = ~np.eye(T, S, dtype=bool)
        y = chapter.fused_attention(*inputs[:3], score_bias=inputs[3], mask=mask, block=block)
        gradients(y, inputs, np.ones(y.shape))
    with unfused():
        chapter.fused_attention(*inputs[:3], score_bias=inputs[3])


def multi_head(chapter):
    rng = np.random.default_rng(5)
    layer = chapter.MultiHeadAttention(D_MODEL, H, d_k=D_K, d_v=D_V, rng=rng)
    layer(
        random(B, T, D_MODEL),
        random(B, S, D_MODEL),
        mask=np.ones((B, 1, S), bool),
        positions=np.ones((B, T), int),
    )
    layer.weights(random(B, T, D_MODEL), random(B, S, D_MODEL))
    q, k, v = random(B, T, D_MODEL), random(B, S, D_MODEL), random(B, S, D_MODEL)
    chapter.multi_head_attention(q, k, v, *layer.parameters(), H)


def positions(chapter):
    rng = np.random.default_rng(5)
    chapter.sinusoidal(T, 2 * D_MODEL)  # features come in pairs
    chapter.rotary(random(B, H, T, 2 * D_K), np.ones((B, 1, T), int))
    chapter.LearnedPositions(S, 2 * D_MODEL, rng=rng)(random(B, T, 2 * D_MODEL), 1)
    with unfused():
        for pairs in ("neighbours", "halves"):
            chapter.rotary(random(B, H, T, 2 * D_K), pairs=pairs)
    chapter.alibi(H, T, S)
    chapter.RelativeBias(H, 2, rng=rng)(T, S)


def transformer(chapter):
    """Run it with 14 features: sinusoidal positions come in pairs, and 7 heads share them."""
    rng = np.random.default_rng(5)
    sizes = {"d_model": 14, "num_heads": H, "num_blocks": 1, "d_ff": D}
    model = chapter.Transformer(V + 10, V, **sizes, rng=rng)
    model(np.ones((B, S), int), np.ones((B, T), int), real=np.ones((B, S), bool))


def models(chapter):
    rng = np.random.default_rng(5)
    block = Block(
        MultiHeadAttention(D_MODEL, H, d_k=D_K, d_v=D_V, rng=rng), FeedForward(D_MODEL, D, rng=rng)
    )
    words, norm, head = (
        Embedding(V, D_MODEL, rng=rng),
        LayerNorm(D_MODEL),
        Linear(D_MODEL, V, rng=rng),
    )
    places = LearnedPositions(2 * S, D_MODEL, rng=rng)
    for last in (None, head):
        gpt = chapter.GPT(words, [block], norm, positions=places, head=last)
        gpt(np.ones((B, T), int))
        gpt.maps(np.ones((B, T), int))
        caches = gpt.caches()
        caches[0].k, caches[0].v = random(B, H, S - T, D_K), random(B, H, S - T, D_V)
        gpt(np.ones((B, T), int), real=np.tri(B, T, 1, dtype=bool), caches=caches)


def encoders(chapter):
    rng = np.random.default_rng(5)
    encoder = Encoder(1, D_MODEL, 1, D, rng=rng)
    words, kinds = (Embedding(count, D_MODEL, rng=rng) for count in (V, 2))
    places, norm = LearnedPositions(2 * S, D_MODEL, rng=rng), LayerNorm(D_MODEL)
    texts = chapter.TextEncoder(words, places, kinds, norm, encoder)
    texts(np.ones((B, S), int), real=np.ones((B, S), bool))
    mask = np.ones((B, 1, S), bool)
    for given in (mask, None):
        chapter.Classifier(encoder, D_MODEL, D, rng=rng)(random(B, S, D_MODEL), mask=given)


def generation(chapter):
    rng = np.random.default_rng(5)
    sizes = {"d_model": 14, "num_heads": H, "num_blocks": 1}
    gpt = llama(V, num_kv_heads=1, **sizes, rng=rng)
    chapter.generate(gpt, np.ones((B, T), int), 2, end=1, rng=rng)
    both = Transformer(V, V, **sizes, d_ff=D, rng=rng)
    chapter.generate(gpt, [[1] * T, [2]], 2, rng=[rng] * B)
    mask = np.ones((B, 1, S), bool)
    chapter.translate(both, np.ones((B, S), int), start=0, end=1, max_tokens=2, source_mask=mask)


CALLS = {
    call.__name__: call
    for call in (
        masks,
        scaled_dot_product,
        additive,
        fused,
        multi_head,
        positions,
        transformer,
        models,
        encoders,
        generation,
    )
}
# Sizes that a chapter's call replaces.
OWN = {
    "positions": {"d_k": 2 * D_K, "d_model": 2 * D_MODEL},
    "transformer": {"d_model": 14},
    "generation": {"d_model": 14},
    "encoders": {"C": D},  # classes
    "fused": {"N": B * H},  # members of the batch
}


def meaning(name, frame):
    """Return letter → size, in a frame of a chapter that runs.

    A letter to which the function gives another meaning has that one: split_heads calls the
    positions T, whether they are queries or keys. A block is R queries by C keys.
    """
    own = {k: v for k, v in frame.f_locals.items() if k in SIZES and isinstance(v, int)}
    for letter, place in (("n", "members"), ("R", "rows"), ("C", "columns")):
        if isinstance(part := frame.f_locals.get(place), slice):
            own[letter] = part.stop - part.start
    return SIZES | OWN.get(name, {}) | own


def trace(name, source):
    """Run a chapter with its checks in place: line → the shapes that were there, with the sizes."""
    lines, seen = commented_lines(source), {}

    def check(value, line):
        if hasattr(value, "shape"):  # a mask that was not given has none, nor a first position
            seen.setdefault(line, []).append((value.shape, meaning(name, sys._getframe(1))))
        return value

    module = types.ModuleType(f"attention.{name}")
    module._check = check
    tree = ast.fix_missing_locations(Wrap(lines).visit(ast.parse(source)))
    exec(compile(tree, name, "exec"), module.__dict__)
    CALLS[name](module)
    return seen


SOURCES = {
    path.stem: source
    for path in sorted(FOLDER.glob("*.py"))
    if commented_lines(source := path.read_text(encoding="utf-8"))
}
chapters = pytest.mark.parametrize("name", SOURCES)


# ---------------------------------------------------------------- value


@chapters
def test_every_shape_comment_is_true_and_was_reached(name):
    assert name in CALLS, f"{name}.py states shapes, but no call of it is traced"
    stated, seen = commented_lines(SOURCES[name]), trace(name, SOURCES[name])
    for line, found in seen.items():
        for shape, sizes in found:
            where = f"attention/{name}.py, line {line}: {shape} is not ({stated[line]})"
            assert fits(shape, stated[line], sizes), where
    assert sorted(seen) == sorted(stated), f"lines of attention/{name}.py that were not reached"


def test_all_chapters_with_a_call_state_shapes():
    assert set(CALLS) == set(SOURCES)
    assert sum(len(commented_lines(source)) for source in SOURCES.values()) > 45


CHANGES = {
    "reshape",
    "swapaxes",
    "mT",
    "transpose",
    "expand_dims",
    "concatenate",
    "stack",
    "repeat",
    "sum",
    "mean",
    "broadcast_to",
    "split_heads",
    "merge_heads",
}
SHAPELESS = {  # statements whose shape has no one name, and why
    "new = np.concatenate(": "the new position, or one position more in each round",
    "texts = np.concatenate([tokens": "a prompt and all that follows it",
    "real = np.concatenate([real[:": "the new position, or one position more in each round",
    "whole = np.broadcast_to(x": "matrices of any size",
    "return whole.reshape(": "matrices of any size",
    "flat = x.reshape(": "matrices of any size",
    "return concatenate([self.k": "keys (…, S, d_k), and values (…, S, d_v)",
    "return space[": "as many axes as there are slices",
    "return Y.reshape(": "a result and a function",
    "found = (*(": "gradients of several shapes",
    "return np.asarray(dZ.sum(": "whatever axes a score_bias has",
    "d_bias = _summed(": "whatever axes a score_bias has",
    "projected = [": "a list",
    "return x if group_size == 1": "keys (…, H, S, d_k), and values (…, H, S, d_v)",
    "return np.expand_dims(mask": "whatever a mask broadcasts",
}


def changes_a_shape(statement):
    """Return True if a statement has a product of matrices, or calls a function in CHANGES."""
    return any(
        (isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult))
        or getattr(node, "attr", getattr(node, "id", None)) in CHANGES
        for node in ast.walk(statement)
    )


def test_every_statement_that_changes_a_shape_says_the_new_one():
    kinds = ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return
    silent = []
    for name in (path.stem for path in FOLDER.glob("*.py")):
        if name in ("scaling", "figures", "maps", "mapping", "__init__"):
            continue  # chapter 16 and the tools measure, draw and rename
        source = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
        lines = source.splitlines()
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, kinds) and changes_a_shape(node):
                text = lines[node.lineno - 1 : node.end_lineno]
                if not any(map(COMMENT.search, text)):
                    silent.append(text[0].strip())
    said = {start for start in SHAPELESS for line in silent if line.startswith(start)}
    assert said == SHAPELESS.keys()
    assert [line for line in silent if not line.startswith(tuple(SHAPELESS))] == []


# ---------------------------------------------------------------- law


@chapters
def test_no_comment_would_be_true_of_any_other_order_of_its_last_two_axes(name):
    """The checker is checked: each comment, turned round, is noticed."""
    stated = commented_lines(SOURCES[name])
    for line, found in trace(name, SOURCES[name]).items():
        parts = stated[line].split(", ")
        if len(parts) < 2 or parts[-2] == "…":
            continue
        turned = ", ".join([*parts[:-2], parts[-1], parts[-2]])
        where = f"attention/{name}.py, line {line}: ({turned}) would be true as well"
        assert not all(fits(shape, turned, sizes) for shape, sizes in found), where


def test_a_wrong_shape_comment_would_be_noticed():
    assert fits((2, 7, 3, 11), "…, H, T, d_k")
    assert not fits((2, 7, 11, 3), "…, H, T, d_k")
    assert not fits((2, 3, 7, 11), "…, H, T, d_k")
    assert fits((2, 3, 91), "…, T, H · d_v") and not fits((2, 3, 77), "…, T, H · d_v")
    assert fits((5,), "S,") and not fits((1, 5), "S,")


def test_comments_are_found_in_each_form_they_are_written_in():
    lines = ["x = f(y)  # (…, T, S)", "x = f(", "    y,  # (S,)", ")  # λ, (…, T, 1)"]
    source = "\n".join([*lines, "if x:  # (B, T): no", "    y  # (in words)"])
    assert commented_lines(source) == {1: "…, T, S", 3: "S,", 4: "…, T, 1"}
