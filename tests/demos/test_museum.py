"""The museum of bugs: each mistake shows, its check sees it, and what is shown is what runs."""

import os
import re
import runpy
import subprocess
import sys
from math import isclose
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from attention import attention, attention_weights, causal_mask, split_heads
from attention.scaled_dot_product import scale_factor
from demos.museum.exhibits import NAMES, difference, exhibit, source
from demos.museum.exhibits import __file__ as hall
from demos.museum.exhibits._engine import Value, in_order
from demos.museum.exhibits.unordered_recursion import broken as unordered
from demos.museum.exhibits.unordered_recursion import doubled
from minigrad import Tensor, cross_entropy, getitem, gradients, idea, softmax, where
from minigrad.optim import SGD

ROOT = Path(__file__).parents[2]
SEEDS = range(40)
every = pytest.mark.parametrize("shown", [exhibit(name) for name in NAMES], ids=NAMES)
TITLES = [
    "softmax over the wrong axis",
    "√d_model for √d_k",
    "scale missing",
    "mask reversed",
    "fully masked row",
    "= for +=",
    "recursion without order",
    "repeated index without scatter-add",
    "branch dead to the loss",
    "gradients not cleared",
    "log of a saturated softmax",
    "lost un-broadcast sum",
    "in-place overwrite",
    "heads split by reshape without transpose",
    "integer mask",
]


def test_all_fifteen_are_there_and_nothing_else():
    assert [exhibit(name).title for name in NAMES] == TITLES
    assert [exhibit(name).number for name in NAMES] == list(range(1, 16))
    assert {path.stem for path in Path(hall).parent.glob("[!_]*.py")} == set(NAMES)


# ---------------------------------------------------------------- value: the symptoms


class Seen(NamedTuple):
    """One line of a symptom: what was measured, on the broken version and on the repaired one."""

    what: str
    broken: Any
    repaired: Any


# What holds of an exhibit's symptom, whose lines are handed over in their order.
SYMPTOMS = {
    # the shape is kept, and the first output depends on the last input
    "wrong_axis": lambda shape, sums, felt: [
        shape.broken == shape.repaired,
        np.ptp(sums.broken) > 0.1 and np.allclose(sums.repaired, 1, rtol=1e-7, atol=0),
        felt.broken > 1e-6 and felt.repaired == 0,
    ],
    # too small by the root of the number of heads
    "sqrt_d_model": lambda at_1, _, at_4, __, at_16, largest: [
        at_1.broken == at_1.repaired,
        isclose(at_4.broken, at_4.repaired / 2, rel_tol=1e-12),
        isclose(at_16.broken, at_16.repaired / 4, rel_tol=1e-12),
        all(abs(spread.repaired - 1) < 0.1 for spread in (at_1, at_4, at_16)),
        largest.broken < 2 / 64 < 5 / 64 < largest.repaired,
    ],
    # half of the queries get no gradient at width 1024
    "no_scale": lambda _, dead_at_4, __, ___, largest, dead: [
        largest.broken > 0.99 and largest.repaired < 0.15,
        0.3 <= float(dead.broken.rstrip("%")) / 100 <= 0.6,
        dead_at_4.broken == dead_at_4.repaired == dead.repaired == "0%",
    ],
    # the future is seen, and the past is hidden
    "reversed_mask": lambda felt, count: [
        np.array_equal(felt.repaired, np.tril(np.ones((6, 6), bool))),
        np.triu(felt.broken, 1).sum() == 15 and not np.tril(felt.broken, -1).any(),
        (count.broken, count.repaired) == (5, 0),
    ],
    # the loss is finite, and every gradient NaN
    "empty_row": lambda loss, in_w, in_w_v: [
        loss.broken == loss.repaired and np.isfinite(loss.broken),
        in_w.broken == in_w_v.broken == 9 and in_w.repaired == in_w_v.repaired == 0,
    ],
    # right on a chain only
    "assigned_gradient": lambda *slopes: [
        [float(slope.what.rpartition(" ")[2]) for slope in slopes] == [2, 2, 6, 3],
        [slope.repaired for slope in slopes] == [2, 2, 6, 3],
        [slope.broken for slope in slopes] == [2, 1, 3, 2],
    ],
    # right for one doubling only
    "unordered_recursion": lambda *slopes: [
        [slope.repaired for slope in slopes] == [2, 4, 8, 256],
        [slope.broken for slope in slopes[:3]] == [2, 6, 26] and slopes[3].broken > 2.9e7,
    ],
    # each token counts once
    "repeated_index": lambda occur, slope, distinct: [
        (slope.broken, slope.repaired) == ("0 1 0 1", occur.repaired),
        distinct.broken == distinct.repaired == "passes",
    ],
    # the loss falls nevertheless
    "dead_branch": lambda first, last, moved: [
        last.broken < first.broken / 3 and last.repaired < last.broken * 2 / 3,
        moved.broken == 0 < moved.repaired,
    ],
    # the loss rises to where it began
    "uncleared_gradients": lambda at_1, at_5, at_10, at_15, at_20, at_40, at_80: [
        at_1.broken == at_1.repaired,
        at_5.broken < 0.15 and at_15.broken < 0.3,
        at_10.broken > 0.95 * 4.5 and at_20.broken > 0.95 * 4.5,
        at_80.repaired < 1e-6,
    ],
    # right until the weight is 0
    "log_of_softmax": lambda *seen: [
        *(np.allclose(one.broken, one.repaired, rtol=1e-12, atol=0) for one in seen[:4]),
        (seen[4].broken, seen[4].repaired) == (np.inf, 800),
        np.isnan(seen[5].broken).all() and np.array_equal(seen[5].repaired, [-1, 1]),
    ],
    # a bias for each example
    "lost_sum": lambda shape, here, elsewhere: [
        (shape.broken, shape.repaired) == ((8, 2), (2,)),
        here.broken < 1e-8 and elsewhere.broken > 0.1,
        max(here.repaired, elsewhere.repaired) < 1e-12,
    ],
    # the output is kept, and the law of the gradients broken
    "in_place": lambda output, sums: [
        output.broken == output.repaired,
        sums.broken > 0.1 and sums.repaired == 0,
    ],
    # the shape and the values are right, and each output sees a window
    "heads_by_reshape": lambda shape, back, felt: [
        shape.broken == shape.repaired == (2, 6, 2),
        back.broken and back.repaired,
        np.array_equal(felt.broken, np.kron(np.eye(2), np.ones((3, 3)))),
        felt.repaired.all(),
    ],
    # a plain average, which sums to 1
    "integer_mask": lambda weights, total, padding, boolean: [
        np.allclose(weights.broken, 0.2, rtol=1e-7, atol=0) and isclose(total.broken, 1),
        weights.repaired.dtype == boolean.broken.dtype,
        np.array_equal(weights.repaired, boolean.broken),
        isclose(padding.broken, 0.4) and padding.repaired == 0,
    ],
}


@every
def test_the_symptom_shows_in_the_broken_version_and_not_in_the_repaired_one(shown):
    for seed in range(3) if shown.name == "dead_branch" else SEEDS:
        broken, repaired = (
            shown.symptoms(f, seed) for f in (shown.module.broken, shown.module.repaired)
        )
        assert list(broken) == list(repaired)
        holds = SYMPTOMS[shown.name](*(Seen(what, broken[what], repaired[what]) for what in broken))
        assert all(holds), (seed, holds, broken, repaired)


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
    "integer_mask": r"AssertionError: padding gets 0\.40 of the weight",
}
# What this project says to whoever makes the mistake in it.
REFUSED = {
    "dead_branch": "TypeError: a conversion to a NumPy array would drop the gradient of (5, 8): ",
    "lost_sum": "ValueError: the VJP of add_bias for input 1 gave shape (5,), which is neither ",
    "in_place": "ValueError: output array is read-only",
    "integer_mask": "TypeError: mask must be boolean, with True where a query may look: got dtype ",
}


def scores_over(root):
    """Scores with a scale that is right at width 256 with 8 heads, or at width 256 only."""

    def scores(x, w_q, w_k, num_heads):
        q, k = (split_heads(x @ w, num_heads) for w in (w_q, w_k))
        return q @ k.mT / root(num_heads)

    return scores


def one_pass_and_no_step(w, loss, rate, steps):
    loss(w).backward()


def one_gradient_for_all_steps(w, loss, rate, steps):
    loss(w).backward()
    w.data = w.data - steps * rate * w.grad


def looking_along(diagonal):
    """Self-attention of each position to one place alone."""
    return lambda x: attention(x, x, x, mask=np.eye(x.shape[0], dtype=bool, k=diagonal))


def cleaned(scores, mask):
    p = exhibit("empty_row").module.broken(scores, mask)
    return where(np.isnan(p.data), 0.0, p)


# What is wrong in another way, or too careful; and what the check is to say.
NOT_ZERO = "a weight is not 0 where the mask is False"
IMPOSTORS = [
    ("sqrt_d_model", scores_over(lambda num_heads: 32**0.5), "with 16 heads"),
    ("sqrt_d_model", scores_over(lambda num_heads: (256 / num_heads) ** 0.5), "with 16 heads"),
    ("no_scale", lambda q, k: q @ k.mT / q.shape[-1], r"from 0\.\d+ at d_k = 4 to 0\.03\d? at"),
    ("no_scale", lambda q, k: q @ k.mT / 32, r"from 0\.0\d+ at d_k = 4 to (0\.9|1)"),
    ("no_scale", lambda q, k: 0.0 * (q @ k.mT), "from 0 at d_k = 4 to 0 "),
    ("reversed_mask", looking_along(0), r"output 1 does not depend on the inputs \[0"),
    ("reversed_mask", looking_along(-1), "output 0 does not depend on"),  # the last token alone
    ("reversed_mask", lambda x: 0.0 * x, r"r: output 0 does not depend on the inputs \[0\]$"),
    ("empty_row", lambda s, mask: softmax(s), NOT_ZERO),
    ("empty_row", lambda s, mask: 0.0 * s, "or all of it is 0"),
    # finite, and the empty row looks everywhere
    ("empty_row", lambda s, mask: softmax(s + np.where(mask, 0.0, -1e9)), NOT_ZERO),
    ("empty_row", lambda s, mask: softmax(s) * mask, r"rows sum to \[.+\], not to 1 1 1 0"),
    ("empty_row", cleaned, "made a NaN"),
    ("uncleared_gradients", one_pass_and_no_step, r"1\.000 of w is left"),
    ("uncleared_gradients", one_gradient_for_all_steps, r"0\.500 of w is left"),
    ("lost_sum", lambda x, w, b, g: (0 * w, g.sum(axis=0)), r"along \(u, v\), L moves by"),
    ("lost_sum", lambda x, w, b, g: (x.T @ g, g.mean(axis=0)), r"along \(u, v\), L .+, not "),
    ("lost_sum", lambda x, w, b, g: (g.T @ x, g.sum(axis=0)), r"of w \(3, 2\) has shape \(2, 3\)"),
    ("integer_mask", lambda s, mask: softmax(s) * mask, "three tokens get .+, and alone "),
    ("integer_mask", lambda s, mask: (0 * s + mask) / 3, "three tokens get .+, and alone "),
]


@every
def test_the_check_catches_the_broken_version_whatever_is_drawn(shown):
    for seed in SEEDS:
        assert re.match(CAUGHT[shown.name], shown.caught(shown.module.broken, seed) or "")


@every
def test_the_check_lets_the_repaired_version_pass_whatever_is_drawn(shown):
    for seed in SEEDS:
        assert shown.caught(shown.module.repaired, seed) is None


@pytest.mark.parametrize(("name", "impostor", "said"), IMPOSTORS)
def test_the_check_catches_impostors_too(name, impostor, said):
    for seed in SEEDS:
        assert re.search(said, exhibit(name).caught(impostor, seed) or "")


def scaled(q, k):
    return q @ k.mT * scale_factor(q, k, None)


def scaled_heads(x, w_q, w_k, num_heads):
    return scaled(*(split_heads(x @ w, num_heads) for w in (w_q, w_k)))


def descend(w, loss, rate, steps):
    optimizer = SGD([w], lr=rate)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(w).backward()
        optimizer.step()


def affine(x, w, b, g):
    w, b = (Tensor(values, requires_grad=True) for values in (w, b))
    return gradients(x @ w + b, [w, b], g)


def weights_of(scores, mask):
    """attention_weights of queries that are the scores, over keys of length 1."""
    return attention_weights(scores, Tensor(np.eye(scores.shape[-1])), mask=mask, scale=1.0)


def unordered_pass(root):
    root.grad = 1.0
    unordered(root)


ACCEPTED = [
    ("wrong_axis", lambda q, k, mask: attention_weights(q, k, mask=mask)),
    ("sqrt_d_model", scaled_heads),
    ("no_scale", scaled),
    ("reversed_mask", lambda x: attention(x, x, x, mask=causal_mask(x.shape[0]))),
    ("empty_row", weights_of),
    ("repeated_index", getitem),
    ("uncleared_gradients", descend),
    ("log_of_softmax", cross_entropy),
    ("lost_sum", affine),
    ("heads_by_reshape", split_heads),
    ("integer_mask", lambda scores, mask: weights_of(scores, mask == 1)),
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
    assert " ".join(shown.refused().split()) in " ".join(shown.screen().split())
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


@pytest.mark.parametrize("times", [1, 2, 5, 10])
def test_passing_each_contribution_on_by_itself_is_right_and_takes_a_step_for_each_path(times):
    a, steps = Value(3.0), []

    def pass_on(v, contribution):
        v.grad = v.grad + contribution
        for x, vjp in zip(v.inputs, v.vjps, strict=True):
            steps.append(x)
            pass_on(x, vjp(contribution))

    pass_on(doubled(a, times), 1.0)
    assert a.grad == 2**times and len(steps) == 2 ** (times + 1) - 2


def test_the_small_engine_orders_each_value_before_all_it_was_made_of():
    a = Value(2.0)
    b = a * a
    order = list(in_order((b + a) * b))
    assert len(order) == 4 and order[-2:] == [b, a]
    assert isinstance(a, idea.Value) and isinstance(b, Value)


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
    screen = shown.screen().splitlines()
    at = screen.index(f"   {lines[0]}")
    assert screen[at : at + len(lines)] == [f"   {line}".rstrip() for line in lines]
    check = "\n".join(f"     {line}" for line in source(shown.module.check, docstring=False))
    assert check in shown.screen() and '"""' not in check
    assert check.count("\n") < 10


@every
def test_one_mistake_is_one_place_of_at_most_three_lines(shown):
    broken, repaired = source(shown.module.broken), source(shown.module.repaired)
    marks = "".join(line[3:4] or " " for line in difference(broken, repaired))
    assert re.fullmatch(r" +-{0,3}\+{1,3} *", marks)
    assert shown.module.broken.__doc__ == shown.module.repaired.__doc__


@every
def test_an_exhibit_tells_its_story_in_whole_sentences_on_one_screen(shown):
    told = (shown.story, shown.module.symptom.__doc__, shown.module.check.__doc__)
    for text in (*told, shown.module.REPAIR):
        assert re.match("[A-Z]", text) and text.rstrip(") \n").endswith("."), text
    assert shown.story.startswith("This mistake ")
    lines = shown.screen().splitlines()
    assert len(lines) <= 36 and max(map(len, lines)) <= 100
    assert str(ROOT) not in shown.screen()


# ---------------------------------------------------------------- the demo


def museum(*arguments, before="", flags=()):
    """The demo as a user runs it, or after a line that changes something."""
    command = ["-m", "demos", "museum", *arguments]
    if before:
        code = f"import runpy, sys; {before}; sys.argv = ['demos', 'museum', *sys.argv[1:]]; "
        code += "runpy.run_module('demos', run_name='__main__')"
        command = ["-c", code, *arguments]
    return subprocess.run(
        [sys.executable, *flags, "-W", "error", *command],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=False,
        env=os.environ | {"PYTHONUTF8": "1"},
    )


@pytest.fixture
def inside(tmp_path, capsys, monkeypatch):
    """The demo in this process, in a folder of its own: the lines that it prints."""

    def run(*arguments):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["museum", *arguments])
        runpy.run_module("demos.museum.museum", run_name="__main__")
        return capsys.readouterr().out.splitlines()

    return run


def test_the_demo_shows_all_and_says_what_was_caught(tmp_path):
    done = museum("--out", str(tmp_path))
    assert done.returncode == 0 and not done.stderr
    assert re.findall(r"^── (\d+) · (.+?) ─+ (\w+)$", done.stdout, re.MULTILINE) == [
        (str(i), title, name)
        for i, (title, name) in enumerate(zip(TITLES, NAMES, strict=True), start=1)
    ]
    assert len(re.findall(r" caught +passes$", done.stdout, re.MULTILINE)) == 15
    assert "expected at least 15, got 15: passed" in done.stdout
    assert "expected at most 0, got 0: passed" in done.stdout
    assert not list(tmp_path.iterdir())


@every
def test_one_exhibit_alone_leaves_a_line_of_forty_for_the_prompt(shown, inside):
    lines = inside(shown.name, "--out", "out")
    assert len(lines) <= 39 and lines[0].endswith(f" {shown.name}")
    assert lines[-2].endswith("expected at least 1, got 1: passed")


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        # a check that catches nothing
        ("repeated_index", "case.check = case.symptom", "broken, .+: expected at least 1, got 0"),
        # and one that catches the repaired version
        ("in_place", "case.repaired = case.broken", "repaired, .+: expected at most 0, got 1"),
    ],
)
def test_the_demo_fails_if_a_check_errs(name, change, said, tmp_path):
    before = f"from demos.museum.exhibits import {name} as case; {change}"
    done = museum(name, "--out", str(tmp_path), before=before)
    assert done.returncode == 1
    assert re.search(f"{said}: FAILED", done.stderr)
    assert ("broken    NOT CAUGHT" in done.stdout) == said.startswith("broken")


# (`in_place` here is a folder, and the name of an exhibit besides.)
@pytest.mark.parametrize(
    "words",
    [
        ["--out", "in_place", "no_scale"],
        ["no_scale", "--out=in_place", "--seed", "3"],
        ["--seed", "3", "NO_SCALE", "--o", "in_place"],
    ],
    ids=["behind", "before", "between"],
)
def test_a_name_may_be_anywhere_and_in_any_case_and_the_value_of_an_option_is_not_one(
    words, inside, tmp_path
):
    names = re.findall(r"^── .+ (\w+)$", "\n".join(inside(*words)), re.MULTILINE)
    assert names == ["no_scale"] and (tmp_path / "in_place").is_dir()


CLOSED = "the checks are assertions: run the museum without -O"


@pytest.mark.parametrize(
    ("flags", "name", "said"),
    [
        (["-O"], "no_scale", CLOSED),
        (["-OO"], "no_scale", CLOSED),
        ([], "no_scales", "there is no exhibit 'no_scales' (did you mean no_scale?): the "),
    ],
    ids=["-O", "-OO", "unknown"],
)
def test_a_refusal_is_one_sentence(flags, name, said, tmp_path):
    done = museum(name, "--out", str(tmp_path), flags=flags)
    assert done.returncode == 2 and not done.stdout
    assert done.stderr.startswith(said) and done.stderr.count("\n") == 1
