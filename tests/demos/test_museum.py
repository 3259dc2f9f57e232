"""The museum of bugs: each mistake shows, its check sees it, and what is shown is what runs."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from attention import attention, attention_weights, causal_mask, split_heads
from attention.scaled_dot_product import masked_softmax, scale_factor
from demos.museum.exhibits import NAMES, difference, exhibit, source
from demos.museum.exhibits import __file__ as hall
from demos.museum.exhibits._engine import Value, in_order
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
# What each check says to the broken version.
CAUGHT = {
    "wrong_axis": r"AssertionError: the queries' weights sum to \[.+\], not to 1",
    "sqrt_d_model": r"AssertionError: with 8 heads their standard deviation is 0\.3\d, not 1",
    "no_scale": r"AssertionError: the standard deviation goes from [12]\.?\d? at d_k = 4 to 3\d at",
    "reversed_mask": r"AssertionError: output 0 feels the later inputs \[1, 2, 3, 4\]",
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


def by_constant(x, w_q, w_k, num_heads):
    q, k = (split_heads(x @ w, num_heads) for w in (w_q, w_k))
    return q @ k.mT / 32**0.5  # √d_k at width 256 with 8 heads, and nowhere else


def by_tested_width(x, w_q, w_k, num_heads):
    q, k = (split_heads(x @ w, num_heads) for w in (w_q, w_k))
    return q @ k.mT / (256 / num_heads) ** 0.5


def one_pass_and_no_step(w, loss, rate, steps):
    loss(w).backward()


def one_gradient_for_all_steps(w, loss, rate, steps):
    loss(w).backward()
    w.data = w.data - steps * rate * w.grad


# What is wrong in another way, or too careful; and what the check is to say.
HIDDEN = r"output 1 does not feel the inputs \[0"
IMPOSTORS = [
    ("sqrt_d_model", by_constant, "with 16 heads"),
    ("sqrt_d_model", by_tested_width, "with 16 heads"),
    ("no_scale", lambda q, k: q @ k.mT / q.shape[-1], r"from 0\.\d+ at d_k = 4 to 0\.03\d? at"),
    ("no_scale", lambda q, k: q @ k.mT / 32, r"from 0\.0\d+ at d_k = 4 to (0\.9|1)"),
    ("no_scale", lambda q, k: 0.0 * (q @ k.mT), "from 0 at d_k = 4 to 0 "),
    (
        "reversed_mask",
        lambda x: attention(x, x, x, mask=np.eye(x.shape[0], dtype=bool)),
        HIDDEN,
    ),
    (
        "reversed_mask",  # the last word alone
        lambda x: attention(x, x, x, mask=np.eye(x.shape[0], dtype=bool, k=-1)),
        "output 0 does not feel",
    ),
    ("empty_row", lambda s, mask: softmax(s), "a weight is not 0 where the mask is False"),
    ("empty_row", lambda s, mask: 0.0 * s, "or all of it is 0"),
    (
        "empty_row",  # finite, and the empty row looks everywhere
        lambda s, mask: softmax(s + np.where(mask, 0.0, -1e9)),
        "a weight is not 0 where the mask is False",
    ),
    (
        "empty_row",
        lambda s, mask: softmax(s) * mask,
        r"rows sum to \[.+\], not to 1 1 1 0",
    ),
    ("uncleared_gradients", one_pass_and_no_step, r"1\.000 of w is left"),
    ("uncleared_gradients", one_gradient_for_all_steps, r"0\.500 of w is left"),
    ("lost_sum", lambda x, w, b, g: (0 * w, g.sum(axis=0)), r"along \(u, v\), L moves by"),
    ("lost_sum", lambda x, w, b, g: (g.T @ x, g.sum(axis=0)), r"of w \(3, 2\) has shape \(2, 3\)"),
    ("integer_mask", lambda s, mask: softmax(s) * mask, "three words get .+, and alone "),
    ("integer_mask", lambda s, mask: (0 * s + mask) / 3, "three words get .+, and alone "),
]


def seen(name, seed=0):
    """The symptoms of both versions."""
    shown = exhibit(name)
    return [shown.symptoms(f, seed) for f in (shown.module.broken, shown.module.repaired)]


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


# ---------------------------------------------------------------- value: the symptoms


def test_all_fifteen_are_there_and_nothing_else():
    assert [exhibit(name).title for name in NAMES] == TITLES
    assert [exhibit(name).number for name in NAMES] == list(range(1, 16))
    assert {path.stem for path in Path(hall).parent.glob("[!_]*.py")} == set(NAMES)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_wrong_axis_keeps_the_shape_and_lets_the_first_output_feel_the_last_input(seed):
    broken, repaired = seen("wrong_axis", seed)
    assert broken["shape of the weights"] == repaired["shape of the weights"]
    assert np.ptp(broken["sums of the five queries' weights"]) > 0.1
    np.testing.assert_allclose(repaired["sums of the five queries' weights"], 1)
    felt = "largest |∂ output 0 / ∂ input 4|"
    assert broken[felt] > 1e-6 and repaired[felt] == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_the_root_of_d_model_makes_scores_too_small_by_the_root_of_the_heads(seed):
    broken, repaired = seen("sqrt_d_model", seed)
    for heads in (1, 4, 16):
        spread = f"H = {heads}: standard deviation of the scores"
        assert broken[spread] == pytest.approx(repaired[spread] / heads**0.5, rel=1e-12)
        assert repaired[spread] == pytest.approx(1, abs=0.1)
    largest = "H = 16: mean largest of 64 weights"
    assert broken[largest] < 2 / 64 < 5 / 64 < repaired[largest]


@pytest.mark.parametrize("seed", SEEDS)
def test_without_the_scale_half_of_the_queries_are_told_nothing_at_width_1024(seed):
    broken, repaired = seen("no_scale", seed)
    at = "d_k = {}: {}".format
    largest, dead = "median largest of 64 weights", "queries with ‖∂L/∂q‖ < 0.001"
    assert broken[at(1024, largest)] > 0.99 and repaired[at(1024, largest)] < 0.15
    assert 0.3 <= float(broken[at(1024, dead)].rstrip("%")) / 100 <= 0.6
    assert broken[at(4, dead)] == repaired[at(4, dead)] == repaired[at(1024, dead)] == "0%"


def test_a_reversed_mask_shows_the_future_and_hides_the_past():
    (broken, repaired), felt = seen("reversed_mask"), "inputs that each output feels"
    np.testing.assert_array_equal(repaired[felt], np.tril(np.ones((6, 6), bool)))
    assert np.triu(broken[felt], 1).sum() == 15 and not np.tril(broken[felt], -1).any()
    count = "outputs that feel a later input"
    assert (broken[count], repaired[count]) == (5, 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_empty_row_leaves_the_loss_finite_and_every_gradient_nan(seed):
    broken, repaired = seen("empty_row", seed)
    loss, *gone = broken
    assert broken[loss] == repaired[loss] and np.isfinite(broken[loss])
    assert [broken[name] for name in gone] == [9, 9] and [repaired[name] for name in gone] == [0, 0]


def test_an_assigned_gradient_is_right_on_a_chain_only():
    broken, repaired = seen("assigned_gradient")
    truth = [float(name.rpartition(" ")[2]) for name in repaired]
    assert list(repaired.values()) == truth == [2, 2, 6, 3]
    assert list(broken.values()) == [2, 1, 3, 2]


def test_a_recursion_without_order_is_right_for_one_doubling_only():
    broken, repaired = seen("unordered_recursion")
    assert list(repaired.values()) == [2, 4, 8, 256]
    assert list(broken.values())[:3] == [2, 6, 26] and list(broken.values())[3] > 2.9e7


def test_a_repeated_index_without_scatter_add_counts_each_word_once():
    broken, repaired = seen("repeated_index")
    occur, slope, distinct = broken
    assert (broken[slope], repaired[slope]) == ("0 1 0 1", repaired[occur])
    assert broken[distinct] == repaired[distinct] == "passes"


@pytest.mark.parametrize("seed", range(3))
def test_with_a_dead_branch_the_loss_falls_nevertheless(seed):
    broken, repaired = seen("dead_branch", seed)
    first, last, moved = broken
    assert broken[last] < broken[first] / 3
    assert repaired[last] < broken[last] * 2 / 3
    assert broken[moved] == 0 < repaired[moved]


def test_gradients_not_cleared_let_the_loss_rise_to_where_it_began():
    broken, repaired = seen("uncleared_gradients")
    at = "loss after step {}".format
    assert broken[at(1)] == repaired[at(1)]
    assert broken[at(5)] < 0.15 and broken[at(15)] < 0.3
    assert broken[at(10)] > 0.95 * 4.5 and broken[at(20)] > 0.95 * 4.5
    assert repaired[at(80)] < 1e-6


def test_the_log_of_a_softmax_is_right_until_the_weight_is_0():
    broken, repaired = seen("log_of_softmax")
    for gap in (10, 700):
        for what in (f"loss at a gap of {gap}", f"gradient at a gap of {gap}"):
            np.testing.assert_allclose(broken[what], repaired[what], rtol=1e-12)
    assert broken["loss at a gap of 800"] == np.inf and repaired["loss at a gap of 800"] == 800
    assert np.isnan(broken["gradient at a gap of 800"]).all()
    np.testing.assert_array_equal(repaired["gradient at a gap of 800"], [-1, 1])


@pytest.mark.parametrize("seed", SEEDS)
def test_a_lost_sum_makes_a_bias_for_each_example(seed):
    broken, repaired = seen("lost_sum", seed)
    shape, here, elsewhere = broken
    assert (broken[shape], repaired[shape]) == ((8, 2), (2,))
    assert broken[here] < 1e-8 and broken[elsewhere] > 0.1
    assert max(repaired[here], repaired[elsewhere]) < 1e-12


@pytest.mark.parametrize("seed", SEEDS)
def test_an_overwritten_array_keeps_the_output_and_breaks_the_gradients_law(seed):
    broken, repaired = seen("in_place", seed)
    output, sums = broken
    assert broken[output] == repaired[output]
    assert broken[sums] > 0.1 and repaired[sums] == 0


def test_heads_by_reshape_have_the_right_shape_and_values_and_see_a_window():
    broken, repaired = seen("heads_by_reshape")
    shape, back, felt = broken
    assert broken[shape] == repaired[shape] == (2, 6, 2)
    assert broken[back] and repaired[back]
    np.testing.assert_array_equal(broken[felt], np.kron(np.eye(2), np.ones((3, 3))))
    assert repaired[felt].all()


def test_an_integer_mask_makes_a_plain_average_that_sums_to_1():
    broken, repaired = seen("integer_mask")
    np.testing.assert_allclose(broken["weights"], 0.2)
    assert broken["their sum"] == pytest.approx(1)
    np.testing.assert_array_equal(
        repaired["weights"], broken["weights, if the mask is boolean"], strict=True
    )
    assert repaired["weight on padding"] == 0 and broken["weight on padding"] == pytest.approx(0.4)


# ---------------------------------------------------------------- law: the checks


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


def test_an_overwritten_gradient_and_a_lack_of_order_are_two_mistakes():
    from demos.museum.exhibits import unordered_recursion as order

    def unordered(root):
        root.grad = 1.0
        order.broken(root)

    assert exhibit("assigned_gradient").caught(unordered) is None  # as its check says
    assert exhibit("unordered_recursion").caught(unordered)


def test_an_accident_in_a_check_is_no_catch():
    shown = exhibit("wrong_axis")
    with pytest.raises(TypeError):
        shown.caught(lambda: None)


@every
def test_the_project_answers_where_it_can_know(shown):
    if shown.name not in REFUSED:
        assert shown.refused() is None
        return
    assert REFUSED[shown.name] in shown.refused()
    assert " ".join(shown.refused().split()) in " ".join(shown.screen().split())


def test_a_mistake_that_is_not_refused_is_said_to_be_let_through(monkeypatch):
    shown = exhibit("integer_mask")
    monkeypatch.setattr(shown.module, "refusal", lambda: None)
    with pytest.raises(AssertionError, match="was to be refused, and went through"):
        shown.refused()


def test_this_projects_pieces_pass_the_checks_of_the_exhibits():
    def project(x, w_q, w_k, num_heads):
        q, k = (split_heads(x @ w, num_heads) for w in (w_q, w_k))
        return scaled(q, k)

    def scaled(q, k):
        return q @ k.mT * scale_factor(q, k, None)

    def descend(w, loss, rate, steps):
        optimizer = SGD([w], lr=rate)
        for _ in range(steps):
            optimizer.zero_grad()
            loss(w).backward()
            optimizer.step()

    def affine(x, w, b, g):
        w, b = (Tensor(values, requires_grad=True) for values in (w, b))
        return gradients(x @ w + b, [w, b], g)

    ours = {
        "wrong_axis": lambda q, k, mask: attention_weights(q, k, mask=mask),
        "sqrt_d_model": project,
        "no_scale": scaled,
        "reversed_mask": lambda x: attention(x, x, x, mask=causal_mask(x.shape[0])),
        "empty_row": masked_softmax,
        "repeated_index": getitem,
        "uncleared_gradients": descend,
        "log_of_softmax": cross_entropy,
        "lost_sum": affine,
        "heads_by_reshape": split_heads,
        "integer_mask": lambda scores, mask: masked_softmax(scores, mask == 1),
    }
    for name, f in ours.items():
        for seed in SEEDS:
            assert exhibit(name).caught(f, seed) is None, name


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
    broken = exhibit("empty_row").module.broken

    def cleaned(scores, mask):
        p = broken(scores, mask)
        return where(np.isnan(p.data), 0.0, p)

    with np.errstate(invalid="ignore"):
        y, _, w, _ = exhibit("empty_row").module.layer(cleaned, np.random.default_rng(0))
        assert np.isfinite(y.data).all()
        (y[:3] ** 2).mean().backward()
    assert np.isnan(w.grad).all()
    assert "made a NaN" in exhibit("empty_row").caught(cleaned)


def test_attention_gives_a_query_without_keys_weights_0():
    q, k = Tensor(np.ones((2, 3))), Tensor(np.ones((4, 3)))
    mask = np.array([[True] * 4, [False] * 4])
    np.testing.assert_array_equal(attention_weights(q, k, mask=mask).data, [[0.25] * 4, [0.0] * 4])


def test_the_check_of_the_lost_sum_catches_a_mean_as_well():
    said = exhibit("lost_sum").caught(lambda x, w, b, g: (x.T @ g, g.mean(axis=0)))
    assert re.match(r"AssertionError: along \(u, v\), L moves by .+, not ", said)


def test_the_causal_gradient_test_refuses_a_mask_that_hides_everything():
    said = exhibit("reversed_mask").caught(lambda x: 0.0 * x)
    assert said == "AssertionError: output 0 does not feel the inputs [0]"


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
def test_the_lines_shown_are_the_lines_of_the_two_functions(shown):
    broken, repaired = source(shown.module.broken), source(shown.module.repaired)
    lines = [line[3:] for line in difference(broken, repaired)]
    assert [line[2:] for line in lines if line[:1] != "+"] == broken
    renamed = [line.replace("def repaired(", "def broken(") for line in repaired]
    assert [line[2:] for line in lines if line[:1] != "-"] == renamed
    screen = shown.screen().splitlines()
    at = screen.index(f"   {lines[0]}")
    assert screen[at : at + len(lines)] == [f"   {line}".rstrip() for line in lines]


@every
def test_one_mistake_is_one_place_of_at_most_three_lines(shown):
    marks = [
        line[3:4] for line in difference(source(shown.module.broken), source(shown.module.repaired))
    ]
    removed, added = marks.count("-"), marks.count("+")
    assert removed <= 3 and 1 <= added <= 3
    first = min(i for i, mark in enumerate(marks) if mark in "-+" and mark)
    assert set(marks[first : first + removed + added]) <= {"-", "+"}
    assert shown.module.broken.__doc__ == shown.module.repaired.__doc__


@every
def test_the_check_shown_is_the_check_that_runs(shown):
    listed = "\n".join(f"     {line}" for line in source(shown.module.check, docstring=False))
    assert listed in shown.screen() and '"""' not in listed
    assert listed.count("\n") < 10


@every
def test_an_exhibit_tells_its_story_in_whole_sentences(shown):
    told = (shown.story, shown.module.symptom.__doc__, shown.module.check.__doc__)
    for text in (*told, shown.module.REPAIR):
        assert re.match(r"[A-ZT`w∂0-9n]", text) and text.rstrip(") \n").endswith("."), text
    assert shown.story.startswith("Met ")


@every
def test_an_exhibit_fits_one_screen(shown):
    lines = shown.screen().splitlines()
    assert len(lines) <= 36 and max(map(len, lines)) <= 100
    assert str(ROOT) not in shown.screen()


# ---------------------------------------------------------------- the demo


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
def test_one_exhibit_alone_leaves_a_line_of_forty_for_the_prompt(
    shown, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(sys, "argv", ["museum", shown.name, "--out", str(tmp_path)])
    runpy.run_module("demos.museum.museum", run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 39 and lines[0].endswith(f" {shown.name}")
    assert lines[-2].endswith("expected at least 1, got 1: passed")


def test_the_demo_fails_if_a_check_catches_nothing(tmp_path):
    blind = "from demos.museum.exhibits import repeated_index as case; case.check = case.symptom"
    done = museum("repeated_index", "--out", str(tmp_path), before=blind)
    assert done.returncode == 1 and "broken    NOT CAUGHT" in done.stdout
    assert "broken, and caught by the check: expected at least 1, got 0: FAILED" in done.stderr


def test_the_demo_fails_if_a_check_catches_the_repaired_version(tmp_path):
    unrepaired = "from demos.museum.exhibits import in_place as case; case.repaired = case.broken"
    done = museum("in_place", "--out", str(tmp_path), before=unrepaired)
    assert done.returncode == 1
    assert "repaired, and caught by the check: expected at most 0, got 1: FAILED" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["--out", "{}", "no_scale"],
        ["no_scale", "--out={}", "--seed", "3"],
        ["--seed", "3", "NO_SCALE", "--o", "{}"],
    ],
    ids=["behind", "before", "between"],
)
def test_a_name_stands_anywhere_and_in_any_case(words, tmp_path, capsys, monkeypatch):
    out = tmp_path / "in_place"  # a folder of an exhibit's name is none
    monkeypatch.setattr(sys, "argv", ["museum", *(word.format(out) for word in words)])
    runpy.run_module("demos.museum.museum", run_name="__main__")
    assert re.findall(r"^── .+ (\w+)$", capsys.readouterr().out, re.MULTILINE) == ["no_scale"]
    assert out.is_dir()


def test_the_value_of_an_option_is_no_name(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["museum", "--out", "in_place", "no_scale"])
    runpy.run_module("demos.museum.museum", run_name="__main__")
    assert re.findall(r"^── .+ (\w+)$", capsys.readouterr().out, re.MULTILINE) == ["no_scale"]
    assert (tmp_path / "in_place").is_dir()


@pytest.mark.parametrize("flag", ["-O", "-OO"])
def test_without_assertions_the_museum_is_closed(flag, tmp_path):
    done = museum("no_scale", "--out", str(tmp_path), flags=[flag])
    assert done.returncode == 2 and not done.stdout
    assert done.stderr.startswith("the checks are assertions: run the museum without -O")
    assert "Traceback" not in done.stderr


def test_an_unknown_exhibit_is_one_sentence_with_a_guess(tmp_path):
    done = museum("no_scales", "--out", str(tmp_path))
    assert done.returncode == 2 and not done.stdout
    assert done.stderr.startswith("there is no exhibit 'no_scales' (did you mean no_scale?): the ")
