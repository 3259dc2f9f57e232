"""The museum of bugs: each mistake shows, its check sees it, and what is shown is what runs."""

import re
import runpy
import sys
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from markupsafe import escape

from attention import attention, attention_weights, causal_mask, split_heads
from attention.figures import D_K
from demos.museum._pages import drawing, seen, text
from demos.museum.exhibits import NAMES, difference, exhibit, short_text, source
from demos.museum.exhibits import __file__ as hall
from demos.museum.exhibits._engine import Value
from demos.museum.exhibits.unordered_recursion import broken as unordered
from demos.museum.exhibits.unordered_recursion import doubled
from minigrad import Tensor, cross_entropy, getitem, gradients, softmax, where
from tests.demos.running import ROOT, demo_here, python

SEEDS = range(20)
every = pytest.mark.parametrize("shown", [exhibit(name) for name in NAMES], ids=NAMES)


def test_all_sixteen_are_there_and_nothing_else():
    assert {path.stem for path in Path(hall).parent.glob("[!_]*.py")} == set(NAMES)
    assert [exhibit(name).number for name in NAMES] == list(range(1, 17))
    first = [exhibit(name).module.__doc__.splitlines()[0] for name in NAMES]
    assert first == [f"Demos · Museum: {exhibit(name).title}." for name in NAMES]


# ---------------------------------------------------------------- value: the symptoms


def near(x, value, tolerance=1e-7):
    return np.allclose(x, value, rtol=tolerance, atol=0)


# What holds of a symptom's values, in the order of its lines: b of the broken version, r of the
# repaired one.
SYMPTOMS = {
    # The shape is kept. Rows do not sum to 1, and output 0 depends on the last input.
    "wrong_axis": lambda b, r: [
        b[0] == r[0] and np.ptp(b[1]) > 0.1 and near(r[1], 1),
        b[2] > 1e-6 and r[2] == 0,
    ],
    # The scores are too small by the root of the number of heads: 1, 4, 16.
    "sqrt_d_model": lambda b, r: [
        *(near(b[i], r[i] / n, 1e-12) and abs(r[i] - 1) < 0.1 for i, n in ((0, 1), (2, 2), (4, 4))),
        b[5] < 2 / 64 < 5 / 64 < r[5],
    ],
    # Half of the queries get no gradient at width 1024, and all get one at width 4.
    "no_scale": lambda b, r: [
        b[4] > 0.99 and r[4] < 0.15,
        30 <= float(b[5].rstrip("%")) <= 60 and b[1] == r[1] == r[5] == "0%",
    ],
    # The future is seen, and the past is hidden.
    "reversed_mask": lambda b, r: [
        np.array_equal(r[0], np.tril(np.ones((6, 6), bool))),
        np.triu(b[0], 1).sum() == 15 and not np.tril(b[0], -1).any(),
        (b[1], r[1]) == (5, 0),
    ],
    # The loss is finite, and every gradient is NaN.
    "empty_row": lambda b, r: [b[0] == r[0], np.isfinite(b[0]), b[1:] == [9, 9], r[1:] == [0, 0]],
    # Right on a chain only.
    "assigned_gradient": lambda b, r: [b == [2, 1, 3, 2], r == [2, 2, 6, 3]],
    # Right for one doubling only.
    "unordered_recursion": lambda b, r: [r == [2, 4, 8, 256], b[:3] == [2, 6, 26], b[3] > 2.9e7],
    # Each token counts once.
    "repeated_index": lambda b, r: [b[1] == "0 1 0 1", r[1] == r[0], b[2] == r[2] == "passes"],
    # The loss falls nevertheless.
    "dead_branch": lambda b, r: [b[1] < b[0] / 3, r[1] < b[1] * 2 / 3, b[2] == 0 < r[2]],
    # After 1, 5, 10, 15, 20, 40, 80 steps: the loss rises to where it began.
    "uncleared_gradients": lambda b, r: [
        b[0] == r[0] and r[6] < 1e-6,
        b[1] < 0.15 and b[3] < 0.3 and min(b[2], b[4]) > 0.95 * 4.5,
    ],
    # Right until the weight is 0.
    "log_of_softmax": lambda b, r: [
        *(near(b[i], r[i], 1e-12) for i in range(4)),
        (b[4], r[4]) == (np.inf, 800),
        np.isnan(b[5]).all() and np.array_equal(r[5], [-1, 1]),
    ],
    # A bias for each example: right on these, and wrong on others.
    "lost_sum": lambda b, r: [
        (b[0], r[0]) == ((8, 2), (2,)),
        b[1] < 1e-8 and b[2] > 0.1 and max(r[1:]) < 1e-12,
    ],
    # The output is kept, and the law of the gradients is broken.
    "in_place": lambda b, r: [b[0] == r[0], b[1] > 0.1, r[1] == 0],
    # The shape and the values are right, and each output sees a window.
    "heads_by_reshape": lambda b, r: [
        b[0] == r[0] == (2, 6, 2) and b[1] and r[1],
        np.array_equal(b[2], np.kron(np.eye(2), np.ones((3, 3)))) and r[2].all(),
    ],
    # A plain average, which sums to 1. The repaired weights are those of the boolean mask.
    "integer_mask": lambda b, r: [
        near(b[0], 0.2) and near(b[1:3], [1, 0.4]) and r[2] == 0,
        np.array_equal(r[0], b[3]) and r[0].dtype == b[3].dtype,
    ],
    # The shape, the sums and the losses are the same, and in another text the keys are not found.
    "axes_in_order": lambda b, r: [
        b[0] == r[0] == (8, 8) and near([b[1], r[1]], 1) and near(b[3], r[3]) and b[3][-1] < 0.1,
        float(b[2].rstrip("%")) < 20 and float(r[2].rstrip("%")) > 95,
    ],
}


@every
def test_the_symptom_shows_in_the_broken_version_and_not_in_the_repaired_one(shown):
    for seed in range(3) if shown.name == "dead_branch" else SEEDS:
        versions = shown.module.broken, shown.module.repaired
        broken, repaired = (shown.symptoms(f, seed) for f in versions)
        holds = SYMPTOMS[shown.name](list(broken.values()), list(repaired.values()))
        assert all(holds) and list(broken) == list(repaired), (seed, holds, broken, repaired)
    if shown.name == "assigned_gradient":  # whose labels name the truth
        assert [float(what.rpartition(" ")[2]) for what in repaired] == list(repaired.values())


# ---------------------------------------------------------------- law: the checks

# What each check says to the broken version.
CAUGHT = {
    "wrong_axis": r"AssertionError: the queries' weights sum to \[.+\], not to 1",
    "sqrt_d_model": r"AssertionError: with 8 heads the scores' standard deviation is 0\.3\d, not 1",
    "no_scale": r"AssertionError: the standard deviation goes from [12]\.?\d? at d_k = 4 to 3\d at",
    "reversed_mask": r"AssertionError: output 0 depends on the later inputs \[1, 2, 3, 4\]",
    "empty_row": r"FloatingPointError: softmax of \(4, 4\) made a NaN, in demos/museum/exhibits/",
    "assigned_gradient": r"AssertionError: ∂y/∂a = \d\.\d+, but y moves by \d\.\d+$",
    "unordered_recursion": r"AssertionError: ∂y/∂a = \d+\.\d+, but y moves by \d+\.\d+$",
    "repeated_index": r"GradientError: order 1: ∂L/∂\(input 0\) is wrong .+; 2 of 8 elements",
    "dead_branch": r"AssertionError: no gradient reaches (attention\.w_[qkvo]\.weight(, |$)){4}",
    "uncleared_gradients": r"AssertionError: -0\.177 of w is left, not 0\.9⁵ = 0\.590$",
    "log_of_softmax": r"AssertionError: the gradient is \[nan nan nan nan nan\], not \[",
    "lost_sum": r"AssertionError: the gradient of b \(2,\) has shape \(5, 2\)",
    "in_place": r"AssertionError: along u, L moves by -?\d+\.\d{4}, not -?\d+\.\d{4}",
    "heads_by_reshape": r"AssertionError: head 0, position 1 is wrong",
    "axes_in_order": r"AssertionError: a weight of query 0 is off by 0\.\d\d$",
    "integer_mask": r"AssertionError: padding gets 0\.40 of the weight",
}
# What this project says to whoever makes the mistake in it.
REFUSED = {
    "dead_branch": "TypeError: a conversion to a NumPy array would drop the gradient of (5, 8): ",
    "lost_sum": "ValueError: the VJP of add_bias for input 1 gave shape (5,), which is neither ",
    "in_place": "ValueError: output array is read-only",
    "axes_in_order": "ValueError: transpose(-2, -1) of (4, 4) does not exchange two axes: it ",
    "integer_mask": "TypeError: mask must be boolean, with True where a query may look: got dtype ",
}


def scores_of_width_256(x, w_q, w_k, num_heads):
    """Return scores with a scale that is right at width 256 with 8 heads only."""
    q, k = (split_heads(x @ w, num_heads) for w in (w_q, w_k))
    return q @ k.mT / 32**0.5


def one_gradient_for_all_steps(w, loss, rate, steps):
    loss(w).backward()
    w.data = w.data - steps * rate * w.grad


def looking_along(diagonal):
    """Return self-attention in which each position looks at one place alone."""
    return lambda x: attention(x, x, x, mask=np.eye(x.shape[0], dtype=bool, k=diagonal))


def cleaned(scores, mask):
    p = exhibit("empty_row").module.broken(scores, mask)
    return where(np.isnan(p.data), 0.0, p)


# What is wrong in another way, or too careful; and what the check is to say.
IMPOSTORS = [
    ("sqrt_d_model", scores_of_width_256, "with 16 heads"),
    ("no_scale", lambda q, k: q @ k.mT / q.shape[-1], r"from 0\.\d+ at d_k = 4 to 0\.03\d? at"),
    ("reversed_mask", looking_along(0), r"output 1 does not depend on the inputs \[0"),
    ("reversed_mask", looking_along(-1), "output 0 does not depend on"),  # the token before alone
    ("empty_row", lambda s, mask: 0.0 * s, "or all of it is 0"),
    # finite, and the empty row looks everywhere
    (
        "empty_row",
        lambda s, mask: softmax(s + np.where(mask, 0.0, -1e9)),
        "a weight is not 0 where the mask is False",
    ),
    ("empty_row", lambda s, mask: softmax(s) * mask, r"rows sum to \[.+\], not to 1 1 1 0"),
    ("empty_row", cleaned, "made a NaN"),
    ("uncleared_gradients", one_gradient_for_all_steps, r"0\.500 of w is left"),
    ("lost_sum", lambda x, w, b, g: (0 * w, g.sum(axis=0)), r"along \(u, v\), L moves by"),
    ("integer_mask", lambda s, mask: softmax(s) * mask, "three tokens get .+, and alone "),
    ("axes_in_order", lambda q, k: softmax(q @ k.mT), "is off by"),
]


@every
def test_the_check_catches_the_broken_version_and_passes_the_repaired_one(shown):
    for seed in SEEDS:
        assert re.match(CAUGHT[shown.name], shown.caught(shown.module.broken, seed) or "")
        assert shown.caught(shown.module.repaired, seed) is None


@pytest.mark.parametrize(("name", "impostor", "said"), IMPOSTORS)
def test_the_check_catches_impostors_too(name, impostor, said):
    for seed in SEEDS:
        assert re.search(said, exhibit(name).caught(impostor, seed) or "")


def unordered_pass(root):
    root.grad = 1.0
    unordered(root)


ACCEPTED = [
    ("wrong_axis", lambda q, k, mask: attention_weights(q, k, mask=mask)),
    ("axes_in_order", attention_weights),
    ("reversed_mask", lambda x: attention(x, x, x, mask=causal_mask(x.shape[0]))),
    ("repeated_index", getitem),
    ("log_of_softmax", cross_entropy),
    ("heads_by_reshape", split_heads),
    # An overwritten gradient and a lack of order are two mistakes.
    ("assigned_gradient", unordered_pass),
]


@pytest.mark.parametrize(("name", "right"), ACCEPTED, ids=[name for name, _ in ACCEPTED])
def test_the_check_accepts_what_does_it_right_in_another_way(name, right):
    for seed in SEEDS:
        assert exhibit(name).caught(right, seed) is None


def test_an_accident_in_a_check_is_not_a_catch():
    shown = exhibit("wrong_axis")
    with pytest.raises(TypeError):
        shown.caught(lambda: None)


@every
def test_the_project_refuses_a_mistake_where_it_can_know(shown, monkeypatch):
    if shown.name not in REFUSED:
        assert shown.refused() is None
        return
    assert REFUSED[shown.name] in shown.refused()
    assert " ".join(shown.refused().split()) in " ".join(text(shown).split())
    monkeypatch.setattr(shown.module, "refusal", lambda: None)
    with pytest.raises(AssertionError, match="should have been refused, but raised no error"):
        shown.refused()


# ---------------------------------------------------------------- law: what the texts say besides


def test_gradients_that_add_up_are_momentum_1():
    w, position, velocity = Tensor(3.0, requires_grad=True), 3.0, 0.0
    exhibit("uncleared_gradients").module.broken(w, lambda w: w * w / 2, 0.1, 50)
    for _ in range(50):
        velocity = 1.0 * velocity + position
        position -= 0.1 * velocity
    assert w.item() == pytest.approx(position, rel=1e-12)


def test_passing_each_contribution_on_by_itself_is_right_and_takes_a_step_for_each_path():
    a, steps = Value(3.0), []

    def pass_on(v, contribution):
        v.grad = v.grad + contribution
        for x, vjp in zip(v.inputs, v.vjps, strict=True):
            steps.append(x)
            pass_on(x, vjp(contribution))

    pass_on(doubled(a, 5), 1.0)
    assert a.grad == 2**5 and len(steps) == 2**6 - 2


def test_of_several_gradients_for_one_row_the_last_stays():
    table, g = Tensor(np.zeros((4, 1)), requires_grad=True), np.array([[1.0], [10.0], [100.0]])
    case = exhibit("repeated_index").module
    for lookup, row in ((case.broken, 100), (case.repaired, 111)):
        (found,) = gradients(lookup(table, [3, 3, 3]), [table], g)
        assert found.ravel().tolist() == [0, 0, 0, row]


@pytest.mark.parametrize(("dtype", "gap"), [(np.float64, 746), (np.float32, 104)])
def test_a_weight_underflows_from_the_gap_that_is_named(dtype, gap):
    loss = exhibit("log_of_softmax").module.broken
    with np.errstate(divide="ignore"):
        assert loss(Tensor([0.0, gap], dtype=dtype), 0).item() == np.inf
        assert np.isfinite(loss(Tensor([0.0, gap - 1], dtype=dtype), 0).item())


def test_a_small_number_in_the_log_stops_the_loss_and_kills_the_gradient():
    x = Tensor([0.0, 800.0], requires_grad=True)
    loss = -np.log(softmax(x)[0] + 1e-9)
    assert round(loss.item(), 1) == 20.7
    assert not gradients(loss, [x])[0].any()


def test_cleaning_a_nan_out_of_the_output_leaves_it_in_the_gradients():
    with np.errstate(invalid="ignore"):
        y, _, w, _ = exhibit("empty_row").module.layer(cleaned, np.random.default_rng(0))
        assert np.isfinite(y.data).all()
        (y[:3] ** 2).mean().backward()
    assert np.isnan(w.grad).all()


def test_pytorch_has_both_meanings_of_true_and_counts_versions():
    torch = pytest.importorskip("torch")
    x = torch.randn(1, 3, 4, generator=torch.Generator().manual_seed(0))
    only_first = torch.tensor([[True, False, False]] * 3)
    found = torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=only_first)
    torch.testing.assert_close(found, x[:, :1].expand(1, 3, 4))
    layer = torch.nn.MultiheadAttention(4, 1, batch_first=True)
    _, weights = layer(x, x, x, attn_mask=only_first)
    assert not weights[..., 0].any()
    p = torch.softmax(x.requires_grad_(), dim=-1)
    p.mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        p.sum().backward()


# ---------------------------------------------------------------- what is shown is what runs


@every
def test_the_lines_shown_are_the_lines_that_run(shown):
    broken, repaired = source(shown.module.broken), source(shown.module.repaired)
    lines = [line[3:] for line in difference(broken, repaired)]
    assert [line[2:] for line in lines if line[:1] != "+"] == broken
    renamed = [line.replace("def repaired(", "def broken(") for line in repaired]
    assert [line[2:] for line in lines if line[:1] != "-"] == renamed
    assert "\n".join(f"   {line}".rstrip() for line in lines) in text(shown)
    check = "\n".join(f"     {line}" for line in source(shown.module.check, docstring=False))
    assert check in text(shown) and '"""' not in check
    assert check.count("\n") < 10


@every
def test_every_number_of_a_symptom_is_drawn_and_said(shown):
    drawn = drawing(seen(shown))
    said = drawn.partition('aria-label="')[2].partition('"')[0]
    maps = re.findall(r'<path d="([^"]*)"/><path opacity=".15" d="([^"]*)"/>', drawn)
    lines = [len(points.split()) for points in re.findall(r'points="(.*?)"', drawn)]
    for what, *both in seen(shown):
        assert f">{escape(what)}</text>" in drawn.replace(D_K, "d_k") and escape(what) in said
        for value in both:
            if isinstance(value, np.ndarray) and value.dtype == bool:
                assert [value.sum(), (~value).sum()] in [[x.count("z") for x in m] for m in maps]
            elif np.size(value) > 40:
                assert 2 * len(value) in lines
            elif isinstance(value, np.ndarray):
                assert all(f">{number:.2g}</text>" in drawn for number in value)
            else:
                assert f"{short_text(value)} " in said


@every
def test_one_mistake_is_one_place_of_at_most_three_lines(shown):
    broken, repaired = source(shown.module.broken), source(shown.module.repaired)
    marks = "".join(line[3:4] or " " for line in difference(broken, repaired))
    assert re.fullmatch(r" +-{0,3}\+{1,3} *", marks)
    assert shown.module.broken.__doc__ == shown.module.repaired.__doc__


@every
def test_an_exhibit_tells_its_story_in_whole_sentences_on_one_screen(shown, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    told = (shown.story, shown.module.symptom.__doc__, shown.module.check.__doc__)
    for each in (*told, shown.module.REPAIR):
        assert re.match("[A-Z]", each) and each.rstrip(") \n").endswith("."), each
    assert shown.story.startswith("This mistake ")
    lines = text(shown).splitlines()
    assert len(lines) <= 40 and max(map(len, lines)) <= 100
    assert str(ROOT) not in text(shown)


# ---------------------------------------------------------------- the demo


@pytest.fixture
def inside(tmp_path, capsys, monkeypatch):
    """Give run(*arguments): the demo's printed text, in this process and a folder of its own."""

    def run(*arguments):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["museum", *arguments])
        runpy.run_module("demos.museum.museum", run_name="__main__")
        return capsys.readouterr().out

    return run


def test_the_demo_shows_all_and_says_what_was_caught(inside, run_once, tmp_path):
    printed = inside("--out", "out")
    # (A long title goes on in the next line.)
    row = r"^ +(\w+) +(\S.*?) {2,}caught +passes(?:\n {20,}(\S.*))?$"
    found = [(name, " ".join(title).strip()) for name, *title in re.findall(row, printed, re.M)]
    assert found == [(name, exhibit(name).title) for name in NAMES]
    assert printed.endswith("\n2 of 2 checks passed; --marks shows them\n")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"index.html", "content.json"}
    folder, done = run_once("museum")
    elsewhere = printed.replace("out/index.html", f"{folder}/index.html")
    assert (done.returncode, done.stdout, done.stderr) == (0, elsewhere, "")


def test_the_page_shows_a_mistake_before_it_tells_what_it_is(run_once):
    page = (run_once("museum")[0] / "index.html").read_text("utf-8")
    for number, name in enumerate(NAMES, start=1):
        part = page.partition(f'<h2 id="exhibit-{number}"')[2].partition("<h2")[0]
        before, _, folded = (unescape(re.sub("<[^>]*>", "", x)) for x in part.partition("<details"))
        case = exhibit(name)
        assert "".join(filter(None, source(case.module.broken))) in before
        assert case.title not in before and name not in before and name in folded
        assert folded.index("The check") < folded.index("repaired  passes")
        assert "NOT CAUGHT" not in folded
    # The names tell the mistakes, so no address has one.
    addresses = " ".join(re.findall(r'(?:id|href)="([^"]*)"', page))
    assert not [name for name in NAMES if name in addresses]


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [  # a check that catches nothing, and one that catches the repaired version
        ("repeated_index", "check", "symptom", "broken, .+: expected at least 1, got 0: FAILED"),
        ("in_place", "repaired", "broken", "repaired, .+: expected at most 0, got 1: FAILED"),
    ],
)
def test_the_demo_fails_if_a_check_errs(name, old, new, said, inside, monkeypatch, capsys):
    case = exhibit(name).module
    monkeypatch.setattr(case, old, getattr(case, new))
    with pytest.raises(SystemExit, match="^1$"):
        inside(name, "--out", "out")
    out, err = capsys.readouterr()
    assert re.search(said, err) and ("broken    NOT CAUGHT" in out) == (old == "check")


def test_a_name_may_be_anywhere_and_in_any_case_and_the_value_of_an_option_is_not_one(
    inside, tmp_path
):
    """`in_place` here is a folder, and the name of an exhibit besides."""
    printed = inside("--seed", "3", "NO_SCALE", "--o", "in_place")
    assert re.findall(r"^── .+ (\w+)$", printed, re.MULTILINE) == ["no_scale"]
    assert not [*(tmp_path / "in_place").iterdir()]  # (the page of all exhibits would stay)


def test_the_checks_are_assertions_which_python_must_not_leave_out(tmp_path):
    done = python("-O", "-m", "demos", "museum", "no_scale", "--out", tmp_path)
    said = "the checks are assertions: run the museum without -O, and without PYTHONOPTIMIZE\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


def test_an_unknown_exhibit_is_one_sentence_with_a_guess(tmp_path):
    done = demo_here("museum", "no_scales", "--out", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("there is no exhibit 'no_scales' (did you mean no_scale?): the ")
