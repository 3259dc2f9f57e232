"""Site · Questions: what each chapter of the evening asks after its lesson, and the answer.

A question can be answered in the head after its chapter and the earlier ones of the evening, each
read up to the line where a first reading may stop. The example shows that the answer is right.
"""

from typing import NamedTuple


class Question(NamedTuple):
    """A question of a chapter, its answer, and a doctest with the names of the chapter's page."""

    asks: str
    says: str
    example: str


QUESTIONS = {  # by the number of the chapter
    "0": Question(
        asks="Let x be 2 and y = `multiply(multiply(x, x), x)`. What does `backward` add to the "
        "gradient of x, and in which order?",
        says="First 4 from the newer product, whose gradient is 1 and whose other factor is x². "
        "Then the older product has the gradient 2, and sends 2 · 2 = 4 for each of its two "
        "factors. The sum is 12, which is 3x².",
        example="""
        >>> from minigrad import idea
        >>> x = idea.Value([[2.0]])
        >>> square = idea.multiply(x, x)
        >>> idea.backward(idea.multiply(square, x))
        >>> square.grad, x.grad
        (array([[2.]]), array([[12.]]))
        """,
    ),
    "1.1": Question(
        asks="`x = Tensor(a, requires_grad=True)` and `c = Tensor(a)`, where *a* holds 1 and 2. "
        "`y = (x * c).sum()`, then `a[0] = 7.0`. What is `x.grad` after `y.backward()`?",
        says="(7, 2) instead of (1, 2), and no error shows it. x has copied the array and still "
        "holds 1 and 2. The constant c has not: it holds 7 and 2 when the way back reads it, and "
        "the gradient of one factor is g times the other factor.",
        example="""
        >>> a = np.array([1.0, 2.0])
        >>> x, c = Tensor(a, requires_grad=True), Tensor(a)
        >>> y = (x * c).sum()
        >>> a[0] = 7.0
        >>> y.backward()
        >>> x.data, x.grad
        (array([1., 2.]), array([7., 2.]))
        """,
    ),
    "1.2": Question(
        asks="x requires a gradient, c does not. Which of the four operations in "
        "`(x * c + c * c).sum()` leave a node? Which do so inside a `no_grad` block?",
        says="Three: `x * c`, the addition and the sum. `c * c` has no input that requires a "
        "gradient, so its result is a constant. Inside a `no_grad` block no operation leaves a "
        "node.",
        example="""
        >>> x, c = Tensor([3.0], requires_grad=True), Tensor([2.0])
        >>> a, b = x * c, c * c
        >>> total = a + b
        >>> [t.node and t.node.name for t in (a, b, total, total.sum())]
        ['multiply', None, 'add', 'sum']
        >>> with no_grad():
        ...     print((x * c).node)
        None
        """,
    ),
    "1.3": Question(
        asks="Write the rule of y = 1/x. How can its VJP do without x?",
        says="The slope -1/x² is -y². So the rule returns 1/x and a VJP that needs only g and y. "
        "The second derivative, 2/x³, comes from the same VJP, because its operators work on "
        "Tensors too.",
        example="""
        >>> @primitive
        ... def reciprocal(x, /):
        ...     return 1 / x, lambda g, y: -g * y**2
        >>> from minigrad import grad
        >>> grad(reciprocal)(2.0), grad(grad(reciprocal))(2.0)
        (array(-0.25), array(0.25))
        """,
    ),
    "2.1": Question(
        asks="Let x be 2, a = x², b = a x and L = a + b. What does *a* send to x? And if it were "
        "taken before b?",
        says="*a* has received 1 from L and x = 2 from b, so it sends 3 · 2x = 12. Before b it "
        "would have only the 1 from L, and would send 4. As b sends 4 to x too, ∂L/∂x is 12 + 4 = "
        "16.",
        example="""
        >>> from minigrad import gradients
        >>> x = Tensor(2.0, requires_grad=True)
        >>> a = x * x
        >>> b = a * x
        >>> gradients(a + b, [a, x])
        (array(3.), array(16.))
        """,
    ),
    "3": Question(
        asks="A rule says ∂yᵢ/∂xⱼ = yᵢ (δᵢⱼ - yⱼ). Which four numbers are in this table for y = "
        "(½, ½)?",
        says="On the diagonal δᵢⱼ is 1, and ½ (1 - ½) is ¼. Elsewhere δᵢⱼ is 0, and ½ (0 - ½) is "
        "-¼. (The rule is that of softmax, for two equal inputs.)",
        example="""
        >>> from minigrad import jacobian, softmax
        >>> jacobian(softmax)([0.0, 0.0])
        array([[ 0.25, -0.25],
               [-0.25,  0.25]])
        """,
    ),
    "3.1": Question(
        asks="Let L be log(1 + exp(x)) at x = ln 3. What do the three rules send back, one after "
        "the other?",
        says="The input of log is 4, so log sends ¼. The addition passes it on unchanged. The "
        "output of exp is 3, so exp sends ¼ · 3 = ¾.",
        example="""
        >>> from minigrad import grad
        >>> print(grad(lambda x: np.log(1 + np.exp(x)))(np.log(3.0)).round(9))
        0.75
        """,
    ),
    "3.4": Question(
        asks="x has the shape (2, 3), and the gradient (2, 4, 6) arrives at `x.mean(axis=0)`. "
        "What is the gradient of x?",
        says="Two elements share each mean, so each of them gets half of its g: both rows are (1, "
        "2, 3). If it were `x.sum(axis=0)`, both rows would be (2, 4, 6).",
        example="""
        >>> from minigrad import Tensor
        >>> x = Tensor(np.ones((2, 3)), requires_grad=True)
        >>> x.mean(axis=0).backward([2.0, 4.0, 6.0])
        >>> x.grad
        array([[1., 2., 3.],
               [1., 2., 3.]])
        """,
    ),
    "3.5": Question(
        asks="Let C = A B with A = [[1, 2]] and B = [[3, 4], [5, 6]], and let G be [[1, 0]]. What "
        "are ∂L/∂A and ∂L/∂B?",
        says="∂L/∂A = G Bᵀ = [[3, 5]], which is the first column of B. ∂L/∂B = Aᵀ G = [[1, 0], "
        "[2, 0]]. The second column of B reaches only the second element of C, whose gradient is "
        "0.",
        example="""
        >>> a = Tensor([[1.0, 2.0]], requires_grad=True)
        >>> b = Tensor([[3.0, 4.0], [5.0, 6.0]], requires_grad=True)
        >>> (a @ b).backward([[1.0, 0.0]])
        >>> a.grad, b.grad
        (array([[3., 5.]]), array([[1., 0.],
               [2., 0.]]))
        """,
    ),
    "3.6": Question(
        asks="Softmax gives the weights (½, ¼, ¼), and g = (104, 100, 100) arrives at them. What "
        "does each score get?",
        says="1, -½ and -½. The average of g is 102, so the weights are multiplied by 2, -2 and "
        "-2. The 100 in every element changes nothing, because the average contains it too.",
        example="""
        >>> from minigrad import Tensor
        >>> x = Tensor(np.log([0.5, 0.25, 0.25]), requires_grad=True)
        >>> softmax(x).backward([104.0, 100.0, 100.0])
        >>> x.grad.round(9)
        array([ 1. , -0.5, -0.5])
        """,
    ),
    "4.1": Question(
        asks="Let f be x² instead of x³. Which side of the V is missing, and what does the "
        "difference give at x = 3 with h = ½?",
        says="The side of the large h: the third derivative of x² is 0, and only rounding is "
        "left. So the difference is 6 with h = ½, and with much larger steps too.",
        example="""
        >>> [difference(lambda x: x * x, 3.0, 1.0, h) for h in (0.5, 4.0, 1024.0)]
        [6.0, 6.0, 6.0]
        """,
    ),
    "11": Question(
        asks="Let both values of the example be (4, 0), with g = (1, -1) as before. What are the "
        "gradients of q, of the keys and of the values?",
        says="g·vⱼ is 4 for both values, and so is their average, so ∂L/∂zⱼ is 0. q and the keys "
        "get 0: whatever the weights are, the result is (4, 0). The values still get ¾ g and ¼ g.",
        example="""
        >>> Q = np.array([[2.0, 0.0, 0.0, 0.0]])
        >>> K = np.array([[np.log(3.0), 0.0, 0.0, 0.0], [0.0, 4.0, 0.0, 0.0]])
        >>> V, G = np.array([[4.0, 0.0], [4.0, 0.0]]), np.array([[1.0, -1.0]])
        >>> dQ, dK, dV = attention_backward(Q, K, V, G, scale=0.5)
        >>> np.allclose(dQ, 0), np.allclose(dK, 0), dV.round(9)
        (True, True, array([[ 0.75, -0.75],
               [ 0.25, -0.25]]))
        """,
    ),
    "13": Question(
        asks="In cross-attention Q is X W_Q, but K and V are M W_K and M W_V, with a memory M. "
        "What are ∂L/∂X and ∂L/∂M?",
        says="X is used once: ∂L/∂X = (∂L/∂Q) W_Qᵀ. M is used twice, so its gradient is the sum "
        "of two contributions: ∂L/∂M = (∂L/∂K) W_Kᵀ + (∂L/∂V) W_Vᵀ.",
        example="""
        >>> from minigrad import gradients
        >>> rng = np.random.default_rng(0)
        >>> x, m, *ws = (Tensor(rng.standard_normal((5, 5)), requires_grad=True) for _ in range(5))
        >>> q, k, v = (t @ w for t, w in zip((x, m, m), ws))
        >>> of_x, of_m, *of_qkv = gradients((attention(q, k, v) ** 2).sum(), [x, m, q, k, v])
        >>> by_q, by_k, by_v = (g @ w.data.T for g, w in zip(of_qkv, ws))
        >>> np.allclose(of_x, by_q), np.allclose(of_m, by_k + by_v)
        (True, True)
        """,
    ),
    "16": Question(
        asks="A head has 64 keys. Is its typical gradient longer or shorter without the scale if "
        "d_k is 16, and if d_k is 1024? Why?",
        says="Longer at 16, shorter at 1024. With the scale s is 1, where the hill still rises. "
        "Without it s is √d_k: 4 is near the top of the hill, which is at 5½, and 32 is far "
        "beyond the top.",
        example="""
        >>> from attention.scaling import saturation
        >>> def median(d_k, a):                 # of ‖∂L/∂q‖, with the scale d_k^-a
        ...     rng = np.random.default_rng(0)
        ...     return saturation(d_k, a, keys=64, queries=128, rng=rng).gradient_median
        >>> for d_k in (16, 1024):
        ...     print(d_k, "longer" if median(d_k, 0.0) > median(d_k, 0.5) else "shorter")
        16 longer
        1024 shorter
        """,
    ),
}
