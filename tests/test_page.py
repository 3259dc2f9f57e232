"""Chapter 5 · Page: the page of both passes, as a real browser shows it."""

import hashlib
import json
import math
import re
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import minigrad
from attention import attention, gpt2
from minigrad import Steps, Tensor, cross_entropy, graph
from minigrad.graphs.page import FOLDER
from minigrad.graphs.scale import colour, in_words, lost
from tests.demos.running import ROOT

WORDS = np.arange(4)[None]
HOSTILE = "</script ><b>&\"'<img src=x onerror=alert(1)>"


def gpt_steps(blocks=2, scale=1.0):
    rng = np.random.default_rng(0)
    sizes = {"d_model": 8, "num_heads": 2, "num_blocks": blocks}
    model = gpt2(11, 8, **sizes, attend=attention, rng=rng)
    with Steps(model) as steps:
        logits = model(WORDS)
        loss = cross_entropy(logits, WORDS) * scale
    return steps, loss, model


def line_steps():
    """Record mean(h² + x) for h = w x, where x is used by w and by another term."""
    w = Tensor(0.5, requires_grad=True, name="w")
    x = Tensor([1.0, 2.0, 4.0], requires_grad=True, name="x")
    with Steps() as steps:
        h = w * x
        loss = (h * h + x).mean()
    return steps, loss, {"w": w, "x": x}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    made = {}
    for name, (steps, loss, leaves) in {"line": line_steps(), "gpt": gpt_steps()}.items():
        steps.backward(loss)
        made[name] = steps.save(folder / f"{name}.html", title=f"A {name}"), steps, loss, leaves
    steps, loss, model = gpt_steps(12)
    steps.backward(loss)
    made["gpt12"] = steps.save(folder / "gpt12.html"), steps, loss, model
    return made


def step_to(page, n):
    page.evaluate(f"location.hash = '#step={n}'")
    page.locator(f"#track[data-step='{n}']").wait_for()


def place(page):
    return page.get_attribute("#track", "aria-valuetext")


def data_of(path):
    """Return the data that the script of a page is given."""
    text = re.search(r'id="data">(.*?)</script>', path.read_text("utf-8"), re.DOTALL).group(1)
    return json.loads(text)


def tables(page):
    """Return the heat maps of the panel: caption and numbers."""
    return page.eval_on_selector_all(
        "#panel figure",
        """all => all.map(f => [f.querySelector("figcaption").textContent,
            [...f.querySelectorAll("td")].map(td => Number(td.title))])""",
    )


def test_its_steps_are_the_operations_and_then_the_contributions(pages, visit):
    path, steps, _, _ = pages["line"]
    page = visit(path)
    done = [v for v in steps.vertices if v.operation]
    assert page.locator(".tick.forward").count() == len(done)
    assert page.locator(".tick").count() == len(done) + len(steps.contributions)
    assert page.locator(".tick.sum").count() == 2  # h · h, and x in two places
    for n, v in enumerate(done, 1):
        step_to(page, n)
        assert f"forward {n} of {len(done)}" in place(page)
        text = page.inner_text("#panel")
        assert v.operation in text and "test_page.py, line" in text
        for (_, numbers), i in zip(tables(page), [*dict.fromkeys(v.inputs), v.number], strict=True):
            np.testing.assert_allclose(numbers, steps.vertices[i].value.whole.ravel(), rtol=1e-3)


def test_each_sum_adds_up_and_at_the_end_each_leaf_has_its_gradient(pages, visit):
    path, steps, loss, leaves = pages["line"]
    page = visit(path)
    forward = sum(bool(v.operation) for v in steps.vertices)
    received, sums = {}, 0
    for n, c in enumerate(steps.contributions, forward + 1):
        step_to(page, n)
        shown = [numbers for _, numbers in tables(page)]
        if len(shown) == 3:
            sums += 1
            assert "contribution 2 of 2 (+=)" in page.inner_text("#say")
            np.testing.assert_allclose(np.add(shown[0], shown[1]), shown[2], rtol=2e-3)
        worked = page.locator("#work tr:last-child td").evaluate_all(TITLES)
        received[steps.vertices[c.target].title] = shown[-1] if shown else worked
    assert sums == 2  # h · h, and x in two places
    loss.backward(retain_graph=True)
    for name, leaf in leaves.items():
        np.testing.assert_allclose(received[name], leaf.grad.ravel(), rtol=1e-3)
        leaf.grad = None


TITLES = "cells => cells.map(cell => Number(cell.title))"


def test_the_arrow_in_use_turns_round_and_boxes_become_blue_and_then_have_a_gradient(pages, visit):
    page = visit(pages["line"][0])
    step_to(page, 1)
    assert page.locator(".box.value").count() == 3  # the two leaves, and what is computed
    assert page.locator("path.edge.now").count() == 2 and page.locator(".box.now").count() == 1
    assert page.locator("path.head:visible").count() == page.locator("path.edge").count()
    step_to(page, 6)  # loss → the sum
    tips = page.locator("path.tip:visible").evaluate_all("all => all.map(x => x.classList[1])")
    assert sorted(set(tips)) == ["head", "tail"] and tips.count("tail") == 1
    page.keyboard.press("End")
    assert page.locator(".box.gradient").count() == page.locator(".box").count()


def test_where_no_gradient_falls_it_opens_at_the_start(tmp_path):
    x = Tensor([2.0, 4.0], requires_grad=True, name="x")
    with Steps() as steps:
        loss = (x * x).sum()
    steps.backward(loss)
    text = steps.save(tmp_path / "x.html").read_text(encoding="utf-8")
    assert "falls most" not in text and '"stations":[{"name":"start"' in text


def test_it_opens_where_the_least_of_the_gradient_arrives_and_has_stations(visit, tmp_path):
    pair = [head(1 / 8, keys=5), head(1.0, keys=5)]
    page = visit(pair[0].save(tmp_path / "x.html", beside=pair[1], titles=("with", "without")))
    said = page.inner_text("#say")
    assert said.startswith("The gradient of weights goes back through softmax to scores. The RMS")
    assert re.search(r" \(with\), and goes .+ Their ratio goes from 1 : 1.9 to \d+ : 1\.$", said)
    page.keyboard.press("ArrowRight")
    why = "a factor of 8, because this step multiplies by 0.125 (with) or 1 (without)."
    assert page.inner_text("#say").endswith(why)
    names = page.locator("#stations button").all_inner_texts()
    assert names == ["loss: start", "scores: falls most", "kᵀ: end"]
    for name, button in zip(names, page.locator("#stations button").all(), strict=True):
        button.click()  # (a station and its step have one name)
        assert place(page).split(": ")[-1] == name.split(":")[0]
    page.click("text=loss: start")
    assert page.inner_text("#say").endswith("Its gradient with respect to itself, ∂L/∂L, is 1.")
    page = visit(pair[0].save(tmp_path / "x.html", at="scores"))
    assert "gradient of scores goes back through multiply to q·kᵀ" in page.inner_text("#say")
    with pytest.raises(ValueError, match=r"one of loss, .*weights, .*: got 'nothing'$"):
        pair[0].save(tmp_path / "x.html", at="nothing")


def test_two_passes_of_which_one_was_not_sent_back_are_not_one_page(tmp_path):
    sent, other = head(1.0), head(1.0)
    other.contributions = ()
    for one, two in ((sent, other), (other, sent)):
        with pytest.raises(ValueError, match="the same operations and contributions: these"):
            one.save(tmp_path / "x.html", beside=two)


def test_each_number_of_a_worked_step_is_that_of_the_pass(visit, tmp_path):
    steps = head(1.0)
    page = visit(steps.save(tmp_path / "x.html", at="weights"))
    c = next(c for c in steps.contributions if steps.vertices[c.source or 0].title == "weights")
    rows = page.locator("#work tr").all()
    labels = ["y weights", "g arrives: ∂L/∂weights", "⟨y, g⟩", "g - ⟨y, g⟩"]
    told = [row.locator("th").inner_text().strip() for row in rows]
    assert told == [*labels, "y ⊙ (g - ⟨y, g⟩) goes to scores"]
    for row, (_, numbers, back) in zip(rows, c.rows, strict=True):
        np.testing.assert_allclose(row.locator("td").evaluate_all(TITLES), numbers, rtol=1e-3)
        shade = row.locator("td").last.get_attribute("style")
        assert ("--backward" in shade) == back
    assert page.inner_text("#formula b") == "∂L/∂x = y ⊙ (g - ⟨y, g⟩)"
    assert "shown: the row with the largest element, of 5 rows" in page.inner_text("#formula")


def test_two_passes_stand_side_by_side_on_one_scale(visit, tmp_path):
    scaled, unscaled = (gpt_steps(1, scale)[:2] for scale in (1.0, 1e-3))
    for steps, loss in (scaled, unscaled):
        steps.backward(loss)
    titles = ("as it is", "a thousandth")
    page = visit(scaled[0].save(tmp_path / "x.html", beside=unscaled[0], titles=titles))
    step_to(page, sum(bool(v.operation) for v in scaled[0].vertices) + 2)  # loss → cross_entropy
    assert "1,000 : 1" in page.inner_text("#graph")
    assert page.locator("#work h2").all_inner_texts() == list(titles)
    page.keyboard.press("End")
    colours = [[shown[2] for shown in page.evaluate(SHOWN, lane)] for lane in (0, 1)]
    assert colours[0] != colours[1] and len(colours[0]) == len(colours[1])


# Every box: its number, a pass's words and colour, and its rows: text, title and colours.
SHOWN = """lane => [...document.querySelectorAll("#graph .box")].map(b => [
    b.dataset.id, b.querySelectorAll(".grad")[lane].textContent,
    b.querySelectorAll(".grad")[lane].style.background,
    [...b.querySelectorAll(".row")].map(row => [row.textContent, row.title, row.style.background]),
])"""


def pretty(text):
    """Write powers as the page does: 9·10⁻⁶."""
    up = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    power = lambda m: f"·10{str(int(m[1])).translate(up)}"
    return re.sub(r"e([-+]\d+)", power, text)


@pytest.mark.parametrize("ends", [None, (1e-3, 0.1)])
def test_words_and_colours_are_those_of_a_picture(pages, visit, tmp_path, ends):
    _, steps, *_ = pages["gpt"]
    path = steps.save(tmp_path / "x.html", limits=ends)
    data, noise = data_of(path), lost(steps.vertices)
    limits = [float(end) for end in data["legend"]["ends"]]
    page = visit(path, "#open=blocks.0.attention,blocks.1.feed_forward")
    page.keyboard.press("End")
    assert all("grad up to" in x for x in page.locator(".box.closed .grad").all_inner_texts())
    seen = []  # (words, colour, vertex)
    for id, text, shade, rows in page.evaluate(SHOWN, 0):
        if id.startswith("b"):
            box = data["passes"][0]["boxes"][int(id[1:])]
            seen.append((text, shade, box["vertex"]))
            inside = [row["vertex"] for row in box["rows"]]
            tints = [re.findall(r"rgb\([^)]*\)", tint)[:1] for *_, tint in rows]
            texts = [said for _, said, _ in rows]
            seen += [(x, "".join(y), n) for x, y, n in zip(texts, tints, inside, strict=True)]
    assert len(seen) > 40 and noise & {n for _, _, n in seen}
    for text, shade, n in seen:
        strength = steps.vertices[n].grad_rms
        if strength is None:
            assert "grad" not in text and not shade
            continue
        assert text == pretty(in_words(strength, limits, n in noise))
        drawn = "#ffffff" if n in noise else colour(strength, limits)
        assert shade == f"rgb({', '.join(str(int(drawn[i : i + 2], 16)) for i in (1, 3, 5))})"


def test_a_graph_without_steps_opens_by_a_click(visit, tmp_path):
    steps, loss, _ = gpt_steps(3)
    page = visit(graph(loss, grads=True, steps=steps).save(tmp_path / "x.html"))
    assert page.locator("#track").count() == 0 and "←" not in page.inner_text("body")
    before = page.locator(".box").count()
    page.locator("[data-id='g/blocks.0']").click()
    assert page.locator(".box").count() > before
    assert "grad" in page.locator(".box").first.inner_text()
    x = Tensor([1.0, 2.0], requires_grad=True, name="x")
    page = visit(graph((x * x).sum()).save(tmp_path / "x.html"))
    text = page.inner_text("body").split("Tab goes")[0]
    assert not re.search("step|Close all|layer|RMS of the gradient", text)
    page.click("[data-id=b0]")
    assert tables(page) == [["x (2,), RMS 1.58", [1, 2]]]


# Of every step: boxes that overlap, labels that leave their box, labels of arrows and names of
# frames that lie on something, and whether the whole graph is seen, as wide as its place.
WALK = """() => {
    const found = [], [wide, high] = [["left", "right"], ["top", "bottom"]];
    const place = element => element.getBoundingClientRect();
    const over = (a, b) => [wide, high].every(([s, e]) => a[s] < b[e] - 1 && b[s] < a[e] - 1);
    const view = document.getElementById("view"), ticks = document.querySelectorAll(".tick");
    const still = new Set();
    for (let step = 0; step < ticks.length; step++) {
        ticks[step].click();
        const frame = place(view), boxes = [...view.querySelectorAll(".box")];
        const places = boxes.map(place);
        still.add(`${frame.width} ${frame.height}`);
        places.forEach((a, i) => places.slice(0, i).forEach((b, j) => {
            if (over(a, b)) found.push([step, boxes[i].innerText, boxes[j].innerText]);
        }));
        places.forEach((a, i) => {
            if (a.left < frame.left - 1 || a.right > frame.right + 1 || a.bottom > frame.bottom + 1)
                found.push([step, boxes[i].innerText, "is out of sight"]);
        });
        for (const b of boxes)
            if (b.scrollWidth > b.clientWidth + 1 || b.scrollHeight > b.clientHeight + 1)
                found.push([step, b.innerText, "is cut"]);
        if (!view.querySelectorAll(".box.now").length) found.push([step, "nothing is in use"]);
        for (const words of view.querySelectorAll("text.words:not(:empty)")) {
            const its = words.textContent === words.dataset.words;
            if (its && places.some(a => over(place(words), a)))
                found.push([step, words.textContent, "lies on a box"]);
        }
    }
    if (still.size > 1) found.push(...still);
    const names = [...view.querySelectorAll(".frame > button")];
    const texts = names.map(name => {
        const range = document.createRange();
        range.selectNodeContents(name);
        return range.getBoundingClientRect();
    });
    const solid = [...view.querySelectorAll(".box")].map(place);
    texts.forEach((a, i) => {
        if ([...solid, ...texts.slice(0, i)].some(b => over(a, b))) found.push(names[i].innerText);
    });
    return found;
}"""


def head(scale, keys=5):
    rng = np.random.default_rng(1)
    q, k, v = (Tensor(rng.standard_normal((keys, 64)), requires_grad=True, name=n) for n in "qkv")
    with Steps() as steps:
        loss = (attention(q, k, v, scale=scale) ** 2).mean()
    steps.backward(loss)
    return steps


@pytest.mark.parametrize(("width", "height"), [(400, 992), (640, 896), (1000, 896)])
def test_in_every_step_nothing_overlaps_and_the_whole_graph_is_in_sight(
    pages, visit, tmp_path, width, height
):
    options = {"viewport": {"width": width, "height": height}}
    pair = head(1 / 8).save(tmp_path / "x.html", beside=head(1.0))
    seen = [(pages["line"][0], ""), (pair, "")]
    if width == 1000:
        seen.append((pages["gpt"][0], "#open=blocks.0.attention"))
    for path, link in seen:
        assert visit(path, link, **options).evaluate(WALK) == []


def test_embedded_in_a_page_it_moves_nothing_but_its_own_graph(pages, browser, tmp_path):
    inside = pages["gpt"][0].read_text("utf-8").replace("&", "&amp;").replace('"', "&quot;")
    outer = tmp_path / "outer.html"
    outer.write_text(f'<p style="height: 30rem"><iframe style="height: 56rem" srcdoc="{inside}">')
    page = browser.new_context(offline=True, viewport={"width": 1000, "height": 500}).new_page()
    page.goto(outer.as_uri())
    frame = page.frames[1]
    frame.evaluate("document.querySelector('.tick:last-child').click()")
    frame.evaluate("document.querySelector('.box.closed').click()")
    assert page.evaluate("scrollY") == 0 == frame.evaluate("scrollY")
    page.context.close()


def test_a_gpt_opens_with_few_boxes_and_its_layers_open_one_by_one(pages, visit):
    page = visit(pages["gpt12"][0])
    assert page.locator("#graph .box").count() <= 15
    assert page.locator(".tick").count() <= 40  # (of 835 recorded steps)
    closed = page.inner_html("#graph")
    page.locator("[data-id='g/blocks.0']").click()
    page.locator("[data-id='g/blocks.0/blocks.0.attention']").click()
    assert page.locator("#graph .box").count() <= 60
    closed_inside = page.locator("#graph .box.closed b").all_inner_texts()
    assert closed_inside == ["positions", "feed_forward", "blocks.1 … blocks.11"]
    page.click("#close")
    assert page.inner_html("#graph") == closed


def test_too_many_boxes_are_not_opened_and_it_says_so(pages, visit):
    layers = [f"blocks.{k}{name}" for k in range(1, 12) for name in (".attention", ".feed_forward")]
    page = visit(pages["gpt12"][0], "#open=" + ",".join(layers[:18]))
    assert 100 < page.locator("#graph .box").count() <= 150
    assert page.inner_text("#message") == ""
    page.evaluate(
        """() => { for (let k = 0; k < 9; k++)
            document.querySelectorAll("#graph .box.closed").forEach(box => box.click()) }"""
    )
    assert page.locator("#graph .box").count() <= 150
    assert "more than 150 boxes" in page.inner_text("#message")
    page = visit(pages["gpt12"][0], "#open=" + ",".join(layers))
    assert "more than 150 boxes" in page.inner_text("#message")
    assert page.locator("#graph .box").count() <= 15


def test_the_keyboard_alone_does_everything(pages, visit):
    page = visit(pages["gpt"][0])
    last = int(page.get_attribute("#track", "aria-valuemax"))
    for key, step in (("End", last), ("ArrowLeft", last - 1), ("Home", 1), ("ArrowRight", 2)):
        page.keyboard.press(key)
        assert place(page).startswith(f"step {step} ")
    page.keyboard.press("Space")  # it plays
    page.locator("#track[aria-valuenow='3']").wait_for()
    page.keyboard.press("Space")
    assert page.inner_text("#play") == "▶"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "find"
    page.keyboard.type("scores")
    assert "2 found" in page.inner_text("#hits")
    page.keyboard.press("Enter")
    assert page.locator(".box.hit").count() >= 1
    assert place(page).endswith(": scores#1")  # (Find moves to what it found)
    page.keyboard.press("Escape")
    page.click("#close")
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.dataset.id"))
    ids = page.eval_on_selector_all("#graph .box", "all => all.map(b => b.dataset.id)")
    assert set(ids) <= reached
    page.focus("[data-id='g/blocks.0']")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.dataset.id") == "g/blocks.0"
    assert page.get_attribute("[data-id='g/blocks.0']", "aria-expanded") == "true"
    page.keyboard.press("Enter")
    assert page.get_attribute("[data-id='g/blocks.0']", "aria-expanded") == "false"


def test_a_link_leads_to_a_step_and_a_wrong_one_is_one_sentence(pages, visit):
    page = visit(pages["gpt"][0], "#step=7&open=blocks.0.attention")
    assert page.get_attribute("#track", "data-step") == "7"
    assert page.locator("[data-id='g/blocks.0/blocks.0.attention']").count() == 1
    assert page.evaluate("location.hash").startswith("#step=7&open=")
    page = visit(pages["gpt"][0], "#step=3")
    for wrong, said in (
        ("#step=9999", "There is no step 9999: the last one is"),
        ("#step=x", "There is no step x"),
        ("#step=", "There is no step without a number"),
        ("#open=nothing", "There is no layer nothing"),
        ("#open=%E0%A4%A", "There is no layer %E0%A4%A"),
    ):
        page.evaluate("link => { location.hash = link }", wrong)
        page.wait_for_function("document.getElementById('message').textContent")
        assert said in page.inner_text("#message")
        assert page.get_attribute("#track", "data-step") == "3"
        step_to(page, 3)
        page.keyboard.press("ArrowRight")
        assert page.inner_text("#message") == ""
        step_to(page, 3)


def test_the_arrows_scroll_what_has_the_focus_and_step_otherwise(visit, tmp_path):
    path = head(1.0, keys=12).save(tmp_path / "x.html", at="weights")
    page = visit(path, viewport={"width": 300, "height": 600})
    before = place(page)
    page.focus("#work .scroll") if page.evaluate(CAN_SCROLL) else pytest.fail("nothing to scroll")
    page.keyboard.press("ArrowRight")
    assert place(page) == before
    page.focus(".box")
    page.keyboard.press("ArrowRight")
    assert place(page) != before


CAN_SCROLL = "(x => x.scrollWidth > x.clientWidth)(document.querySelector('#work .scroll'))"


def test_a_click_and_enter_show_the_numbers_of_any_box(pages, visit):
    path, steps, *_ = pages["line"]
    page = visit(path)
    page.keyboard.press("End")
    boxes = data_of(path)["passes"][0]["boxes"]
    for n, box in enumerate(boxes):
        page.focus(f"[data-id=b{n}]")
        page.keyboard.press("Enter")
        shown = [x for caption, x in tables(page) if not caption.startswith("contribution")]
        wanted = [box["vertex"], *(row["vertex"] for row in box["rows"])]
        shown = shown[-sum(1 + (steps.vertices[v].gradient is not None) for v in wanted) :]
        for v in wanted:
            np.testing.assert_allclose(shown.pop(0), steps.vertices[v].value.whole.ravel(), 1e-3)
            if steps.vertices[v].gradient is not None:
                gradient = steps.vertices[v].gradient.whole
                np.testing.assert_allclose(shown.pop(0), gradient.ravel(), rtol=1e-3)
        assert page.get_attribute(f"[data-id=b{n}]", "aria-pressed") == "true"
        page.keyboard.press("ArrowLeft")  # (they stay while a reader steps)
        assert page.get_attribute(f"[data-id=b{n}]", "aria-pressed") == "true"
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
    assert len(tables(page)) == 3  # before, contribution, after


def test_a_box_the_track_and_the_sentence_call_a_tensor_by_one_name(pages):
    told = data_of(pages["gpt"][0])["passes"][0]
    named = {box["vertex"]: box["title"] for box in told["boxes"]}
    assert all(told["names"][n].endswith(title) for n, title in named.items())
    assert {"blocks.1.attention.w_o", "norm", "loss", "x#5"} <= {*told["names"]}
    assert {"w_o", "norm", "loss", "x#5"} <= {*named.values()}


@pytest.mark.parametrize("f", [np.add, np.multiply, np.maximum, np.divide])
def test_a_broadcast_input_is_told_where_its_gradient_was_summed(tmp_path, f):
    shapes = (((7,), ()), ((2, 3), (3,)), ((2, 3), (2, 1)), ((2, 3), (2, 3)), ((1,), ()))
    for a, b in shapes:
        x, y = (Tensor(np.ones(n), requires_grad=True, name=k) for n, k in ((a, "x"), (b, "y")))
        with Steps() as steps:
            loss = f(x, y).sum()
        steps.backward(loss)
        told = data_of(steps.save(tmp_path / "x.html"))["passes"][0]["backward"]
        full = np.broadcast_shapes(a, b)
        for c, shape, name in ((told[-2], a, "x"), (told[-1], b, "y")):
            copies = math.prod(full) // math.prod(shape)
            axes, _, why = c.get("summed", ", ").partition(", ")
            assert why == (f"because {name} was used {copies} times" if copies > 1 else "")
            summed = tuple(int(n) for n in re.findall(r"\d+", axes))
            assert np.ones(full).sum(summed).size == math.prod(shape)


def test_the_formulas_and_the_letters_of_the_inputs_are_told(visit, tmp_path):
    w, x = (Tensor(n, requires_grad=True, name=name) for n, name in ((2.0, "w"), (3.0, "data")))
    with Steps() as steps:
        product = w * x
        loss = np.tanh(product)
    steps.backward(loss)
    page = visit(steps.save(tmp_path / "x.html"))
    rules = [(v.operation, v.rule) for v in steps.vertices if v.rule]
    formulas = {name: (rule.formula, *rule.displayed) for name, rule in rules}
    step_to(page, 1)
    assert page.inner_text("#formula") == formulas["multiply"][0].split(": ")[0]
    page.click("summary")
    assert page.locator("#more code").all_inner_texts() == [formulas["multiply"][0]]
    assert "Here a = w (), b = data (), y = product ()" in page.inner_text("#more")
    step_to(page, 4)  # loss → product
    page.click("summary")
    assert page.locator("#more code").all_inner_texts() == list(formulas["tanh"])
    step_to(page, 5)
    assert page.inner_text("#formula") == "∂L/∂a = g ⊙ b"  # (its last row says it)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 400, 1000, 1600])
def test_it_fits_every_width(pages, visit, width, scheme):
    options = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    page = visit(pages["gpt"][0], "#step=60&open=blocks.0.attention", **options)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(pages, visit, serious, scheme):
    for name, step in (("line", 9), ("gpt", 60)):
        page = visit(pages[name][0], f"#step={step}", color_scheme=scheme, bypass_csp=True)
        assert not serious(page)


def test_without_javascript_there_is_the_graph_and_its_text(pages, visit):
    page = visit(pages["gpt"][0], java_script_enabled=False)
    assert page.locator("noscript svg, .static svg").count() >= 1
    assert "RMS of the gradient" in page.content()
    assert re.search(r"tokens.weight +\(11, 8\) +grad", page.inner_text("main"))


def test_names_are_shown_literally_and_run_nothing(visit, tmp_path):
    x = Tensor([1.0, -2.0], requires_grad=True, name=HOSTILE)
    with Steps() as steps:
        loss = (x * x).sum()
    steps.backward(loss)
    page = visit(steps.save(tmp_path / "x.html", title=HOSTILE, titles=(HOSTILE, "")))
    assert page.inner_text("h1") == HOSTILE == page.title()
    assert HOSTILE in page.locator(".box").first.inner_text()
    page.keyboard.press("End")
    assert HOSTILE in page.inner_text("#panel") and page.locator("img").count() == 0


def test_equal_passes_give_equal_bytes_and_sizes_are_bounded(pages, tmp_path):
    steps, loss, _ = gpt_steps()
    steps.backward(loss)
    again = steps.save(tmp_path / "gpt.html", title="A gpt").read_bytes()
    kept = pages["gpt"][0].read_bytes()
    assert re.sub(rb"line \d+", b"", again) == re.sub(rb"line \d+", b"", kept)
    assert len(kept) < 450_000 and pages["gpt12"][0].stat().st_size < 1_400_000


def test_its_policy_allows_its_own_script_and_no_other(pages):
    text = pages["line"][0].read_text("utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text).group(1)
    assert "default-src 'none'" in policy and "script-src 'sha256-" in policy
    assert not re.search(r"(?:src|href)=[\"']?https?:|@import|url\((?!#)", text)


def test_dagre_is_unchanged_and_is_in_the_wheel_whose_version_is_that_of_the_source(tmp_path):
    dagre = (FOLDER / "dagre.min.js").read_bytes()
    assert hashlib.sha256(dagre).hexdigest() == DAGRE
    assert "Chris Pettitt" in (FOLDER / "dagre.LICENSE").read_text("utf-8")
    pytest.importorskip("hatchling", reason='needs pip install -e ".[test]"')
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = tmp_path.glob("*.whl")
    wheel = zipfile.ZipFile(path)
    names = wheel.namelist()
    for name in ("dagre.min.js", "dagre.LICENSE", "page.html", "page.js", "page.css"):
        assert f"minigrad/graphs/web/{name}" in names
    (metadata,) = (name for name in names if name.endswith("METADATA"))
    assert f"\nVersion: {minigrad.__version__}\n" in wheel.read(metadata).decode()


DAGRE = "54a503e346f93ca0bb10abe7999587e037262935687aca45eb4e4b0f64bbb578"


def test_bad_input_is_one_sentence(tmp_path):
    steps, loss, _ = line_steps()
    steps.backward(loss)
    other, _, _ = gpt_steps(1)
    with pytest.raises(ValueError, match=r"steps are saved as .html: 'x.svg' is not"):
        steps.save(tmp_path / "x.svg")
    with pytest.raises(ValueError, match="the same operations and contributions: these"):
        steps.save(tmp_path / "x.html", beside=other)
    assert not list(tmp_path.iterdir())


def test_a_printed_step_has_all_its_columns_on_the_paper(visit, tmp_path):
    rng = np.random.default_rng(0)
    rows = {"q": 3, "k": 5, "v": 5}
    q, k, v = (
        Tensor(rng.standard_normal((n, 5)), requires_grad=True, name=x) for x, n in rows.items()
    )
    with Steps() as steps:
        (attention(q, k, v) ** 2).sum().backward()
    page = visit(steps.save(tmp_path / "steps.html"), viewport={"width": 718, "height": 900})  # A4
    page.emulate_media(media="print")
    ends = "all => all.map(each => each.getBoundingClientRect().right)"
    found = page.eval_on_selector_all("table.rows td", ends)
    assert len(found) >= 4 * 5 and max(found) <= 718  # (five keys)
    assert page.evaluate("getComputedStyle(document.body).printColorAdjust") == "exact"
