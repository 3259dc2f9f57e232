"""“I love you”: with constant weights eight heads are one, and no scale changes that.

Claim. A notebook multiplies integers from 1 to 9 by weights that are 1, 3 and 5 everywhere. Divided
by √d_k = 8 its scores are still 1.5e8, and the gradient of W_Q and W_K is exactly 0, at every scale
above 1/74,000. A scale that is small enough brings a gradient back, but the heads stay equal,
because equal weights get equal gradients. What is missing is unit variance, and weights that differ
before the training.

    python -m demos love_you [--out DIR] [--seed N]
"""

# %% Set-up

import numpy as np

from attention import merge_heads
from attention.figures import HALFWAY, TEXT, UNIT
from attention.maps import plot_heads
from attention.scaling import entropy
from demos import options
from demos.pages.publish import publish
from demos.texts._text_page import Slips, both_passes, checked, numbers, scale_figure
from demos.texts.sources import counted, parsed
from demos.texts.sources import love_you_text as source
from demos.texts.sources.love_you_text import apart, head, inputs, largest, measure
from minigrad import Tensor, softmax

SECONDS = 4  # of a run

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
scores = (q @ k.mT / np.sqrt(source.D_K)).data  # (3, 3)
joined = merge_heads(source.head_outputs(fixed, x)).data  # (3, 512)
slots = (np.unique(array) for array in (softmax(scores) @ v.data, joined, fixed(x).data))
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
            WORDS,
            WORDS,
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

# A difference of 0 proves something only if the same lines also find one that is not 0, so each is
# computed with Xavier's weights too.
slips = Slips(page)

over_all = softmax(scores, axis=None).sum(axis=-1)
by_row = softmax(scores).sum(axis=-1)
marks.at_most('weights of "I" without an axis, their sum', over_all[0].item(), 0, "g")
slips.wrong(
    "The softmax has no axis.",
    "So it runs over all nine scores, and the rows sum to 0, 0 and 1. The lines that print the "
    "weights compute them anew, by row, and hide this.",
    f"The rows sum to {over_all}, and by row to {by_row}.",
    weighty=True,
)

of_i = (softmax(scores, axis=axis)[0] @ v.data for axis in (None, -1))
slips.wrong(
    'The context vector printed for "I" is 64 zeros.',
    "By rows it is 13085 in every slot.",
    "“I” without an axis: {}, by rows: {}.".format(*map(np.unique, of_i)),
    weighty=True,
)

different = {}  # columns of Q, K and V, of the first head
for attend in (fixed, mixed):
    of_attend = source.heads(x, attend)
    different[attend] = [np.unique(part.data[0], axis=1).shape[1] for part in of_attend]
rank = np.linalg.matrix_rank(scores)
marks.at_most("different columns of Q, K and V, together", sum(different[fixed]), 3, "d")
marks.at_most("rank of the scores", rank, 1, "d")
slips.unclear(
    "The weights look like a random draw in the code, and the text does not say that they are not.",
    "The ranges hold one integer each: 1, 3 and 5 everywhere. All 64 columns of Q, K and V are "
    "equal, and the scores have rank 1.",
    f"Q, K and V have {different[fixed]} different columns, with Xavier's weights "
    f"{different[mixed]}; the rank of the scores is {rank}.",
    weighty=True,
)

shuffled = Tensor(np.random.default_rng(chosen.seed).permuted(x.data, axis=1))
by_sum, by_order = (largest(attend(shuffled).data - attend(x).data) for attend in (fixed, mixed))
marks.at_most("features shuffled: outputs change by", by_sum, 0, ".0e")
marks.at_least("features shuffled, Xavier's weights: outputs change by", by_order, 0.1, ".1f")
slips.left_open(
    "The text does not notice that attention then depends on a word only through the "
    "sum of its row.",
    "Every word looks at the largest sum, in whatever order the 512 features are.",
    f"The features shuffled, each row by itself, change the outputs by {by_sum:.0e}; with Xavier's "
    f"weights by {by_order:.0e}.",
)

*_, second, first = np.sort(scores, axis=-1).T
gap = (first - second).min()  # how far the second word is behind, in the closest row
marks.at_most("weight of the second word, exp(-gap)", np.exp(-gap), 0, ".0e")
slips.left_open(
    "The scores are scaled by 1/8 and are still 1.5e8.",
    "√d_k = 8 is made for queries and keys of mean 0 and variance 1; here their means are 2539 and "
    "7616.",
    f"The means of Q and K are {q.data.mean():.0f} and {k.data.mean():.0f}. The second word is "
    f"{gap:.1e} behind, and exp(-{gap:.1e}) is {np.exp(-gap)}.",
)


exchanged = mixed(x[::-1]).data  # “you love I”
differ = largest(exchanged - mixed(x).data)
back = largest(exchanged - mixed(x).data[::-1])
marks.at_least("words exchanged: outputs differ by", differ, 0.1, ".1f")
marks.at_most("words exchanged, outputs exchanged back: they differ by", back, 1e-12, ".0e")
slips.unclear(
    "d_model is called the positional embedding space.",
    "It is the width of token and position together. In this text no position is added: exchange "
    "two words, and their outputs are exchanged.",
    f"“I” and “you” exchanged, Xavier's weights: the outputs differ by {differ:.0e}, and exchanged "
    f"back by {back:.0e}.",
)

singly = {}  # how far words one at a time and one product are apart
for axis in (-1, None):
    words = [softmax(scores[i : i + 1], axis=axis) @ v.data for i in range(3)]
    singly[axis] = largest(np.concatenate(words) - softmax(scores, axis=axis) @ v.data)
what = "one word at a time and one product"
marks.at_most(f"{what}: apart", singly[-1], 1e-12, ".0e")
marks.at_least(f"{what}, without an axis: apart", singly[None], 13085, ".0f")
slips.unclear(
    "Step 7 repeats steps 1 to 6 for the other words, in a heading alone.",
    "Steps 1 to 5 are done for all three words already, and step 1 would draw other words: one "
    "product is left.",
    f"One word at a time and one product are {singly[-1]:.0e} apart, without an axis "
    f"{singly[None]:.0f}.",
)

slips.unclear(
    "Each input is said to have 3 weight matrices.",
    "Step 3 assumes one of each for all inputs, and so does the code.",
    f"One (512, 64) for {len(x)} inputs gives queries {q.shape}. With one for each input, W_Q "
    "would be (3, 512, 64), where it is printed as (512, 64).",
)

slips.left_open(
    "The title promises multi-head attention, and the model is said to have eight heads.",
    "One is computed.",
    f"The text's context has 64 features, ours from eight heads {joined.shape[-1]}.",
)
slips.show()

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
