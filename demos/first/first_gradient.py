"""One expression, its gradient, its graph, and the check that the gradient is right.

Claim. If you can write an expression, you have its derivative. Every operation records a node. The
backward pass replays the nodes in reverse, and each node multiplies the gradient that it gets by a
derivative that fits on a line. A finite difference uses none of this, and agrees in ten digits.

    python -m demos first_gradient [--out DIR] [--seed N]  # 1 s
"""

# %% Set-up

import numpy as np

from demos import options
from demos._page import Page, try_it
from demos._training import Marks
from minigrad import Steps, Tensor, grad, gradcheck, graph

chosen = options("first_gradient", __doc__.splitlines()[0])
marks = Marks(enforced=not chosen.quick)

# %% The expression
# The expression measures how far a line misses given points: w is the line's slope, b its height.
# The points are on y = 2x + 1, up to a little noise.

rng = np.random.default_rng(chosen.seed)
x = np.linspace(-1.0, 2.0, 7)
y = 2 * x + 1 + 0.1 * rng.standard_normal(7)
X, Y = Tensor(x, name="x"), Tensor(y, name="y")  # (constants, with names for the graph)


def loss(w, b):
    """The mean squared distance between the line and the points."""
    return ((w * X + b - Y) ** 2).mean()


w = Tensor(0.5, requires_grad=True, name="w")
b = Tensor(0.0, requires_grad=True, name="b")
with Steps() as steps:  # it notes what happens, for the page
    L = loss(w, b)
print(f"L = mean (w x + b - y)² = {L.item():.6f} at w = 0.5, b = 0")

# %% The record, from the loss back
# Each tensor holds the node of the operation that made it. These are all the nodes.

t, record = L, []
while t.node is not None:
    record.append(f"{t.node.name} {t.shape}")
    t = t.node.inputs[0]
print("The record:", " ← ".join(record), f"← {t.name}")

# %% Its graph, coloured by gradient

drawing = graph(L, grads=True, steps=steps)
picture = drawing.save(chosen.out / "graph.png")
drawing.save(chosen.out / "graph.svg")
print(f"The graph: {picture}")

# %% Its gradient, three ways
# The gradient is computed by replaying the record; by hand, as ∂L/∂w = mean 2 (w x + b - y) x and
# ∂L/∂b = mean 2 (w x + b - y); and by moving w and b a little, which is a finite difference.

steps.backward(L)  # every contribution of the pass, for the page
L.backward()
by_hand = np.mean(2 * (0.5 * x - y) * x), np.mean(2 * (0.5 * x - y))
h = 1e-5
by_moving = (
    (loss(0.5 + h, 0.0) - loss(0.5 - h, 0.0)) / (2 * h),
    (loss(0.5, h) - loss(0.5, -h)) / (2 * h),
)
three = []
print(f"\n{'':10}{'replayed':>18}{'by hand':>18}{'by moving':>18}")
for name, leaf, hand, moved in zip("wb", (w, b), by_hand, by_moving, strict=True):
    print(f"   ∂L/∂{name}  {leaf.grad.item():18.12f}{hand:18.12f}{moved:18.12f}")
    three.append([f"∂L/∂{name}", *(f"{x:.12f}" for x in (leaf.grad.item(), hand, moved))])

# %% The check
# gradcheck compares along random directions, with steps of many sizes, and at second order too.

report = gradcheck(loss, np.array(0.5), np.array(0.0))
print(f"\n{report}")
marks.at_most(
    "largest error of the gradient", np.max([c.error for c in report.comparisons]), 1e-8, ".0e"
)

# %% What a gradient is for
# Repeated steps against the gradient bring w and b to the line that fits the points best.

slope = grad(loss, argnums=(0, 1))
at = np.array([0.5, 0.0])
for _ in range(100):
    at -= 0.3 * np.array(slope(*at))
print(f"\nAfter 100 steps against the gradient: w = {at[0]:.4f}, b = {at[1]:.4f}")
best = np.polyfit(x, y, 1)
marks.at_most("distance from the least-squares line", np.abs(at - best).max(), 1e-6, ".0e")

# %% The page

page = Page(
    "One expression and its gradient",
    claim="If you can write an expression, you have its derivative: every operation leaves a "
    "record, and the backward pass replays the record in reverse.",
)
page.say(
    "L = mean (w x + b - y)² measures how far the line w x + b misses seven points. The program "
    "computes it forward in five operations. Then the gradient goes back through the same five.",
)
page.ask(
    "Before you go back step by step: w enters the expression once, and b once. How many numbers "
    "does the gradient of `multiply` have, and how many does ∂L/∂w have?",
    "`multiply` has seven numbers, one for each point, and so has its gradient. w is one number "
    "that was used for all seven points, so ∂L/∂w is the sum of the seven.",
)
page.section("Both passes, step by step")
page.say("Press ▶ for the first operation. Each step shows its line, its formula and its numbers.")
page.steps(
    steps.save(chosen.out / "steps.html", title="L = mean (w x + b - y)²"),
    title="Both passes of L = mean (w x + b - y)², step by step",
)
page.section("The gradient, three ways")
page.table(
    ["", "replayed", "by hand", "by moving w and b"], three, caption="Three ways, ten equal digits"
)
page.section("The record, drawn")
page.figure(
    chosen.out / "graph.svg",
    alt="The graph of the expression: the gradient is 1 at L and grows to 4.8 at w.",
    caption="Each box is a tensor, coloured by the size of the gradient there.",
)
page.conclude(
    "The replay gives what the formulas on paper give, to the last digits, and the finite "
    "difference agrees as far as it can.",
    try_it(chosen.file),
)
print(f"\nThe page: {page.write(chosen.out, quick=chosen.quick, note=marks.note)}")
marks.end()

# %% Try it
# - Let the noise grow to 1.0: does the descent still find the least-squares line, and why?
# - Take |…| instead of (…)²: what does gradcheck report if the line goes exactly through a point?
