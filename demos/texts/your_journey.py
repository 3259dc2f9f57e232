""" "Your journey starts with one step": what one vector forgets, and a scale misplaced.

Claim. A notebook opens with the reason for attention, which is measured here: trained alike, one
vector keeps about three words of a sentence, however long, and additive attention finds them all.
At the notebook's width its scale makes gradients smaller, and at a large width 1/√d_k is not enough
for the first of its two classes.

    python -m demos your_journey [--out DIR] [--seed N] [--steps N] [--quick] [--resume]

The notebook is "Why we need Attention mechanism", by an author whom we do not know: we have it as a
text without an address. It gives three numbers to each word of its sentence and lets every word
attend to every other without weights. Then it draws W_q, W_k and W_v twice: with `torch.rand` (V1)
and as `nn.Linear` (V2).
"""

# %% Set-up

from timeit import repeat
from typing import Any

import numpy as np

from attention import attention, attention_weights, causal_mask
from attention.figures import HALFWAY, UNIT
from attention.mapping import to_ours, to_theirs
from demos import options
from demos.pages.publish import publish
from demos.texts import _one_vector
from demos.texts._text_page import Slips, both_passes, checked, numbers, scale_figure
from demos.texts.sources import agreeing, of_weights
from demos.texts.sources import your_journey_text as source
from demos.texts.sources.your_journey_text import (
    INPUTS,
    PRINTED,
    WORDS,
    SelfAttention,
    as_text,
    reached,
    spread,
)
from minigrad import Tensor, gradients, jacobian, mse, no_grad, softmax
from minigrad.nn import Dropout, Sequential
from minigrad.optim import Adam

SECONDS = 9  # of a run

chosen = options("your_journey", __doc__.splitlines()[0], steps=200, quick=5)
page = publish(chosen)
marks = page.marks
x = Tensor(INPUTS, requires_grad=True, name="X")
one, two = source.version_1(), source.version_2()
HEADS = {"V1": one, "V2": two}


def spaced(numbers, form=".4f"):
    """Return numbers as one line of text."""
    return " ".join(f"{number:{form}}" for number in numbers)


def listed(rows):
    """Return named rows of a text as a display of Markdown."""
    width = max(map(len, rows))
    return "\n\n" + "\n".join(f"    {name:{width}}  {row}" for name, row in rows.items())


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

scores = ours["scores of x₂"]
by_row = np.sum(scores / np.sum(scores))
with page.folded("One number looks like an error: the sum of a softmax"):
    page.say(
        f"It is {PRINTED['their sum']}, the float32 next to 1. The last digit depends on the order "
        "of the additions, and PyTorch adds in four lanes. Added from left to right the same "
        f"weights sum to {float(by_row)!r}."
    )

# %% The steps that it leaves undone
# A mask, dropout, several heads, and the loops that it calls slow and does not time. V2 has an
# option, `qkv_bias`, that is never used: a query is then x W_q + b_q, and keys and values get a
# bias too.

mask = causal_mask(len(WORDS))
future = gradients(one(x, mask=mask)[:3].sum(), [x])[0][3:]
marks.at_most("gradient from the first three words to the others", np.abs(future).max(), 0, ".0e")

drop = Dropout(0.5, rng=np.random.default_rng(chosen.seed))
with no_grad():
    q, k, v = Tensor(np.broadcast_to((x @ one.w_q).data, (20_000, 6, 2))), x @ one.w_k, x @ one.w_v
    contexts = attention(q, k, v, drop=drop).data
errors = (contexts.mean(axis=0) - one(x).data) / (contexts.std(axis=0) / np.sqrt(len(contexts)))
marks.at_most("mean of 20,000 draws, in standard errors", np.abs(errors).max(), 4.5, ".1f")

layer: Any = source.two_heads()  # (Any: what replaces W_O below is not a Linear)
w_o = layer.w_o
layer.w_o = Sequential()  # without W_O the output is the heads side by side
tables = zip(HEADS, np.hsplit(layer(x).data, 2), strict=True)
agreed = sum(agreeing(PRINTED[name], as_text(table)) for name, table in tables)
marks.at_least("numbers of V1 and V2 that two heads print", agreed, 24, ".0f")
layer.w_o = w_o

many = np.random.default_rng(chosen.seed).random((128, 3))
by_loops = lambda: np.array([[x_i @ x_j for x_j in many] for x_i in many])
as_product = lambda: many @ many.T
slow, fast = (min(repeat(way, number=3, repeat=5)) for way in (by_loops, as_product))
apart = np.abs(by_loops() - as_product()).max()
marks.at_most("scores by loops and by the product: apart", apart, 1e-14, ".0e")

biased = source.version_2_biased()
w, b = biased.parameters()[:3], biased.parameters()[3:]
to_q, to_k, to_v = (np.linalg.norm(g) for g in gradients(biased(x).sum(), b))
marks.at_most("‖∂L/∂b_k‖ / ‖∂L/∂b_q‖", to_k / to_q, 1e-12, ".0e")
without = SelfAttention(*w, *b[:2], np.zeros(2))
apart = np.abs(biased(x).data - without(x).data - biased.b_v.data).max()
marks.at_most("contexts move by b_v: off by", apart, 1e-14, ".0e")

page.say(
    "Under a causal mask the gradient from the first three words to the later ones is exactly 0. "
    "The mean of 20,000 draws of dropout is the output without dropout, up to chance. V1 and V2 "
    f"fit into one layer as its two heads, which print {agreed} of their 24 numbers. For 128 words "
    f"two loops take about {slow / fast:,.0f} times as long as one product."
)
page.ask(
    "One of the three biases changes no context at all, whatever its numbers are. Which one?",
    "It is b_k. It adds (qᵢ + b_q)·b_k to every score of query i, the same number for each key, "
    "and softmax does not see a shift of a whole row. With the biases that V2 draws, the gradients "
    f"of b_q, b_k and b_v are {to_q:.0e}, {to_k:.0e} and {to_v:.0e}: what is computed for b_k is "
    "rounding. b_v moves every context by itself, since the weights of a row sum to 1.",
    guesses=("b_q", "b_k", "b_v"),
)
# %% The way back
# L is the sum of all contexts. At the text's scale every weight learns; at a scale of 128 softmax
# passes almost nothing on to W_q and W_k.

checked(
    page,
    {
        "without weights": (lambda x: attention(x, x, x, scale=1.0), [x]),
        "V1": (lambda x, *w: SelfAttention(*w)(x), [x, *one.parameters()]),
        "V2": (lambda x, *w: SelfAttention(*w)(x), [x, *two.parameters()]),
        "two heads, causal": (of_weights(layer, mask=mask), [x, *layer.parameters()]),
        "V2, scale 128": (lambda x, *w: SelfAttention(*w)(x, scale=128.0), [x, *two.parameters()]),
    },
    coarse={"V2, scale 128": 18},
)
both_passes(
    page,
    {
        "graph": ("V2 at the text's scale, 1/√2: everything learns", lambda: two(x).sum()),
        "graph_saturated": (
            "V2 at a scale of 128: W_q and W_k get almost nothing",
            lambda: two(x, scale=128.0).sum(),
        ),
    },
    title="V2 of “Your journey starts with one step”",
    limits=(1e-9, 10.0),
)

# %% The scale, here and at large widths
# V1 draws between 0 and 1. With a mean of ½ in both matrices q·k is near d_k sᵢ sⱼ / 4, where sᵢ is
# the sum of word i's numbers: it grows like d_k, and not like √d_k. V2 draws around 0.

WIDE, SHIFT, DRAWS = 2048, 0.0, 10
SCALES = {"1": 1.0, "1/√d_k": None, "1/d_k": 1 / WIDE}

wide = {}
heads = {}
for name, recipe in {"V1": source.version_1, "V2": source.version_2}.items():
    layers = (recipe(WIDE, chosen.seed + i).parameters() for i in range(DRAWS))
    heads[name] = [SelfAttention(*(w.data - SHIFT for w in weights)) for weights in layers]
    for factor, scale in SCALES.items():
        wide[name, factor] = np.mean([spread(head, scale=scale) for head in heads[name]])
    of_five = [[reached(head, scale) for head in heads[name][:5]] for scale in (1.0, None)]
    unscaled, scaled = (np.mean([to_q / to_v for to_q, to_v in pairs]) for pairs in of_five)
    judge, limit = (marks.at_least, 100) if name == "V1" else (marks.at_most, 1)
    judge(f"{name}'s recipe: times as much with the scale", scaled / unscaled, limit, ".4g")
marks.at_most("V1's recipe, d_k = 2048, 1/√d_k", wide["V1", "1/√d_k"], 0.45, ".3f")
marks.at_least("V1's recipe, d_k = 2048, 1/d_k", wide["V1", "1/d_k"], 0.99, ".3f")
marks.at_least("V2's recipe, d_k = 2048, 1/√d_k", wide["V2", "1/√d_k"], 0.99, ".3f")
times_as_long = {
    times: np.mean([spread(head, times * INPUTS, scale=1.0) for head in heads["V2"]])
    for times in (3, 10)
}
factors = np.geomspace(0.05, 200, 60)
lines = {}
for name, style, colour in (("V1", "-", HALFWAY), ("V2", "--", UNIT)):
    head = HEADS[name]
    measured = np.array([[spread(head, scale=f), reached(head, f)[0]] for f in factors])
    lines[name] = measured, colour, style
peaks = [factors[measured[:, 1].argmax()] for measured, *_ in lines.values()]
for name, peak in zip(HEADS, peaks, strict=True):
    marks.at_least(f"{name}: ‖∂L/∂W_q‖ is largest at the scale", peak, 1.0, ".1f")
scale_figure(
    page,
    factors,
    lines,
    sides=("entropy / log n", "‖∂L/∂W_q‖"),
    titles=(
        "At the text's d_k = 2 the weights are nearly equal",
        "and the scale makes the gradient smaller",
    ),
    usual=(2**-0.5, "1/√d_k"),
    low=1e-5,
    alt=f"At d_k = 2 the gradient of W_q is largest at a scale of {spaced(peaks, '.1f')} (V1, V2).",
)
page.table(
    ["entropy / log n", *SCALES],
    [[name, *(f"{wide[name, scale]:.3f}" for scale in SCALES)] for name in HEADS],
    caption=f"The same recipes at d_k = {WIDE:,}, mean of {DRAWS} draws: 1 is equal weights, 0 is "
    "one key alone",
)

# %% What is wrong in it, unclear or left open

slips = Slips(page)

rows = {}
for name, mask in (("in its code", None), ("of every other", np.arange(len(WORDS)) != 1)):
    looks = attention_weights(x[1:2], x, scale=1.0, mask=mask).data[0]
    rows[name] = spaced(looks)
slips.unclear(
    'The text says that it compares x₂ with "every other input token".',
    "The code compares x₂ with itself too, and that weight is the largest, .2379.",
    f"The weights of x₂.{listed(rows)}",
)

called = PRINTED['W_q, called "Key matrix weights"']
of_q, of_k = (agreeing(called, as_text(w.data)) for w in (one.w_q, one.w_k))
what = 'numbers called "Key matrix weights" that are those of'
marks.at_least(f"{what} w_q", of_q, 6, "d")
marks.at_most(f"{what} w_k", of_k, 0, "d")
slips.wrong(
    'Under "Key matrix weights" the text prints W_query once more.',
    "W_key comes three cells later.",
    f"{of_q} of the six numbers are those of W_q, and {of_k} of W_k.",
    weighty=True,
)

raw = (x @ two.w_q @ (x @ two.w_k).mT).data[0]  # of the first word
weights = {}
for name, scores in (("scale 1", raw), ("scale 1/√2", raw / np.sqrt(2))):
    weights[f"sum, {name}"] = scores / scores.sum()
    weights[f"softmax, {name}"] = softmax(scores)
least = {name: min(row) for name, row in weights.items()}
marks.at_most("the least weight by their sum", least["sum, scale 1"], -0.05, ".3f")
marks.at_least("the least weight by softmax", least["softmax, scale 1"], 0.05, ".3f")
rows = {name: spaced(row, "7.4f") for name, row in weights.items()}
slips.left_open(
    "The text first divides scores by their sum, and does not show what fails.",
    "V2's scores give negative weights, and any scale cancels.",
    f"V2's scores of “Your”, made weights by their sum, and by softmax.{listed(rows)}",
)

rows = {"": "(z, 0) naive   ours   (-z, -z) naive   ours"}
for dtype, sizes in (("float64", (709, 710, 746)), ("float32", (88, 89, 104))):
    for z in sizes:
        first = []  # weights
        for scores in ([z, 0.0], [-z, -z]):
            s = Tensor(scores, dtype=dtype)
            with np.errstate(over="ignore", invalid="ignore"):
                first += [source.naive_softmax(s)[0].item(), softmax(s)[0].item()]
        rows[f"{dtype}, z = {z}"] = "{:12.3g}{:7.3g}{:17.3g}{:7.3g}".format(*first)
slips.left_open(
    "The text says that its softmax may overflow, and not where.",
    "It does so from 710 in float64, from 89 in float32, which its own inputs reach when they are "
    "8 times as long.",
    f"The inputs themselves, 8 times as long, have x₂ · x₂ = {64 * INPUTS[1] @ INPUTS[1]:.1f}. The "
    f"first weight:{listed(rows)}",
)

# V1 and V2 are one formula. `nn.Linear` stores (d_out, d_in), so V1's weights must be transposed on
# the way; a layout (attention/mapping.py) states this once, for both directions.
stored = to_theirs(one.state_dict(), source.LAYOUT_V2)
made_equal = source.version_2()
made_equal.load_state_dict(to_ours(stored, source.LAYOUT_V2))
agreed = agreeing(PRINTED["V1"], as_text(made_equal(x).data))
marks.at_least("numbers of V1's table that V2 gives with these", agreed, 12, ".0f")
shapes = ", ".join(f"`{name}` {array.shape}" for name, array in stored.items())
slips.left_open(
    "V2 is said to improve V1.",
    "The two differ by seed, by storage (nn.Linear keeps the transpose) and by distribution at "
    "once, and are never made equal.",
    f"As V2 stores V1's weights: {shapes}. With these V2 gives {agreed} of the 12 numbers of V1's "
    "table.",
)

# If inputs have variance 1, an output has d_in Var(w) (minigrad/nn/initial.py): a third of the
# power is left after each layer and, in V2, a plain average of the values.
drawn = source.torch_linear(np.random.RandomState(chosen.seed), 3, 100_000)
marks.at_most("nn.Linear: d_in · variance of 300,000, from ⅓", abs(9 * drawn.var() - 1), 0.01)
means = {}
for name, head in HEADS.items():
    values, contexts = (x @ head.w_v).data, head(x).data
    varied = np.std(contexts - contexts.mean(axis=0)) / np.std(values - values.mean(axis=0))
    marks.at_most(f"{name}: how much contexts vary, of what values vary", varied, 0.06)
    means[name] = f"entropy / log n {spread(head):.3f}; contexts vary by {varied:.1%} of the values"
slips.unclear(
    "The text calls nn.Linear's initial weights optimized, and does not measure it.",
    "Their variance is 1/(3 d_in), so a signal loses two thirds of its mean square in each layer. "
    "Neither V1 nor V2 does more than average.",
    "d_in times the variance of 300,000 weights of `nn.Linear` is "
    f"{3 * drawn.var():.4f}.{listed(means)}",
)


def divided(scores):
    """Return each row divided by its sum."""
    return scores / scores.sum(axis=-1, keepdims=True)


def trained(head, normalise):
    """Train a head to say the next word's start; return its last loss over a constant answer's."""
    target = np.roll(INPUTS[:, :2], -1, axis=0)
    optimizer = Adam(head.parameters(), 0.05)
    for _ in range(200):
        q, k, v = head.project(Tensor(INPUTS))
        loss = mse(normalise(q @ k.mT / np.sqrt(2)) @ v, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item() / target.var(axis=0).mean()


# The largest singular value of the Jacobian is the most that a small change of the scores can
# change the weights. That of softmax, diag(p) - p pᵀ, is never above ½.
learned = {}
steepest = {}
mean_loss = {}
scores = [scale * INPUTS @ word for scale in (0.01, 1, 100) for word in INPUTS]
for name, normalise in (("divided", divided), ("softmax", softmax)):
    slopes = [np.linalg.norm(jacobian(normalise)(row).data, 2) for row in scores]
    losses = [trained(head(), normalise) for head in (source.version_1, source.version_2)]
    learned[name] = f"slopes {min(slopes):.1g} to {max(slopes):.2g}; losses {spaced(losses, '.2f')}"
    steepest[name] = max(slopes)
    mean_loss[name] = np.mean(losses)
what = "loss / a constant's, mean of both"
marks.at_least("divided: the steepest of 18 rows", steepest["divided"], 10, ".3g")
marks.at_least(f"divided: {what}", mean_loss["divided"], 0.45, ".2f")
marks.at_most("softmax: the steepest of 18 rows", steepest["softmax"], 0.5, ".3g")
marks.at_most(f"softmax: {what}", mean_loss["softmax"], 0.45, ".2f")
slips.left_open(
    "Softmax is said to have more favourable gradients than division by the sum, and they are not "
    "shown.",
    "It is so: its slope is at most ½, the slope of the division has no bound, and the text's two "
    "heads learn more with softmax. But softmax's slope vanishes when scores are large.",
    "The steepest slope of the weights by the scores, of 18 rows, and the losses of V1 and V2 "
    f"after 200 steps, over that of the best constant answer.{listed(learned)}",
)

pair = np.stack([INPUTS, INPUTS[::-1]])  # (B, T, d_in)
try:
    product = f"have the shape {(pair @ pair.T).shape}"
except ValueError as error:
    product = f"raise a {type(error).__name__}"
by_axis = {}
for axis in (0, -1):
    sums = softmax(x @ x.mT, axis=axis).data.sum(axis=-1)
    by_axis[f"dim={axis}"] = spaced(sums, ".3f")
slips.left_open(
    "`.T` and `dim=0` work for one sentence and for one vector, and the text uses no batch.",
    "With a batch of sentences they fail, or softmax runs over the wrong axis.",
    f"Two sentences {pair.shape} times their `.T` {pair.T.shape} {product}; with the last two axes "
    f"exchanged they give {(Tensor(pair) @ Tensor(pair).mT).shape}. The rows of softmax of the (6, "
    f"6) scores sum to:{listed(by_axis)}",
)

left = {}
for name, head in HEADS.items():
    left[name] = reached(head, None)[0] / reached(head, 1.0)[0]
    marks.at_most(f"{name}: ‖∂L/∂W_q‖ with the scale, over that without", left[name], 0.9, ".2f")
slips.left_open(
    "The text gives small gradients as the reason for the scale, and means large widths.",
    "At its own d_k = 2 the scale makes the gradients of W_q and W_k smaller.",
    f"‖∂L/∂W_q‖ with the scale is {left['V1']:.2f} of that without it for V1, and {left['V2']:.2f} "
    "for V2. These scores are far from saturation, so the scale does little more than multiply the "
    "gradients once more, by 1/√2 = 0.71.",
    weighty=True,
)

lengths = np.linalg.norm(INPUTS, axis=1)
slips.left_open(
    "The text's example for the scale is a width above a thousand.",
    "V1's recipe needs one there: its weights have mean ½, so its scores grow like d_k, and 1/√d_k "
    "is not enough. V2's recipe works without, as long as inputs are three numbers and of length "
    "about 1.",
    f"Entropy / log n at d_k = 2048: V1 {wide['V1', '1/√d_k']:.3f} with 1/√d_k, "
    f"{wide['V1', '1/d_k']:.3f} with 1/d_k; V2 {wide['V2', '1']:.3f} with a scale of 1, and "
    f"{times_as_long[3]:.3f} and {times_as_long[10]:.3f} if its inputs, whose lengths are from "
    f"{lengths.min():.2f} to {lengths.max():.2f}, are 3 and 10 times as long.",
    weighty=True,
)
slips.show()

page.end()

# %% Try it
# - In `_one_vector.py` set `D` to 128: how many words are known from the last state now? And with
#   --steps 2000?
# - Set `SHIFT` to 0.5, the mean of V1's weights: for which of the two recipes is 1/√d_k enough now?
