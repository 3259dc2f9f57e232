""" "I love you": with constant weights eight heads are one, and no scale changes that.

Claim. A notebook multiplies integers from 1 to 9 by weights that are 1, 3 and 5 everywhere. Its
scores then follow from three sums. The notebook computes one head, and the eight heads that we make
by the same recipe are equal. Divided by √d_k = 8 the scores are still 1.5e8, and the gradient of
W_Q and W_K is exactly 0. A scale of 1/74,000 brings the gradient back, but the heads stay equal.
What was missing is unit variance and weights that differ. Values may be as wide as one likes, as
the text says: their width changes W_O, and no attention weight.

The text is the notebook "Multi-Head Attention found in Orginal Transformer Paper". We do not know
its author; its first line links to the repository TransDiffTemp of the account AdamClarkStandke.

    python -m demos love_you [--out DIR] [--seed N]  # 4 s
"""

# %% Set-up

import numpy as np

from attention import merge_heads
from attention.figures import (
    HALFWAY,
    TEXT,
    UNIT,
    name_ends,
    name_place,
    new_figure,
    save_figure,
)
from attention.maps import entropy, plot_heads
from demos import options
from demos._page import try_it
from demos._training import Marks
from demos.texts._text_page import TextPage
from demos.texts.sources import Teller, counted, numbers, say
from demos.texts.sources import love_you as source
from demos.texts.sources.love_you import (
    D_K,
    D_MODEL,
    NUM_HEADS,
    WORDS,
    apart,
    head,
    inputs,
    largest,
    measure,
)
from minigrad import Steps, Tensor, gradcheck, graph, softmax
from minigrad.graphs.render import described

chosen = options("love_you", __doc__.splitlines()[0])
marks = Marks(chosen)


# %% 1 · What it prints, and ours
# The printed diagonal gives the three sums, and the sums give everything else. Our rows have these
# sums; apart from that they are drawn anew.

sums = source.sums()
ours = source.ours()
same, total = counted(source)
print(f'1 · "I love you": the rows sum to {", ".join(map(str, sums))}\n')
print(f"   {'scores and weights, the text':47}ours")
for name in ("scores", "weights"):
    sides = source.PRINTED[name].split(), source.as_text(ours[name])
    for left, right in zip(*(np.reshape(side, (3, 3)) for side in sides), strict=True):
        print(f"   {' '.join(left):47}{' '.join(right)}")
plain = sum(float(n) in (0, 1) for name in ours for n in source.PRINTED[name].split())
zeros = sum(number == "0." for number in source.as_text(ours["context"]))
print(f'   context of "I" (64,): the text prints 64 zeros, ours has {zeros}\n')
say(
    f"{same} of {total} printed numbers come out. {plain} of them are zeros and ones. {len(sums)}, "
    f"the scores' diagonal, are used: they give the sums of the rows. {same - plain - len(sums)} "
    f"are predictions from these sums. What cannot come back: {source.LOST}."
)
known = numbers(source.PRINTED["I"])
say(
    f'The {len(known)} printed values of "I" sum to {known.sum():.0f}. The diagonal leaves '
    f"{sums[0] - known.sum():.0f} to the other {D_MODEL - len(known)}."
)
marks.at_least("numbers identical as text", same, 82, "d")

# %% 2 · What is wrong in it, unclear or left open
# Under each line is the computation that shows it. A difference of 0 proves something only if the
# same lines also find one that is not 0, so each is computed with Xavier's weights too.

rows = source.rows(np.random.default_rng(chosen.seed)).astype(float)  # (3, 512)
x = Tensor(rows, requires_grad=True, name="x")
fixed = source.layer()
mixed = source.layer(constant=False, seed=chosen.seed)
q, k, v = (projected[0] for projected in source.heads(x, fixed))  # each (3, 64)
scores = (q @ k.mT / np.sqrt(D_K)).data  # (3, 3)
over_all, by_row = softmax(scores, axis=None), softmax(scores)
*_, second, first = np.sort(scores, axis=-1).T
gap = (first - second).min()  # how far the second word is behind, in the closest row
by_sum, by_order = (source.shuffled(attend, x, chosen.seed) for attend in (fixed, mixed))
differ, back = source.exchanged(mixed, x)
singly, no_axis = (source.one_by_one(q, k, v, axis) for axis in (-1, None))
rank = np.linalg.matrix_rank(scores)
w_shape = (D_MODEL, D_K)
shown = (
    f"sums of the rows: {over_all.sum(axis=-1)}, and by row {by_row.sum(axis=-1)}",
    f'"I" without an axis: {np.unique(over_all[0] @ v.data)}, by rows: '
    f"{np.unique(by_row[0] @ v.data)}",
    f"different columns of Q, K and V: {source.columns(x, fixed)}, with Xavier's weights "
    f"{source.columns(x, mixed)}; the rank of the scores is {rank}",
    f"features shuffled, each row by itself: the outputs change by {by_sum:.0e}, with Xavier's "
    f"weights by {by_order:.0e}",
    f"the means of Q and K are {q.data.mean():.0f} and {k.data.mean():.0f}; the second word is "
    f"{gap:.1e} behind, and exp(-{gap:.1e}) is {np.exp(-gap)}",
    f"I and you exchanged, Xavier's weights: the outputs differ by {differ:.0e}, and exchanged "
    f"back by {back:.0e}",
    f"one word at a time or one product: apart by {singly:.0e}, without an axis by {no_axis:.0f}",
    f"one {w_shape} for {len(x)} inputs gives queries {q.shape}; with one for each input, the "
    f"shape of W_Q would be {(len(x), *w_shape)}, where it is printed as {w_shape}",
    f"the text's context has {D_K} features, ours from {NUM_HEADS} heads "
    f"{merge_heads(source.head_outputs(fixed, x)).shape[-1]} (section 3)",
)
print("\n2 · What is wrong in it, unclear or left open\n")
tell = Teller(source.SLIPS, bullet="   {}. ", gap=False)
for computed in shown:
    tell(computed)
tell.end()
marks.at_most('weights of "I" without an axis, their sum', over_all[0].sum(), 0, "g")
marks.at_most("different columns of Q, K and V, together", sum(source.columns(x, fixed)), 3, "d")
marks.at_most("rank of the scores", rank, 1, "d")
marks.at_most("features shuffled: outputs change by", by_sum, 0, ".0e")
marks.at_least("features shuffled, Xavier's weights: outputs change by", by_order, 0.1, ".1f")
marks.at_most("weight of the second word, exp(-gap)", np.exp(-gap), 0, ".0e")
marks.at_least("words exchanged: outputs differ by", differ, 0.1, ".1f")
marks.at_most("words exchanged, outputs exchanged back: they differ by", back, 1e-12, ".0e")
marks.at_most("one word at a time and one product: apart", singly, 1e-12, ".0e")
marks.at_least("one word at a time and one product, without an axis: apart", no_axis, 13085, ".0f")

# %% 3 · What the text leaves undone
# Step 7 is one product for all words. The text computes one head, with matrices of shape (512, 64),
# says that the model has eight, and ends with the mere heading of step 8, "Output all of the heads
# of the attention sublayer". The eight heads are our extension of it. Each has the weights that
# the text's ranges would draw again: 1, 3 and 5. They are joined and multiplied by W_O, which the
# text does not mention. With 1/512 everywhere, ours takes the mean of the joined features.

joined = merge_heads(source.head_outputs(fixed, x)).data  # (3, 512)
print("\n3 · Its step 7, and step 8 as we extend it: the text computes one head of eight\n")
print(f"   contexts by rows, all words:      {np.unique(by_row @ v.data)} in {(3, D_K)}")
print(f"   eight heads, joined:              {np.unique(joined)} in {joined.shape}")
print(f"   times W_O, 1/512, which is ours:  {np.unique(fixed(x).data)} in {fixed(x).shape}\n")

# The same layer with weights that are not constant, Xavier's, on the same rows; and then on rows
# of mean 0 and variance 1, for which those weights and √d_k are made.

unit = Tensor(source.unit(rows), requires_grad=True, name="x")
by_layer = []
header = f"{'entropy / log 3, by head':>26}{'rank, head 1':>15}{'heads apart / largest output':>31}"
print(f"   {'':29}{header}")
for what, attend, words in (
    ("constant weights, integers", fixed, x),
    ("Xavier weights, integers", mixed, x),
    ("Xavier weights, unit variance", mixed, unit),
):
    weights = attend.weights(words).data  # (H, T, S)
    spread = [entropy(w).mean() / np.log(3) for w in weights]
    q0, k0, _ = (t.data[0] for t in source.heads(words, attend))
    between, rank_0 = f"{min(spread):.2f} to {max(spread):.2f}", np.linalg.matrix_rank(q0 @ k0.mT)
    by_layer.append([what, between, rank_0, f"{apart(attend, words):.2f}"])
    print("   {:29}{:>26}{:>15}{:>31}".format(*by_layer[-1]))
say(
    "Weights that differ make eight heads. On integers they are much sharper: √d_k is made for "
    "rows of mean 0 and variance 1."
)
marks.at_most("constant weights: heads apart", apart(fixed, x), 1e-12, ".0e")
marks.at_least("weights that are not constant: heads apart", apart(mixed, unit), 0.5, ".2f")
drawn = {"the text": fixed.weights(x).data[:4], "Xavier": mixed.weights(unit).data[:4]}
maps = plot_heads(
    np.concatenate(list(drawn.values())),
    *(WORDS, WORDS),
    titles=[f"{recipe}, head {n}" for recipe in drawn for n in (1, 2, 3, 4)],
)
maps.suptitle("The text's heads are all the same; of Xavier's no two are alike", fontsize=11)
save_figure(maps, chosen.out / "weights")

# %%
# The text says that a value need not be as wide as a query and a key, and then takes 64 for all
# three. Two other widths show what depends on d_v. W_O has a row for each joined feature, so the
# output fits x again. A head moves a word in as many directions as its W_V W_O has rank.

looks = mixed.weights(unit).data
by_width, moved, mistaken, contexts = [], [], [], []
COLUMNS = ("d_v", "V of a head", "joined", "W_O", "output", "parameters", "directions")
print("\n   {:3}{:>13}{:>11}{:>13}{:>11}{:>12}{:>12}".format(*COLUMNS))
for d_v in (32, 64, 96):
    other = source.layer(constant=False, seed=chosen.seed, d_v=d_v)
    outputs = source.head_outputs(other, unit)  # (H, T, d_v)
    size = sum(parameter.size for parameter in other.parameters())
    tensors = outputs[0], merge_heads(outputs), other.w_o.weight, other(unit)
    found = *(each.shape for each in tensors), f"{size:,}", source.directions(other)
    by_width.append([d_v, *found])
    print("   {:<3}{!s:>13}{!s:>11}{!s:>13}{!s:>11}{:>12}{:>12}".format(*by_width[-1]))
    moved.append(largest(other.weights(unit).data - looks))
    other.scale = d_v**-0.5  # a mistake, since the scale belongs to the keys
    mistaken.append(largest(other.weights(unit).data - looks))
    contexts.append(source.head_outputs(source.layer(d_v=d_v), x).data)
say("The text's own weights give contexts of 13085 in every slot, at each of the three widths.")
marks.at_most("other widths of values: a weight moves by", max(moved), 0, ".0e")
marks.at_least("1/√d_v in place of 1/√d_k: a weight moves by", mistaken[0], 0.05, ".2f")
marks.at_most("directions, from d_v", max(abs(row[-1] - row[0]) for row in by_width), 0, "d")
off = max(largest(context - 13085) for context in contexts)
marks.at_most("contexts by the text's weights, from 13085", off, 0, ".0e")

# %% 4 · What no text shows: the way back
# One head, as in the text, and L is the sum of its context vectors. The scale multiplies QKᵀ; the
# text's is 1/8. We compare largest elements: a norm squares, and (1e-233)² is 0 in float64.

text = inputs(fixed, x)
alive = 2 / (8 * gap)  # here the largest weight is e² = 7.4 times the next, in the closest row
usual = {"1": 1.0, "1/√d_k": D_K**-0.5, "1/d_k": 1 / D_K, "1/d_model": 1 / D_MODEL}
others = {f"{scale:.1e}": scale for scale in (1.4e-5, 1.3e-5, 1e-6, alive, 1e-9)}
print("\n4 · The gradients of one head over the scale of QKᵀ: largest elements\n")
header = "".join(f"{name:>12}" for name in ("∂L/∂W_Q", "∂L/∂W_K", "∂L/∂W_V"))
print(f"   {'scale':12}{'second word behind':>18}{'entropy / log 3':>18}{header}")
by_scale = []
for name, scale in {**usual, **others}.items():
    spread, found = measure(scale, text)
    sizes = [f"{number:.1e}" for number in (8 * gap * scale, spread, *map(largest, found[1:]))]
    by_scale.append([name, *sizes])
    print("   {:12}{:>18}{:>18}{:>12}{:>12}{:>12}".format(*by_scale[-1]))
dead = np.max([largest(g) for s in usual.values() for g in measure(s, text)[1][1:3]])
by_word = [largest(row) for row in measure(None, text)[1][0]]
reached = " and ".join(word for word, size in zip(WORDS, by_word, strict=True) if size)
print(f"\n   ∂L/∂x at 1/8, word by word: {by_word}. Only the row of {reached} gets any.")
redrawn = [source.rows(np.random.default_rng(n)).astype(float) for n in range(5)]
again = [inputs(fixed, Tensor(other, requires_grad=True)) for other in redrawn]
print("\n   The lost values drawn 5 times, the largest elements at a scale of 1e-9:")
found = [measure(1e-9, tensors)[1] for tensors in again]
for name, drawn in zip(("x", "W_Q", "W_K", "W_V"), zip(*found, strict=True), strict=True):
    sizes = [largest(g) for g in drawn]
    print(f"   ∂L/∂{name:3} from {min(sizes):.4g} to {max(sizes):.4g}")
marks.at_most("gradient of I and love at 1/8", np.max(by_word[:2]), 0, ".0e")
marks.at_most("gradient of W_Q and W_K at the four usual scales", dead, 0.0, ".0e")
marks.at_least("gradient of W_V at 1/8", largest(measure(None, text)[1][3]), 1.0, ".0f")

# exp(-z) is 0 in float64 from z = 745.13 on. So the smallest gap of QKᵀ predicts the scale at which
# the gradient returns. Halving an interval measures it.

low, high = 1e-9, 1.0
while high / low > 1.0001:
    middle = np.sqrt(low * high)
    low, high = (middle, high) if largest(measure(middle, text)[1][1]) else (low, middle)
predicted = (np.log(2) - np.log(np.nextafter(0, 1))) / (8 * gap)
print(
    f"   W_Q's gradient is exactly 0 down to a scale of {low:.3e} of QKᵀ ({8 * low:.2e} of the\n"
    f"   scores already divided by 8): one in {1 / low:,.0f}. The gap predicts {predicted:.3e}."
)
marks.at_most("measured and predicted apart", abs(low / predicted - 1), 0.01)

# %%
# gradcheck to order 2, along random directions. It confirms that the zeros are zeros: moving every
# element of W_Q by about an eighth of itself changes no weight.

cases = (
    ("the text's, 1/8", None, text),
    (f"the text's, {alive:.1e}", alive, text),
    ("Xavier, unit variance, 1/8", None, inputs(mixed, unit)),
)
confirmed = checked = 0
print(f"\n   {'order 1 and 2':34}{'agree':>7}{'zero':>7}{'of':>5}{'worst error':>14}")
for what, scale, tensors in cases:
    report = gradcheck(head(scale), *tensors)
    verdicts = [c.verdict for c in report.comparisons]
    error = np.max([c.error for c in report.comparisons])
    agree, zero = verdicts.count("agrees"), verdicts.count("zero")
    confirmed, checked = confirmed + agree + zero, checked + len(verdicts)
    print(f"   {what:34}{agree:>7}{zero:>7}{len(verdicts):>5}{error:14.0e}")
marks.at_least("derivatives confirmed", confirmed, checked, "d")

# %%
# The scale brings a gradient back, but the eight heads stay one: all columns of W_Q, W_K and W_V
# are equal, and all rows of W_O, and whatever the loss, their gradients are then equal too.

moved, parted = source.trained(alive, x, seed=chosen.seed)
print(f"\n   20 steps at the scale {alive:.1e}: W_Q moved by {moved:.2f}.")
marks.at_least("W_Q moved", moved, 0.01, ".2f")
marks.at_most("the heads, trained, apart", parted, 1e-9, ".0e")

# %% Its pictures
# The same head twice, on one colour scale: the text's numbers, and unit variance with Xavier's.

drawings, passes = {}, []
for name, tensors in (("text", text), ("unit", inputs(mixed, unit))):
    with Steps() as steps:
        output = head(None)(*tensors).sum()
    drawing = drawings[name] = graph(output, grads=True, limits=(1e-4, 1e6), steps=steps)
    steps.backward(output)
    passes.append(steps)
    for ending in ("png", "svg"):
        drawing.save(chosen.out / f"head_{name}.{ending}")

figure = new_figure(6.8, 6.6)
panels = figure.subplots(2, 1, sharex=True)
scales, ends = np.logspace(-11, 0, 111), [[], []]
for name, tensors, colour, style in (
    ("constant weights,\nintegers", text, TEXT, "-"),
    ("Xavier weights,\nintegers", inputs(mixed, x), HALFWAY, "--"),
    ("Xavier weights,\nunit variance", inputs(mixed, unit), UNIT, "-."),
):
    found = [measure(scale, tensors) for scale in scales]
    spreads = [spread for spread, _ in found]
    ratios = [largest(g[1]) / largest(g[3]) for _, g in found]
    for panel, values, its_ends in zip(panels, (spreads, ratios), ends, strict=True):
        panel.plot(scales, values, style, color=colour)
        its_ends.append((values[-1], name, colour))
panels[1].set(yscale="log", ylim=(1e-12, 1e2), xscale="log", xlabel="scale of QKᵀ")
for panel, its_ends, axis in zip(
    panels, ends, ("entropy / log 3", "largest ∂L/∂W_Q / largest ∂L/∂W_V"), strict=True
):
    name_ends(panel, its_ends)
    name_place(panel, 1 / 8, "1/√d_k")
    panel.set_ylabel(axis)
    panel.grid(alpha=0.25)
panels[0].set_title("1/√d_k is right for unit variance alone", fontsize=10, pad=18)
said = f"With the text's weights W_Q gets exactly 0 from a scale of {low:.1e} on"
panels[1].set_title(said, fontsize=10, pad=18)
save_figure(figure, chosen.out / "scale")

# %% The page

page = TextPage(
    source,
    "“I love you”: eight heads that are one, and a gradient of exactly 0",
    claim="With weights that are 1, 3 and 5 everywhere, eight heads are one head, and no scale "
    "changes that. What is missing is unit variance, and weights that differ.",
)
page.section("The text")
page.say(
    "The text is a notebook, “Multi-Head Attention found in Orginal Transformer Paper”. We do not "
    "know its author; its first line links to the repository TransDiffTemp of the account "
    "AdamClarkStandke.",
    "It takes the sentence “I love you” and the paper's sizes, d_model = 512 and heads of 64 "
    "features. Each word is 512 random integers from 1 to 9. W_Q is 1 everywhere, W_K is 3 and W_V "
    "is 5. One of eight heads is computed.",
)
page.ask(
    "1,536 random integers go in. How many different numbers does one need in order to compute all "
    "nine scores?",
    "Three: the sum of each word's row. All columns of W_Q are 1, so a query is that sum, 64 times "
    "over, and a key is three times that sum. score(i, j) = 64 · sᵢ · 3 sⱼ / 8 = 24 sᵢ sⱼ.",
)
page.numbers("scores", "weights", names={"scores": (WORDS, WORDS), "weights": (WORDS, WORDS)})
page.say(
    f"The three scores of the diagonal give the sums of the rows: {', '.join(map(str, sums))}. The "
    f"six other scores are predictions from these sums. Of the {same} numbers that come back "
    f"{plain} are zeros and ones.",
)
page.doubts(tell)
page.section("The steps that it leaves undone")
page.say(
    "Step 7 is one product for all three words: with a softmax by rows every context is 13085 in "
    "every slot. Step 8 is a heading alone. We make the eight heads by the same recipe, join them "
    "and multiply by a W_O of 1/512.",
)
page.table(
    ["layer and inputs", "entropy / log 3, by head", "rank of the scores", "heads apart"],
    by_layer,
    caption="Eight heads: entropy (over log 3, that of equal weights), rank, and how far their "
    "outputs are apart, over the largest one",
)
page.figure(
    chosen.out / "weights.svg",
    alt="Eight maps of weights. Four heads of the text: every word looks at one word, and the maps "
    "are equal. Four heads with Xavier weights and inputs of unit variance: no two are alike.",
    caption="Four heads by the text's recipe, and four with Xavier weights and rows of mean 0 and "
    "variance 1",
)
page.section("Values of another width")
page.say(
    "The text says that a value need not be as wide as a query and a key, and then takes 64 for "
    "all three. Here are two other widths d_v, with Xavier weights and rows of unit variance.",
)
page.ask(
    "Values get 32 features and keys keep 64. What becomes of the scale 1/√d_k, of the maps of "
    "weights, and of the output's shape?",
    "Nothing changes. The scale and the maps are made of queries and keys alone, and the maps are "
    f"the same to the last bit. (With 1/√32 as the scale, a weight would move by "
    f"{mistaken[0]:.2f}.) The output is as wide as before, because W_O has a row for each joined "
    "feature.",
)
page.table(
    COLUMNS,
    by_width,
    caption="What d_v changes: three words, eight heads of d_k = 64, d_model = 512",
)
page.say(
    "What changes is in how many directions a head can move a word. A head gives each word an "
    "average of x W_V W_O, and the rank of W_V W_O is d_v: the last column counts it for the first "
    "head. Without W_O, eight heads of 32 features would give 256, which cannot be added to the "
    "512 of a word.",
)
page.section("The way back: exactly 0")
page.ask(
    "The scores are divided by √d_k = 8. By what would they have to be divided, so that W_Q gets "
    "any gradient at all?",
    f"Q Kᵀ would have to be divided by about {1 / low:,.0f}. The second word is "
    f"{8 * gap:.1e} behind the first, and exp(-z) is 0 in float64 from z = 745.13 on. The gap "
    f"predicts a scale of {predicted:.3e}, and {low:.3e} is measured.",
)
page.table(
    ["scale of QKᵀ", "second word behind", "entropy / log 3", "∂L/∂W_Q", "∂L/∂W_K", "∂L/∂W_V"],
    [[cell.replace("0.0e+00", "0") for cell in row] for row in by_scale],
    caption="The gradients of one head: largest elements. L is the sum of its context vectors",
)
page.figures(
    [
        (chosen.out / f"head_{name}.svg", f"{caption}: {described(drawings[name])}.", caption)
        for name, caption in (
            ("text", "The text's head: no gradient passes softmax"),
            ("unit", "Xavier weights, mean 0 and variance 1: all of it learns"),
        )
    ]
)
page.steps(
    passes[0].save(
        chosen.out / "steps.html",
        beside=passes[1],
        titles=("the text's numbers", "Xavier, unit variance"),
        title="One head of “I love you”",
        limits=(1e-4, 1e6),
    ),
    title="Both passes of one head, with the text's numbers and with unit variance",
)
page.figure(
    chosen.out / "scale.svg",
    alt="Entropy and gradient over the scale: with constant weights the gradient of W_Q is 0 from "
    f"a scale of {low:.1e} on; with Xavier weights and unit variance it is alive at 1/8.",
    caption="Three recipes over the scale of QKᵀ",
)
page.say(
    f"gradcheck confirms {confirmed} of {checked} derivatives of order 1 and 2, and it confirms "
    "that the zeros are zeros. At a scale that brings the gradient back the heads are trained for "
    f"20 steps: W_Q moves by {moved:.2f}, and the eight heads stay one.",
)
page.judged(marks)
page.conclude(
    "A scale cannot replace inputs of mean 0 and variance 1, and it cannot make equal heads "
    "different. Weights have to differ before the training, because equal weights get equal "
    "gradients.",
    try_it(chosen.file),
)
print(f"\nThe page: {page.write(chosen.out, quick=chosen.quick, note=marks.note)}")
marks.end()

# %% Try it
# - Let W_O differ before the training: call `source.trained` with `w_o=mixed.w_o.weight.data` too.
#   The other three stay constant. Do the heads part?
# - Take the mean away, `rows -= rows.mean()` after the rows are made: which word does "I" look at
#   now, at which scale does the gradient return, and is it 0 at 1/8 all the same?
