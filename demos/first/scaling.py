"""Why √d_k: the gradients of a head with and without it, one sweep, and one worked example.

Claim. Without the scale 1/√d_k gradients do not all vanish, they become unequal: at d_k = 64 with
64 keys a tenth of the queries has 61 % of the squared gradient, and with the scale 27 %. Whether a
typical query gets less or more depends on d_k and on the number of keys: at d_k = 64 with 64 keys
it gets some 5 times more. The scale does not guarantee a gradient either: the worked example below
is scaled, and nevertheless W_Q and W_K of one of its two heads get almost none.

    python -m demos scaling [--out DIR] [--seed N]  # 7 s
"""

# %% Set-up

import time

import numpy as np
from tqdm import tqdm

from attention import MultiHeadAttention, attention
from attention.figures import save_figure
from attention.scaling import DEAD, MEASURED, ratios, summary, sweep, typical_query
from demos import options
from demos._markup import plus_minus
from demos._page import Page, try_it
from demos.first._sweep import plot_sweep
from demos.texts.sources import agreeing
from demos.texts.sources import love_transformers as source
from minigrad import Steps, Tensor, gradcheck, gradients, graph, unfused
from minigrad.checks.differences import lengths, slopes
from minigrad.graphs.render import described

chosen = options("scaling", __doc__.splitlines()[0])
started = time.perf_counter()
D_KS = (4, 8, 16, 32, 64, 128, 256, 512, 1024)

# %% 1 · The same head, scaled and unscaled, as a graph
# This is one query over 5 keys at d_k = 512. Its gradient without the scale is the median of 1001
# random queries, so it is neither lucky nor unlucky. The colour of each box is the RMS of the
# gradient there, the size of a typical element. Finite differences show whether a small gradient
# is true. So few keys and so wide a head are the extreme; other heads follow.

D_K, KEYS, LIMITS = 512, 5, (1e-6, 1.0)
MANY, REPEATS = 64, 5  # keys of the sweep, and how often it measures
CELLS = ((D_K, KEYS), (64, 64), (64, 1024))  # d_k and keys of the comparison
SEEDS = 100  # how many other typical queries are drawn


def times(ratio):
    """Say how many times smaller or larger a second number is, given first over second."""
    size, which = (ratio, "smaller") if ratio >= 1 else (1 / ratio, "larger")
    return f"{size:,.{0 if size >= 100 else 1}f} times {which}"


q, k, v, g = typical_query(D_K, keys=KEYS, rng=np.random.default_rng(chosen.seed))


def loss(inputs, scale, axis=None):
    """Return L = ⟨g, attention(q, k, v)⟩, whose ∂L/∂output is g."""
    return (attention(*inputs, scale=scale) * Tensor(g, name="g")).sum(axis=axis)


def by_differences(i, inputs, scale):
    """Return ∂L/∂(input i) and its resolution, by chapter 4.1's differences, many at once.

    A stack holds 256 copies of the input, and in each copy another element has moved. One
    evaluation of the stack is several times faster than 256 evaluations.
    """
    point, value = inputs[i].data, loss(inputs, scale).item()
    length = lengths(point).ravel()  # the longest step of each element
    found = np.empty((2, point.size))
    for some in np.split(np.arange(point.size), range(256, point.size, 256)):
        directions = np.eye(len(some), point.size, k=some[0]) * length

        def moved(h, directions=directions):
            """Return L of each copy, whose element has moved by h times its length."""
            copies = [Tensor(t.data) for t in inputs]
            copies[i] = Tensor(point + h * directions.reshape(-1, *point.shape))
            return loss(copies, scale, axis=(-2, -1)).data

        found[:, some] = slopes(moved, 0.0, 1.0, np.full(len(some), abs(value))) / length[some]
    return found.reshape(2, *point.shape)


drawings, passes, compared, of_q = [], [], [], []
with tqdm(total=6, desc="1 · finite differences") as progress:
    for scale, title in ((None, "scaled"), (1.0, "unscaled")):
        tensors = [
            Tensor(a, requires_grad=True, name=n) for a, n in zip((q, k, v), "qkv", strict=True)
        ]
        with Steps() as steps:
            value = loss(tensors, scale)
        drawing = graph(value, grads=True, limits=LIMITS, steps=steps)
        drawing.save(chosen.out / f"head_{title}.png")
        drawings.append((title, drawing, drawing.save(chosen.out / f"head_{title}.svg")))
        steps.backward(value)
        passes.append(steps)
        exacts = gradients(loss(tensors, scale), tensors)
        of_q.append(np.linalg.norm(exacts[0]))
        for i, exact in enumerate(exacts):
            numeric, resolution = by_differences(i, tensors, scale)
            norm, apart = np.linalg.norm(exact), np.linalg.norm(exact - numeric)
            sees = np.linalg.norm(resolution)
            told = (
                f"they agree to {apart / norm:.0e}"
                if sees < 0.01 * norm
                else f"too coarse to tell: differences resolve nothing below {sees:.0e}"
            )
            compared.append(
                f"{title:>10} ∂L/∂{'qkv'[i]} {exact.shape!s:>9}   analytic {norm:.9e}   finite "
                f"differences {np.linalg.norm(numeric):.9e}   {told}"
            )
            progress.update()
both = passes[0].save(
    chosen.out / "steps.html",
    beside=passes[1],
    titles=("scaled", "unscaled"),
    title=f"One head at d_k = {D_K}, scaled and unscaled",
    limits=LIMITS,
)
print(f"1 · One typical query over {KEYS} keys, d_k = {D_K}: norms of the gradient\n")
print("\n".join(f"   {line}" for line in compared))

# %%
# Is that so everywhere? Three cells of the map of chapter 16: the extreme of the pictures, and the
# width of the paper's heads with 64 and with 1,024 keys. Medians over 512 queries, in repeats.


def of_seed(seed):
    """Return how many times smaller ∂L/∂q of a typical query is without the scale."""
    q, k, v, g = typical_query(D_K, keys=KEYS, rng=np.random.default_rng(seed))
    norms = []
    for scale in (None, 1.0):
        x = Tensor(q, requires_grad=True)
        (of_x,) = gradients(attention(x, Tensor(k), Tensor(v), scale=scale), [x], g)
        norms.append(np.linalg.norm(of_x))
    return norms[0] / norms[1]


apart = of_q[0] / of_q[1]
low, high = np.quantile([of_seed([chosen.seed, i]) for i in range(SEEDS)], (0.1, 0.9))
drawn = f"in 80 % of {SEEDS} other draws from {low:,.0f} to {high:,.0f} times"
print(f"\n   Its ∂L/∂q is {times(apart)} without the scale ({drawn}).")
print(f"\n   Its length ‖∂L/∂q‖ without the scale over with it, {REPEATS} times 512 queries:\n")
print("      d_k    keys    median    (± factor)    mean    tenth's share: without, with")
compared_cells = []
for d_k, keys in CELLS:
    (cell,) = ratios(sweep((d_k,), repeats=REPEATS, keys=keys, seed=chosen.seed))
    compared_cells.append(cell)
    print(
        f"   {d_k:6} {keys:7,} {cell.median:9.2g} {10**cell.error:11.2f} {cell.mean:9.2g}"
        f"{cell.top_tenth_without:15.0%}{cell.top_tenth_with:9.0%}"
    )
extreme, usual, longer = compared_cells

# %% 2 · A sweep: what √d_k does to scores, weights and gradients
# The queries and keys are random, of unit variance, and so is ∂L/∂(weights). There are 64 keys. A
# measurement takes 512 queries, and is repeated with new draws. Each is made with and without the
# scale, on the same draws.

rows = list(
    tqdm(
        sweep(D_KS, repeats=REPEATS, keys=MANY, seed=chosen.seed),
        total=2 * len(D_KS) * REPEATS,
        desc="2 · sweep",
    )
)
found = summary(rows)
HEADINGS = ("variance", "entropy", "largest", "mean", "median", "dead", "top 10 %")
table = [
    f"{'':16}" + "".join(f"{heading:>20}" for heading in HEADINGS),
    f"{'d_k':>6} {'scale':>9}" + f"{'of scores':>20}{'/ log n':>20}{'weight':>20}"
    f"{'‖∂L/∂q‖':>20}{'‖∂L/∂q‖':>20}{'queries':>20}{'hold':>20}",
]

for (d_k, a), row in sorted(found.items(), key=lambda item: (item[0][1], item[0][0])):
    cells = "".join(f"{plus_minus(*row[name]):>20}" for name in MEASURED)
    table.append(f"{d_k:>6} {'1/√d_k' if a else 'none':>9}{cells}")
print(f"\n2 · {REPEATS} repeats of 512 queries over {MANY} keys, seed {chosen.seed}; mean ± spread")
print("    (entropy / log n: 1 is equal weights, 0 is one key alone)\n")
print("\n".join(table))


def measured(name, d_k, a):
    """Return the mean of a measurement over the repeats."""
    return found[d_k, a][name][0]


print("\n   Without the scale, from d_k = 4 to 1024:")
for name in ("gradient_mean", "gradient_median"):
    path = " → ".join(f"{measured(name, d_k, 0):.2g}" for d_k in (4, 64, 256, 1024))
    print(f"     the {name[9:]:<6} of ‖∂L/∂q‖ at d_k = 4, 64, 256, 1024 goes {path}")
lost, top = (measured(name, 1024, 0) for name in ("dead_share", "top_tenth_share"))
alive, even = (measured(name, 1024, 0.5) for name in ("dead_share", "top_tenth_share"))
print(f"     {lost:.0%} of the queries have ‖∂L/∂q‖ < {DEAD} at 1024 (with the scale {alive:.0%})")
print(
    f"     the tenth of all queries with the longest gradients holds {top:.0%} of the squared "
    f"gradient ({even:.0%})"
)
sweep_png, sweep_svg = save_figure(plot_sweep(rows), chosen.out / "sweep")

# %% 3 · A complete multi-head layer
# A complete multi-head layer shows where its gradients are strong. It has inputs of unit variance,
# Xavier weights, 5 tokens, d_model = 12 and 3 heads.

rng = np.random.default_rng(chosen.seed)
whole = MultiHeadAttention(12, 3, rng=rng)
tokens = Tensor(rng.standard_normal((5, 12)), requires_grad=True, name="tokens")
with Steps(whole) as steps, unfused():  # each step of attention in a box of its own
    loss_of_layer = (whole(tokens) * Tensor(rng.standard_normal((5, 12)), name="g")).sum()
drawing = graph(loss_of_layer, grads=True, steps=steps)
drawing.save(chosen.out / "multi_head.png")
multi_head = drawing.save(chosen.out / "multi_head.svg")
print(f"\n3 · A complete multi-head layer, in {len(drawing.boxes)} boxes: {multi_head}")

# %% 4 · A worked example: "I love Transformers"
# "The text" is a notebook, "A step to step guide to understand attention mechanisms". We found it
# without an author or an address; `python -m demos love_transformers` shows all of it. The text
# takes three words, d_model = 4 and two heads, computes the forward pass and prints 121 numbers.
# Ours come from the layer that the rest of this project uses.

x, layer = source.layer()
ours = source.steps(x, layer)
same = sum(agreeing(source.PRINTED[name], source.as_text(array)) for name, array in ours.items())
total = sum(array.size for array in ours.values())
print('\n4 · "I love Transformers", a worked example: python -m demos love_transformers')
print(f"    {same} of {total} numbers agree with ours in every printed digit; that demo shows them")

# %%
# The text stops at the output. We add the backward pass: the gradient of the output's sum with
# respect to X and every weight. The two heads only meet in that sum, so each head is taken alone,
# and every input is checked against finite differences relative to its own gradient. In one sum,
# head 1's gradients would hide head 2's.

backward = ["   ‖gradient‖ of Σ output          X       W_Q       W_K       W_V       W_O"]
checked = []
for head in (0, 1):
    alone = source.one_head(layer, head)
    total_output = source.sum_of_head(alone)
    inputs = [x, *alone.parameters()]
    exact = gradients(total_output(*inputs), inputs)
    norms = " ".join(f"{np.linalg.norm(g):9.2e}" for g in exact)
    backward.append(f"   head {head + 1}                  {norms}")
    report = gradcheck(total_output, *inputs)
    first = [c for c in report.comparisons if c.order == 1]
    coarse = report.unresolved
    checked.append(
        f"   head {head + 1}: {len(report.comparisons)} derivatives of order 1 and 2 checked, "
        f"{len(report.comparisons) - len(coarse)} agree"
    )
    for c in first:
        checked.append(f"     {c}")
    if coarse:
        worst = max(coarse, key=lambda c: c.error)
        checked.append(
            f"     {len(coarse)} are too small for finite differences to confirm to 1e-8; they "
            f"agree as far as\n     the differences resolve them, the worst ({worst.what}) to "
            f"{worst.error:.0e}"
        )
dead = exact[1]  # head 2's W_Q
backward.append("   head 2, ∂/∂W_Q element by element:")
backward += ["     " + " ".join(f"{value:10.2e}" for value in row) for row in dead]
print("\n   What the text leaves out, the backward pass:\n")
print("\n".join([*backward, "", *checked]))
weights = ours["weights"][1]
share = np.linalg.norm(exact[1]) / np.linalg.norm(exact[3])
if share < 1e-3:
    below = 1 - weights[0, 0]
    said_of_head = (
        "The example is scaled, yet in its second head each word looks at one word alone, and that "
        "head's W_Q and W_K get almost no gradient. Finite differences confirm this, as far as "
        "they can resolve it."
    )
    print(
        f"""
   This example is scaled, and nevertheless its second head is dead: W_V and W_O still learn, but
   W_Q gets only {share:.0e} of the gradient that W_V gets. (A head with less than a thousandth is
   called dead.) Each word looks at one word alone: the smallest weight is {weights.min():.1e}, the
   first word's largest is 1 - {below:.0e}. The reason is inputs from 0 to 9, far from variance 1.
   The scale repairs scores that grow with d_k; it does not repair large inputs."""
    )
else:
    said_of_head = (
        f"With these inputs its second head is alive: W_Q gets {share:.1g} of the gradient that "
        "W_V gets."
    )
    print(f"\n   {said_of_head}")

# %% 5 · Everything on one page

page = Page(
    "What √d_k does to gradients",
    claim="Attention multiplies its scores by 1/√d_k before softmax. Without that number "
    f"gradients become unequal: at d_k = {usual.d_k} with {usual.keys} keys a tenth of the queries "
    f"has {usual.top_tenth_without:.0%} of the squared gradient, and with it "
    f"{usual.top_tenth_with:.0%}. A typical query's gradient does not vanish there: it is "
    f"{usual.median:.1f} times larger without the scale.",
)
page.say(
    "This page shows one head with and without the scale, a sweep over d_k, and a worked example, "
    f"all computed by minigrad (seed {chosen.seed}). Chapters 11 and 16 of the project have the "
    "code and the reasons.",
)
page.section(f"1 · The extreme: one head over {KEYS} keys at d_k = {D_K}")
page.figures(
    [
        (path, f"One head, {title}: {described(drawing)}.", caption)
        for (title, drawing, path), caption in zip(
            drawings,
            (f"scaled: times 1/√{D_K} = {D_K**-0.5:.3f}", "unscaled: times 1"),
            strict=True,
        )
    ]
)
page.say(
    "The two heads differ in one number, the scale. The box g is a random ∂L/∂output, from which "
    "the way back begins: L = ⟨g, output⟩. A box is a tensor, and its colour is the RMS of the "
    "gradient there: the root of the mean of its squared elements, the size of a typical one.",
    f"The gradient of q is {times(apart)} on the right ({drawn}). It is the same at the weights, "
    + ("but softmax passes almost none of it on to the scores. " if apart > 100 else "")
    + ("so softmax makes the difference. " if apart <= 100 else "")
    + "Finite differences find the same gradients, so they are true and not a bug. The query is "
    "one of 1001 random ones: the one whose gradient has the median length ‖∂L/∂q‖ without the "
    "scale, so it is neither the best case nor the worst.",
)
page.ask(
    f"Here a typical query's gradient is far smaller without the scale, and at d_k = {usual.d_k} "
    f"with {usual.keys} keys it is larger. What do {longer.keys:,} keys change at that width? And "
    "the mean over all queries: in which of the three cases is it larger?",
    f"With {longer.keys:,} keys the median is {longer.median:.0f} times larger without the scale. "
    f"(With {extreme.keys} keys at d_k = {extreme.d_k} it is {1 / extreme.median:,.0f} times "
    f"smaller.) The mean is larger in all three cases: {extreme.mean:.1f}, {usual.mean:.1f} and "
    f"{longer.mean:.0f} times. Chapter 16 has more widths and numbers of keys.",
)
with page.folded("The three cases in numbers"):
    page.table(
        ["d_k", "keys", "median", "mean", "tenth's share without", "with"],
        [
            [
                f"{cell.d_k}",
                f"{cell.keys:,}",
                f"{cell.median:.2g}",
                f"{cell.mean:.2g}",
                f"{cell.top_tenth_without:.0%}",
                f"{cell.top_tenth_with:.0%}",
            ]
            for cell in compared_cells
        ],
        caption="‖∂L/∂q‖ without the scale, divided by that with it; and how much of the squared "
        "gradient the tenth of the queries with the longest gradients has",
    )
page.fold("Norms of the gradient, and finite differences", "\n".join(compared))
page.head("Both heads, step by step")
page.say("One slider moves both. On the way back, the arrow in use says how far the two are apart.")
page.steps(both, title="Both passes of the two heads, side by side")
page.section("2 · Scores, weights and gradients over d_k")
page.say(
    "Without the scale the scores' variance is d_k, and one key gets nearly all weight. The median "
    "query's gradient first rises and then falls, while the mean levels off. With 1/√d_k five of "
    "the six panels hardly change. The sixth is the share of the tenth with the longest gradients: "
    f"it falls from {measured('top_tenth_share', D_KS[0], 0.5):.0%} to "
    f"{measured('top_tenth_share', D_KS[-1], 0.5):.0%}, because the lengths of short vectors vary "
    "more. At d_k = 64 the median is larger without the scale, and beyond 256 smaller. There are "
    f"{MANY} keys; the shaded band is ± one standard deviation of {REPEATS} repeats. A query is "
    f"called dead if its ‖∂L/∂q‖ is below {DEAD}: less than a hundredth of the "
    f"{measured('gradient_median', 64, 0.5):.2f} that a median query gets with the scale.",
    "Each demo draws its own random numbers, so `laboratory` and `why_half` show other numbers at "
    "the same seed.",
)
page.figure(
    sweep_svg,
    alt="Six measurements over d_k from 4 to 1024. At 1024 the median gradient is "
    f"{measured('gradient_median', 1024, 0):.1g} without the scale and "
    f"{measured('gradient_median', 1024, 0.5):.2g} with it; {lost:.0%} of the queries are dead "
    f"without it, and {alive:.0%} with it.",
    caption="Six measurements over d_k",
)
page.fold("The numbers (entropy / log n: 1 is equal weights, 0 is one key alone)", "\n".join(table))
page.section("3 · A complete multi-head layer")
page.say(
    "There are four projections, and between them the head axis is split off and merged again. The "
    "gradient reaches `w_v` and `w_o` directly, and `w_q` and `w_k` only through the softmax. The "
    "box g is a random ∂L/∂output here too.",
)
page.figure(
    multi_head,
    alt=f"A multi-head layer: {described(drawing)}.",
    caption="Three heads, d_model = 12, inputs of variance 1",
)
page.section('4 · "I love Transformers", and its backward pass')
page.say(
    'A notebook, "A step to step guide to understand attention mechanisms", works out two heads by '
    'hand for the sentence "I love Transformers". We found it without an author or an address; '
    "`python -m demos love_transformers` shows all of it. "
    f"{same} of its {total} printed numbers come out of our layer. {said_of_head}",
)
page.fold("The gradients of the two heads", "\n".join([*backward, "", *checked]))
page.conclude(
    "With the scale a head of any width starts at the same place, and the gradients of its queries "
    "are much more alike. It is not needed where something else keeps scores small, "
    "such as small initial weights, and it is not enough where they are large for another reason, "
    "as with the worked example's own inputs from 0 to 9.",
    try_it(chosen.file),
)
written = page.write(chosen.out, quick=chosen.quick)
print(f"\n5 · {written} shows all of it ({time.perf_counter() - started:.0f} s)")

# %% Try it
# - Set `D_K` to 256, and then `KEYS` to 50 as well (the finite differences take four minutes then):
#   which of the two revives the typical query?
# - Give the worked example inputs of unit variance, `x, layer = source.layer(unit=True)`: what does
#   W_Q of the second head get then, and how many of the printed numbers are left?
