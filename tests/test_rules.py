"""Chapter 1.3 · Rules: operations of one's own, of both kinds, and what is wrong with them."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, fused, gradcheck, gradients, graph, ops, primitive, unfused
from tests.making import A, B, M, leaf

# Written by someone outside of minigrad. NumPy's spherical functions do not take Tensors, so the
# first two return their value as a function.


@primitive
def sinc(x, /):
    return lambda: np.sinc(x / np.pi), lambda g, y: g * (np.cos(x) - y) / x


@primitive
def arsinh(x, /):
    return lambda: np.arcsinh(x), lambda g, y: g / np.sqrt(x * x + 1)


@primitive
def scaled(a, b, /, factor=1.0, offset=0.0):
    return a * b * factor + offset, lambda g, y: g * b * factor, lambda g, y: g * a * factor


@primitive
def total(*xs):
    return sum(xs), *(lambda g, y: g for _ in xs)


# ---------------------------------------------------------------- value


def test_a_primitive_from_outside_computes_and_is_drawn_under_its_own_name():
    t = leaf()
    y = sinc(t)
    np.testing.assert_allclose(y.data, np.sin(A) / A)
    assert (y.node.name, y.node.inputs, len(y.node.vjps)) == ("sinc", (t,), 1)
    drawn = graph(sinc(t) * 2.0)
    assert [v.operation for v in drawn.vertices if v.operation] == ["sinc", "multiply"]
    assert "sinc" in [v.title for v in drawn.vertices]
    assert "sinc" in drawn.source


def test_options_are_kept_by_name_however_they_were_given():
    t = leaf()
    y = scaled(2, t, 3.0, offset=1.0)
    np.testing.assert_array_equal(y.data, A * 2 * 3 + 1)
    assert y.node.options == {"factor": 3.0, "offset": 1.0}


def test_arrays_give_an_array_and_constant_tensors_a_constant_tensor():
    for operation in (sinc, ops.sum, lambda x: total(x, 2.0), lambda x: fresh()(x, 2.0)):
        for x in (A, A.tolist(), 0.5):
            assert type(operation(x)) is np.ndarray
        y = operation(Tensor(A))
        assert type(y) is Tensor and y.node is None and not y.requires_grad
        with mg.no_grad():
            assert operation(leaf()).node is None


def test_a_value_given_as_a_function_is_called_once_and_on_arrays_only():
    seen = []

    @primitive
    def doubled(x, /):
        return (lambda: seen.append(type(x)) or 2 * x), lambda g, y: 2 * g

    t = leaf()
    (g,) = gradients(doubled(t), [t], A, create_graph=True)
    assert seen == [np.ndarray]
    np.testing.assert_array_equal(g.data, 2 * A)


# ---------------------------------------------------------------- derivative


@pytest.mark.parametrize("operation", [sinc, arsinh, lambda a: scaled(a, a, 3), total])
def test_rules_from_outside_are_right_to_second_order(operation):
    assert gradcheck(operation, A)


def test_a_vjp_of_a_mask_is_none_and_the_others_are_asked():
    kept = primitive(lambda x, mask, /: (x * mask, lambda g, y: g * mask, None))
    t, mask = leaf(), leaf([1.0, 0.0, 1.0], "mask")
    kept(t, mask).backward(B)
    np.testing.assert_array_equal(t.grad, B * mask.data)
    assert mask.grad is None


def test_a_rule_is_asked_again_with_tensors_only_when_the_derivative_is_recorded():
    asked = []

    @primitive
    def square(x, /):
        asked.append(type(x))
        return x * x, lambda g, y: g * x * 2

    t = leaf()
    y = square(t)
    gradients(y, [t], A, retain_graph=True)
    assert asked == [np.ndarray]
    (g,) = gradients(y, [t], A, create_graph=True)
    assert asked == [np.ndarray, Tensor]
    assert g.requires_grad and g.node.name == "multiply"


def test_a_gradient_that_nobody_needs_is_never_computed():
    asked = []

    @primitive
    def product(a, b, /):
        return (
            a * b,
            lambda g, y: asked.append("a") or g * b,
            lambda g, y: asked.append("b") or g * a,
        )

    for inputs, expected in [
        ((leaf(), B), ["a"]),
        ((A, leaf()), ["b"]),
        ((leaf(), Tensor(B)), ["a"]),
        ((leaf(), leaf()), ["a", "b"]),
    ]:
        asked.clear()
        product(*inputs).backward(A)
        assert asked == expected
    a, b = leaf(), leaf()
    asked.clear()
    gradients(product(a, b), [b], A)
    assert asked == ["b"]


def test_a_vjp_of_another_precision_is_brought_to_its_inputs():
    halved = primitive(lambda x, /: (x / 2, lambda g, y: (g / 2).astype(np.float32)))
    counted = primitive(lambda x, /: (x * 2, lambda g, y: np.array([2, 2, 2])))
    for operation in (halved, counted):
        t = leaf()
        operation(t).backward(np.ones(3))
        assert t.grad.dtype == np.float64


# ---------------------------------------------------------------- fused: value and derivative


def softened(x, w, /, power=2.0):
    """Return the definition of the fused rule below: (x ⊙ w)^power."""
    return (x * w) ** power


def fresh(asked=None, definition=softened):
    @fused(definition=definition)
    def soft(x, w, /, power=2.0):
        product = x * w

        def backward(g, y, needs):
            if asked is not None:
                asked.append(needs)
            shared = power * product ** (power - 1) * g
            return shared * w if needs[0] else None, shared * x if needs[1] else None

        return product**power, backward

    return soft


FUSED_CASES = {
    "equal shapes": (M, M[::-1] + 0.5),
    "broadcast": (M, np.array([0.5, 1.5, 0.7])),
    "float32": (M.astype(np.float32), M.astype(np.float32)),
}


@pytest.mark.parametrize(("x", "w"), FUSED_CASES.values(), ids=FUSED_CASES)
def test_a_fused_rule_and_its_definition_agree_in_value_first_and_second_order(x, w):
    found = []
    seed = np.linspace(1, 2, x.size, dtype=x.dtype).reshape(x.shape)
    for f in (fresh(), softened):
        a, b, g = leaf(x), leaf(w), leaf(seed, "g")
        y = f(a, b)
        first = gradients(y, [a, b], g.data, retain_graph=True)
        recorded = gradients(y, [a, b], g, create_graph=True)
        assert all(r.requires_grad for r in recorded)
        total = sum((r * r).sum() for r in recorded)
        found.append([y.data, *first, *[r.data for r in recorded], *gradients(total, [a, b, g])])
    rtol = 1e-5 if x.dtype == np.float32 else 1e-13
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=rtol, strict=True)


def test_unfused_computes_the_definition_and_ends_with_its_block():
    soft, a, b = fresh(), leaf(M), leaf(M + 1)
    with unfused():
        y = soft(a, b, power=3.0)
        assert type(soft(M.tolist(), M)) is np.ndarray  # the definition takes lists, too
    assert y.node.name == "power"
    assert [v.operation for v in graph(y).vertices if v.operation] == ["multiply", "power"]
    np.testing.assert_allclose(y.data, soft(a, b, power=3.0).data, rtol=1e-15)
    with pytest.raises(KeyError), unfused():
        raise KeyError
    assert soft(a, b).node.name == "soft"


def test_backward_is_told_what_is_needed_and_called_once_with_arrays():
    asked = []
    soft = fresh(asked)
    for x, w, needs in [
        (leaf(M), leaf(M), (True, True)),
        (leaf(M), M, (True, False)),
        (M, leaf(M), (False, True)),
        (leaf(M).detach(), leaf(M), (False, True)),
    ]:
        asked.clear()
        soft(x, w).backward(M)
        assert asked == [needs]
    a, b = leaf(M), leaf(M)
    asked.clear()
    gradients(soft(a, b), [b], M)
    assert asked == [(False, True)]


def test_the_definition_is_used_for_a_recorded_derivative_and_for_no_other():
    used = []

    def definition(x, w, /, power=2.0):
        used.append((type(x), power))
        return softened(x, w, power)

    soft, x = fresh(definition=definition), leaf(M)
    y = soft(x, M, power=3.0)
    gradients(y, [x], M, retain_graph=True)
    assert used == []
    gradients(y, [x], M, create_graph=True)
    assert used == [(Tensor, 3.0)]


@pytest.mark.parametrize("written", ["saved", "g", "y"])
def test_a_fused_rule_may_write_into_what_it_has_saved_but_not_into_g_or_y(written):
    @fused(definition=np.exp)
    def writes(x, /):
        def backward(g, y, needs):
            {"saved": saved, "g": g, "y": y}[written][...] *= y
            return (g * saved,)

        saved = np.ones(x.shape)
        return np.exp(x), backward

    t = leaf()
    if written == "saved":
        writes(t).backward(B)
        np.testing.assert_allclose(t.grad, B * np.exp(A))
    else:
        with pytest.raises(ValueError, match="read-only"):
            writes(t).backward(B)


# ---------------------------------------------------------------- law: dtypes and subclasses


def test_numbers_and_arrays_take_the_dtype_of_the_tensor_beside_them():
    t = Tensor(A, dtype=np.float32)
    counts, half = np.arange(3), np.ones(3, np.float16)
    for other in (2, 2.0, np.float64(2.0), np.array(2.0), Tensor(2.0), A, A.tolist(), counts, half):
        assert (t * other).dtype == (other * t).dtype == np.float32
    assert (t * Tensor(counts)).dtype == (Tensor(counts) * t).dtype == np.float32
    assert (np.stack([t, A])).dtype == np.where(A > 0.5, t, A).dtype == np.float32
    assert (Tensor([1, 2, 3]) * 2.5).dtype == np.float64
    unless = primitive(lambda x, mask, /: (np.where(~mask, x, 0.0), lambda g, y: g, None))
    assert unless(t, True).dtype == np.float32  # a boolean stays one


# ---------------------------------------------------------------- refusal


def wrong(rule):
    rule.__name__ = "wrong"
    return primitive(rule)


WRONG_ANSWERS = {
    "no VJPs": (lambda a, b, /: (a * b,), "a tuple of 1"),
    "too few VJPs": (lambda a, b, /: (a * b, lambda g, y: g * b), "a tuple of 2"),
    "its value alone": (lambda a, b, /: a * b, "ndarray"),
    "nothing": (lambda a, b, /: None, r"None: is a return missing\?"),
}


@pytest.mark.parametrize(("rule", "got"), WRONG_ANSWERS.values(), ids=WRONG_ANSWERS)
def test_a_wrong_answer_of_a_rule_is_one_sentence(rule, got):
    words = (
        r"^the rule wrong must return its value and one VJP for each of its 2 tensor inputs, "
        rf"as a tuple, but it returned {got}$"
    )
    for requires_grad in (True, False):
        t = Tensor(np.ones(3), requires_grad=requires_grad)
        with pytest.raises(TypeError, match=words):
            wrong(rule)(t, 2.0)


def test_a_rule_that_names_no_tensor_is_refused_when_it_is_decorated():
    for rule in (lambda x: (x, None), lambda x, axis=0: (x, None), lambda *, x: (x, None)):
        with pytest.raises(TypeError, match="wrong names no tensor input.*before a '/'"):
            wrong(rule)


def test_a_value_that_is_not_real_is_refused():
    for value in (lambda x: None, lambda x: x * 1j, lambda x: lambda: x.astype(object)):
        rule = lambda x, /, value=value: (value(x), lambda g, y: g)
        words = "the value of wrong takes real numbers, but got an array of dtype (object|complex)"
        with pytest.raises(TypeError, match=words):
            wrong(rule)(leaf())


GAVE_ANOTHER = (
    r", which is neither the input's \(3,\) nor a broadcast of it within the output's \(3,\): is g "
    r"forgotten, or a sum over an axis\?$"
)
WRONG_VJPS = {  # of an operation whose output has shape (3,)
    "another shape": (A, lambda g, y: np.ones(5), r"gave shape \(5,\)" + GAVE_ANOTHER),
    "more axes": (A, lambda g, y: np.ones((2, 3)), r"gave shape \(2, 3\)" + GAVE_ANOTHER),
    "fewer axes": (A, lambda g, y: np.ones(()), r"gave shape \(\)" + GAVE_ANOTHER),
    "an axis stretched further": ([2.0], lambda g, y: np.ones(7), r"gave shape \(7,\)"),
    "a number": (A, lambda g, y: 1.0, "gave float, not an array of real numbers$"),
    "None": (A, lambda g, y: None, r"gave None: is a return missing\?$"),
    "complex": (A, lambda g, y: g * 1j, "gave complex128, not an array of real numbers$"),
    "a Tensor of the outside": (A, lambda g, y: leaf() * g, "gave Tensor, not an array of real"),
}


@pytest.mark.parametrize("kind", ["primitive", "fused"])
@pytest.mark.parametrize(("values", "vjp", "words"), WRONG_VJPS.values(), ids=WRONG_VJPS)
def test_a_vjp_that_gives_no_gradient_of_its_input_is_one_sentence(values, vjp, words, kind):
    def widened(x, /):
        return x + np.zeros(3), vjp if kind == "primitive" else lambda g, y, needs: (vjp(g, y),)

    make = primitive if kind == "primitive" else fused(definition=lambda x: x + np.zeros(3))
    t = leaf(values)
    error = ValueError if "shape" in words else TypeError
    with pytest.raises(error, match=f"^the VJP of widened for input 0 {words}"):
        make(widened)(t).backward(A)
    assert t.grad is None


RULE = r"^the rule wrong must return its value and one function backward\(g, y, needs\), as a tuple"
BACK = "^the backward of wrong must return a tuple with a gradient or None for each of its 1 in"
WRONG_FUSED = {  # what a rule returns of its value y
    "its value alone": (lambda y: y, RULE + ", but it returned ndarray$"),
    "no backward": (lambda y: (y,), RULE + ", but it returned a tuple of 1$"),
    "the gradient alone": (lambda y: (y, lambda g, y, needs: g), BACK),
    "one too many": (lambda y: (y, lambda g, y, needs: (g, g)), BACK),
    "None where it is needed": (
        lambda y: (y, lambda g, y, needs: (None,)),
        r"^the VJP of wrong for input 0 gave None: is a return missing\?$",
    ),
}


@pytest.mark.parametrize(("returned", "words"), WRONG_FUSED.values(), ids=WRONG_FUSED)
def test_what_a_fused_rule_must_return_is_one_sentence(returned, words):
    @fused(definition=np.exp)
    def wrong(x, /):
        return returned(np.exp(x))

    t = leaf()
    with pytest.raises(TypeError, match=words):
        wrong(t).backward(A)
    assert t.grad is None


CALLS = {
    "too many arguments": (lambda t: scaled(t, t, 1, 2, 3), TypeError, "scaled.*but 5 were given"),
    "no options at all": (lambda t: sinc(t, 1.0), TypeError, "sinc.*but 2 were given"),
    "an option twice": (lambda t: scaled(t, t, 1.0, factor=2.0), TypeError, "scaled.*'factor'"),
    "too few arguments": (lambda t: scaled(t), TypeError, "scaled.*'b'"),
    "shapes": (lambda t: fresh()(t, M[:, :2]), ValueError, r"^soft of 't' \(3,\) and \(2, 2"),
}


@pytest.mark.parametrize(("call", "error", "words"), CALLS.values(), ids=CALLS)
def test_a_call_that_does_not_fit_is_explained_with_the_operation_and_its_inputs(
    call, error, words
):
    with pytest.raises(error, match=words):
        call(leaf())
