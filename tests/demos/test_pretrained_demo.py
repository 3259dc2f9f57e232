"""The demo of other people's models: what it refuses, what it measures, and the whole run.

Only the last two groups need the wheels. Without them these tests skip. (In CI that is a failure.)
"""

import re
from argparse import Namespace
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pytest

from attention import attention
from attention.models import llama
from demos._training import Marks
from demos.pretrained import _loading
from demos.pretrained._heads import Seen, loss_of, loss_on, see, set_scale, sharpened
from demos.pretrained._kept_heads import TwoModels, kept_heads, log_ratios, middle
from demos.pretrained._loading import folder_of, writer
from minigrad import gradients
from tests.demos.running import assert_light, demo_here, whole

pytest.importorskip("safetensors.numpy")


def tiny():
    """Return a model of glassllm's kind: two blocks of three heads."""
    sizes = {"d_model": 12, "num_heads": 3, "num_kv_heads": 1, "num_blocks": 2}
    return llama(13, **sizes, tied=True, eps=1e-6, base=100.0, rng=np.random.default_rng(5))


# ------------------------------------------------------------------ value: without the wheels


def test_what_is_seen_in_the_heads_is_what_the_model_computes():
    model, text = tiny(), np.array([3, 1, 4, 1, 5, 9])
    for block in model.blocks:  # (at its initial weights all keys are nearly alike)
        block.attention.w_q.weight.data = 9 * block.attention.w_q.weight.data
    seen = see(model, text)
    assert seen.loss == pytest.approx(loss_on(model, text[None]), rel=1e-12)
    maps = np.concatenate([each[0] for each in model.maps(text[None, :-1])])  # (6, 5, 5)
    np.testing.assert_allclose(seen.previous, np.diagonal(maps, -1, 1, 2).mean(axis=-1))
    assert seen.gradient.shape == (6, 5) and (seen.gradient[:, 1:] > 0).all()
    np.testing.assert_allclose(seen.gradient[:, 0], 0, atol=1e-15)  # it has one key
    flat = see(model, text, 0.0)
    np.testing.assert_allclose(flat.entropy, 1)
    np.testing.assert_allclose([flat.score_std, flat.gradient.sum(axis=-1)], 0, atol=1e-15)
    assert model.blocks[0].attention.scale is None and model.blocks[0].attention.attend is None
    # The deviation is that within each query's scores, which are log p up to a number for the row.
    for head, p in enumerate(maps):
        rows = [np.log(row[: t + 1]) for t, row in enumerate(p)]
        squares = np.concatenate([(row - row.mean()) ** 2 for row in rows])
        assert seen.score_std[head] == pytest.approx(np.sqrt(squares.mean()), rel=1e-9)


def test_a_gradient_in_a_head_is_the_slope_along_its_query():
    """A factor on all scores of a head: ∂L/∂factor = Σ q · ∂L/∂q, by finite differences."""
    model, text, h = tiny(), np.array([3, 1, 4, 1, 5, 9]), 1e-5
    high, low = (sharpened(model, text[None], [4], 1 + side) for side in (h, -h))
    slope = (high - low).item() / (2 * h)
    asked = []

    def attend(q, k, v, **options):
        asked.append(q)
        return attention(q, k, v, **options)

    for block in model.blocks:
        block.attention.attend = attend
    loss = loss_of(model, text[None])
    q = asked[1]  # of the second block, whose second head is the fifth
    (g,) = gradients(loss, [q])
    assert slope == pytest.approx((q.data * g)[0, 1].sum(), rel=1e-5)
    for block in model.blocks:
        block.attention.attend = None
    np.testing.assert_allclose(
        see(model, text).gradient[4], np.linalg.norm(g[0, 1], axis=-1), rtol=1e-12
    )


def test_one_head_without_its_scale_and_then_all_of_them_one_by_one():
    model, text = tiny(), np.array([3, 1, 4, 1, 5, 9])
    texts = np.array([text, text[::-1]])
    for block in model.blocks:
        block.attention.attend = attention  # (a fused layer may differ in the last bit)
    losses = [loss_on(model, each[None]) for each in texts]
    assert sharpened(model, texts, [2], 1.0).tolist() == losses
    assert (abs(sharpened(model, texts, [2], 40.0) - losses) > 1e-6).all()
    every = sharpened(model, texts, [*range(6), 2], 40.0)  # (a head that is named twice is one)
    np.testing.assert_allclose(every, [see(tiny(), each, 40.0).loss for each in texts], rtol=1e-12)
    np.testing.assert_equal(model.state_dict(), tiny().state_dict())
    for block in model.blocks:
        block.attention.w_q.weight.data = 40 * block.attention.w_q.weight.data
    assert loss_on(model, text[None]) == pytest.approx(see(tiny(), text, 40.0).loss, rel=1e-12)
    set_scale(model, lambda d_k: d_k**-0.5 / 40)  # W_Q takes the factor in
    assert loss_on(model, text[None]) == pytest.approx(loss_on(tiny(), text[None]), rel=1e-12)


def test_a_head_whose_median_falls_while_its_mean_grows_is_counted_with_its_error():
    """Head 2 loses its gradient in all but two queries; head 1 gets twice as much."""
    rng, pairs = np.random.default_rng(0), []
    for _ in range(6):  # texts that differ by a little
        gradient = 1 + 0.01 * rng.random((2, 20))
        without = gradient * 2
        without[1] = [100] * 2 + [0.0011] * 18
        pairs.append([Seen(3.0, *np.ones((2, 2)), x, np.ones(2)) for x in (gradient, without)])
    ratios, errors = middle(log_ratios(pairs))
    np.testing.assert_allclose(ratios, np.log([[2, 0.0011], [2, 10]]), atol=0.02)
    assert errors.max() < 0.001
    assert (ratios < -2 * errors).tolist() == [[False, True], [False, False]]
    assert [x.item() for x in middle(np.arange(5, 8, 0.5))] == pytest.approx(
        [6.25, 0.3819], rel=1e-4
    )


# ------------------------------------------------------------------ two models' heads


def test_what_the_kept_heads_of_two_models_say_and_what_would_falsify_it():
    rows = kept_heads()[1]
    assert [row.model for row in rows] == ["glassllm"] * 16 + ["MiniLM"] * 72
    two, verdicts = TwoModels(rows), []
    falls, still, grows = ([ratio, 0.1] for ratio in (-1.0, 0.0, 1.0))
    changes = {"mean": falls}, {"alone_mean": falls}, {"median": grows}, {"median": still}
    for changed in ({}, *changes):
        marks = Marks(Namespace(quick=False, marks=False))
        TwoModels([replace(row, **changed) for row in rows]).judge(marks)
        verdicts.append([row[3] for row in marks.rows])
    ok, no = "passed", "FAILED"
    assert verdicts == [[ok] * 3, [no, ok, ok], [ok, no, ok], [ok, ok, no], [ok, ok, no]]
    known = np.array([[row.median[0], row.mean[0]] for row in rows[:16]]).T
    noise = 0.1 * np.array([-1, 1, -1, 1])[:, None, None]
    assert two.furthest(known + noise) == pytest.approx(0, abs=1e-9)
    assert two.furthest(known + noise + [[0], [1]]) > 4


# ------------------------------------------------------------------ refusal: without the wheels


@pytest.mark.parametrize("version", [None, "0.2.0"])
def test_a_wheel_that_is_missing_or_of_another_version_is_one_sentence(version, monkeypatch):
    def distribution(name):
        if version is None:
            raise PackageNotFoundError(name)
        return Namespace(version=version)

    monkeypatch.setattr(_loading, "distribution", distribution)
    found = f"version {version}" if version else "no such package"
    said = f"the weights of glassllm 0.1.0 are needed, and {found} is installed: pip install -e "
    with pytest.raises(ImportError, match=f"^{re.escape(said)}"):
        folder_of("glassllm")


def test_no_code_of_a_pickle_is_run(tmp_path, monkeypatch):
    (tmp_path / "weights").mkdir()
    np.savez(tmp_path / "weights" / "en.npz", E=np.array([{}], dtype=object))
    monkeypatch.setattr(_loading, "folder_of", lambda wheel: tmp_path)
    with pytest.raises(ValueError, match="allow_pickle=False"):
        writer()


def test_the_two_lists_of_versions_are_the_same():
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8")
    extra = re.search(r"^pretrained = \[(.*?)\]", text.replace("[demos]", ""), re.MULTILINE)[1]
    assert set(re.findall(r'"(\w+)==(\S+)"', extra)) == set(_loading.WHEELS.items())


# ------------------------------------------------------------------ refusal: with the wheels


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--prompt", ""], "pretrained: the prompt must have 2 to 128 tokens: got 0"),
        (["--prompt", "Alice ж"], "pretrained: the model has no token for 'ж' of the prompt: .*"),
        (["--prompt", "Alice " * 129], r"pretrained: the prompt must have .*: got \d+"),
        (["--temperature", "0"], r"pretrained: --temperature must be above 0: got 0\.0"),
        (["--heads", "1.1", "5.1"], r"(?s)usage: .*--heads: invalid choice: '5\.1' .*"),
    ],
)
def test_what_cannot_be_continued_is_one_sentence_before_the_work(
    options, sentence, glassllm, mathformer, tmp_path, monkeypatch
):

    done = demo_here("pretrained", "--out", tmp_path, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(f"{sentence}\n", done.stderr)


# ------------------------------------------------------------------ the whole run: with the wheels

PICTURES = {"maps", "factor", "ratios"}


@pytest.mark.slow
def test_it_keeps_its_marks_and_leaves_a_page(
    glassllm, mathformer, tmp_path_factory, visit, serious
):
    folder, printed = whole("pretrained", tmp_path_factory)
    assert {path.stem for path in folder.glob("*.svg")} == PICTURES
    assert_light(folder)
    assert "no scale             100/100   15/55   72/100    8/90" in printed
    assert "0: all keys alike    100/100   4/55    11/100    0/90" in printed
    assert printed.endswith("\n28 of 28 checks passed; --marks shows them\n")
    assert printed.count("\n") <= 80
    assert "MIT licence" in (folder / "index.html").read_text("utf-8")
    shown = visit(folder / "index.html", viewport={"width": 320, "height": 800}, bypass_csp=True)
    assert shown.evaluate("document.documentElement.scrollWidth") <= 320
    assert serious(shown) == []
