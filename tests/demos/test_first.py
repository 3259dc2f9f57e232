"""The demos to begin with: what their pages say is what they measured. No page has it typed in."""

import ast
import re
from html import unescape

import numpy as np
import pytest

from attention import scaling
from attention.scaling import ratios, summary, sweep
from demos import files
from demos.first._sweep import plot_sweep

RUNS = [("first_gradient", "--seed", "1"), ("scaling", "--seed", "1")]


@pytest.fixture(scope="module")
def ran(finished):
    """What both demos printed at seed 1, and their pages: a number of seed 0 would be found."""
    done = {}
    for run in RUNS:
        folder, printed = finished(*run)
        page = re.sub(r' srcdoc="[^"]*"', "", (folder / "index.html").read_text("utf-8"))
        page = re.sub(r"<(style|svg|pre)\b.*?</\1>", "", page, flags=re.DOTALL)
        done[run[0]] = printed, unescape(re.sub("<[^>]*>", " ", page))
    return done


def one(pattern, text):
    """The numbers of the only place that a pattern fits."""
    (found,) = re.findall(pattern, text)
    found = (found,) if isinstance(found, str) else found
    return [float(number.replace(",", "")) for number in found]


# ------------------------------------------------------------------ value


def test_the_answers_of_first_gradient_are_those_of_pencil_and_paper(ran):
    _, page = ran["first_gradient"]
    weight, gain, average, of_score = one(
        r"gradient of score 1 is ([\d.]+) · \(([\d.]+) - ([\d.]+)\) = ([\d.]+),", page
    )
    assert (weight, gain, average, of_score) == (0.75, 4, 2, weight * (gain - average))
    (of_scale,) = one(r"∂L/∂scale = Σⱼ ∂L/∂zⱼ q·kⱼ = ([\d.]+)\.", page)
    assert of_scale == pytest.approx(3 * np.log(3), abs=5e-4)


def test_scaling_says_how_the_number_of_keys_changes_the_factor(ran):
    printed, page = ran["scaling"]
    norms = [one(rf" {how} ∂L/∂q .*analytic (\S+) ", printed)[0] for how in ("scaled", "unscaled")]
    (times,) = one(r"gradient of q is ([\d,]+) times smaller on the right", page)
    assert times == round(norms[0] / norms[1])
    extreme, usual, longer = (
        ratios(sweep((d_k,), keys=keys, seed=1))[0]
        for d_k, keys in ((512, 5), (64, 64), (64, 1024))
    )
    (large,) = one(r"keys the median is (\d+) times larger without the scale", page)
    (small,) = one(r"it is ([\d,]+) times smaller\.\) The mean is larger in all three", page)
    assert large == round(longer.median) and small == pytest.approx(1 / extreme.median, abs=0.5)
    means = one(r"in all three cases: ([\d.]+), ([\d.]+) and (\d+) times", page)
    np.testing.assert_allclose(means, [extreme.mean, usual.mean, longer.mean], rtol=0.03)
    assert extreme.median < 0.01 and min(means) > 2


# ------------------------------------------------------------------ law: every number is computed


# What looks measured: a percentage, "so many times", or a decimal.
MEASURED = re.compile(r"(?<![\w.,/√])\d[\d,]*(?:\.\d+)? ?(?:%| times)|(?<![\w.])\d*\.\d+")
# What is typed in on purpose: limits (what is called dead, or learned), guesses that a question
# offers, chance, learning rates, versions and chapters; and facts of a text, which its tests have.
TYPED = {
    "charlm": ["0.8", "2.4"],
    "digits": ["10 %"],
    "laboratory/_steps": ["98 %", "16.5"],
    "laboratory/_trained": [".001", "98 %"],
    "love_transformers": ["0.001", "4.5", "5.75"],
    "love_you": ["0.0", "64 times", "745.13"],
    "mammal_and_reptile": ["20 %"],
    "pretrained": ["0.1", "2.0"],
    "pretrained/_factor": ["0.02"],
    "pretrained/_kept_heads": ["2.0", "22.6"],
    "recall": ["0.1", "1.0", "16.5"],
    "sky_is_blue": [".9", "0.001"],
    "sort": ["10 %"],
    "texts/_seven_words": [".999"],
    "two_moons": ["88 %", "92 %", "96 %"],
    "why_half": ["0.001"],
}


def typed(tree, returned=False):
    """Every text in a call of a page's method that is typed in, and not formatted from a value.

    If parts of the page are made by functions, what these return is looked at too.
    """
    for call in ast.walk(tree):
        its = getattr(call.func, "value", call.func) if isinstance(call, ast.Call) else None
        of_page = getattr(its, "id", "") in ("page", "Page", "TextPage")
        if not of_page and not (returned and isinstance(call, ast.Return)):
            continue
        forms = {
            id(part)
            for value in ast.walk(call)
            if isinstance(value, ast.FormattedValue) and value.format_spec
            for part in ast.walk(value.format_spec)
        }
        for part in ast.walk(call):
            is_text = isinstance(part, ast.Constant) and isinstance(part.value, str)
            if is_text and id(part) not in forms:
                yield part.value


def test_no_measured_number_is_typed_into_a_page():
    helpers = [p for path in files().values() for p in path.parent.glob("_[!_]*.py")]
    paths = {f"{p.parent.name}/{p.stem}": p for p in helpers}  # (two folders may have one name)
    paths |= files()
    found = {}
    for name, path in paths.items():
        texts = typed(ast.parse(path.read_text("utf-8")), path.parent.name == "laboratory")
        numbers = {match.strip() for text in texts for match in MEASURED.findall(text)}
        if numbers:
            found[name] = sorted(numbers)
    assert found == {name: sorted(numbers) for name, numbers in TYPED.items()}


def test_the_figure_shows_every_measurement_at_every_scale_and_names_functions_in_grey():
    def third(d_k):
        return 1 / 3

    exponents = (0.0, 0.5, 0.25, third)
    rows = list(sweep([4, 16], exponents, repeats=2))
    figure, found = plot_sweep(rows), summary(rows)
    drawn = [line.get_ydata() for panel in figure.axes for line in panel.lines]
    assert len(drawn) == 4 * len(scaling.MEASURED)
    for name in scaling.MEASURED:
        for a in (0.0, 0.5, 0.25, "third"):
            wanted = [found[d_k, a][name][0] for d_k in (4, 16)]
            assert any(np.array_equal(line, wanted) for line in drawn)
    names = {text.get_text() for panel in figure.axes for text in panel.texts}
    assert {"no scale", "d_k^-0.25", "third"} <= names
