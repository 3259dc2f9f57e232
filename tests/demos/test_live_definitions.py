"""Live: a reader's lines in the place of a definition, and what is told of them."""

import importlib
import json
import re
from concurrent.futures import ProcessPoolExecutor
from types import FunctionType

import numpy as np
import pytest

from attention import MultiHeadAttention, attention
from demos.live import _definitions
from demos.live._answers import compared
from demos.live._breaks import BREAKS, Break, broken, kept
from demos.live._definitions import changed, define, judges, lines_of
from demos.live._examples import Spaces
from demos.site._book import Book
from demos.site._chapters import page_of_chapter
from demos.site._contents import book
from minigrad import GradientError, Tensor, gradcheck, idea, ops

SOFTMAX = ("minigrad.ops.softmaxes", "softmax")
LOOP = ("minigrad.idea", "backward")
UNBROADCAST = ("minigrad.engine.replay", "_fitted")
BY_HAND = ("attention.scaled_dot_product", "attention_backward")
FORGOTTEN = BREAKS[SOFTMAX][0]


@pytest.fixture
def ask(monkeypatch):
    """Give ask(place, lines): the answer to lines in the place of a definition, and what failed.

    Afterwards every function and class is as it was.
    """
    replaced, before, set_in = _definitions.replaced_in_place, [], []

    def noted(old, new):
        if isinstance(old, type):
            before.append((old, dict(vars(old))))
        elif isinstance(old, FunctionType):
            state = old.__code__, old.__defaults__, old.__kwdefaults__, dict(old.__dict__)
            before.append((old, state, [cell.cell_contents for cell in old.__closure__ or ()]))
        return replaced(old, new)

    def ask(place, lines, known=None):
        heard = []
        text = lines if known is None else broken(place, known)
        module = __import__(place[0], fromlist=["*"])
        set_in.append((module, dict(vars(module))))
        question = {"define": text, "of": place[0], "name": place[1]}
        answer = define(question, lambda failed, trace: heard.append(failed), Spaces())
        return (answer, heard) if known is None else answer

    monkeypatch.setattr(_definitions, "replaced_in_place", noted)
    monkeypatch.setattr(_definitions, "LINES", {})
    yield ask
    for module, names in reversed(set_in):
        vars(module).clear()
        vars(module).update(names)
    for old, state, *cells in reversed(before):
        if isinstance(old, type):
            for name in set(vars(old)) - {"__dict__", "__weakref__"}:
                if name in state and vars(old)[name] is not state[name]:
                    setattr(old, name, state[name])
            continue
        old.__code__, old.__defaults__, old.__kwdefaults__ = state[:3]
        old.__dict__.clear()
        old.__dict__.update(state[3])
        for cell, content in zip(old.__closure__ or (), cells[0], strict=True):
            cell.cell_contents = content


def text(place, old, new):
    lines = lines_of(*place)
    assert old in lines
    return lines.replace(old, new)


def off_in(picture):
    """Return how far off each box is, of those that are."""
    return dict(re.findall(r">([^<]+)</text>\s*<text[^>]*>\([^<]*, ([\d,.]+ %) off", picture))


# ------------------------------------------------------------------ verdicts


def test_a_broken_softmax_is_told_with_its_reason_its_sum_and_the_examples(ask):
    answer = ask(SOFTMAX, "", FORGOTTEN)
    assert answer == json.loads(json.dumps(answer))
    assert answer["right"] is False
    assert answer["heading"] == "gradcheck: the rule softmax is wrong, in its VJP for input 0."
    assert answer["reason"] == (
        "The value uses the result of exp twice, and the VJP does not count sum (its input 0). "
        "The value mixes the elements of input 0 along axis 1, and the VJP along no axis."
    )
    assert answer["message"].startswith("order 1: ")
    assert answer["numbers"]["what"] == "the input of softmax in L = ⟨pull, attention(q, k, v)⟩"
    assert [row["sums"][1] for row in answer["numbers"]["rows"]] == ["0.000"] * 3
    assert all(row["sums"][0] != "0.000" for row in answer["numbers"]["rows"])
    (example,) = answer["examples"]
    assert example["typed"].startswith("grad(lambda x: softmax(x)[0])")
    assert example["now"] == "array([0.9, 0. ])\n"
    assert off_in(answer["picture"]) == {
        "q": "42 %",
        "k": "62 %",
        "q·kᵀ": "63 %",
        "0.5 × q·kᵀ": "63 %",
    }
    assert answer["picture"].count("✗") == 2 and answer["picture"].count("✓") == 6


def test_it_reaches_every_place_that_knows_it(ask):
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((n, 4)) for n in (3, 5, 5))
    layer = MultiHeadAttention(4, 2, rng=rng, attend=attention)
    x = rng.standard_normal((1, 3, 4))
    assert gradcheck(attention, q, k, v, order=1)
    ask(SOFTMAX, "", FORGOTTEN)
    for f, inputs in ((attention, (q, k, v)), (layer, (x,)), (ops.softmax, (q,))):
        with pytest.raises(GradientError, match="The rule softmax is wrong"):
            gradcheck(f, *inputs, order=1)


def test_an_operation_of_numpys_table_is_reached_by_numpys_name(ask):
    place = ("minigrad.ops.elementwise", "tanh")
    answer, _ = ask(place, text(place, "1 - ", "1 + "))
    assert not answer["right"] and answer["picture"]
    x = Tensor([0.5], requires_grad=True)
    np.tanh(x).sum().backward()
    assert np.allclose(x.grad, 1 + np.tanh(0.5) ** 2)


def test_right_lines_are_right(ask):
    for place in (SOFTMAX, LOOP, UNBROADCAST):
        answer, heard = ask(place, lines_of(*place))
        assert (answer["right"], answer["numbers"], answer["examples"]) == (True, None, [])
        assert not heard and "% off" not in answer["picture"]


def test_right_derivatives_of_another_value_are_not_called_right(ask):
    twice = text(SOFTMAX, "        e / e.sum", "        2 * e / e.sum")
    twice = twice.replace("keepdims=True)),\n    )", "keepdims=True) / 2),\n    )")
    answer, _ = ask(SOFTMAX, twice)
    assert (answer["right"], answer["numbers"]) == (None, None)
    assert answer["heading"] == (
        "gradcheck: the first and the second derivative are right, but it computes something else."
    )
    assert answer["reason"] == (
        "The small program's L is 0.4064, and 0.2032 with our lines. "
        "2 examples of this page print something else."
    )
    assert ops.softmax([0.0]) == 2  # (the reader's lines are in use)
    product = ("minigrad.idea", "matmul")
    answer, _ = ask(
        product,
        "@operation\ndef matmul(a, b):\n    return 2 * a @ b, "
        "lambda g: 2 * g @ b.T, lambda g: 2 * a.T @ g\n",
    )
    assert answer["right"] is None
    assert answer["heading"] == (
        "Differences: every gradient is right, but it computes something else."
    )
    assert "An example of this page prints something else." in answer["reason"]
    alone = ("minigrad.idea", "multiply")  # (no example of the page has it)
    answer, _ = ask(
        alone,
        "@operation\ndef multiply(a, b):\n    return 2 * a * b, "
        "lambda g: 2 * g * b, lambda g: 2 * g * a\n",
    )
    assert answer["right"] is None and len(answer["examples"]) == 1  # (the matrix product's)


def test_an_example_that_prints_something_else_is_not_called_right(ask):
    lines = text(
        SOFTMAX,
        "    x = floats(x)  # integers become float64",
        "    x = floats(x)\n    if x.size == 2:\n        print(x)",
    )
    answer, _ = ask(SOFTMAX, lines)
    assert answer["right"] is None and answer["examples"]
    assert answer["heading"].endswith("right, but not all is as in the book.")


def test_a_wrong_second_derivative_alone(ask):
    lines = """
@primitive
def exp(x, /):
    from minigrad import Tensor
    return np.exp(x), lambda g, y: g * (y.data if isinstance(y, Tensor) else y)
"""
    answer, _ = ask(("minigrad.ops.elementwise", "exp"), lines)
    assert answer["heading"].startswith(
        "gradcheck: the first derivative is right. To second order "
    )
    assert "leaves the record" in answer["reason"] and answer["numbers"] is None


OWN = """def backward(root):
    root.grad = np.ones_like(root.array)
    waiting = {root}
    while waiting:
        y = max(waiting, key=lambda value: value.time)
        waiting.remove(y)
        for x, vjp in zip(y.inputs, y.vjps, strict=True):
            x.grad = x.grad + vjp(y.grad)
            waiting.add(x)
"""


@pytest.mark.parametrize(
    ("old", "new", "count", "says"),
    [
        ("x.grad + vjp", "vjp", 13, "a sends −0.5 to x, which had −0.5, and now has −0.5."),
        ("max(", "min(", 13, "c is taken, and a, which is newer, still waits."),
        ("        waiting.remove(y)\n", "", 85, "It may never end: your loop has run 500 lines"),
        ("y = max", "while True: pass\n        y = max", 1, "It may never end"),
        ("waiting", "others", 13, "has no `waiting`"),
        ("ones_like", "one", 0, "Your loop stops: AttributeError"),
    ],
)
def test_chapter_0s_picture_steps_through_the_readers_own_loop(ask, old, new, count, says):
    answer, failed = ask(LOOP, OWN.replace(old, new))
    steps = answer["loop"]["steps"]
    assert failed == [] and len(steps) == count and len(steps) <= 500
    assert says in answer["loop"]["says"] or says in " ".join(step["says"] for step in steps)
    lines = OWN.replace(old, new).split("\n")
    assert answer["loop"]["text"].split("\n") == lines
    assert all("=" in lines[step["line"]] or "for" in lines[step["line"]] for step in steps)


def test_chapter_0s_loop_without_an_order_and_without_a_sum(ask):
    order = ask(LOOP, "", BREAKS[LOOP][0])
    assert order["heading"] == "Differences: 2 of 10 gradients are wrong."
    assert order["reason"].startswith("Each rule is right by itself.")
    assert off_in(order["picture"]).keys() == {"x", "w"}
    lost = ask(LOOP, "", BREAKS[LOOP][1])
    assert lost["heading"] == "Differences: 3 of 10 gradients are wrong."
    (example,) = lost["examples"]
    assert example["now"] == "array([[3.]])\n"


def test_chapter_0s_rule_decorator_and_value(ask):
    rule = ("minigrad.idea", "softmax")
    answer, _ = ask(rule, text(rule, "(g - (y * g).sum(axis=-1, keepdims=True))", "g"))
    assert (
        answer["reason"]
        == "softmax gets the right gradient and sends a wrong one: look at its VJPs."
    )
    assert answer["picture"].count("✗") == 2  # on the arrow, and below
    decorator = ("minigrad.idea", "operation")
    answer, _ = ask(
        decorator, text(decorator, "Value(value, inputs, vjps)", "Value(2 * value, inputs, vjps)")
    )
    assert not answer["right"]  # the operations are decorated anew
    assert idea.matmul(idea.Value([[1.0]]), idea.Value([[3.0]])).array == 6
    assert idea.softmax(idea.Value([[0.0]])).array == 2  # with the lines that were changed before
    method = ("minigrad.idea", "Value.__init__")
    answer, _ = ask(method, text(method, "zeros_like", "ones_like"))
    assert not answer["right"] and idea.Value([1.0]).grad == 1
    whole = ("minigrad.idea", "Value")
    answer, _ = ask(whole, text(whole, "zeros_like(self.array)", "zeros_like(self.array) + 2"))
    assert not answer["right"] and idea.Value([1.0]).grad == 2


def test_a_gradient_without_its_sum_has_another_shape(ask):
    answer = ask(UNBROADCAST, "", BREAKS[UNBROADCAST][2])
    assert answer["heading"] == (
        "It stops. ValueError: the gradient of b has the shape (3, 4), and b has (4,): the shares "
        "of a broadcast input belong added up"
    )


def test_an_error_in_the_lines_is_a_sentence_and_changes_nothing(ask):
    right = ops.softmax([0.0, np.log(3.0)])
    for lines, sentence in (
        ("def softmax(x:\n", "line 1: SyntaxError: "),
        ("1 / 0\n", "line 1: ZeroDivisionError: division by zero"),
        ("x = 1\n", "NameError: these lines define nothing that is called softmax"),
        ("@primitive\ndef softmax(x):\n    return x\n", "TypeError: softmax names no tensor input"),
        ("exit()\n", "line 1: SystemExit"),
    ):
        answer, (failed,) = ask(SOFTMAX, lines)
        assert answer is None and sentence in failed
        assert np.array_equal(ops.softmax([0.0, np.log(3.0)]), right)


def test_lines_that_fail_when_they_run_are_told(ask):
    answer, _ = ask(SOFTMAX, "@primitive\ndef softmax(x, /, axis=-1):\n    return nonsense\n")
    assert answer["heading"].startswith("It stops in line 3: ")
    assert answer["reason"].endswith("NameError: name 'nonsense' is not defined")
    assert answer["picture"] is None
    assert [each["now"] for each in answer["examples"]] == [
        "NameError: name 'nonsense' is not defined"
    ]


def test_a_vjp_that_sends_nothing_is_told(ask):
    place = ("minigrad.ops.linalg", "_matmul")
    answer, _ = ask(
        place, "@primitive(name='matmul')\ndef _matmul(a, b, /):\n    return a @ b, None, None\n"
    )
    assert answer["heading"] == "It stops. ValueError: no gradient reaches q"


def test_a_line_that_stops_in_numpy_is_told_with_its_arrays(ask):
    answer, _ = ask(BY_HAND, text(BY_HAND, "G @ V.mT", "G @ V"))
    assert answer["heading"] == "It stops in line 7: dP = G @ V"
    said = "The shapes are G (4, 2), V (4, 2). ValueError: matmul: Input operand 1 has"
    assert answer["reason"].startswith(said)
    turned = ("minigrad.ops.elementwise", "tanh")
    answer, _ = ask(turned, text(turned, "g * ", "g @ "))
    assert "is a matrix product (@) written where * belongs?" in answer["reason"]  # (a hint)
    code = "return np.tanh(floats(x)), lambda g, y: g @ ("
    assert answer["heading"].startswith(f"It stops in line 3: {code}")


def test_a_changed_value_is_told_before_its_vjp(ask):
    answer, _ = ask(SOFTMAX, text(SOFTMAX, "        e / e.sum", "        2 * e / e.sum"))
    assert answer["right"] is False and answer["numbers"]
    assert answer["reason"].startswith("The value is not the book's: The small program's L is ")
    answer = ask(SOFTMAX, "", FORGOTTEN)
    assert "not the book's" not in answer["reason"]


def test_attentions_scale_and_exchanged_gradients_are_told_as_such(ask):
    for old, new, told in (
        (
            "scale * dZ @ K",
            "dZ @ K",
            "gives √3 times the true gradient: a division by √3, as by √d_k",
        ),
        ("G @ V.mT", "scale * G @ V.mT", "gives 1/√3 of the true gradient: a division by √3, as"),
    ):
        answer, _ = ask(BY_HAND, text(BY_HAND, old, new))
        assert answer["reason"].startswith(f"The VJP {told}")
        assert answer["heading"] == ("gradcheck: attention_backward gives a wrong gradient of q.")
        assert answer["numbers"]["what"] == "q in L = ⟨pull, attention(q, k, v)⟩"
    answer, _ = ask(BY_HAND, text(BY_HAND, "return dQ, dK, dV", "return dK, dQ, dV"))
    assert answer["reason"] == (
        "The VJP of input 0 gives the gradient of input 1: are the two exchanged?"
    )
    answer, _ = ask(BY_HAND, text(BY_HAND, "return dQ, dK, dV", "return dV, dK, dQ"))
    assert answer["heading"].endswith("or are the gradients of inputs 0 and 2 exchanged?")


def test_other_lines_in_use_are_named_unless_they_are_the_books(ask):
    ask(SOFTMAX, "", FORGOTTEN)
    product = ("minigrad.ops.linalg", "_matmul")
    answer, _ = ask(product, lines_of(*product).rstrip())
    assert answer["heading"] == "gradcheck: the rule softmax is wrong, in its VJP for input 0."
    assert answer["reason"].endswith("Look at your other lines that are in use: softmax.")
    ask(SOFTMAX, lines_of(*SOFTMAX).rstrip() + "  # as in the book")
    answer, _ = ask(product, lines_of(*product))
    assert answer["right"] and answer["reason"] == ""


def test_only_what_a_small_program_judges_can_be_edited():
    assert judges("minigrad.idea", "Value") and not judges("minigrad.idea", "main")
    assert judges("minigrad.ops.elementwise", "exp") and judges(*UNBROADCAST)
    assert not judges("minigrad.ops.elementwise", "floats")
    assert not judges("attention.scaled_dot_product", "unit_length")


# ------------------------------------------------------------------ known ways, and their page


def test_every_known_way_to_break_is_in_the_source():
    for place, ways in BREAKS.items():
        assert 3 <= len(ways) <= 5
        for known in ways:
            compile(broken(place, known), place[1], "exec")
    with pytest.raises(ValueError, match=r"softmax has 'no such line' 0 times, not once"):
        broken(SOFTMAX, Break("a title", "no such line", ""))


@pytest.mark.slow
def test_every_known_way_is_noticed():
    with ProcessPoolExecutor(1) as pool:  # (a process of its own: its definitions are broken)
        answers = pool.submit(kept).result()
    assert answers.keys() == BREAKS.keys()
    for place, ways in BREAKS.items():
        assert [answer["title"] for answer in answers[place]] == [way.title for way in ways]
        for answer in answers[place]:
            assert answer["right"] is False and answer["before"] != answer["after"]
            stops, ignores_g = "It stops" in answer["heading"], "depend on g" in answer["reason"]
            assert stops or ignores_g or answer["numbers"]
            assert stops or answer["picture"].startswith("<?xml")


def test_the_right_examples_of_a_page_are_as_in_the_book():
    for module in ("minigrad.idea", "minigrad.ops.softmaxes", "minigrad.checks.checking"):
        assert not list(changed(module))


def test_a_page_has_its_answers_folded_and_escaped(ask):
    answer = ask(SOFTMAX, "", FORGOTTEN)
    contents = Book(*book())
    chapter = contents.chapters["3.6"]
    before = "".join(page_of_chapter(contents, chapter).body)
    assert "breaks" not in before and 'data-of="softmax"' in before
    lines = {"title": "</script>", "before": "a < b", "after": "a > b"}
    contents.kept = {SOFTMAX: [lines | answer]}
    html = "".join(page_of_chapter(contents, chapter).body)
    told = html.partition('<div class="breaks">')[2].partition('<div class="holder">')[0]
    told = told.partition('<div class="code console"')[0]
    assert "&lt;/script&gt;" in told and "a &lt; b" in told and "<script" not in told
    assert told.count("<details") == 4 and "<details open" not in told
    assert "<b>✗ gradcheck: the rule softmax is wrong, in its VJP for input 0.</b>" in told
    assert 'src="data:image/svg+xml,%3C%3Fxml' in told and "1.013" in told


def test_a_definition_without_a_docstring_can_be_edited_too():
    contents = Book(*book())
    html = "".join(page_of_chapter(contents, contents.chapters["3.5"]).body)
    assert 'data-of="_matmul"' in html


def test_rows_are_beside_each_other_the_worst_first_with_as_many_digits_as_help():
    found = compared("x", np.array([[1.0, -1e-9], [2.0, 3.0]]), np.array([[1.0, 0.0], [0.0, 3.0]]))
    assert [row["place"] for row in found["rows"]] == ["row 1", "row 0"]
    assert found["rows"][1]["yours"] == ["1.00", "0.00"] == found["rows"][1]["moving"]
    assert found["rows"][0]["sums"] == ["5.00", "3.00"]
    small = compared("x", np.array(0.00012), np.array(0.0))["rows"][0]
    assert small == {
        "place": "",
        "yours": ["0.000120"],
        "moving": ["0.000000"],
        "sums": ["0.000120", "0.000000"],
    }


def test_a_row_that_is_not_a_number_is_the_worst():
    yours = np.array([[0.1, 0.2], [np.nan, 0.2], [0.5, 0.2]])
    found = compared("x", yours, np.full((3, 2), 0.1234))["rows"]
    assert [row["place"] for row in found] == ["row 1", "row 2", "row 0"]
    assert found[0]["yours"] == ["nan", "0.200"] and found[0]["moving"] == ["0.123", "0.123"]
    far = compared("x", np.array([[1.0], [np.inf]]), np.ones((2, 1)))["rows"]
    expected = {"place": "row 1", "yours": ["inf"], "moving": ["1.000"], "sums": ["inf", "1.000"]}
    assert far[0] == expected


@pytest.mark.parametrize("factor", [1.0005, 1 + 1e-7])
def test_the_worst_row_never_reads_as_if_it_agreed(factor):
    true = np.random.default_rng(0).standard_normal((3, 4))
    worst, *_ = compared("x", factor * true, true)["rows"]
    assert worst["yours"] != worst["moving"]
    assert max(len(x.partition(".")[2]) for x in worst["yours"]) <= 9
    same = compared("x", true, true)["rows"][0]  # (and it ends where nothing differs)
    assert same["yours"] == same["moving"]


def not_right(named):
    """Judge the lines of each definition in its own place; return what is not told to be right."""
    found = []
    for of, name in named:
        question = {"define": lines_of(of, name), "of": of, "name": name}
        answer = define(question, lambda **failed: found.append(failed), Spaces())
        if not answer or not answer["right"] or answer["examples"] or "✗" in answer["picture"]:
            found.append((of, name, answer))
    return found


def editable(numbers):
    """Return the definitions that can be edited on the pages of chapters."""
    contents = Book(*book())
    named = []
    for number in numbers or contents.chapters:
        chapter = contents.chapters[number]
        html = "".join(page_of_chapter(contents, chapter).body)
        names = dict.fromkeys(re.findall('data-of="([^"]+)"', html))
        named += [(chapter.source.name, name) for name in names]
    return named


def test_no_right_line_of_chapter_0_is_called_wrong():
    named = editable(["0"])
    assert len(named) == 9
    with ProcessPoolExecutor(1) as pool:
        assert pool.submit(not_right, named).result() == []


@pytest.mark.slow
def test_every_definition_that_can_be_edited_is_right_in_its_own_place():
    named = editable(())
    assert {*BREAKS} <= {*named} and len(named) < 100
    with ProcessPoolExecutor(1) as pool:
        assert pool.submit(not_right, named).result() == []


def test_a_right_rule_is_not_blamed_for_a_loop_that_is_wrong(ask):
    ask(LOOP, "", BREAKS[LOOP][0])
    rule = ("minigrad.idea", "softmax")
    answer, _ = ask(rule, lines_of(*rule))
    assert answer["reason"] == "Look at your other lines that are in use: backward."
    assert "✗" not in answer["picture"]


@pytest.mark.parametrize(
    ("place", "lines"),
    [
        (("minigrad.ops.shape", "swapaxes"), "def swapaxes(x, a, b):\n    return x\n"),
        (("minigrad.ops.inverses", "arccosh"), "def arccosh(x):\n    return x\n"),
        (SOFTMAX, "softmax = np.exp\n"),
    ],
)
def test_lines_that_other_modules_would_not_meet_are_refused(ask, place, lines):
    before = getattr(importlib.import_module(place[0]), place[1])
    answer, (failed,) = ask(place, lines)
    assert answer is None and place not in _definitions.LINES
    assert failed.endswith("than the book's " + place[1] + ": is its decorator missing?")
    assert getattr(importlib.import_module(place[0]), place[1]) is before


def test_in_chapter_0_lines_of_another_kind_are_judged(ask):
    counted = """
def operation(rule):
    counts = [0]

    def run(*inputs):
        counts[0] += 1
        value, *vjps = rule(*[x.array for x in inputs])
        return Value(value, inputs, vjps)

    return run
"""
    answer, _ = ask(("minigrad.idea", "operation"), counted)
    assert answer["right"]
    answer, _ = ask(("minigrad.idea", "softmax"), "def softmax(x):\n    return x\n")
    assert answer["right"] is False


@pytest.mark.parametrize("beside", ["helper = 1", "global helper\nhelper = 1", "backward = 1"])
def test_what_lines_that_fail_define_beside_is_taken_back(ask, beside):
    loop = idea.backward
    answer, (failed,) = ask(
        ("minigrad.idea", "operation"),
        f"{beside}\ndef operation(rule):\n    raise ValueError('no')\n",
    )
    assert answer is None and failed.endswith("ValueError: no")
    assert not hasattr(idea, "helper") and idea.backward is loop
    ask(("minigrad.idea", "softmax"), f"{beside}\n1 / 0\n")
    assert not hasattr(idea, "helper") and idea.backward is loop


@pytest.mark.parametrize("end", ["exit()", "raise KeyboardInterrupt"])
@pytest.mark.parametrize("place", [SOFTMAX, ("minigrad.idea", "softmax")])
def test_lines_that_end_python_are_a_verdict(ask, place, end):
    decorator = lines_of(*place).splitlines()[0]
    answer, _ = ask(place, f"{decorator}\ndef softmax(x, /, axis=-1):\n    {end}\n")
    assert answer["right"] is False and answer["heading"].startswith("It stops in line 3: ")


def test_a_loop_that_ends_python_is_a_verdict(ask):
    answer, heard = ask(LOOP, "def backward(root):\n    exit()\n")
    assert not heard and answer["heading"] == "It stops in line 2: exit()"
    assert answer["loop"]["says"].startswith("Your loop stops: SystemExit")


def test_in_chapter_0_a_gradient_of_0_is_right_where_nothing_moves(ask):
    constant = "@operation\ndef softmax(x):\n    return 0 * x + 0.5, lambda g: {}\n"
    answer, _ = ask(("minigrad.idea", "softmax"), constant.format("0 * g"))
    assert answer["heading"].startswith("Differences: every gradient is right")
    answer, _ = ask(("minigrad.idea", "softmax"), constant.format("g"))
    assert answer["heading"] == "Differences: 6 of 10 gradients are wrong."
    assert "should be 0" in answer["picture"]


def test_a_decorator_that_fails_is_not_in_use(ask):
    decorator = ("minigrad.idea", "operation")
    answer, heard = ask(decorator, "def operation(rule):\n    raise ValueError('no')\n")
    assert answer is None and heard == ["line 2: ValueError: no"]
    assert decorator not in _definitions.LINES
    assert idea.matmul(idea.Value([[2.0]]), idea.Value([[3.0]])).array == 6
    answer, _ = ask(LOOP, lines_of(*LOOP))
    assert answer["right"]
