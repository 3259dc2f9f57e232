"""One query, two keys, two values: the way back through attention, number by number.

Claim. To go back through attention, apply the rules of its steps, the last one first. Three ways
give the same sixteen numbers: the engine, which knows only the rules of single operations; the five
lines of chapter 11; and finite differences, which use no rule.

    python -m demos first_gradient [--out DIR]
"""

# %% Set-up

import numpy as np

from attention import attention, attention_backward
from demos import options
from demos.pages.publish import publish
from minigrad import Steps, Tensor, gradcheck, gradients, graph, numerical_gradient, softmax
from minigrad.graphs.render import described

SECONDS = 1  # of a run

chosen = options("first_gradient", __doc__.splitlines()[0])
page = publish(chosen)


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

with Steps() as steps:  # it notes what happens, for the page of both passes
    z = SCALE * (q @ k.mT)
    p = softmax(z)
    o = p @ v
    L = (g * o).sum()

page.say(
    f"q = ({shown(q.data)}) looks at k₁ = ({shown(k.data[0])}) and k₂ = ({shown(k.data[1])}). The "
    f"values are v₁ = ({shown(v.data[0])}) and v₂ = ({shown(v.data[1])}), the scale is "
    f"{shown(SCALE)}, which is 1/√d_k, and g is ({shown(g)})."
)
steps_apart = float(np.abs(o.data - attention(q, k, v, scale=SCALE).data).max())
page.marks.at_most("distance from chapter 11's attention", steps_apart, 1e-15, ".0e")

# %% The record, drawn

drawing = graph(L, grads=True, steps=steps)
page.figure(
    drawing,
    "graph",
    alt=f"{described(drawing)}.",
    caption="Each box is a tensor, coloured by the size of the gradient there",
)

# %% The way back, line by line
# The rule of each result turns the gradient of the result into the gradients of its inputs. So the
# table is made from the top, and each line can be checked without a calculator.

of_o, of_p, of_z = (x[0] for x in gradients(L, [o, p, z], retain_graph=True))
average = float(p.data[0] @ of_p)
steps.backward(L)  # every contribution of the pass, for the page of both passes
L.backward()
way_back = page.table(
    ["", "forward", "∂L/∂…", "the rule, backward"],
    [
        ["L, the loss g·o", shown(L.data), "1", "where the way back begins"],
        ["o, the output", shown(o.data), shown(of_o), "g: o₁ raises the loss, o₂ lowers it"],
        ["p, the weights", shown(p.data), shown(of_p), "g Vᵀ: how fast L rises with each weight"],
        ["", "", shown(average), "their average under the weights, g·o"],
        ["z, the scores", shown(z.data), shown(of_z), "weight times (its own minus the average)"],
        ["q", shown(q.data), shown(q.grad), "scale · Σⱼ ∂L/∂zⱼ kⱼ"],
        ["k₁", shown(k.data[0]), shown(k.grad[0]), "scale · ∂L/∂z₁ q"],
        ["k₂", shown(k.data[1]), shown(k.grad[1]), "scale · ∂L/∂z₂ q"],
        ["v₁", shown(v.data[0]), shown(v.grad[0]), "g times weight 1"],
        ["v₂", shown(v.data[1]), shown(v.grad[1]), "g times weight 2"],
    ],
    caption="Both passes. Forward, the values are computed from the bottom up; backward, the "
    "gradients from the top down",
)
page.style += ".opening td:nth-child(2) { color: var(--forward); } "
page.style += ".opening td:nth-child(3) { color: var(--backward); }"
page.ask(
    "A step of descent moves q against its gradient. Does q move toward key 1 or away from it?",
    f"Away from key 1, and toward key 2. More of value 1 would raise the loss ({shown(of_p[0])} "
    f"for each unit of weight) more than the average ({shown(average)}), and more of value 2 less "
    f"({shown(of_p[1])}). So the gradient of score 1 is {shown(p.data[0, 0])} · "
    f"({shown(of_p[0])} - {shown(average)}) = {shown(of_z[0])}, and that of score 2 is "
    f"{shown(of_z[1])}. The step subtracts a multiple of key 1 from q and adds one of key 2. These "
    "two keys are orthogonal, so each of them changes its own score only. (Keys that share a "
    "direction change each other's scores: chapter 11 has an example.)",
    guesses=("toward key 1", "away from key 1"),
)

# %% Both passes, step by step
# Press ▶ for the first operation. Each step shows its line, its formula and its numbers.

title = "One query, two keys, both passes"
page.embed(steps.save(chosen.out / "steps.html", title=title, at="p"))

# %% The gradient, three ways
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
count = sum(x.size for x in by_engine)
page.table(
    ["", "by the engine", "by hand", "by moving"],
    [
        [f"∂L/∂{name}{'₁₂'[i] * (len(ways[0]) > 1)}", *(shown(x[i].round(9)) for x in ways)]
        for name, *ways in zip("qkv", by_engine, by_hand, by_moving, strict=True)
        for i in range(len(ways[0]))
    ],
    caption=f"{count} gradients: three ways, the same numbers",
)


def apart(ways):
    """Return the largest difference from the engine's gradients."""
    return max(float(np.abs(a - b).max()) for a, b in zip(by_engine, ways, strict=True))


page.finding(
    f"The rules of the steps, the last one first, give {count} gradients. By hand they come out "
    f"the same, and finite differences agree with them to {apart(by_moving):.0e}.",
    way_back,
)
page.marks.at_most(f"{count} gradients, by hand", apart(by_hand), 1e-14, ".0e")
page.marks.at_most(f"{count} gradients, by moving", apart(by_moving), 1e-9, ".0e")

# %%
# `gradcheck` compares along random directions, with steps of many sizes, and at second order too.

report = gradcheck(loss, q.data, k.data, v.data)
worst = max(c.error for c in report.comparisons)
page.say(
    f"{len(report.comparisons) - len(report.unresolved)} of {len(report.comparisons)} comparisons "
    f"agree, to {worst:.0e} or better."
)
page.marks.at_most("largest error of the gradient", worst, 1e-8, ".0e")

# %% What a gradient is for
# Repeated steps against the gradient, of q alone. (∂L/∂q is short where one weight is nearly 1, so
# the steps become short, too.)

STEPS, RATE = 20, 0.1
start = q.data
way = [(q.data, p.data[0], L.item())]
for _ in range(STEPS):
    (slope,) = gradients(loss(q, k, v), [q])
    q.data = q.data - RATE * slope
    way.append((q.data, softmax(SCALE * (q @ k.mT)).data[0], loss(q, k, v).item()))
page.table(
    ["step", "q·k₁", "q·k₂", "weight 1", "weight 2", "L"],
    [
        [step, *(f"{x:.3f}" for x in (*(way[step][0] @ k.data.T)[0], *way[step][1], way[step][2]))]
        for step in (0, 1, 5, STEPS)
    ],
    caption=f"{STEPS} steps of q against its gradient (gradient descent), with a rate of {RATE}",
)
page.marks.at_most("weight of key 1 after the steps", way[-1][1][0], 0.5)

# %% A number that is used twice

scale = Tensor(SCALE, requires_grad=True)
q.data = start
(of_scale,) = gradients(loss(q, k, v, scale), [scale])
products = (q.data @ k.data.T)[0]
page.ask(
    "The scale 1/√d_k is one number, and both scores are multiplied by it. If it were learned, how "
    "many numbers would its gradient have?",
    "One. If the scale grows by a little h, score j grows by h q·kⱼ, and that makes L grow by "
    "∂L/∂zⱼ h q·kⱼ. Both scores together give ∂L/∂scale = Σⱼ ∂L/∂zⱼ q·kⱼ = "
    f"{of_scale.item():.3f}. So it is with everything that is used several times: the gradient is "
    "the sum over the uses. A key, too, gets a sum if several queries look at it.",
)
page.marks.at_most("∂L/∂scale and Σⱼ ∂L/∂zⱼ q·kⱼ", abs(of_scale - of_z @ products), 1e-14, ".0e")

# %% What to conclude

page.say(
    "The five lines on paper give what the engine puts together from the rules of single "
    "operations. Steps against the gradient lower the loss. As these two keys are orthogonal, they "
    "also move the query away from the key whose value raises the loss."
)
page.end()

# %% Try it
# - Set `g` to [[1.0, 1.0]]: both values then raise the loss equally. What is ∂L/∂q, and why? (The
#   mark for the weight of key 1 fails then, since no step moves q.)
# - Set `SCALE` to 1.0, as if there were no 1/√d_k. The gradients of the scores become about half as
#   large. Why does the gradient of q hardly change?
