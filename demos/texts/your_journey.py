""" "Your journey starts with one step": what one vector forgets, and a scale misplaced.

Claim. A notebook about self-attention prints 310 numbers; all come back from NumPy's generator,
digit by digit. It opens with the reason for attention, which is measured here: trained alike, one
vector keeps about three words of a sentence, however long, and additive attention finds them all.
The notebook defines two classes, V1 and V2, and never compares them. Given the same weights they
compute the same; we show this, and then put both into one layer as two heads. At the notebook's
width the scale makes gradients smaller, and at a large width 1/√d_k is not enough for V1. Its loops
are timed beside one product. Of the biases that V2 can have, that of the keys changes no weight.

The text is the notebook "Why we need Attention mechanism". We do not know its author: we have it as
a text without an address.

    python -m demos your_journey [--out DIR] [--seed N] [--steps N] [--quick] [--resume]  # 9 s
"""

# %% Set-up

import numpy as np

from attention import attention, attention_weights, causal_mask
from attention.figures import (
    SCALED,
    SCALED_TWICE,
    UNSCALED,
    name_ends,
    name_place,
    new_figure,
    save_figure,
)
from attention.mapping import to_ours, to_theirs
from attention.maps import entropy, plot_heads
from demos import options
from demos._page import try_it
from demos._training import Marks
from demos.texts import _bias, _claimed, _one_vector
from demos.texts._text_page import TextPage
from demos.texts.sources import Teller, agreeing, beside, counted, of_weights, say
from demos.texts.sources import your_journey as source
from demos.texts.sources.your_journey import (
    INPUTS,
    LAYOUT_V2,
    PRINTED,
    WORDS,
    SelfAttention,
    as_text,
)
from minigrad import (
    Steps,
    Tensor,
    gradcheck,
    gradients,
    graph,
    no_grad,
    softmax,
)
from minigrad.graphs.render import described
from minigrad.nn import Dropout, Sequential

chosen = options("your_journey", __doc__.splitlines()[0], steps=200, quick=5)
marks = Marks(chosen)
x = Tensor(INPUTS, requires_grad=True, name="X")
one, two = source.version_1(), source.version_2()


def row(numbers, form=".4f"):
    """Return numbers as one line of text."""
    return " ".join(f"{number:{form}}" for number in numbers)


# %% 0 · What the text opens with: one vector, or all of them

right, known = _one_vector.measure(chosen)
_one_vector.report(right, known, marks)
_one_vector.draw(right, chosen.out)

# %% 1 · The text's numbers, and ours
# The text's weights are random, and yet they come back. PyTorch draws with the Mersenne Twister,
# which is `np.random.RandomState`; a float32 holds 24 bits, so PyTorch keeps 24 bits of each 32 and
# divides by 2²⁴.

ours = source.ours()
print("\n1 · The numbers that the text prints, and ours\n")
say(
    "Its weights are random, and yet they come back without PyTorch, which draws with the same "
    "generator as np.random.RandomState, the Mersenne Twister."
)
print()
for name, array in ours.items():
    texts = as_text(array)
    if array.size > 12 and agreeing(PRINTED[name], texts) == array.size:
        print(f"   {name} {array.shape}: {array.size} of {array.size} agree")
    else:
        print(beside(name, PRINTED[name], array, texts))
marks.at_least("numbers that are the same text", *counted(source), "d")

# %%
# One number looks like an error: weights that sum to 1.0000001192092896, the float32 next to 1. The
# sum depends on the order of the additions, above all in the divisor. PyTorch adds in four lanes.

scores = ours["scores of x₂"]
orders = {"in lanes": source.lane_sum, "left to right": np.sum}
print("\n   The six scores, divided by their sum, sum to (divisor added ↓, result added →)")
print(f"   {'':14}" + "".join(f"{order:>22}" for order in orders))
for order, add in orders.items():
    results = (repr(float(total(scores / add(scores)))) for total in orders.values())
    print(f"   {order:14}" + "".join(f"{result:>22}" for result in results))

# %%
# The text prints its 36 scores twice: by two loops, and by one product, since loops are slow.

seconds = _claimed.time_loops(seed=chosen.seed)
_claimed.report_loops(seconds, marks, seed=chosen.seed)

# %% 2 · What is wrong in it, unclear or left open

slip = Teller(source.SLIPS)
print("\n2 · What is wrong in it, unclear or left open")
slip()
print("   The weights of x₂")
for said, mask in (("in its code", None), ("of every other", np.arange(len(WORDS)) != 1)):
    print(f"   {said:14} {row(attention_weights(x[1:2], x, scale=1.0, mask=mask).data[0])}")

slip()
called = PRINTED['W_q, called "Key matrix weights"']
print('   Of the six numbers called "Key matrix weights"')
for w, judge, mark in ((one.w_q, marks.at_least, 6), (one.w_k, marks.at_most, 0)):
    agreed = agreeing(called, as_text(w.data))
    print(f"   {agreed} of 6 are those of {w.name}")
    judge(f'numbers called "Key matrix weights" that are those of {w.name}', agreed, mark, "d")

raw = (x @ two.w_q @ (x @ two.w_k).mT)[0]  # V2's scores of the first word
slip()
print('   V2\'s scores of "Your", made weights: by their sum, and by softmax')
for said, scores in (("scale 1", raw), ("scale 1/√2", raw / np.sqrt(2))):
    for name, weights in (("sum", scores / scores.sum()), ("softmax", softmax(scores))):
        print(f"   {f'{name}, {said}':20} {row(weights.data, '7.4f')}")
lowest = [min(weights.data) for weights in (raw / raw.sum(), softmax(raw))]
marks.at_most("the least weight by their sum", lowest[0], -0.05, ".3f")
marks.at_least("the least weight by softmax", lowest[1], 0.05, ".3f")

slip()
print(f"   the first weight of: {'(z, 0) naive':>18}{'ours':>6}{'(-z, -z) naive':>17}{'ours':>6}")
for dtype, zs in (("float64", (709, 710, 746)), ("float32", (88, 89, 104))):
    for z in zs:
        cells = ""
        for p in (Tensor([z, 0.0], dtype=dtype), Tensor([-z, -z], dtype=dtype)):
            with np.errstate(over="ignore", invalid="ignore"):
                firsts = [f(p)[0].item() for f in (source.naive_softmax, softmax)]
            cells += f"{firsts[0]:>{17 if cells else 18}.3g}{firsts[1]:>6.3g}"
        print(f"   {f'{dtype}, z = {z}':<20} {cells}")
print(f"   The inputs themselves, 8 times as long: x₂ · x₂ = {64 * INPUTS[1] @ INPUTS[1]:.1f}")

# %%
# V1 and V2 are one formula. `nn.Linear` stores (d_out, d_in), so V1's weights must be transposed on
# the way; a layout (`attention/mapping.py`) states this once, for both directions.

slip()
stored = to_theirs(one.state_dict(), LAYOUT_V2)
shapes = ", ".join(f"{name} {array.shape}" for name, array in stored.items())
print(f"   As V2 stores V1's weights: {shapes}")
made_equal = source.version_2()
made_equal.load_state_dict(to_ours(stored, LAYOUT_V2))
agreed = agreeing(PRINTED["V1"], as_text(made_equal(x).data))
print(f"   With these weights V2 gives {agreed} of the 12 numbers of V1's table")
marks.at_least("numbers of V1's table that V2 gives with these", agreed, 12, ".0f")

# %%
# Is what `nn.Linear` draws better? If inputs have variance 1, an output has d_in Var(w)
# (`minigrad/nn/initial.py`): a third of the power is left after each layer and, in V2, a plain
# average of the values.


def spread(head, **options):
    """Return the mean entropy of the head's weights, as a share of log n: 1 is a plain average."""
    return float(entropy(head.weights(x, **options).data).mean() / np.log(len(WORDS)))


drawn = source.torch_linear(np.random.RandomState(chosen.seed), 3, 100_000)
slip()
print(f"   300,000 weights of nn.Linear: d_in times their variance is {3 * drawn.var():.4f}")
marks.at_most("nn.Linear: d_in · variance of 300,000, from ⅓", abs(9 * drawn.var() - 1), 0.01)
for name, head in (("V1", one), ("V2", two)):
    values, contexts = (x @ head.w_v).data, head(x).data
    varied = np.std(contexts - contexts.mean(axis=0)) / np.std(values - values.mean(axis=0))
    print(f"   {name}: entropy of its weights / log n {spread(head):.3f}; contexts vary by", end="")
    print(f" {varied:.1%} of what values vary")
    marks.at_most(f"{name}: how much contexts vary, of what values vary", varied, 0.06)

# %%

slip()
_claimed.report_slopes(raw.data / np.sqrt(2), marks)
slip.end()
trainings = _claimed.train_both(seed=chosen.seed)
_claimed.report_trainings(trainings, marks)

slip()
pair = np.stack([INPUTS, INPUTS[::-1]])  # (B, T, d_in)
try:
    print(f"   two sentences, X Xᵀ with .T: {(pair @ pair.T).shape}")
except ValueError as error:
    print(f"   two sentences {pair.shape} times their .T {pair.T.shape}: {type(error).__name__}")
print(f"   with the last two axes exchanged, as here: {(Tensor(pair) @ Tensor(pair).mT).shape}")
for axis in (0, -1):
    sums = softmax(x @ x.mT, axis=axis).data.sum(axis=-1)
    print(f"   softmax of the (6, 6) scores, dim={axis}: the rows sum to {row(sums, '.3f')}")

slip.end()

# %% 3 · The steps the text leaves undone: a mask, dropout, several heads

mask = causal_mask(len(WORDS))
masked = one.weights(x, mask=mask).data
print("\n3 · V1 with a causal mask: each word looks at itself and at those before it\n")
for word, weights in zip(WORDS, masked, strict=True):
    print(f"   {word:>8} {row(weights)}")
future = gradients(one(x, mask=mask)[:3].sum(), [x])[0][3:]
marks.at_most("gradient from the first three words to the others", np.abs(future).max(), 0, ".0e")

drop = Dropout(0.5, rng=np.random.default_rng(chosen.seed))
print('\n   Dropout with p = ½: the weights of "journey", and three draws of them')
print(f"   {row(one.weights(x).data[1])}")
for _ in range(3):
    print(f"   {row(drop(one.weights(x)).data[1])}")
with no_grad():
    q, k, v = Tensor(np.broadcast_to((x @ one.w_q).data, (20_000, 6, 2))), x @ one.w_k, x @ one.w_v
    contexts = attention(q, k, v, drop=drop).data
    first_word = attention(q, k, v, mask=mask, drop=drop).data[:, 0]
errors = (contexts.mean(axis=0) - one(x).data) / (contexts.std(axis=0) / np.sqrt(len(contexts)))
marks.at_most("mean of 20,000 draws, in standard errors", np.abs(errors).max(), 4.5, ".1f")
lost = (first_word == 0).mean()
marks.at_most('draws in which "Your" has no key under the mask, from ½', abs(lost - 0.5), 0.015)
print()

# %%
# V1 and V2 fit side by side, as two heads of one layer.

layer = source.two_heads()
w_o, layer.w_o = layer.w_o, Sequential()  # without W_O the output is the heads side by side
tables = zip(("V1", "V2"), np.hsplit(layer(x).data, 2), strict=True)
agreed = sum(agreeing(PRINTED[name], as_text(table)) for name, table in tables)
marks.at_least("numbers of V1 and V2 that two heads print", agreed, 24, ".0f")
layer.w_o = w_o
maps = np.stack([ours["weights"], one.weights(x).data, two.weights(x).data, masked])
titles = ["without weights", "V1", "V2", "V1, causal"]
masks = np.stack([np.ones_like(mask)] * 3 + [mask])
drawn = plot_heads(maps, WORDS, WORDS, titles=titles, mask=masks)
save_figure(drawn, chosen.out / "weights")

# %%
# V2's option `qkv_bias` adds a bias to each projection. Softmax does not see that of the keys.

biases = _bias.measure(chosen.seed)
_bias.report(biases, marks)

# %% 4 · What no text shows: the way back
# L is the sum of all contexts. Derivatives are checked to second order, each by its own size, the
# two heads with their mask and with W_O.

print(f"\n4 · The way back\n\n   {'‖∂L/∂…‖':16}{'X':>9}{'W_q':>9}{'W_k':>9}{'W_v':>9}")
norms = {}
for name, head in (("V1", one), ("V2", two)):
    for scale, said in ((1.0, "1"), (None, "1/√2"), (128.0, "128")):
        found = gradients(head(x, scale=scale).sum(), [x, *head.parameters()])
        norms[name, said] = [float(np.linalg.norm(g)) for g in found]
        print(f"   {f'{name}, scale {said}':16}{row(norms[name, said], '8.1e')}")
print()
for name, f, weights in (
    ("without weights", lambda x: attention(x, x, x, scale=1.0), ()),
    ("V1", lambda x, *w: SelfAttention(*w)(x), one.parameters()),
    ("V2", lambda x, *w: SelfAttention(*w)(x), two.parameters()),
    ("two heads, causal", of_weights(layer, mask=mask), layer.parameters()),
    ("V2, scale 128", lambda x, *w: SelfAttention(*w)(x, scale=128.0), two.parameters()),
):
    report = gradcheck(f, x, *weights)
    every, coarse = report.comparisons, report.unresolved
    sure, wanted = len(every) - len(coarse), 6 if name == "V2, scale 128" else len(every)
    marks.at_least(f"{name}: of {len(every)} derivatives confirmed", sure, wanted, "d")
    print(f"   {name}: {sure} of {len(every)} derivatives confirmed")
    if coarse:
        seen = np.max([(c.error, c.resolution) for c in coarse])
        print(f"     the {len(coarse)} others: no difference contradicts them")
        marks.at_most(f"{name}: the others agree, down to the resolution", seen, 1e-5, ".0e")
    else:
        marks.at_most(f"{name}, largest error", max(c.error for c in every), 1e-8, ".0e")
drawings, passes = {}, []
for scale, name in ((None, "graph"), (128.0, "graph_saturated")):
    with Steps() as steps:
        total = two(x, scale=scale).sum()
    picture = drawings[name] = graph(total, grads=True, limits=(1e-9, 10.0), steps=steps)
    steps.backward(total)
    passes.append(steps)
    for ending in ("png", "svg"):
        picture.save(chosen.out / f"{name}.{ending}")

# %% The scale, on this example
# The text says that the scale avoids small gradients. But these scores are far from saturation, so
# the scale does little more than multiply the gradients of W_q and W_k once more, by 1/√2 = 0.71.

slip()
for name in ("V1", "V2"):
    left = norms[name, "1/√2"][1] / norms[name, "1"][1]
    print(f"   {name}: ‖∂L/∂W_q‖ with the scale is {left:.2f} of that without it")
    marks.at_most(f"{name}: ‖∂L/∂W_q‖ with the scale, over that without", left, 0.9, ".2f")
slip.end()

# %%
# And at a large width? V1 draws between 0 and 1. With a mean of ½ in both matrices q·k is near
# d_k sᵢ sⱼ / 4, where sᵢ is the sum of word i's numbers: it grows like d_k, and not like √d_k.

WIDTHS, SHIFT, DRAWS = (2, 8, 32, 128, 512, 2048), 0.0, 10
RECIPES = {"V1": (source.version_1, "-"), "V2": (source.version_2, "--")}
SCALES = {
    "1": (lambda d: 1.0, UNSCALED),
    "1/√d_k": (None, SCALED),
    "1/d_k": (lambda d: 1 / d, SCALED_TWICE),
}
slip()
print(f"   Entropy / log n at d_k = {', '.join(map(str, WIDTHS))} (1: equal); mean of {DRAWS}")
wide = {}
for name, (recipe, _) in RECIPES.items():
    for said, (scale, _) in SCALES.items():
        wide[name, said] = []
        for d_k in WIDTHS:
            layers = (recipe(d_k, chosen.seed + i).parameters() for i in range(DRAWS))
            heads = [SelfAttention(*(w.data - SHIFT for w in weights)) for weights in layers]
            wide[name, said].append(np.mean([spread(head, scale=scale) for head in heads]))
        print(f"   {f'{name}, scale {said}':16} {row(wide[name, said], '.3f')}")
lengths = np.linalg.norm(INPUTS, axis=1)
print(f"   The six inputs have lengths from {lengths.min():.2f} to {lengths.max():.2f}.")
for times in (1, 3, 10):
    looks = (
        source.version_2(2048, chosen.seed + i).weights(Tensor(times * INPUTS), scale=1.0).data
        for i in range(DRAWS)
    )
    left = np.mean([entropy(p).mean() for p in looks]) / np.log(len(WORDS))
    print(f"   V2, scale 1, d_k = 2048, inputs {times:2} times as long: entropy / log n {left:.3f}")


def reached(head, scale):
    """Return the share of gradient that passes the softmax, ‖∂L/∂W_q‖ over ‖∂L/∂W_v‖."""
    w_q, w_v = gradients(head(x, scale=scale).sum(), [head.w_q, head.w_v])
    return np.linalg.norm(w_q) / np.linalg.norm(w_v)


print("\n   ‖∂L/∂W_q‖ / ‖∂L/∂W_v‖ at d_k = 2048, with scale 1 and 1/√d_k; mean of 5 draws")
gained = {}
for name, (recipe, _) in RECIPES.items():
    heads = [recipe(2048, chosen.seed + i) for i in range(5)]
    through = [np.mean([reached(head, scale) for head in heads]) for scale in (1.0, None)]
    print(f"   {name}: {row(through, '.1e')}")
    gained[name] = through[1] / through[0]
marks.at_least("V1's recipe: times as much with the scale", gained["V1"], 100, ".0f")
marks.at_most("V2's recipe: times as much with the scale", gained["V2"], 1, ".2f")
marks.at_most("V1's recipe, d_k = 2048, 1/√d_k", wide["V1", "1/√d_k"][-1], 0.45, ".3f")
marks.at_least("V1's recipe, d_k = 2048, 1/d_k", wide["V1", "1/d_k"][-1], 0.99, ".3f")
marks.at_least("V2's recipe, d_k = 2048, 1/√d_k", wide["V2", "1/√d_k"][-1], 0.99, ".3f")
slip.end()

# %% Both, as one picture

figure = new_figure(6.8, 6.8)
narrow, wider = figure.subplots(2, 1)
factors, ends, wide_ends = np.geomspace(0.05, 200, 60), [], []
for name, head in (("V1", one), ("V2", two)):
    style = RECIPES[name][1]
    sizes = [np.linalg.norm(gradients(head(x, scale=f).sum(), [head.w_q])[0]) for f in factors]
    narrow.plot(factors, sizes, style, color="black")
    ends.append((sizes[-1], name, "black"))
    largest_at = factors[np.argmax(sizes)]
    marks.at_least(f"{name}: ‖∂L/∂W_q‖ is largest at the scale", largest_at, 1.0, ".1f")
    for said, (_, colour) in SCALES.items():
        wider.plot(wide[name, said], f"o{style}", color=colour, markersize=4)
        wide_ends.append((wide[name, said][-1], f"{name}, {said}", colour))
narrow.set(xscale="log", yscale="log", ylim=(1e-5, 5), xlabel="scale", ylabel="‖∂L/∂W_q‖")
name_ends(narrow, ends)
name_place(narrow, 1.0, "1", UNSCALED, "left")
name_place(narrow, 2**-0.5, "1/√2", SCALED, "right")
narrow.set_title("At the text's d_k = 2 the scale makes the gradient smaller", fontsize=10, pad=18)
wider.set(xticks=range(len(WIDTHS)), xticklabels=WIDTHS, xlabel="d_k", ylim=(-0.03, 1.05))
wider.set_ylabel("entropy / log n")
name_ends(wider, wide_ends)
wider.set_title("At a large d_k, V1 needs 1/d_k", fontsize=10)
for panel in (narrow, wider):
    panel.grid(alpha=0.25)
save_figure(figure, chosen.out / "scale")

# %% The page

page = TextPage(
    source,
    "“Your journey starts with one step”: what one vector forgets",
    claim="One vector forgets a long sentence, and attention over all states does not. The scale "
    "1/√d_k is for large widths, and there it is enough for one of the text's two recipes.",
)
page.section("The text")
page.say(
    "The text is the notebook “Why we need Attention mechanism”. We do not know its author: we "
    "have it as a text without an address.",
    "It gives three numbers to each word of “Your journey starts with one step” and lets every "
    "word attend to every other without weights. Then it draws W_q, W_k and W_v twice: with "
    "`torch.rand` (V1) and as `nn.Linear` (V2).",
)
_one_vector.show(page, right, known, chosen)
page.numbers(
    *("weights", "V1", "V2"),
    names={"weights": (WORDS, WORDS), "V1": (WORDS, ()), "V2": (WORDS, ())},
)
page.say(
    "Its weights are random, and yet they come back without PyTorch. PyTorch draws with the "
    "Mersenne Twister, which is `np.random.RandomState`. A float32 holds 24 bits, so `torch.rand` "
    "keeps 24 bits of each 32 and divides by 2²⁴.",
)
_claimed.show_loops(page, seconds)
page.doubts(slip)
_claimed.show_trainings(page, trainings)
page.section("The steps that it leaves undone")
page.table(
    ["", *WORDS],
    [
        [word, *(f"{weight:.4f}" for weight in weights)]
        for word, weights in zip(WORDS, masked, strict=True)
    ],
    caption="V1 with a causal mask: each word looks at itself and at those before it",
)
page.say(
    "The gradient from the first three words to the later ones is exactly 0. The mean of 20,000 "
    "draws of dropout is the output without dropout, up to chance. And V1 and V2 fit into one "
    "layer as its two heads.",
)
page.figure(
    chosen.out / "weights.svg",
    alt="Four maps of weights: without weights, V1 and V2 are close to a plain average; the causal "
    "mask hides what is right of the diagonal.",
    caption="Where the words look: without weights, V1, V2, and V1 under a causal mask",
)
_bias.show(page, biases, chosen.out)
page.section("The way back: what the scale does here")
page.ask(
    "The text says that its scale, 1/√2, avoids small gradients. Does ‖∂L/∂W_q‖ grow or fall with "
    "it?",
    f"It falls. For V1 it is {norms['V1', '1/√2'][1]:.2f} with the scale and "
    f"{norms['V1', '1'][1]:.2f} without. These scores are far from saturation, so the scale does "
    "little more than multiply the gradient once more.",
)
page.table(
    ["head, scale", "X", "W_q", "W_k", "W_v"],
    [
        [f"{name}, {said}", *(f"{norm:.1e}" for norm in found)]
        for (name, said), found in norms.items()
    ],
    caption="Norms of ∂L/∂…, L is the sum of all contexts",
)
page.figures(
    [
        (chosen.out / f"{name}.svg", f"{caption}: {described(drawings[name])}.", caption)
        for name, caption in (
            ("graph", "V2 at the text's scale: everything learns"),
            ("graph_saturated", "V2 at a scale of 128: W_q and W_k get almost nothing"),
        )
    ]
)
page.steps(
    passes[0].save(
        chosen.out / "steps.html",
        beside=passes[1],
        titles=("scale 1/√2", "scale 128"),
        title="V2 of “Your journey starts with one step”",
        limits=(1e-9, 10.0),
    ),
    title="Both passes of V2, at the scales 1/√2 and 128",
)
page.say(
    "At a large width the two recipes differ. V1 draws between 0 and 1, so its scores grow like "
    "d_k, and 1/√d_k is not enough. V2 draws around 0.",
)
page.table(
    ["head, scale", *(f"d_k = {d_k}" for d_k in WIDTHS)],
    [
        [f"{name}, {said}", *(f"{each:.3f}" for each in found)]
        for (name, said), found in wide.items()
    ],
    caption=f"Entropy / log n, mean of {DRAWS} draws: 1 is equal weights, 0 is one key alone",
)
page.figure(
    chosen.out / "scale.svg",
    alt="At d_k = 2 the gradient of W_q is largest at scales above 1. At large widths V1 needs "
    "1/d_k, and V2 keeps its entropy with 1/√d_k.",
    caption="The scale at the text's width, and the same recipes at larger widths",
)
page.judged(marks)
page.conclude(
    "A sentence does not fit into one vector, and attention does not need it to. The scale 1/√d_k "
    "belongs to weights of mean 0 and to large widths: at d_k = 2 it is not needed, and for "
    "weights of mean ½ it is not enough.",
    try_it(chosen.file),
)
print(f"\nThe page: {page.write(chosen.out, quick=chosen.quick, note=marks.note)}")
marks.end()

# %% Try it
# - In `_one_vector.py` set `D` to 128: how many words are known from the last state now? And with
#   --steps 2000?
# - Set `SHIFT` to 0.5, the mean of V1's weights: for which of the two recipes is 1/√d_k enough now?
