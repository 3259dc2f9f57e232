"""Chapter 5 · Rendering, in a real browser: every label stays in its box, in any font."""

import numpy as np
import pytest

from attention import attention, gpt2
from minigrad import Steps, Tensor, cross_entropy, graph, no_grad

rng = np.random.default_rng(0)
FONTS = ["Helvetica", "DejaVu Sans", "DejaVu Sans Mono", "DejaVu Serif", "fantasy"]

# For each label how far it leaves the shape that it belongs to, in the picture's own units.
OUTSIDE = """font => {
    const svg = document.documentElement;
    for (const text of svg.querySelectorAll("text")) text.setAttribute("font-family", font);
    const found = [];
    const compare = (text, shape) => {
        const [t, s] = [text.getBBox(), shape];
        const out = Math.max(s.x - t.x, t.x + t.width - s.x - s.width,
                             s.y - t.y, t.y + t.height - s.y - s.height);
        found.push([text.textContent, out]);
    };
    for (const group of svg.querySelectorAll("g.node, g.cluster")) {
        const shape = group.querySelector("polygon, path");
        const box = (shape || group).getBBox();
        for (const text of group.querySelectorAll("text")) compare(text, box);
    }
    const [x, y, width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    const graph = svg.querySelector("g.graph");
    const whole = graph.querySelector(":scope > polygon").getBBox();
    for (const text of graph.querySelectorAll(":scope > text, g.edge text")) compare(text, whole);
    return found;
}"""


@pytest.fixture(scope="module")
def page(browser):
    return browser.new_context(offline=True).new_page()


def head():
    q, k, v = (Tensor(rng.standard_normal((4, 8)), requires_grad=True, name=n) for n in "qkv")
    with Steps() as steps:
        with no_grad():
            scale = np.sqrt(Tensor(8.0))
        loss = (attention(q / scale, k, v, scale=1.0) ** 2).mean()
    return graph(loss, grads=True, steps=steps)


def gpt(depth):
    model = gpt2(11, 8, d_model=8, num_heads=2, num_blocks=12, rng=rng, attend=attention)
    words = np.arange(4)[None]
    with Steps(model) as steps:
        loss = cross_entropy(model(words), words)
    return graph(loss, grads=True, steps=steps, depth=depth)


def named():
    names = [
        "скорость обучения",
        "γωνία λοξοδρομίας",
        "cafe\u0301 e\u0301te\u0301",
        "שלום",
        "日本語の名前",
        "WWWWWWWWWWWWWWW",
        "iiiiiiiiii",
        "∂L/∂x → ‖g‖ ≈ ½ · ηθ",
        '</text><b>&"',
    ]
    x = [Tensor([1.0], requires_grad=True, name=name) for name in names]
    return graph(sum(np.exp(each) for each in x), grads=True, limits=(1e-9, 1e-3))


PICTURES = {"head": head, "gpt 1": lambda: gpt(1), "gpt": lambda: gpt(None), "named": named}


@pytest.mark.parametrize("make", PICTURES.values(), ids=PICTURES)
def test_every_label_stays_in_its_box_in_every_font(page, make, tmp_path):
    drawing = make()
    path = drawing.save(tmp_path / "x.svg")
    page.goto(path.as_uri())
    assert page.locator("text:not([textLength])").count() == 0
    for font in FONTS:
        found = page.evaluate(OUTSIDE, font)
        assert len(found) > len(drawing.boxes)
        wrong = [(text, round(out, 1)) for text, out in found if out > 1.5]
        assert not wrong, font


def test_the_pointer_is_told_what_a_box_is(page, tmp_path):
    page.goto(head().save(tmp_path / "x.svg").as_uri())
    tips = page.eval_on_selector_all("g.node > title", "all => all.map(t => t.textContent)")
    assert any("softmax" in tip and "scaled_dot_product.py, line" in tip for tip in tips)
    assert "RMS of the gradient goes from" in page.get_attribute("svg", "aria-label")
