"""Chapter 5 · Graphs: the model, its text, and the pictures."""

import functools
import html
import re
import shutil
import subprocess
import sysconfig
from xml.etree import ElementTree

import numpy as np
import pytest
from IPython.core.formatters import PlainTextFormatter

from attention import MultiHeadAttention, attention
from minigrad import Steps, Tensor, cross_entropy, graph, primitive, softmax
from minigrad.graphs.names import numbered, spoken, unique_names
from minigrad.graphs.render import draw_with, render
from minigrad.graphs.scale import colour
from minigrad.graphs.summary import Summary
from minigrad.nn import LayerNorm

rng = np.random.default_rng(0)


def leaf(*shape, name=None):
    return Tensor(rng.standard_normal(shape), requires_grad=True, name=name)


def labels(drawing):
    return [vertex.title for vertex in drawing.vertices]


def titles(drawing):
    return [box.title for box in drawing.boxes]


def test_an_attention_head_is_drawn_as_the_equation_reads():
    q, k, v = leaf(2, 3, name="q"), leaf(5, 3, name="k"), leaf(5, 7, name="v")
    drawing = graph(attention(q, k, v))
    assert titles(drawing) == ["q", "k", "matmul", "multiply", "softmax", "v", "matmul"]
    box = {box.title: box for box in drawing.boxes}
    assert (box["q"].kind, box["softmax"].kind) == ("leaf", "operation")
    assert [row.text for row in box["multiply"].rows] == ["× 0.577"]
    words = {(link.source, link.target): link.words for link in drawing.links}
    scores = drawing.boxes[2].id
    assert words[box["k"].id, scores] == "transposed → (3, 5)"
    assert words[box["q"].id, scores] == ""
    g = Tensor(np.ones(6), name="g")  # (a constant that has a name comes by an arrow)
    assert titles(graph(q.reshape(6) * g)) == ["q", "g", "multiply"]
    assert titles(graph(q.reshape(6))) == ["q", "reshape"]


TRANSPOSES = [
    (lambda k: k.mT, True, True),  # (of a matrix, and of a stack of matrices)
    (lambda k: k.T, True, False),
    (lambda k: k.transpose(), True, False),
    (lambda k: np.swapaxes(k, k.ndim - 2, k.ndim - 1), True, True),
    (lambda k: k.swapaxes(1, 0), True, False),
    (lambda k: np.moveaxis(k, -1, -2), True, True),
    (lambda k: k.transpose([*range(k.ndim - 2), -1, -2]), True, True),
    (lambda k: k.transpose([*range(k.ndim)]), False, False),
    (lambda k: k.swapaxes(0, 0), False, False),
    (lambda k: k.reshape(k.shape), False, False),
]


@pytest.mark.parametrize("rearrange, of_a_matrix, of_a_stack", TRANSPOSES)
def test_each_way_to_exchange_the_last_two_axes_is_called_transposed(
    rearrange, of_a_matrix, of_a_stack
):
    for shape, is_transpose in (((3, 5), of_a_matrix), ((2, 3, 5), of_a_stack)):
        drawing = graph(rearrange(leaf(*shape, name="k")) * 2.0)
        _, moved, *_ = drawing.vertices
        (link,) = [link for link in drawing.links if link.words]
        assert moved.transposes == is_transpose
        assert link.words.startswith("transposed → ") == is_transpose
        assert (spoken(drawing.vertices)[1] == "kᵀ") == is_transpose


def test_an_operation_of_a_user_is_not_called_transposed_by_its_name():
    swapaxes = primitive(name="swapaxes")(lambda x, /, axis1=0, axis2=1: (x.T, lambda g, y: g.T))
    assert not graph(swapaxes(leaf(3, 5))).vertices[-1].transposes
    assert not graph(leaf(3).T).vertices[-1].transposes


@pytest.mark.parametrize("dtype", [bool, "uint8", "int64", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (5,), (64, 64)])
def test_a_summary_keeps_a_small_array_whole_and_maps_a_large_one(dtype, shape):
    a = (rng.standard_normal(shape) * 10).astype(dtype)
    found, known = Summary.of(a), a.astype(float)
    expected = np.sqrt(np.mean(known**2)), np.linalg.norm(known)
    np.testing.assert_allclose((found.rms, found.norm), expected)
    if a.size > 256:
        np.testing.assert_allclose(found.map, known.reshape(16, 4, 16, 4).mean((1, 3)))
    else:
        np.testing.assert_array_equal(found.whole, a)


def test_tensors_of_one_name_are_numbered_and_are_called_the_same_everywhere():
    x, y, z = (Tensor([float(k)], requires_grad=True, name=n) for k, n in enumerate(("x", "x", "")))
    with Steps() as steps:
        total = np.concatenate([x, y, z]).sum() * Tensor([7.0, 8.0])
    for vertices in (graph(total).vertices, graph(total, steps=steps).vertices, steps.vertices):
        assert unique_names(vertices)[:4] == ["x#1", "x#2", "leaf (1,)", "t3"]
    called = "concatenate(x#1, x#2, leaf (1,))"
    assert called in str(steps) and called in str(graph(total, steps=steps))
    assert "add(t2, 2)" in str(graph(x * 2.0 + 2.0))  # (two constants of one value are both 2)
    assert len(set(numbered(["x"] * 50_000))) == 50_000  # (in linear time)


WRITTEN = {  # how a constant is written inside of the box of an operation on x, and as text
    "+ 2": (lambda x: 2.0 + x, "add(2, x)"),
    "- 2": (lambda x: x - 2.0, "subtract(x, 2)"),
    "2 -": (lambda x: 2.0 - x, "subtract(2, x)"),
    "× 2": (lambda x: x * 2.0, "multiply(x, 2)"),
    "/ 2": (lambda x: x / 2.0, "divide(x, 2)"),
    "2 /": (lambda x: 2.0 / x, "divide(2, x)"),
    "power 2": (lambda x: x**2.0, "power(x, 2)"),
    "base 2": (lambda x: 2.0**x, "power(2, x)"),
}


@pytest.mark.parametrize("written", WRITTEN)
def test_a_constant_inside_of_a_box_stands_with_the_sign_of_the_operation(written):
    operation, text = WRITTEN[written]
    drawing = graph(operation(leaf(3, name="x")))
    assert [row.text for row in drawing.boxes[-1].rows] == [written]
    assert f">{written}<" in drawing.source and text in str(drawing)


def test_each_use_of_a_tensor_is_one_arrow():
    x = leaf(3, name="x")
    drawing = graph(x * x)
    assert drawing.vertices[-1].inputs == (0, 0)
    assert drawing.source.count("t0 -> t1") == 2


def test_options_are_shown_where_they_differ_from_the_defaults():
    x = leaf(2, 3, 5)
    shown = {
        "sum": x.sum(),
        "sum axis=(0, 2)": x.sum(axis=(0, 2)),
        "softmax axis=1": softmax(x, axis=1),
        "reshape": x.reshape(6, 5),
        "getitem index=(..., 0)": x[..., 0],
        "getitem index=(:, ::-1)": x[:, ::-1],
        "cross_entropy targets=[0 0]": cross_entropy(x[0, :2], np.zeros(2, int), ignore_index=None),
    }
    for text, y in shown.items():
        vertex = graph(y).vertices[-1]
        assert f"{vertex.operation} {vertex.options}".strip() == text


def test_names_come_from_a_layer_or_from_a_mapping():
    layer = MultiHeadAttention(6, 2, rng=rng)
    x = leaf(3, 6)
    drawing = graph(layer(x), names={"words": x} | dict(layer.named_parameters()))
    assert {"words", "w_q.weight", "w_o.weight"} <= set(labels(drawing))
    shown = {row.text for box in drawing.boxes for row in box.rows}
    assert "words" in titles(drawing) and {"w_q.weight", "w_o.weight"} <= shown


def test_the_leaves_of_a_layer_stand_inside_its_box_also_if_nothing_names_them_in_a_model():
    drawing = graph(LayerNorm(6)(leaf(3, 6, name="x")))
    assert titles(drawing) == ["x", "layer_norm"]
    assert [row.text for row in drawing.boxes[1].rows] == ["gain", "bias"]


def test_colours_follow_a_log_scale_between_the_limits():
    shades = [colour(10.0**e, (1e-4, 1.0)) for e in range(-5, 2)]
    assert shades[0] == shades[1] and shades[5] == shades[6]  # beyond the ends: the ends
    assert len(set(shades)) == 5
    assert colour(0.0, (1e-4, 1.0)) == "#ffffff"
    assert colour(np.inf, (1e-4, 1.0)) == shades[-1]


def test_drawing_gradients_touches_no_grad_and_keeps_the_record():
    x = leaf(3)
    y = (x * x).sum()
    graph(y, grads=True)
    assert x.grad is None
    y.backward()
    np.testing.assert_array_equal(x.grad, 2 * x.data)


def test_a_svg_has_every_box_and_every_arrow():
    layer = MultiHeadAttention(6, 2, rng=rng)
    drawing = graph(layer(leaf(3, 6, name="x")).sum())
    svg = render(drawing, "svg").decode()
    assert svg.count('class="node"') == len(drawing.boxes)
    assert svg.count('class="edge"') == len(drawing.links)


def test_every_colour_lets_black_text_be_read_and_is_darker_than_the_one_before():
    lightest = 1.0
    for exponent in np.linspace(-4, 0, 41):
        r, g, b = (int(colour(10**exponent, (1e-4, 1.0))[i : i + 2], 16) for i in (1, 3, 5))
        light = [
            (c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4) for c in (r, g, b)
        ]
        luminance = 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2]
        assert (luminance + 0.05) / 0.05 > 7  # the contrast that WCAG calls AAA
        assert luminance < lightest
        lightest = luminance


def test_names_are_shown_as_they_are_typed():
    for name in (
        'k "<b>"',
        "&amp; &#65; &",
        "<b>bold</b>",
        "back\\slash \\N",
        "a -> b; c",
        "a\x00",
    ):
        svg = render(graph(-leaf(2, name=name)), "svg").decode()
        shown = re.search(r"<text[^>]*>(.*?)</text>", svg).group(1)
        assert html.unescape(shown).replace("\u00a0", " ") == name.replace("\x00", "?")


@pytest.mark.parametrize("blank", ["", " ", "\t", "\u2028"])
def test_a_name_of_blanks_names_nothing_and_can_be_drawn(blank):
    x = Tensor([1.0, 2.0], requires_grad=True, name=blank)
    drawing = graph(-x, names={blank: x})
    assert drawing.vertices[0].title == "leaf" and b"<svg" in render(drawing, "svg")


def test_what_is_too_large_to_be_laid_out_is_refused_before_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: pytest.fail("asked to draw"))
    x = leaf(2)
    with Steps() as steps:
        y = functools.reduce(lambda y, _: -y, range(5_001), x)
    steps.backward(y, np.ones(2))
    drawing = graph(y)
    for save, ending in ((drawing.save, "svg"), (drawing.save, "html"), (steps.save, "html")):
        with pytest.raises(ValueError, match=r"^at most 5,000 .* and here are 5,00[12]: take a pa"):
            save(tmp_path / f"x.{ending}")
    assert not list(tmp_path.iterdir()) and drawing._repr_svg_() is None and drawing.data()


@pytest.mark.parametrize(("ending", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_saving_draws_by_the_ending(tmp_path, ending, start):
    path = graph(leaf(2) * 2.0).save(tmp_path / f"x.{ending}")
    assert path.read_bytes().startswith(start)


def test_saving_dot_needs_no_renderer(tmp_path, monkeypatch):
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: pytest.fail("asked to draw"))
    drawing = graph(leaf(2) * 2.0)
    for name in ("x.dot", "y.DOT"):
        assert drawing.save(str(tmp_path / name)).read_text() == drawing.source


def test_the_data_of_a_drawing_has_three_digits():
    (x, multiply) = graph((leaf() * np.pi), grads=True).data()["boxes"]
    assert (x["grad"], multiply["grad"]) == (3.14, 1)


def test_the_wheels_program_is_found_beside_python(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert b"<svg" in render(graph(leaf(2) * 2.0), "svg")


def test_a_dropped_record_is_one_sentence():
    x = leaf(3)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="already dropped by .* with retain_graph=True"):
        graph(y)


def test_an_unknown_ending_is_refused(tmp_path):
    with pytest.raises(ValueError, match="'x.jpg' is none of them"):
        graph(leaf(2) * 2.0).save(tmp_path / "x.jpg")


INSTALL = "pip install graphviz-pure"
SCRIPTS = sysconfig.get_path("scripts")


def test_without_a_renderer_the_error_says_what_to_install(tmp_path, monkeypatch):
    drawing = graph(leaf(2) * 2.0)
    monkeypatch.setattr(shutil, "which", lambda *args, **options: None)
    with pytest.raises(ImportError, match=INSTALL):
        drawing.save(tmp_path / "x.svg")
    assert drawing._repr_svg_() is None and not list(tmp_path.iterdir())
    # A notebook then shows the text, and what would draw a picture. DOT can still be written.
    assert PlainTextFormatter()(drawing).startswith(str(drawing))
    assert INSTALL in PlainTextFormatter()(drawing)
    assert drawing.save(tmp_path / "x.dot").read_text() == drawing.source
    with pytest.raises(ImportError, match=r"a \.pdf needs the system's dot, .* save .* as \.svg"):
        drawing.save(tmp_path / "x.pdf")


def test_a_pdf_is_drawn_by_the_systems_dot_where_it_is(tmp_path):
    if not shutil.which("dot"):
        pytest.skip("needs the system's dot")
    assert graph(leaf(2) * 2.0).save(tmp_path / "x.pdf").read_bytes().startswith(b"%PDF")


def test_for_a_slide_a_picture_leads_to_the_right_and_has_a_width(tmp_path):
    y = (leaf(2) * 2.0).sum()
    for width, wide in ((None, 1), (960, 960)):
        drawing = graph(y, direction="right", width=width)
        root = ElementTree.fromstring(render(drawing, "svg"))
        size = [float(root.get(side).removesuffix("pt")) * 4 / 3 for side in ("width", "height")]
        assert size[0] > size[1] and (width is None or abs(size[0] - wide) < 2)
    png = drawing.save(tmp_path / "x.png").read_bytes()
    assert abs(int.from_bytes(png[16:20], "big") - 960) < 3
    down = ElementTree.fromstring(render(graph(y), "svg"))
    assert float(down.get("height")[:-2]) > float(down.get("width")[:-2])
    with pytest.raises(ValueError, match='"down" or "right": got \'left\''):
        graph(y, direction="left")
    with pytest.raises(ValueError, match="width must be"):
        graph(y, width=0)


def test_several_results_are_drawn_with_the_gradients_of_their_sum():
    x = leaf(3, name="x")
    (a, b), total = ((x * x).sum(), x.reshape(1, 3).sum()), ((x * x).sum() + x.sum())
    drawing = graph((a, b, x.reshape(3, 1)))
    assert [box.title for box in drawing.boxes] == ["x", "multiply", "sum", "sum", "reshape"]
    (mine, *_), (added, *_) = graph((a, b), grads=True).boxes, graph(total, grads=True).boxes
    assert mine.title == "x" and mine.grad == pytest.approx(added.grad, rel=1e-12)
    for wrong, said in (((), "got none"), ((a, 3), "got int"), ([x], "is a leaf")):
        with pytest.raises((TypeError, ValueError), match=said):
            graph(wrong)


def test_a_function_draws_what_the_program_does_but_for_a_png():
    x = Tensor([1.0, 2.0], requires_grad=True, name="x")
    drawing = graph((x * x).mean(), grads=True)
    expected, asked = render(drawing, "svg"), []

    def layout(source):
        asked.append(source)
        program = shutil.which("dot") or shutil.which("graphviz-pure", path=SCRIPTS)
        words = [program, "-Tsvg"], [program, "-Tjson"]
        svg, lengths = (
            subprocess.run(each, input=source, capture_output=True, text=True, check=True).stdout
            for each in words
        )
        return svg, lengths

    draw_with(layout)
    try:
        assert render(drawing, "svg") == expected and asked == [drawing.source]
        with pytest.raises(ImportError, match=r"a function draws: save it as \.svg"):
            render(drawing, "png")
    finally:
        draw_with(None)
    assert render(drawing, "svg") == expected and len(asked) == 1
