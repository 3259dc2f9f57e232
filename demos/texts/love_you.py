"""“I love you”: with constant weights eight heads are one, and no scale changes that.

Claim. A notebook multiplies integers from 1 to 9 by weights that are 1, 3 and 5 everywhere. Divided
by √d_k = 8 its scores are still 1.5e8, and the gradient of W_Q and W_K is exactly 0, at every scale
above 1/74,000. A scale that is small enough brings a gradient back, but the heads stay equal,
because equal weights get equal gradients. What is missing is unit variance, and weights that differ
before the training.

    python -m demos love_you [--out DIR] [--seed N]  # 4 s
"""

# %% Set-up

import numpy as np

from attention import merge_heads
from attention.figures import HALFWAY, TEXT, UNIT
from attention.maps import plot_heads
from attention.scaling import entropy
from demos import options
from demos.publish import publish
from demos.texts._text_page import both_passes, checked, doubts, numbers, scale_figure
from demos.texts.sources import counted, parsed
from demos.texts.sources import love_you_text as source
from demos.texts.sources.love_you_slips import Slips
from demos.texts.sources.love_you_text import apart, head, inputs, largest, measure
from minigrad import Tensor, softmax

chosen = options("love_you", __doc__.splitlines()[0])
page = publish(chosen)
marks, WORDS = page.marks, source.WORDS
rows = source.rows(np.random.default_rng(chosen.seed)).astype(float)  # (3, 512)
x = Tensor(rows, requires_grad=True, name="x")
unit = Tensor(source.unit(rows), requires_grad=True, name="x")  # rows of mean 0 and variance 1
fixed = source.layer()
mixed = source.layer(constant=False, seed=chosen.seed)  # Xavier's weights

# %% The text, and its numbers beside ours
# The text is the notebook "Multi-Head Attention found in Orginal Transformer Paper". We do not know
# its author; its first line links to the repository TransDiffTemp of the account AdamClarkStandke.
# Each word is 512 random integers, W_Q is 1 everywhere, W_K 3 and W_V 5, and one head of 64
# features is computed.

numbers(page, source)
sums, known = source.sums(), parsed(source.PRINTED["I"])
same, total = counted(source)
plain = sum(float(n) in (0, 1) for name in source.ours() for n in source.PRINTED[name].split())
page.say(
    f"{plain} of the {same} are zeros and ones, three give the sums of the rows, "
    f"{', '.join(map(str, sums))}, and {same - plain - 3} are predictions from these sums."
)
page.ask(
    "1,536 random integers go in. How many different numbers does one need in order to compute all "
    "nine scores?",
    "Three: the sum of each word's row. All columns of W_Q are 1, so a query is that sum, 64 times "
    "over, and a key is three times that sum. score(i, j) = 64 · sᵢ · 3 sⱼ / 8 = 24 sᵢ sⱼ. The "
    f"{len(known)} printed values of “I” sum to {known.sum():.0f}, so {sums[0] - known.sum():.0f} "
    f"is left to the other {512 - len(known)}.",
    guesses=("1,536", "512", "3"),
)

# %% The steps that it leaves undone: eight heads
# Step 7 is one product for all three words. Step 8 is a heading alone. We make the eight heads by
# the same recipe, join them and multiply by a W_O of 1/512, which is the mean of the joined
# features. The text also says that a value need not be as wide as a key, and takes 64 for both.

q, k, v = (projected[0] for projected in source.heads(x, fixed))  # each (3, 64)
by_row = softmax((q @ k.mT / np.sqrt(source.D_K)).data)  # (3, 3)
joined = merge_heads(source.head_outputs(fixed, x)).data  # (3, 512)
slots = (np.unique(array) for array in (by_row @ v.data, joined, fixed(x).data))
shares = [entropy(w).mean() / np.log(3) for w in mixed.weights(unit).data]  # of each head
narrow = source.layer(constant=False, seed=chosen.seed, d_v=32)
moved = largest(narrow.weights(unit).data - mixed.weights(unit).data)
page.say(
    "With a softmax by rows every slot of the contexts is {}, of the eight heads joined {}, and of "
    "the output {}. ".format(*slots)
    + f"With values of 32 features a weight changes by {moved:g}, and the output has "
    f"{narrow(unit).shape[-1]} features as before."
)
page.finding(
    "Eight heads by the text's recipe are one head: their outputs differ by "
    f"{apart(fixed, x):.0f}. With Xavier weights and rows of unit variance they differ by "
    f"{apart(mixed, unit):.2f} of the largest output.",
    page.figure(
        plot_heads(
            np.concatenate([fixed.weights(x).data, mixed.weights(unit).data]),
            *(WORDS, WORDS),
            titles=[f"{recipe} {n}" for recipe in ("the text,", "Xavier,") for n in range(1, 9)],
        ),
        "weights",
        alt="Sixteen maps. In the eight of the text every word puts a weight of "
        f"{fixed.weights(x).data[..., 2].min():.2f} on “{WORDS[2]}”. The "
        f"eight with Xavier weights differ: entropies / log 3 from {min(shares):.2f} to "
        f"{max(shares):.2f}.",
        caption="Eight heads by the text's recipe, and eight with Xavier weights and unit variance",
    ),
)
marks.at_most("constant weights: heads apart", apart(fixed, x), 1e-12, ".0e")
marks.at_least("weights that are not constant: heads apart", apart(mixed, unit), 0.5, ".2f")
marks.at_most("values of another width: a weight moves by", moved, 0, ".0e")

# %% What is wrong in it, unclear or left open

slips = Slips(marks, chosen.seed, x, fixed, mixed)
doubts(page, slips)

# %% The way back: exactly 0
# L is the sum of one head's context vectors. The scale multiplies QKᵀ; the text's is 1/8.

# We compare largest elements: a norm squares, and (1e-233)² is 0 in float64. exp(-z) is 0 from
# z = 745.13 on, so the smallest gap of QKᵀ predicts the scale at which the gradient returns.
# Halving an interval measures it.
text = inputs(fixed, x)
low, high = 1e-9, 1.0
while high / low > 1.0001:
    middle = np.sqrt(low * high)
    low, high = (middle, high) if largest(measure(middle, text)[1][1]) else (low, middle)
gap = slips.gap()
predicted = (np.log(2) - np.log(np.nextafter(0, 1))) / (8 * gap)
scales = np.logspace(-11, 0, 111)
lines = {}
for name, tensors, colour, style in (
    ("constant weights,\nintegers", text, TEXT, "-"),
    ("Xavier weights,\nintegers", inputs(mixed, x), HALFWAY, "--"),
    ("Xavier weights,\nunit variance", inputs(mixed, unit), UNIT, "-."),
):
    measured = (measure(scale, tensors) for scale in scales)
    both = np.array([(spread, largest(g[1]) / largest(g[3])) for spread, g in measured])
    lines[name] = both, colour, style
scale_figure(
    page,
    scales,
    lines,
    sides=("entropy / log 3", "largest ∂L/∂W_Q / largest ∂L/∂W_V"),
    titles=(
        "1/√d_k is right for unit variance alone",
        f"With the text's weights W_Q gets exactly 0 from a scale of {low:.1e} on",
    ),
    usual=(1 / 8, "1/√d_k"),
    low=1e-12,
    alt="Entropy and gradient over the scale: with constant weights the gradient of W_Q is 0 from "
    f"a scale of {low:.1e} on; with Xavier weights and unit variance it is alive at 1/8.",
)
page.ask(
    "The scores are divided by √d_k = 8. By what would they have to be divided, so that W_Q gets "
    "any gradient at all?",
    f"Q Kᵀ would have to be divided by about {1 / low:,.0f}, and what is already divided by 8 by "
    f"{1 / (8 * low):,.0f}. The second word is {8 * gap:.1e} behind the first, and exp(-z) is 0 in "
    f"float64 from z = 745.13 on. The gap predicts a scale of {predicted:.3e}, and {low:.3e} is "
    "measured.",
)
alive = 2 / (8 * gap)  # here the largest weight is e² = 7.4 times the next, in the closest row
at_usual = np.max(
    [largest(g) for s in (1, 1 / 8, 1 / 64, 1 / 512) for g in measure(s, text)[1][1:3]]
)
by_word = [largest(row) for row in measure(None, text)[1][0]]
marks.at_most("gradient of I and love at 1/8", np.max(by_word[:2]), 0, ".0e")
marks.at_most("gradient of W_Q and W_K at the four usual scales", at_usual, 0.0, ".0e")
marks.at_least("gradient of W_V at 1/8", largest(measure(None, text)[1][3]), 1.0, ".0f")
marks.at_most("measured and predicted apart", abs(low / predicted - 1), 0.01)

# %% The same head twice

both_passes(
    page,
    {
        "head_text": ("The text's numbers", lambda: head(None)(*text).sum()),
        "head_unit": ("Xavier, unit variance", lambda: head(None)(*inputs(mixed, unit)).sum()),
    },
    title="One head of “I love you”",
    limits=(1e-4, 1e6),
)

# Differences confirm that the zeros are zeros: moving every element of W_Q by about an eighth of
# itself changes no weight.
checked(
    page,
    {
        "the text's, 1/8": (head(None), text),
        f"the text's, {alive:.1e}": (head(alive), text),
        "Xavier, unit variance, 1/8": (head(None), inputs(mixed, unit)),
    },
)

# The scale brings a gradient back, but the eight heads stay one: all columns of W_Q, W_K and W_V
# are equal, and all rows of W_O, and whatever the loss, their gradients are then equal too.
moved, parted = source.trained(alive, x, seed=chosen.seed)
page.say(
    "The zeros are confirmed too. A scale is small enough at "
    f"{alive:.1e}: 20 steps of Adam move W_Q by {moved:.2f}, and the eight heads stay one."
)
marks.at_least("W_Q moved", moved, 0.01, ".2f")
marks.at_most("the heads, trained, apart", parted, 1e-9, ".0e")
page.end()

# %% Try it
# - Let W_O differ before the training: call `source.trained` with `w_o=mixed.w_o.weight.data` too.
#   The other three stay constant. Do the heads part?
# - Take the mean away, `rows -= rows.mean()` after the rows are made: which word does "I" look at
#   now, at which scale does the gradient return, and is it 0 at 1/8 all the same?
