"""The demos to begin with: what they say is what they measured, and none of it is typed in."""

import ast
import re
from html import unescape

import numpy as np
import pytest

from attention import scaling
from attention.scaling import ratios, saturations, summary
from demos import files
from demos.first._sweep import plot_sweep, plus_minus
from tests.demos.running import assert_light


def said(ran):
    """Return what a demo printed, in one line: its paragraphs are those of its page."""
    return " ".join(ran[1].split())


def one(pattern, text):
    """Return the numbers of the only place that a pattern fits."""
    (found,) = re.findall(pattern, text)
    found = (found,) if isinstance(found, str) else found
    return [float(number.replace(",", "")) for number in found]


# ------------------------------------------------------------------ value


def test_first_gradient_shows_sixteen_gradients_three_ways_and_their_check(finished):
    folder, printed = finished("first_gradient", "--seed", "1")
    kept = {"graph.png", "graph.svg", "small.svg", "index.html", "content.json", "steps.html"}
    assert {path.name for path in folder.iterdir()} == kept
    assert_light(folder.parent)
    rows = re.findall(r"^   ∂L/∂([qkv])[₁₂]?  +(-?\d.*)$", printed, re.MULTILINE)
    rows = [re.split("  +", numbers) for _, numbers in rows]
    assert [len(row) for row in rows] == [3] * 5  # by the engine, by hand, by moving
    assert all(row == [row[0]] * 3 for row in rows) and "FAILED" not in printed
    found = [float(number) for row in rows for number in row[0].split(", ")]
    expected = [np.log(3) * 3 / 4, -3, 0, 0, 1.5, 0, 0, 0, -1.5, 0, 0, 0, 0.75, -0.75, 0.25, -0.25]
    np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_the_answers_of_first_gradient_are_those_of_pencil_and_paper(finished):
    text = said(finished("first_gradient", "--seed", "1"))
    weight, gain, average, of_score = one(
        r"gradient of score 1 is ([\d.]+) · \(([\d.]+) - ([\d.]+)\) = ([\d.]+),", text
    )
    assert (weight, gain, average, of_score) == (0.75, 4, 2, weight * (gain - average))
    (of_scale,) = one(r"∂L/∂scale = Σⱼ ∂L/∂zⱼ q·kⱼ = ([\d.]+)\.", text)
    assert of_scale == pytest.approx(3 * np.log(3), abs=5e-4)


@pytest.fixture
def ran(finished):
    """Run the main demo once, with another seed than the committed numbers have."""
    return finished("scaling", "--seed", "1")


def test_scaling_says_how_the_number_of_keys_changes_the_factor(ran):
    text = said(ran)
    norms = [one(rf"{how} ∂L/∂q +(\S+) ", ran[1])[0] for how in (" scaled", "unscaled")]
    assert one(r"The query's ∂L/∂q is ([\d,]+) times smaller", text) == [round(norms[0] / norms[1])]
    off = re.findall(r"^ +(?:un)?scaled ∂L/∂[qv] +(\S+) +(\S+) +(\S+)$", ran[1], re.MULTILINE)
    assert len(off) == 4 and all(float(apart) < 1e-6 for *_, apart in off)
    for d_k, keys in ((512, 5), (64, 64), (64, 1024)):
        (cell,) = ratios(saturations((d_k,), keys=keys, seed=1))
        row = one(rf"(?m)^ +{d_k} +{keys:,} +(\S+) +(\S+) +(\S+) +(\d+)% +(\d+)%$", ran[1])
        shares = cell.top_tenth_without, cell.top_tenth_with
        assert row[::2] == pytest.approx([cell.median, cell.mean, 100 * shares[1]], rel=0.06)
        assert row[3] == pytest.approx(100 * shares[0], abs=0.5)
    larger, cells, smaller = one(r"larger in (\d+) of the (\d+) cells, and smaller in (\d+),", text)
    assert cells == 45 and larger + smaller == cells and 28 <= larger <= 36
    assert one(r"In (\d+) of 45: it is", text) == [45]


def test_the_sweep_of_scaling_is_folded_on_its_page_and_measures_what_it_claims(ran):
    folder, printed = ran
    page = unescape(re.sub("</?(var|sub)>", "", (folder / "index.html").read_text("utf-8")))
    number = r"<td[^>]*>([\d.]+) ± [\d.]+</td>"
    rows = re.findall(rf"<tr><td[^>]*>(\d+)</td><td>(none|1/√dk)</td>{number * 8}</tr>", page)
    assert len(rows) == 18 and " ± " not in printed and len(printed.splitlines()) <= 80
    table = {(int(d), s == "none"): [float(m) for m in found] for d, s, *found in rows}
    for (d_k, raw), (variance, entropy, *_) in table.items():
        assert variance == pytest.approx(d_k if raw else 1, rel=0.15)
        assert raw or 0.85 < entropy < 0.92
    mean, median, dead = 3, 5, 6
    assert table[1024, True][mean] > 3 * table[4, True][mean]  # one average hides it
    assert table[1024, True][median] < table[4, True][median] / 20
    assert table[1024, True][dead] > 0.3 and table[1024, False][dead] == 0
    both = ((1026.2, 9.9), (0.000979, 9.4e-6), (0.25, float("nan")))
    assert [plus_minus(*x) for x in both] == ["1026 ± 10", "0.000979 ± 0.000009", "0.25"]


def test_scaling_leaves_its_pictures_on_one_colour_scale_and_one_page(ran):
    folder, _ = ran
    stems = {"map", "sweep", "head_scaled", "head_unscaled"}
    expected = {f"{stem}.{ending}" for stem in stems for ending in ("svg", "png")}
    expected |= {"index.html", "content.json", "steps.html", "small.png"}
    assert {path.name for path in folder.iterdir()} == expected
    assert f'href="{folder.name}/index.html"' in (folder.parent / "index.html").read_text("utf-8")
    assert_light(folder)
    svgs = [(folder / f"head_{name}.svg").read_text() for name in ("scaled", "unscaled")]
    legends = [re.findall(r">\s*(\de[^<]*\d)\s*</text>", svg) for svg in svgs]
    assert legends[0] == legends[1] == ["1e-06"]


# ------------------------------------------------------------------ law: every number is computed


# What looks measured: a percentage, "so many times", or a decimal that is not of arXiv.
MEASURED = re.compile(
    r"(?<![\w.,/√])\d[\d,]*(?:\.\d+)? ?(?:%| times)|(?<![\w.])(?!\d{4}\.\d{5})\d*\.\d+"
)
# What is typed in on purpose: limits (what is called dead, or learned), guesses that a question
# offers, chance, quantiles, learning rates, chapters and papers; and facts of a text, which its
# tests have.
TYPED = {
    "digits": ["10 %", "20 %", "7 %", "80 %", "99 %"],
    "induction": ["3 %", "30 %", "60 %"],
    "laboratory": ["16.3", "16.4", "16.5", "3.2"],
    "laboratory/_figures": [".01"],
    "laboratory/_gradients": [".01"],
    "laboratory/_over_training": [".02", "0.02"],
    "laboratory/_steps": [".001", "16.4", "98 %"],
    "laboratory/_trained": [".001", "98 %"],
    "love_transformers": [".999"],
    "love_you": ["64 times", "745.13"],
    "mammal_and_reptile": ["20 %"],
    "parallel": ["0.001"],
    "pretrained": ["0.02"],
    "recall": ["0.1", "16.5"],
    "scaling": ["10 %"],
    "sort": ["10 %"],
    "translate": ["35 %", "5 %", "65 %"],
    "two_moons": ["88 %", "92 %", "96 %"],
    "why_half": ["16.8"],
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


def test_the_figure_shows_every_measurement_without_and_with_the_scale():
    """The mean square is in the table alone: the tenth's share is what the page says of it."""
    rows = list(saturations([4, 16], repeats=2))
    figure, found = plot_sweep(rows), summary(rows)
    drawn = [line.get_ydata() for panel in figure.axes for line in panel.lines]
    names = [name for name in scaling.MEASURED if name != "gradient_square"]
    assert len(drawn) == 2 * len(names)
    for name in names:
        for a in (0.0, 0.5):
            wanted = [found[d_k, a][name][0] for d_k in (4, 16)]
            assert any(np.array_equal(line, wanted) for line in drawn)
