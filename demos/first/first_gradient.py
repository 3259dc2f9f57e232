"""One query, two keys, two values: the way back through attention, number by number.

Claim. To go back through attention, apply the rules of its steps, the last one first. Three ways
give the same sixteen numbers: the engine, which knows only the rules of single operations; the five
lines of chapter 11; and finite differences, which use no rule. Steps against the gradient move the
query away from the key whose value raises the loss.

    python -m demos first_gradient [--out DIR]  # 1 s
"""

# %% Set-up

import numpy as np

from attention import attention, attention_backward
from demos import options
from demos._page import Page, try_it
from demos._training import Marks
from minigrad import Steps, Tensor, gradcheck, gradients, graph, numerical_gradient, softmax
from minigrad.graphs.render import described

chosen = options("first_gradient", __doc__.splitlines()[0])
marks = Marks(chosen)


def shown(x):
    """Return the numbers of an array as text, with four digits."""
    return ", ".join(f"{number:.4g}" for number in np.ravel(x) + 0.0)  # (+ 0.0 turns -0 into 0)


# %% Forward
# The query fits key 1, and the value of key 1 raises the loss L, which is the first feature of the
# output minus the second. ln 3 makes the weights 3 to 1.

SCALE = 1 / np.sqrt(4)  # 1/√d_k
q = Tensor([[2.0, 0.0, 0.0, 0.0]], requires_grad=True, name="q")
k = Tensor([[np.log(3.0), 0.0, 0.0, 0.0], [0.0, 4.0, 0.0, 0.0]], requires_grad=True, name="k")
v = Tensor([[4.0, 0.0], [0.0, 4.0]], requires_grad=True, name="v")
g = np.array([[1.0, -1.0]])

with Steps() as steps:  # it notes what happens, for the page
    z = SCALE * (q @ k.mT)
    p = softmax(z)
    o = p @ v
    L = (g * o).sum()

print("Forward")
for name, what, x in (
    ("z", "scores, after the scale", z),
    ("p", "weights", p),
    ("o", "output", o),
    ("L", "loss, g·o", L),
):
    print(f"   {name}  {what:24} {shown(x.data)}")
steps_apart = float(np.abs(o.data - attention(q, k, v, scale=SCALE).data).max())
marks.at_most("distance from chapter 11's attention", steps_apart, 1e-15, ".0e")

# %% Its graph, coloured by gradient

drawing = graph(L, grads=True, steps=steps)
picture = drawing.save(chosen.out / "graph.png")
drawing.save(chosen.out / "graph.svg")
print(f"The graph: {picture}\n")

# %% Backward, step by step
# The rule of each result turns the gradient of the result into the gradients of its inputs.

of_o, of_p, of_z = (x[0] for x in gradients(L, [o, p, z], retain_graph=True))
average = float(p.data[0] @ of_p)
print("Backward")
rows = [
    ["∂L/∂o", "g: o₁ raises the loss, o₂ lowers it", shown(of_o)],
    ["∂L/∂p", "G Vᵀ: how fast the loss rises with each weight", shown(of_p)],
    ["", "their average under the weights, g·o", shown(average)],
    ["∂L/∂z", "weight times (its own minus the average)", shown(of_z)],
]
steps.backward(L)  # every contribution of the pass, for the page
L.backward()
rows += [
    ["∂L/∂q", "scale · Σⱼ ∂L/∂zⱼ kⱼ", shown(q.grad)],
    ["∂L/∂k₁", "scale · ∂L/∂z₁ q", shown(k.grad[0])],
    ["∂L/∂k₂", "scale · ∂L/∂z₂ q", shown(k.grad[1])],
    ["∂L/∂v₁", "weight 1 times g", shown(v.grad[0])],
    ["∂L/∂v₂", "weight 2 times g", shown(v.grad[1])],
]
for name, why, numbers in rows:
    print(f"   {name:8}{why:52}{numbers}")

# %% Three ways
# By the engine, as above; by hand, with chapter 11's five lines; and by moving each element of q, k
# and v a little.


def loss(q, k, v, scale=SCALE):
    """Return L as a function of its leaves."""
    return (g * attention(q, k, v, scale=scale)).sum()


by_engine = [q.grad, k.grad, v.grad]
by_hand = attention_backward(q.data, k.data, v.data, g, scale=SCALE)
by_moving = [
    numerical_gradient(lambda x: loss(x, k, v), q)[0],
    numerical_gradient(lambda x: loss(q, x, v), k)[0],
    numerical_gradient(lambda x: loss(q, k, x), v)[0],
]
three = []
print(f"\n   {'':8}{'by the engine':>26}{'by hand':>26}{'by moving':>26}")
for name, *ways in zip("qkv", by_engine, by_hand, by_moving, strict=True):
    for i, each in enumerate(zip(*ways, strict=True)):
        row = f"∂L/∂{name}{'₁₂'[i] if len(ways[0]) > 1 else ''}"
        three.append([row, *(shown(x.round(9)) for x in each)])
        print(f"   {row:8}" + "".join(f"{numbers:>26}" for numbers in three[-1][1:]))


def apart(ways):
    """Return the largest difference from the engine's gradients."""
    return max(float(np.abs(a - b).max()) for a, b in zip(by_engine, ways, strict=True))


count = sum(x.size for x in by_engine)
marks.at_most(f"{count} gradients, by hand", apart(by_hand), 1e-14, ".0e")
marks.at_most(f"{count} gradients, by moving", apart(by_moving), 1e-9, ".0e")

# %% The check
# gradcheck compares along random directions, with steps of many sizes, and at second order too.

report = gradcheck(loss, q.data, k.data, v.data)
agree = f"{len(report.comparisons) - len(report.unresolved)} of {len(report.comparisons)}"
worst = max(c.error for c in report.comparisons)
print(f"\ngradcheck, first and second order: {agree} comparisons agree")
marks.at_most("largest error of the gradient", worst, 1e-8, ".0e")

# %% What a gradient is for
# Repeated steps against the gradient, of q alone. (∂L/∂q is short where one weight is nearly 1, so
# the steps become short, too.)

STEPS, RATE = 20, 0.1
way = [(0, q.data, p.data[0], L.item())]
for step in range(1, STEPS + 1):
    (slope,) = gradients(loss(q, k, v), [q])
    q.data = q.data - RATE * slope
    weights = softmax(SCALE * (q @ k.mT)).data[0]
    way.append((step, q.data, weights, loss(q, k, v).item()))
told = []
print("\n   step   q·k₁    q·k₂    weights        L")
for step, at, weights, value in (way[0], way[1], way[5], way[STEPS]):
    products = (at @ k.data.T)[0]
    told.append([f"{step}", *(f"{x:.3f}" for x in (*products, *weights, value))])
    print(f"   {step:4}  {products[0]:6.3f}  {products[1]:6.3f}  {shown(weights):14} {value:6.3f}")
marks.at_most("weight of key 1 after the steps", way[-1][2][0], 0.5)

# One number that is used for both scores: its gradient is a sum over its uses.
scale = Tensor(SCALE, requires_grad=True)
q.data = way[0][1]
(of_scale,) = gradients(loss(q, k, v, scale), [scale])
products = (q.data @ k.data.T)[0]
marks.at_most("∂L/∂scale and Σⱼ ∂L/∂zⱼ q·kⱼ", abs(of_scale - of_z @ products), 1e-14, ".0e")

# %% The page

page = Page(
    "The way back through attention, number by number",
    claim="To go back through attention, apply the rules of its steps, the last one first. For one "
    "query and two keys, each number can be checked without a calculator.",
)
page.say(
    f"One query q = ({shown(q.data)}) looks at two keys, k₁ = ({shown(k.data[0])}) and "
    f"k₂ = ({shown(k.data[1])}) ({shown(np.log(3.0))} is ln 3), whose values are v₁ = "
    f"({shown(v.data[0])}) and "
    f"v₂ = ({shown(v.data[1])}). The scale is {shown(SCALE)}, which is 1/√d_k, the scores are "
    f"{shown(z.data)}, the weights {shown(p.data)}, and the output o = ({shown(o.data)}). The loss "
    f"is L = g·o = {shown(L.data)} with g = ({shown(g)}): value 1 raises it, value 2 lowers it.",
)
page.ask(
    "Before you go back step by step: a step of descent moves q against its gradient. Does q move "
    "toward key 1 or away from it, and why?",
    f"Away from key 1, and toward key 2. More of value 1 would raise the loss ({shown(of_p[0])} "
    f"for each unit of weight) more than the average ({shown(average)}), and more of value 2 less "
    f"({shown(of_p[1])}). So the gradient of score 1 is {shown(p.data[0, 0])} · "
    f"({shown(of_p[0])} - {shown(average)}) = {shown(of_z[0])}, and that of score 2 is "
    f"{shown(of_z[1])}. The gradient ∂L/∂q points toward key 1 and away from key 2, and the step "
    "goes against it.",
)
page.section("Both passes, step by step")
page.say("Press ▶ for the first operation. Each step shows its line, its formula and its numbers.")
page.steps(
    steps.save(chosen.out / "steps.html", title="One query, two keys, both passes"),
    title="Both passes through attention of one query and two keys, step by step",
)
page.section("The way back, line by line")
page.table(
    ["gradient", "what it is", "numbers"], rows, caption="From the output back to q, k and v"
)
page.section("The gradient, three ways")
page.table(
    ["", "by the engine", "by hand", "by moving"],
    three,
    caption=f"{count} gradients: three ways, the same numbers",
)
page.say(
    f"`gradcheck` compares derivatives of order 1 and 2 with finite differences of many sizes: "
    f"{agree} agree, to {worst:.0e} or better.",
)
page.section("The record, drawn")
page.figure(
    chosen.out / "graph.svg",
    alt=f"{described(drawing)}.",
    caption="Each box is a tensor, coloured by the size of the gradient there.",
)
page.section("What the gradient is for")
page.table(
    ["step", "q·k₁", "q·k₂", "weight 1", "weight 2", "L"],
    told,
    caption=f"{STEPS} steps of q against its gradient (gradient descent), with a rate of {RATE}",
)
page.ask(
    "The scale 1/√d_k is one number, and both scores are multiplied by it. If it were learned, how "
    "many numbers would its gradient have?",
    "One. If the scale grows by a little h, score j grows by h q·kⱼ, and that makes L grow by "
    "∂L/∂zⱼ h q·kⱼ. Both scores together give ∂L/∂scale = Σⱼ ∂L/∂zⱼ q·kⱼ = "
    f"{of_scale.item():.3f}. So it is with everything that is used several times: the gradient is "
    "the sum over the uses. A key, too, gets a sum if several queries look at it.",
)
page.conclude(
    "The five lines on paper give what the engine puts together from the rules of single "
    "operations, and the finite differences agree to nine decimals.",
    try_it(chosen.file),
)
print(f"\nThe page: {page.write(chosen.out, quick=chosen.quick, note=marks.note)}")
marks.end()

# %% Try it
# - Set `g` to [[1.0, 1.0]]: both values then raise the loss equally. What is ∂L/∂q, and why? (The
#   last mark fails then, since no step moves q.)
# - Set `SCALE` to 1.0, as if there were no 1/√d_k. The gradients of the scores become about half as
#   large. Why does the gradient of q hardly change?
