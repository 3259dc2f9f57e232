""" "Your journey starts with one step": what one vector forgets, and a scale misplaced.

Claim. A notebook opens with the reason for attention, which is measured here: trained alike, one
vector keeps about three words of a sentence, however long, and additive attention finds them all.

    python -m demos your_journey [--out DIR] [--seed N] [--steps N] [--quick] [--resume]  # 9 s

The notebook's two classes, V1 and V2, compute the same, given the same weights. At its width the
scale makes gradients smaller, and at a large width 1/√d_k is not enough for V1. Of the biases that
V2 can have, that of the keys changes no weight.

The notebook is "Why we need Attention mechanism", by an author whom we do not know: we have it as a
text without an address. It gives three numbers to each word of its sentence and lets every word
attend to every other without weights. Then it draws W_q, W_k and W_v twice: with `torch.rand` (V1)
and as `nn.Linear` (V2).
"""

# %% Set-up

import numpy as np

from attention import attention, attention_weights, causal_mask
from attention.figures import SCALED, SCALED_TWICE, UNSCALED, name_ends, name_place, new_figure
from attention.mapping import to_ours, to_theirs
from attention.maps import entropy, plot_heads
from demos import options
from demos.publish import publish
from demos.texts import _claimed, _one_vector
from demos.texts._text_page import both_passes, doubts, numbers
from demos.texts.sources import agreeing, counted, of_weights
from demos.texts.sources import your_journey as source
from demos.texts.sources.your_journey import INPUTS, PRINTED, WORDS, SelfAttention, as_text
from minigrad import Tensor, gradcheck, gradients, no_grad, softmax
from minigrad.nn import Dropout, Sequential

chosen = options("your_journey", __doc__.splitlines()[0], steps=200, quick=5)
page = publish(chosen)
marks = page.marks
x = Tensor(INPUTS, requires_grad=True, name="X")
one, two = source.version_1(), source.version_2()
HEADS = {"V1": one, "V2": two}


def row(numbers, form=".4f"):
    """Return numbers as one line of text."""
    return " ".join(f"{number:{form}}" for number in numbers)


def display(rows):
    """Return named rows of a text as a display of Markdown."""
    width = max(map(len, rows))
    return "\n\n" + "\n".join(f"    {name:{width}}  {said}" for name, said in rows.items())


# %% What the text opens with: one vector, or all of them
# A recurrent network reads a sentence, and a decoder says it again: from the last state, or from an
# average of all states, weighted anew for each word.

_one_vector.show(page)

# %% The text's numbers, and ours
# Its weights are random, and yet they come back from NumPy's generator, digit by digit. PyTorch
# draws with the Mersenne Twister too, `np.random.RandomState`. A float32 holds 24 bits, so PyTorch
# keeps 24 bits of each 32 and divides by 2²⁴.

ours = source.ours()
numbers(page, source)
marks.at_least("numbers that are the same text", *counted(source), "d")

scores = ours["scores of x₂"]
orders = {"in lanes": source.lane_sum, "left to right": np.sum}
with page.folded("A sum that is not 1; loops and one product; softmax and a division, trained"):
    page.say(
        "One number looks like an error: weights that sum to 1.0000001192092896, the float32 next "
        "to 1. The sum depends on the order of the additions, above all in the divisor. PyTorch "
        "adds in four lanes."
    )
    page.table(
        ["divisor added", *(f"result added {order}" for order in orders)],
        [
            [order, *(repr(float(total(scores / add(scores)))) for total in orders.values())]
            for order, add in orders.items()
        ],
        caption="The sum of the six scores of x₂, divided by their sum",
    )
    _claimed.loops(page)
    _claimed.trainings(page)

# %% The steps that it leaves undone: a mask, dropout, several heads

mask = causal_mask(len(WORDS))
masked = one.weights(x, mask=mask).data
future = gradients(one(x, mask=mask)[:3].sum(), [x])[0][3:]
marks.at_most("gradient from the first three words to the others", np.abs(future).max(), 0, ".0e")

drop = Dropout(0.5, rng=np.random.default_rng(chosen.seed))
draws = [one.weights(x).data[1], *(drop(one.weights(x)).data[1] for _ in range(3))]
with no_grad():
    q, k, v = Tensor(np.broadcast_to((x @ one.w_q).data, (20_000, 6, 2))), x @ one.w_k, x @ one.w_v
    contexts = attention(q, k, v, drop=drop).data
    first_word = attention(q, k, v, mask=mask, drop=drop).data[:, 0]
errors = (contexts.mean(axis=0) - one(x).data) / (contexts.std(axis=0) / np.sqrt(len(contexts)))
marks.at_most("mean of 20,000 draws, in standard errors", np.abs(errors).max(), 4.5, ".1f")
lost = (first_word == 0).mean()
marks.at_most('draws in which "Your" has no key under the mask, from ½', abs(lost - 0.5), 0.015)

layer = source.two_heads()
w_o, layer.w_o = layer.w_o, Sequential()  # without W_O the output is the heads side by side
tables = zip(HEADS, np.hsplit(layer(x).data, 2), strict=True)
agreed = sum(agreeing(PRINTED[name], as_text(table)) for name, table in tables)
marks.at_least("numbers of V1 and V2 that two heads print", agreed, 24, ".0f")
layer.w_o = w_o

page.say(
    "Under a causal mask the gradient from the first three words to the later ones is exactly 0. "
    "The mean of 20,000 draws of dropout is the output without dropout, up to chance. And V1 and "
    f"V2 fit into one layer as its two heads, which print {agreed} of their 24 numbers."
)
maps = np.stack([ours["weights"], one.weights(x).data, two.weights(x).data, masked])
titles = ["without weights", "V1", "V2", "V1, causal"]
masks = np.stack([np.ones_like(mask)] * 3 + [mask])
shares = [entropy(each).mean() / np.log(len(WORDS)) for each in maps[:3]]
page.figure(
    plot_heads(maps, WORDS, WORDS, titles=titles, mask=masks),
    "weights",
    alt="Four maps of weights. Without weights, V1 and V2 are close to a plain average: their "
    f"entropy over log 6 is {row(shares, '.3f')}. The causal mask hides what is right of the "
    "diagonal.",
    caption="Where the words look, and V1 under a causal mask",
)
with page.folded("The masked weights, and three draws of dropout"):
    page.table(
        ["", *WORDS],
        [[word, *map("{:.4f}".format, each)] for word, each in zip(WORDS, masked, strict=True)],
        caption="V1 with a causal mask: each word looks at itself and at those before it",
    )
    page.table(
        ["", *WORDS],
        [
            [name, *map("{:.4f}".format, each)]
            for name, each in zip(["V1", "draw 1", "draw 2", "draw 3"], draws, strict=True)
        ],
        caption='Dropout with p = ½: the weights of "journey", and three draws of them',
    )

# %% An option that it never uses: a bias
# V2 has an option, `qkv_bias`: a query is then x W_q + b_q, and keys and values get a bias too.

_claimed.biases(page)

# %% The way back
# L is the sum of all contexts. At the text's scale every weight learns; at a scale of 128 softmax
# passes almost nothing on to W_q and W_k.

norms = {}
for name, head in HEADS.items():
    for scale, said in ((1.0, "1"), (None, "1/√2"), (128.0, "128")):
        found = gradients(head(x, scale=scale).sum(), [x, *head.parameters()])
        norms[name, said] = [float(np.linalg.norm(g)) for g in found]
confirmed = []
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
    confirmed.append(f"{name}: {sure} of {len(every)}")
    if coarse:
        seen = np.max([(c.error, c.resolution) for c in coarse])
        confirmed[-1] += f" (no difference contradicts the {len(coarse)} others)"
        marks.at_most(f"{name}: the others agree, down to the resolution", seen, 1e-5, ".0e")
    else:
        marks.at_most(f"{name}, largest error", max(c.error for c in every), 1e-8, ".0e")
with page.folded("The gradients in numbers, and how they are checked"):
    page.table(
        ["head, scale", "X", "W_q", "W_k", "W_v"],
        [[", ".join(key), *(f"{norm:.1e}" for norm in found)] for key, found in norms.items()],
        caption="Norms of ∂L/∂…",
    )
    page.say(
        "Derivatives are checked to second order, each by its own size, the two heads with their "
        f"mask and with W_O. Confirmed by differences: {'; '.join(confirmed)}."
    )
both_passes(
    page,
    {
        "graph": ("V2 at the text's scale, 1/√2: everything learns", lambda: two(x).sum()),
        "graph_saturated": (
            *("V2 at a scale of 128: W_q and W_k get almost nothing",),
            lambda: two(x, scale=128.0).sum(),
        ),
    },
    title="V2 of “Your journey starts with one step”",
    limits=(1e-9, 10.0),
)

# %% The scale at large widths
# V1 draws between 0 and 1. With a mean of ½ in both matrices q·k is near d_k sᵢ sⱼ / 4, where sᵢ is
# the sum of word i's numbers: it grows like d_k, and not like √d_k. V2 draws around 0.

WIDTHS, SHIFT, DRAWS = (2, 8, 32, 128, 512, 2048), 0.0, 10
RECIPES = {"V1": (source.version_1, "-"), "V2": (source.version_2, "--")}
SCALES = {
    "1": (lambda d: 1.0, UNSCALED),
    "1/√d_k": (None, SCALED),
    "1/d_k": (lambda d: 1 / d, SCALED_TWICE),
}


def spread(head, x=x, **options):
    """Return the mean entropy of the head's weights, as a share of log n: 1 is a plain average."""
    return float(entropy(head.weights(x, **options).data).mean() / np.log(len(WORDS)))


def reached(head, scale):
    """Return the share of gradient that passes the softmax, ‖∂L/∂W_q‖ over ‖∂L/∂W_v‖."""
    w_q, w_v = gradients(head(x, scale=scale).sum(), [head.w_q, head.w_v])
    return np.linalg.norm(w_q) / np.linalg.norm(w_v)


wide, passed = {}, {}
for name, (recipe, _) in RECIPES.items():
    for said, (scale, _) in SCALES.items():
        wide[name, said] = []
        for d_k in WIDTHS:
            layers = (recipe(d_k, chosen.seed + i).parameters() for i in range(DRAWS))
            heads = [SelfAttention(*(w.data - SHIFT for w in weights)) for weights in layers]
            wide[name, said].append(np.mean([spread(head, scale=scale) for head in heads]))
    heads = [recipe(2048, chosen.seed + i) for i in range(5)]
    passed[name] = [np.mean([reached(head, scale) for head in heads]) for scale in (1.0, None)]
drawn = [source.version_2(2048, chosen.seed + i) for i in range(DRAWS)]
times_as_long = {
    times: np.mean([spread(head, Tensor(times * INPUTS), scale=1.0) for head in drawn])
    for times in (3, 10)
}
gained = {name: scaled / unscaled for name, (unscaled, scaled) in passed.items()}
marks.at_least("V1's recipe: times as much with the scale", gained["V1"], 100, ".0f")
marks.at_most("V2's recipe: times as much with the scale", gained["V2"], 1, ".2f")
marks.at_most("V1's recipe, d_k = 2048, 1/√d_k", wide["V1", "1/√d_k"][-1], 0.45, ".3f")
marks.at_least("V1's recipe, d_k = 2048, 1/d_k", wide["V1", "1/d_k"][-1], 0.99, ".3f")
marks.at_least("V2's recipe, d_k = 2048, 1/√d_k", wide["V2", "1/√d_k"][-1], 0.99, ".3f")

figure = new_figure(6.8, 6.8)
narrow, wider = figure.subplots(2, 1)
factors, ends, wide_ends, peaks = np.geomspace(0.05, 200, 60), [], [], []
for name, head in HEADS.items():
    style = RECIPES[name][1]
    sizes = [np.linalg.norm(gradients(head(x, scale=f).sum(), [head.w_q])[0]) for f in factors]
    narrow.plot(factors, sizes, style, color="black")
    ends.append((sizes[-1], name, "black"))
    peaks.append(factors[np.argmax(sizes)])
    marks.at_least(f"{name}: ‖∂L/∂W_q‖ is largest at the scale", peaks[-1], 1.0, ".1f")
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
page.figure(
    figure,
    "scale",
    alt=f"At d_k = 2 the gradient of W_q is largest at a scale of {row(peaks, '.1f')} (V1, V2). At "
    "d_k = 2048 and 1/√d_k the entropy over log n is "
    f"{wide['V1', '1/√d_k'][-1]:.2f} for V1, and {wide['V2', '1/√d_k'][-1]:.2f} for V2.",
    caption="The scale at the text's width, and the same recipes at larger widths",
)
with page.folded("The entropies and gradients at large widths"):
    page.table(
        ["head, scale", *(f"d_k = {d_k}" for d_k in WIDTHS)],
        [[", ".join(key), *(f"{each:.3f}" for each in found)] for key, found in wide.items()],
        caption=f"Entropy / log n, mean of {DRAWS} draws: 1 is equal weights, 0 is one key alone",
    )
    page.table(
        ["", "scale 1", "scale 1/√d_k"],
        [[name, *map("{:.1e}".format, both)] for name, both in passed.items()],
        caption="‖∂L/∂W_q‖ / ‖∂L/∂W_v‖ at d_k = 2048; mean of 5 draws",
    )

# %% What is wrong in it, unclear or left open

computed = []
others = {"in its code": None, "of every other": np.arange(len(WORDS)) != 1}
looks = {s: attention_weights(x[1:2], x, scale=1.0, mask=m).data[0] for s, m in others.items()}
computed.append("The weights of x₂." + display({said: row(each) for said, each in looks.items()}))

called = PRINTED['W_q, called "Key matrix weights"']
are = {w.name: agreeing(called, as_text(w.data)) for w in (one.w_q, one.w_k)}
for name, judge, mark in (("w_q", marks.at_least, 6), ("w_k", marks.at_most, 0)):
    judge(f'numbers called "Key matrix weights" that are those of {name}', are[name], mark, "d")
computed.append(f"{are['w_q']} of the six numbers are those of W_q, and {are['w_k']} of W_k.")

raw = (x @ two.w_q @ (x @ two.w_k).mT)[0]  # V2's scores of the first word
weights = {}
for said, scores in (("scale 1", raw), ("scale 1/√2", raw / np.sqrt(2))):
    weights |= {f"sum, {said}": scores / scores.sum(), f"softmax, {said}": softmax(scores)}
marks.at_most("the least weight by their sum", min(weights["sum, scale 1"].data), -0.05, ".3f")
marks.at_least("the least weight by softmax", min(weights["softmax, scale 1"].data), 0.05, ".3f")
computed.append(
    "V2's scores of “Your”, made weights by their sum, and by softmax."
    + display({said: row(each.data, "7.4f") for said, each in weights.items()})
)

firsts = {"": "(z, 0) naive   ours   (-z, -z) naive   ours"}
for dtype, zs in (("float64", (709, 710, 746)), ("float32", (88, 89, 104))):
    for z in zs:
        pairs = (Tensor(pair, dtype=dtype) for pair in ([z, 0.0], [-z, -z]))
        with np.errstate(over="ignore", invalid="ignore"):
            cells = [f(p)[0].item() for p in pairs for f in (source.naive_softmax, softmax)]
        firsts[f"{dtype}, z = {z}"] = "{:12.3g}{:7.3g}{:17.3g}{:7.3g}".format(*cells)
computed.append(
    f"The inputs themselves, 8 times as long, have x₂ · x₂ = {64 * INPUTS[1] @ INPUTS[1]:.1f}. "
    f"The first weight:{display(firsts)}"
)

# V1 and V2 are one formula. `nn.Linear` stores (d_out, d_in), so V1's weights must be transposed on
# the way; a layout (attention/mapping.py) states this once, for both directions.
stored = to_theirs(one.state_dict(), source.LAYOUT_V2)
made_equal = source.version_2()
made_equal.load_state_dict(to_ours(stored, source.LAYOUT_V2))
agreed = agreeing(PRINTED["V1"], as_text(made_equal(x).data))
marks.at_least("numbers of V1's table that V2 gives with these", agreed, 12, ".0f")
shapes = ", ".join(f"`{name}` {array.shape}" for name, array in stored.items())
computed.append(
    f"As V2 stores V1's weights: {shapes}. With these V2 gives {agreed} of the 12 numbers of V1's "
    "table."
)

# If inputs have variance 1, an output has d_in Var(w) (minigrad/nn/initial.py): a third of the
# power is left after each layer and, in V2, a plain average of the values.
drawn = source.torch_linear(np.random.RandomState(chosen.seed), 3, 100_000)
marks.at_most("nn.Linear: d_in · variance of 300,000, from ⅓", abs(9 * drawn.var() - 1), 0.01)
vary = {}
for name, head in HEADS.items():
    values, contexts = (x @ head.w_v).data, head(x).data
    varied = np.std(contexts - contexts.mean(axis=0)) / np.std(values - values.mean(axis=0))
    vary[name] = f"entropy / log n {spread(head):.3f}; contexts vary by {varied:.1%} of the values"
    marks.at_most(f"{name}: how much contexts vary, of what values vary", varied, 0.06)
computed.append(
    f"d_in times the variance of 300,000 weights of `nn.Linear` is {3 * drawn.var():.4f}."
    + display(vary)
)
computed.append(_claimed.steepness(raw.data / np.sqrt(2), marks))

pair = np.stack([INPUTS, INPUTS[::-1]])  # (B, T, d_in)
try:
    product = f"have the shape {(pair @ pair.T).shape}"
except ValueError as error:
    product = f"raise a {type(error).__name__}"
sums = {f"dim={axis}": softmax(x @ x.mT, axis=axis).data.sum(axis=-1) for axis in (0, -1)}
rows = display({said: row(each, ".3f") for said, each in sums.items()})
computed.append(
    f"Two sentences {pair.shape} times their `.T` {pair.T.shape} {product}; with the last two axes "
    f"exchanged they give {(Tensor(pair) @ Tensor(pair).mT).shape}. The rows of softmax of the "
    f"(6, 6) scores sum to:{rows}"
)

left = {name: norms[name, "1/√2"][1] / norms[name, "1"][1] for name in HEADS}
for name in HEADS:
    marks.at_most(f"{name}: ‖∂L/∂W_q‖ with the scale, over that without", left[name], 0.9, ".2f")
computed.append(
    f"‖∂L/∂W_q‖ with the scale is {left['V1']:.2f} of that without it for V1, and {left['V2']:.2f} "
    "for V2. These scores are far from saturation, so the scale does little more than multiply the "
    "gradients once more, by 1/√2 = 0.71."
)
lengths = np.linalg.norm(INPUTS, axis=1)
computed.append(
    f"Entropy / log n at d_k = 2048: V1 {wide['V1', '1/√d_k'][-1]:.3f} with 1/√d_k, "
    f"{wide['V1', '1/d_k'][-1]:.3f} with 1/d_k; V2 {wide['V2', '1'][-1]:.3f} with a scale of 1, "
    f"and {times_as_long[3]:.3f} and {times_as_long[10]:.3f} if its inputs, whose lengths are from "
    f"{lengths.min():.2f} to {lengths.max():.2f}, are 3 and 10 times as long."
)
doubts(page, source, computed)

# %% What to conclude

page.say(
    "A sentence does not fit into one vector, and attention does not need it to. The scale 1/√d_k "
    "belongs to weights of mean 0 and to large widths: at d_k = 2 it is not needed, and for "
    "weights of mean ½ it is not enough."
)
page.end()

# %% Try it
# - In `_one_vector.py` set `D` to 128: how many words are known from the last state now? And with
#   --steps 2000?
# - Set `SHIFT` to 0.5, the mean of V1's weights: for which of the two recipes is 1/√d_k enough now?
