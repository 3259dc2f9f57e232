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
from minigrad import Steps, Tensor, grad, gradcheck, gradients, graph
from minigrad.graphs.render import described

chosen = options("first_gradient", __doc__.splitlines()[0])
marks = Marks(chosen)

# %% The expression
# The expression measures how far a line misses given points: w is the line's slope, b its height.
# The points are on y = 2x + 1, up to a little noise.

rng = np.random.default_rng(chosen.seed)
NOISE = 0.1
x = np.linspace(-1.0, 2.0, 7)
y = 2 * x + 1 + NOISE * rng.standard_normal(7)
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

t, record, made_by = L, [], {}
while t.node is not None:
    record.append(f"{t.node.name} {t.shape}")
    made_by[t.node.name] = t
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

# w is used for all seven points, and in the product each point has a number of its own, wᵢ xᵢ with
# wᵢ = w. So ∂L/∂w is Σ gᵢ xᵢ, where g is the gradient of the product, and ∂L/∂b is Σ gᵢ.

steps.backward(L)  # every contribution of the pass, for the page
(g,) = gradients(L, [made_by["multiply"]], retain_graph=True)  # (7,)
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
print(f"\n   g = ∂L/∂(w x) = {np.array2string(g, precision=3)}")
sums = np.array([(g * x).sum(), g.sum()])
marks.at_most(
    "Σ gᵢ xᵢ and Σ gᵢ, from ∂L/∂w and ∂L/∂b",
    np.abs(sums - [w.grad.item(), b.grad.item()]).max(),
    1e-14,
    ".0e",
)

# %% The check
# gradcheck compares along random directions, with steps of many sizes, and at second order too.

report = gradcheck(loss, np.array(0.5), np.array(0.0))
print(f"\n{report}")
worst = np.max([c.error for c in report.comparisons])
marks.at_most("largest error of the gradient", worst, 1e-8, ".0e")

# %% What a gradient is for
# Repeated steps against the gradient bring w and b to the line that fits the points best.

slope = grad(loss, argnums=(0, 1))
at = np.array([0.5, 0.0])
STEPS = 100
for _ in range(STEPS):
    at -= 0.3 * np.array(slope(*at))
print(f"\nAfter {STEPS} steps against the gradient: w = {at[0]:.4f}, b = {at[1]:.4f}")
best = np.polyfit(x, y, 1)
marks.at_most("distance from the least-squares line", np.abs(at - best).max(), 1e-6, ".0e")

# %% The page

page = Page(
    "One expression and its gradient",
    claim="If you can write an expression, you have its derivative: every operation leaves a "
    "record, and the backward pass replays the record in reverse.",
)
page.say(
    "L = mean (w x + b - y)² measures how far the line w x + b misses seven points, which lie on "
    f"y = 2x + 1 up to noise of standard deviation {NOISE}. The program computes it forward in "
    f"{len(record)} operations. Then the gradient goes back through the same {len(record)}.",
)
page.ask(
    "Before you go back step by step: w enters the expression once, and b once. How many numbers "
    "does the gradient of `multiply` have, and how many does ∂L/∂w have?",
    f"`multiply` has {g.size} numbers, one for each point, and so has its gradient g. w is one "
    "number that is used for all points. If w grows by a little h, the product of point i grows by "
    "h xᵢ, and that makes L grow by gᵢ h xᵢ. All points together give one number, ∂L/∂w = Σ gᵢ xᵢ "
    f"= {sums[0]:.3f}. (b is added and not multiplied, so ∂L/∂b is the plain sum, Σ gᵢ = "
    f"{sums[1]:.3f}.)",
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
page.say(
    "`gradcheck` compares derivatives of order 1 and 2 with finite differences of many sizes: "
    f"{len(report.comparisons) - len(report.unresolved)} of {len(report.comparisons)} agree, to "
    f"{worst:.0e} or better.",
)
page.section("The record, drawn")
page.figure(
    chosen.out / "graph.svg",
    alt=f"{described(drawing)}.",
    caption="Each box is a tensor, coloured by the size of the gradient there.",
)
page.section("What the gradient is for")
page.say(
    f"{STEPS} steps against the gradient (gradient descent) bring w and b from 0.5 and 0 to "
    f"{at[0]:.4f} and {at[1]:.4f}. The least-squares line through the seven points has "
    f"{best[0]:.4f} and {best[1]:.4f}.",
)
page.conclude(
    "The replay gives what the formulas on paper give, to the last digits, and the finite "
    "difference agrees as far as it can.",
    try_it(chosen.file),
)
print(f"\nThe page: {page.write(chosen.out, quick=chosen.quick, note=marks.note)}")
marks.end()

# %% Try it
# - Set `NOISE` to 1.0: does the descent still find the least-squares line, and why?
# - Let NOISE = 0, so that w = 2 and b = 1 is a line through all points. With `f = lambda w, b:
#   np.abs(w * X + b - Y).mean()`, what does `gradcheck(f, np.array(2.0), np.array(1.0))` report?
