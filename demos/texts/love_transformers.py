"""“I love Transformers”: two heads worked out by hand, and how little W_Q of one of them learns.

Claim. A notebook computes two heads over three words and scales their scores by 1/√d_k. The scale
repairs scores that grow with d_k. It does not repair inputs of mean 4.5 and variance 5.75: softmax
is one-hot all the same, and a one-hot softmax passes almost no gradient to W_Q and W_K.

    python -m demos love_transformers [--out DIR] [--seed N] [--steps N] [--quick] [--resume]
"""

# %% Set-up

import numpy as np

from attention import merge_heads, sinusoidal, split_heads
from attention.figures import TEXT, UNIT
from attention.maps import plot_heads
from attention.scaling import entropy
from demos import options
from demos._training import Run
from demos.pages.publish import publish
from demos.texts._text_page import Slips, both_passes, checked, numbers, scale_figure
from demos.texts.sources import love_transformers_text as source
from minigrad import Tensor, concatenate, gradients, jacobian, softmax, unfused
from minigrad.nn import Embedding, xavier_uniform
from minigrad.optim import SGD, Adam

SECONDS = 7  # of a run

chosen = options("love_transformers", __doc__.splitlines()[0], steps=500, quick=20)
page = publish(chosen)
marks, rng = page.marks, np.random.default_rng(chosen.seed)
WORDS, H = source.WORDS, 2
x, layer = source.layer()
ours = source.ours()

# %% The text, and its numbers beside ours
# The text is the notebook "A step to step guide to understand attention mechanisms". We do not know
# its author: we have it as a text without an address. Three words have 4 random digits each, two
# heads have 2 features. It stops at the output.

numbers(page, source)

# %% The way back: W_Q of head 2 gets almost nothing
# L is the sum of one head's output, each head taken alone. "unit" means the same inputs brought to
# mean 0 and variance 1. A head is called dead here if its W_Q gets less than a thousandth of the
# gradient of its W_V. Its W_V and W_O learn as usual. What it cannot learn by gradient descent is
# where to look.

ratio = {}
examples = {}
table = []
layers = [source.layer(unit=unit) for unit in (False, True)]
for inputs, case in zip(("text", "unit"), layers, strict=True):
    for head in (1, 2):
        alone = source.one_head(case[1], head - 1)
        total, points = source.sum_of_head(alone), [case[0], *alone.parameters()]
        norms = [np.linalg.norm(g) for g in gradients(total(*points), points)]
        name = f"{inputs}, head {head}"
        ratio[name] = norms[1] / norms[3]
        examples[name] = total, points
        table.append([name, *(f"{n:.2e}" for n in (*norms, ratio[name]))])
with page.folded("Norms of ∂L/∂… for each head"):
    page.table(["head", "X", "W_Q", "W_K", "W_V", "W_O", "W_Q / W_V"], table)
marks.at_most("text, head 2: W_Q / W_V", ratio["text, head 2"], 1e-7, ".0e")
marks.at_least("unit, head 2: W_Q / W_V", ratio["unit, head 2"], 0.1, ".2f")

second = ours["weights"][1]
spread = entropy(second).mean() / np.log(3)
left = second[:, 1:].sum(axis=1)  # what is left for the other two words
maps = np.concatenate([attend.weights(x).data for x, attend in layers])
page.finding(
    f"Head 2 is one-hot although it is scaled: every word puts all but {left.max():.0e} of its "
    f"weight on “{WORDS[0]}”. Its W_Q gets {ratio['text, head 2']:.0e} of the gradient of its W_V. "
    f"At mean 0 and variance 1 it gets {ratio['unit, head 2']:.2f}.",
    page.figure(
        plot_heads(maps, WORDS, WORDS, titles=list(examples)),
        "weights",
        alt=f"Four maps of weights. In “text, head 2” each word gives “{WORDS[0]}” at least "
        f"{second[:, 0].min():.2f}; in “unit, head 2” {maps[3, :, 0].min():.2f} to "
        f"{maps[3, :, 0].max():.2f}.",
        caption="Where the heads look",
    ),
)
page.ask(
    "Can a smaller scale than 1/√d_k save the second head?",
    "It can: with 1/32 both heads get a gradient. But inputs of mean 0 and variance 1 need no such "
    "trick.",
    guesses=("yes", "no"),
)
marks.at_most("head 2, entropy / log n", spread, 1e-6, ".1e")

# %% Head 2 as a graph
# With the text's inputs the gradient that reaches softmax does not pass it: W_Q and W_K stay pale.


def output_of(name):
    """Return the sum of a head's output, with softmax in a box of its own."""
    total, points = examples[name]
    with unfused():
        return total(*points)


both_passes(
    page,
    {
        "head_2_text": ("The text's inputs", lambda: output_of("text, head 2")),
        "head_2_unit": ("Mean 0 and variance 1", lambda: output_of("unit, head 2")),
    },
    title="Head 2 of “I love Transformers”",
    limits=(1e-9, 1e2),
)

checked(page, examples, {"text, head 2": 25})

# %% What the scale does here
# 1/√d_k is right if the entries of q and k have mean 0 and variance 1. Both matter: a mean of 4.5
# enters every product.

INPUTS = {
    "text": lambda values: values,
    "divided by std": lambda values: values / values.std(),
    "mean 0": lambda values: values - values.mean(),
    "unit": lambda values: (values - values.mean()) / values.std(),
}
digits = source.layer()[0].data
scales = 2.0 ** np.linspace(-10, 1, 45)
lines = {}
for name, colour in (("text", TEXT), ("unit", UNIT)):
    measured = np.array([source.measure(INPUTS[name](digits), scale=s) for s in scales])
    for head in range(H):  # measured is (scales, 2, H)
        lines[f"{name}, head {head + 1}"] = measured[:, :, head], colour, ("--", "-")[head]
spreads, ratios = source.measure(digits)  # (H,) each, at 1/√d_k
scale_figure(
    page,
    scales,
    lines,
    sides=("entropy / log n", "‖∂L/∂W_Q‖ / ‖∂L/∂W_V‖"),
    titles=("At 1/√d_k the text's heads look at one word", "and its head 2 gets no gradient"),
    usual=(2**-0.5, "1/√d_k"),
    low=1e-12,
    alt="With the text's inputs entropy and gradient fall before 1/√d_k. There the two heads have "
    f"{spreads[0]:.2f} and {spreads[1]:.0e} of log n, and W_Q gets {ratios[0]:.2f} and "
    f"{ratios[1]:.0e} of the gradient of W_V.",
)
dead = {name: source.dead(prepare) for name, prepare in INPUTS.items()}
page.say(
    f"Of 400 heads from 200 other seeds, scaled by 1/√d_k, {dead['text']:.1%} are dead with the "
    f"text's inputs and {dead['unit']:.1%} with unit inputs. At mean 0 alone {dead['mean 0']:.1%} "
    f"are, and divided by the standard deviation alone {dead['divided by std']:.1%}."
)
marks.at_least("dead heads of 400, the text's inputs: a quarter or more", dead["text"], 0.25)
marks.at_most("dead heads of 400, the text's inputs: not half of them", dead["text"], 0.45)
marks.at_most("dead heads of 400, unit inputs: none", dead["unit"], 0.0)

# %% What is wrong in it, unclear or left open

slips = Slips(page)
stored = ours["weights"]  # (H, T, S)
q, k = (split_heads(project(x), H) for project in (layer.w_q, layer.w_k))  # (H, T, d_k)
raw = (q @ k.mT).data  # (H, T, S)
scores = raw / np.sqrt(2)

# Twelve numbers fit into (3, 4) in more than one order, and only one keeps the features of a word
# together.
drawn = np.moveaxis(stored, 0, -1)  # (T, S, H)
recut = stored.reshape(3, 3, 2)  # (T, S, H)
of_love = stored[0, 1]
moved, reshaped = (np.abs(order[1, :, 0] - of_love).max() for order in (drawn, recut))
marks.at_most("drawn by moveaxis, and stored: apart", moved, 0, ".0f")
marks.at_least("drawn by reshape alone, and stored: apart", reshaped, 0.9, ".2f")
stated = source.STATED_SHAPES.items()
shapes = (f"{name}: stated {shape}, stored {ours[name].shape}" for name, shape in stated)
cells = "\n".join(
    f"    {word:12}  {row.round(2).tolist()}" for word, row in zip(WORDS, drawn, strict=True)
)
slips.unclear(
    "The text states the shapes of its drawing, with the heads last.",
    "Its code stores the heads first, and the text does not say that the two differ.",
    f"{'; '.join(shapes)}. The drawing's `weights[1, :, 0]` is the stored `weights[0, 1, :]`, "
    f"{of_love.round(2)}: the order is turned by `np.moveaxis(weights, 0, -1)`. By `reshape` alone "
    f"this row would be {recut[1, :, 0].round(2)}. The drawing, with both heads in each cell:"
    f"\n\n{cells}",
)

heads = Tensor(ours["heads"])  # (H, T, d_v)
joined = concatenate([heads[0], heads[1]], axis=1)  # (T, H · d_v)
apart = np.abs((joined - merge_heads(heads)).data).max()
marks.at_most("features joined, and merge_heads: apart", apart, 0.0, ".0e")
slips.wrong(
    "Concatenation is said to run along the axis of heads, axis 1.",
    "The axis of heads is axis 0, and the code takes that axis apart and joins features.",
    f"“{WORDS[1]}”, head by head: {joined.data[1].round(3).tolist()}. By reshape alone: "
    f"{heads.reshape(3, 4).data[1].round(3).tolist()}. By our `merge_heads`: apart by {apart:g}.",
    weighty=True,
)

of_i = scores[0, 0]
looks = stored[0, 0]
slips.unclear(
    "One array is named scaled_attention_scores, another weighted_scores.",
    "The first holds the weights, and the second averages of values; a score is never printed.",
    f"Head 1, “{WORDS[0]}”: scores {of_i.round(3)}, sum {of_i.sum():.3f}; weights "
    f"{looks.round(3)}, sum {looks.sum():.3f}.",
)

# Each head reads every feature of a word. If the vector were split first, half of the columns of
# ∂q/∂x would be 0.
whole = jacobian(lambda x: split_heads(layer.w_q(x), H))(x.data).data  # (H, T, d_k, T, d_model)
reads = np.linalg.norm(whole[:, 1, :, 1], axis=1)  # (H, d_model), the word "love"
least = "each head reads each feature: least ‖∂q/∂feature‖"
marks.at_least(least, reads.min(), 0.2, ".3f")
slips.unclear(
    "The text says that the heads split a word's vector.",
    "Its code is right: each head projects all d_model features.",
    "‖∂q/∂feature‖ of head 1 {}, of head 2 {}.".format(*reads.round(3)),
)

# Xavier's bound √(6/(d_in + d_out)) makes an output as large as its input, in the mean over the
# draws: Var(y) = d_in · Var(w) · E[x²], with Var(w) = bound²/3. The last factor is E[x²], which is
# not Var(x) unless the mean is 0.
of_head, of_layer = np.sqrt(6 / (4 + 2)), np.sqrt(6 / (4 + 4))
beyond = (np.abs(ours["W_Q"]) > of_layer).sum()
unit_inputs = rng.standard_normal((200, 4))
unit_inputs /= np.sqrt(np.mean(unit_inputs**2))
sentences = f"Bounds {of_head:.3f} and {of_layer:.3f}; {beyond} printed weights are beyond."
for what, d_out, variance in (("head", 2, 4 / 3), ("layer", 4, 1)):
    grown = np.var(unit_inputs @ xavier_uniform((5000, 4, d_out), rng=rng))
    sentences += f" With the {what}'s bound a variance of 1 becomes {grown:.3f}; by the formula "
    sentences += f"{variance:.3f}."
    off = abs(grown / variance - 1)
    marks.at_most(f"variance of x W with the {what}'s bound, off the formula by", off, 0.03)
slips.left_open(
    "Xavier's bound is taken for each head's matrix, 1.0, and the text does not mention the "
    "choice.",
    "So the variance grows to 4/3. For the whole layer the bound would be 0.866, which two printed "
    "weights exceed, and the variance would stay.",
    sentences,
)

square = np.mean(x.data**2)
sizes = np.mean([q.data**2, k.data**2], axis=(-2, -1)).ravel().round(1)
slips.left_open(
    "Xavier's weights are said to preserve the variance, without a condition.",
    "They do so for inputs with mean 0; these have mean 4.5, and what W multiplies is their mean "
    "square, 26, and not their variance, 5.75.",
    f"X has mean {x.data.mean()}, variance {x.data.var()}, mean square {square}. The mean squares "
    f"of Q'₁ Q'₂ K'₁ K'₂ are {sizes}; 4/3 of X's is {4 / 3 * square:.1f}.",
)

# Where exp overflows, the subtraction of the maximum helps, and the scale does not.
nan = []
for large in (100 * scores, 100 * raw):
    with np.errstate(over="ignore", invalid="ignore"):
        naive = np.exp(large) / np.exp(large).sum(axis=-1, keepdims=True)
    nan += [np.isnan(naive).sum(), np.isnan(softmax(large)).sum()]
slips.wrong(
    "The scale is said to give numerical stability.",
    "Here subtracting the maximum gives it.",
    "NaN in weights of 100 times larger scores: scaled {} without the subtraction and {} "
    "with it, unscaled {} and {}.".format(*nan),
    weighty=True,
)

factor = scores / raw
slips.wrong(
    "The scale is said to adjust the words to their context.",
    "It does not: it is the same factor for every score.",
    f"scaled / raw of all 18 scores: {factor.min():.6f} to {factor.max():.6f}.",
    weighty=True,
)

differ = np.ptp(ours["heads"][1], axis=0).max()
slips.left_open(
    "Each row of a head is said to be a word in its context.",
    "That is the method's purpose. Here head 2 is one-hot, although it is scaled, and its three "
    "printed rows are the same.",
    f"What is left for the other two words: {left}. The rows of its output differ by at most "
    f"{differ:.1e}. The entropy of its weights is {spread:.1e} of log n.",
)

first, second = (head.diagonal().round(3) for head in stored)
slips.unclear(
    "The first word is said to attend to every other word.",
    "It attends to itself too, and in head 2 to nothing else.",
    f"The weights of words on themselves: head 1 {first}; head 2 {second}.",
)
slips.show()

# %% The steps it leaves undone
# Our layer computes all heads at once, and the words get their vectors from an embedding. The text
# also mentions "I try to understand the Transformer architecture", at d_model = 512 with eight
# heads. We compute that by its own recipe, and at mean 0 and variance 1.

apart = np.abs(sum(source.one_head(layer, h)(x).data for h in range(H)) - ours["output"]).max()
marks.at_most("the layer and the sum of its heads: apart", apart, 1e-13, ".0e")
embed = Embedding(3, 4, rng=rng)
moved = {}
embed.weight.data = x.data
for name, places in (("without", np.zeros((3, 4))), ("with", sinusoidal(3, 4))):
    forward, backward = (layer(embed(ids) + places).data for ids in ([0, 1, 2], [2, 1, 0]))
    moved[name] = np.abs(forward - backward[::-1]).max()
    judge, limit = (marks.at_least, 1.0) if places.any() else (marks.at_most, 1e-13)
    judge(f"in reverse, {name} positions: an output moves by", moved[name], limit, ".1g")
cases = [source.layer(unit=unit, n=7, d_model=512, num_heads=8) for unit in (False, True)]
sharp = [(attend.weights(x).data.max(axis=-1) > 0.999).mean() for x, attend in cases]  # of (8, 7)
marks.at_least("seven words, text: queries above .999 on one word", sharp[0], 0.5)
marks.at_most("seven words, unit: queries above .999 on one word", sharp[1], 0)
page.say(
    f"The layer and the sum of its heads, each with its own rows of W_O, are {apart:.0e} apart. "
    f"With the words in reverse an output moves by {moved['without']:.1g} without positions, and "
    f"by {moved['with']:.1g} with them.\n\n"
    f"In the sentence of seven words {sharp[0]:.0%} of the {7 * 8} queries put more than .999 on "
    f"one word, and {sharp[1]:.0%} do at mean 0 and variance 1. Digits from 0 to 9 make queries "
    "and keys too long, whatever d_model is."
)

# %% What gradient descent makes of it
# The task is to give each word back. A loss of 1 means: no better than the best constant answer.

losses = {}
moves = {}
apart = {}
weights = {}
runs = [("text", "1/√d_k", SGD), ("text", "1/√d_k", Adam), ("text", "1/32", SGD)]
for inputs, scale, method in [*runs, ("unit", "1/√d_k", SGD)]:
    x, layer = source.layer(unit=inputs == "unit")
    layer.scale = 1 / 32 if scale == "1/32" else None
    before = layer.w_q.weight.data.copy()
    optimizer = method(layer.parameters(), 0.01)
    case = f"{inputs}, {scale}, {method.__name__}"
    run = Run(chosen, case, model=layer, optimizer=optimizer, rng=rng)
    for _ in run:
        answer = layer(Tensor(x.data))
        loss = ((answer - x.data) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.show(loss=loss.item())
        run.keep(apart=np.ptp(answer.data, axis=0).max())  # 0 if all words get the same vector
    losses[case] = run.losses / x.data.var(axis=0).mean()
    apart[case] = np.array(run.history["apart"])
    change = (layer.w_q.weight.data - before).reshape(4, H, 2)  # (d_model, H, d_k)
    moves[case] = np.linalg.norm(change, axis=(0, 2)) / np.linalg.norm(before)
    weights[case] = layer.weights(x).data
dead_run, same_vector = losses["text, 1/√d_k, SGD"], apart["text, 1/√d_k, SGD"]
winner = WORDS[weights["text, 1/√d_k, SGD"][0, 0].argmax()]
constant_from = int(np.argmax(same_vector < 1e-3))  # how many steps it takes; 0 if it never is
page.ask(
    "With the text's inputs and scale, head 1 is not dead at the start. Can it give the words back "
    "by plain gradient descent (SGD)?",
    f"It cannot: the loss ends at {dead_run[-1]:.2f} of a constant's. W_Q of head 1 moves at "
    f"first, by {moves['text, 1/√d_k, SGD'][0]:.0%} of ‖W_Q‖. But after {constant_from} steps head "
    f"1 looks at “{winner}” alone. Now both heads give all words the same vector, apart by "
    f"{same_vector[constant_from:].max():.0e} at most: a constant answer.\n\n"
    "Adam divides a gradient by its size, so with Adam W_Q of head 2 moves too, by "
    f"{moves['text, 1/√d_k, Adam'][1]:.0%} of ‖W_Q‖. By SGD with a scale of 1/32 the loss ends at "
    f"{losses['text, 1/32, SGD'][-1]:.0e}, and with unit inputs at 1/√d_k at "
    f"{losses['unit, 1/√d_k, SGD'][-1]:.0e}.",
)
marks.at_least("text: steps until all words get one vector", constant_from, 1, "d")
marks.at_most("text: from there on, words apart by", same_vector[constant_from:].max(), 1e-3, ".0e")
marks.trained("text", dead_run)
marks.at_most("text: loss / a constant's, from 1", abs(dead_run[-1] - 1), 1e-3, ".0e")
marks.at_most("text: head 2's W_Q moved by", moves["text, 1/√d_k, SGD"][1], 1e-6, ".0e")
marks.at_least("text: head 1's W_Q, before it died", moves["text, 1/√d_k, SGD"][0], 0.05, ".2f")
marks.at_least("text, Adam: head 2's W_Q moved by", moves["text, 1/√d_k, Adam"][1], 0.05, ".2f")
for case in ("text, 1/32, SGD", "unit, 1/√d_k, SGD"):
    marks.at_most(f"{case}: loss / a constant's", losses[case][-1], 0.05, ".0e")
    marks.at_least(f"{case}: each W_Q moved by", moves[case].min(), 0.05, ".2f")

page.end()

# %% Try it
# - Add to `INPUTS`: `"normed": lambda v: (v - v.mean(-1, keepdims=True)) / v.std(-1,
#   keepdims=True)`. What would a layer normalisation before this layer have done for head 2?
# - Ask for the word before, `np.roll(x.data, 1, axis=0)` in place of `x.data` in `loss`:
#   which head answers now, and how far did the other one move?
