""" "The sky is blue …": its numbers, its slips, and a scale that is not enough.

Claim. The text shows that 1/√d_k divides the variance of its scores by 32. That holds for any
numbers. Its example stays saturated all the same, since it draws the projections from N(0, 1):
scaled, the variance is still about a thousand, and more than half of the queries get next to no
gradient. With projections from N(0, 1/d) and the same scale, every query of the sentence gets a
gradient. Scale and initial values are needed together.

The text also says, and does not show, that one head has a limited capacity. Here one head can solve
only half of a task, however long it is trained and however wide it is. Two heads with as many
parameters solve nearly all of it. The text opens with the blank "The sky is ___". Two counts of
words or characters fill it: what fits there comes from the text that was read.

The text is the article "Wrapping your head around Self-Attention, Multi-head Attention" by
Ashvanth.S, of June 23, 2024. We have it as a text without an address.

    python -m demos sky_is_blue [--out DIR] [--seed N] [--quick]  # 9 s
"""

# %% Set-up

import numpy as np

from attention import attention, attention_weights, causal_mask, padding_mask, split_heads
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
from demos._losses import draw_levels
from demos._page import try_it
from demos._training import Marks
from demos.texts import _blank as blank
from demos.texts import _two_places as two_places
from demos.texts._text_page import TextPage
from demos.texts.sources import Teller, agreeing, of_weights, say
from demos.texts.sources import sky_is_blue as source
from demos.texts.sources.sky_is_blue import (
    IGNORED,
    PRINTED,
    as_it_masks,
    complaint,
    example,
    measure,
    moved_by,
    token_ids,
    word_by_word,
)
from minigrad import Steps, Tensor, gradcheck, gradients, graph, softmax
from minigrad.graphs.render import described

chosen = options("sky_is_blue", __doc__.splitlines()[0], quick=True)
marks = Marks(chosen)
SENTENCE = source.REPAIRED  # line 1 of section 2 is why it is not source.SENTENCE
WIDTH = source.D_MODEL  # of the many draws; d_k too, as there is one head
DRAWS = max(2_000 * 32**2 // WIDTH**2 // (20 if chosen.quick else 1), 2)
ids, words = token_ids(SENTENCE), SENTENCE.split()
x, single, multi = source.layers(chosen.seed)

# %% 0 · The blank with which it opens (demos/texts/_blank.py)

answers = blank.ask(marks)

# %% 1 · The numbers it prints, and ours

print("\n1 · Its numbers, and ours\n")
for name, array in source.ours().items():
    texts = source.as_text(array)
    print(f"   {name:10} text {PRINTED[name]}\n{'':13} ours {' '.join(texts)}")
    print(f"{'':13} {agreeing(PRINTED[name], texts)} of {len(texts)} agree")
for name, shape in source.shapes(x, single, multi).items():
    print(f"   shape of {name}: text {source.SHAPES[name]}, ours {shape}")

# %%
# The variances are those of one draw, without a seed. So we draw the recipe many times, and beside
# it others: with other initial values of W, and with another factor on the scores.

TABLE = {
    (initial, name): measure(ids, initial, scale, draws=DRAWS, seed=chosen.seed, d_model=WIDTH)
    for initial, *scales in (
        ("N(0, 1)", ("1", 1.0), ("1/√d", None), ("1/(d√d)", WIDTH**-1.5)),
        ("N(0, 1/d)", ("1", 1.0), ("1/√d", None)),
        ("U(±1/√d)", ("1", 1.0), ("1/√d", None)),
    )
    for name, scale in scales
}
raw, scaled, rescued = (TABLE["N(0, 1)", name] for name in ("1", "1/√d", "1/(d√d)"))
unit_raw, unit = (TABLE["N(0, 1/d)", name] for name in ("1", "1/√d"))
its_raw, its_scaled = (float(number) for number in PRINTED["variances"].split())
theory = source.expected_variance(ids, WIDTH)
mean, error = raw.variance.mean(), raw.variance.std() / np.sqrt(DRAWS)
low_draw, high_draw = np.quantile(raw.variance, (0.05, 0.95))
above = np.mean(raw.variance > its_raw)
off = np.abs(raw.variance / scaled.variance - WIDTH).max()
print()
say(
    f"{DRAWS} draws of the recipe: unscaled, the variance is {mean:,.0f} ± {error:,.0f} on average."
    f" Theory says {theory:,.0f}: d³ = {WIDTH**3:,} for single scores, here less, as words repeat. "
    f"Nine draws of ten lie between {low_draw:,.0f} and {high_draw:,.0f}; {above:.0%} lie above "
    "the text's. "
    f"The ratio of its two numbers is {its_raw / its_scaled:g}; that of ours, both measured, is "
    f"{WIDTH} in every draw, to {off:.0e}: see 2, 5."
)
say(f"Lost are {source.LOST}.")
marks.at_most("standard errors between mean and theory", abs(mean - theory) / error, 4, ".1f")
marks.at_most(f"ratio of our variances, from {WIDTH} in any draw", off, 1e-10, ".0e")
marks.at_least("draws above the text's variance: it is ordinary", min(above, 1 - above), 0.05)

# %% 2 · What is wrong in it, unclear or left open, each with what shows it

print("\n2 · What is wrong in it, unclear or left open\n")
shown = Teller(source.SLIPS, bullet="   {:2}. ", gap=False)
as_printed = token_ids(source.SENTENCE)
agree = agreeing(PRINTED["token ids"], source.as_text(as_printed))
shown(f"{as_printed} for the sentence, {agree} of 8 as printed; with blue for round, all 8")
distinct, unused = token_ids(SENTENCE, distinct=True), set(range(8)) - set(ids.tolist())
shown(f"no word is numbered {sorted(unused)}; each once, the ids are {distinct}")
noisy = "sky (blue);"
shown(f"{noisy!r} becomes {noisy.replace(IGNORED, '')!r}")
wrong = measure(ids, "N(0, 1)", 1 / WIDTH**-0.5, draws=DRAWS, seed=chosen.seed, d_model=WIDTH)
shown(f"divided by 1/√d_k, the variance is {wrong.variance.mean() / mean:.0f} times as large")
squares = np.arange(64.0) ** 2
ratio = squares.var() / (squares / 32**0.5).var()
shown(f"divided by √32, even the squares from 0 to 63² have {ratio:g} times less variance")
shown(
    f"from N(0, 1) keys have variance {scaled.key_variance:.1f} and values "
    f"{scaled.value_variance:.1f}, at any scale",
    f"from N(0, 1/d) {unit_raw.key_variance:.2f} and {unit_raw.value_variance:.2f}: unscaled, only "
    f"the scores grow, to {unit_raw.variance.mean():.1f}",
)
other, other_unit = (
    measure(as_printed, initial, None, draws=DRAWS, seed=chosen.seed, d_model=WIDTH)
    for initial in ("N(0, 1)", "N(0, 1/d)")
)
shown(
    f"scaled, the variance is {scaled.variance.mean():,.0f}; the largest weight is "
    f"{scaled.largest:.2f}, and {scaled.decided(ids):.0%} give one word, "
    "all its places together, .9 or more",
    f"(its printed sentence: {other.largest:.2f}, and from N(0, 1/d) {other_unit.largest:.2f})",
    f"from N(0, 1/d) it is {unit.variance.mean():.2f}; {unit.largest:.2f}, and "
    f"{unit.decided(ids):.1%}",
)

# %%
# Softmax over the queries makes each *column* sum to 1. The weights of one query may then sum to
# almost nothing, or to several words. And the future leaks in: the sum over a column includes the
# later queries.

sums = softmax(Tensor(scaled.scores), axis=-2).data.sum(axis=-1)  # (draws, T): one for each query
low, high = np.median(sums.min(axis=-1)), np.median(sums.max(axis=-1))
v, causal = single.w_v(x), causal_mask(8)
columns, rows = (
    moved_by((as_it_masks(single, x, causal, axis) @ v)[0, 0], x)[1:].max() for axis in (-2, -1)
)
shown(
    f"the rows of a typical draw sum to {low:.0e} … {high:.1f}, of all at most to {sums.max():.1f}",
    f"under a causal mask a later word moves the first output by {columns:.1e}; by rows, {rows:g}",
)
marks.at_least("what a later word moves, softmax by columns", columns, 1e-3, ".0e")
marks.at_most("what a later word moves, softmax by rows", rows, 0, "g")
q = single.w_q(x)
weights = attention_weights(q, single.w_k(x))
shown(
    f"weights {weights.shape[1:]} times values {v.shape[1:]}: only the inner axes have to agree",
    f"values of 5 features give an output {(weights @ v[..., :5]).shape[1:]}",
)
products = [8 * split_heads(q, num_heads).size for num_heads in (1, 4)]
shown(f"Q Kᵀ takes {products[0]:,} multiplications with one head and {products[1]:,} with four")

shown.end()

# The text splits its heads rightly. Its printed shapes could not tell: with T = d_k = 8, heads
# without their swap of axes have the same shape.

four, torn = split_heads(q, 4), q.reshape(1, 4, 8, 8)  # (B, H, T, d_k)
elsewhere = np.mean(four.data != torn.data) if four.shape == torn.shape else 0.0
marks.at_least("heads split without their swap of axes: numbers elsewhere", elsewhere, 0.9, ".0%")

# %%
# The errors that the code raises, from lines of ours that make the same mistakes.

shown(
    f"a class on nn: {complaint('class Layer(nn.Module): pass')}",
    f"a method with F: {complaint('def forward(x): F.softmax(x)')}, until it is called: "
    f"{complaint('(lambda x: F.softmax(x))(0)')}",
)
shown(complaint("d_model = 32 features"))

# %%
# A query that may look nowhere: here the first one, which may look only at words *before* it.

before = np.tril(np.ones((8, 8), dtype=bool), -1)
names = ("X", "W_Q", "W_K", "W_V")
leaves = [x, *(layer.weight for layer in (single.w_q, single.w_k, single.w_v))]
with np.errstate(invalid="ignore"):
    sick = gradients((as_it_masks(single, x, before) @ v).sum(), leaves, retain_graph=True)
nowhere = single(x, mask=before)
well = gradients(nowhere.sum(), leaves)
spoilt = (f"{name} {np.isnan(a).mean():.0%}" for name, a in zip(names, sick, strict=True))
kept = np.mean([np.isfinite(a).all() for a in well]), np.abs(nowhere.data[0, 0]).max()
shown(
    f"of the gradients are NaN: {', '.join(spoilt)} (`where` passes none to what it refused)",
    f"ours: that word's output is {kept[1]:g}, and {kept[0]:.0%} of the gradients are without NaN",
)
nan = [np.isnan(a).mean() for a in sick]
marks.at_least(
    "a query that may look nowhere, the text: NaN in X and in W_V", min(nan[0], nan[3]), 1.0
)
marks.at_most("a query that may look nowhere, the text: NaN in W_Q and in W_K", max(nan[1:3]), 0.0)
marks.at_least("a query that may look nowhere: our gradients without NaN", kept[0], 1.0)
marks.at_most("a query that may look nowhere: our output", kept[1], 0, "g")
batch = Tensor(np.concatenate([x.data] * 4))  # (B, T, d_model), and B = H = 4
lengths = padding_mask([8, 6, 4, 2], 8)  # (B, 1, S)
heads = (split_heads(layer(batch), 4) for layer in (multi.w_q, multi.w_k))
by_text, by_us = (
    (p.data[0, :, 0] > 0).sum(axis=-1)  # (H,): keys with a weight, heads of the first sequence
    for p in (attention_weights(*heads, mask=lengths), multi.weights(batch, mask=lengths))
)
shown(f"of 8 words the first sequence's heads may look at {by_text}; through our layer {by_us}")
marks.at_most("masks (B, T, S), the text: words for the head that has least", min(by_text), 2, "d")
marks.at_least("masks (B, T, S), our layer: words for the head that has least", min(by_us), 8, "d")

# %%
# One error that we cannot run, as NumPy knows one device (a test runs it in PyTorch). And four
# lines that are unclear in their words and names.

shown("a plain number would do, embed_size ** 0.5, as in the text's second class; so do we")
w = single.w_q.weight
there, back = (x @ w).data, (x @ w.mT).data
shown(f"x W and x Wᵀ: both {there.shape}, and {np.mean(there != back):.0%} of the numbers differ")
all_scores = Tensor(scaled.scores[0])  # (T, S)
whole, by_column = (softmax(all_scores, axis=axis).data for axis in (None, -2))
shown(
    f"over the entire matrix all weights sum to {whole.sum():.0f}; over columns, as in the code, "
    f"to {by_column.sum():.0f}, 1 for each"
)
shown(f"ours: w_q has shape {w.shape}, and q, which it makes, {q.shape[1:]}")
of_printed, of_repaired = (len(set(s.split())) for s in (source.SENTENCE, SENTENCE))
shown(
    f"the printed sentence has {of_printed} different words, that of the printed ids "
    f"{of_repaired}; {source.VOCABULARY - of_repaired} rows of the embedding are never read"
)

shown.end()

# %% 3 · What the text leaves undone

print("\n3 · What the text leaves undone\n")
projections = (multi.w_q, multi.w_k, multi.w_v)
alone = [
    attention(*(layer(x)[..., 8 * h : 8 * h + 8] for layer in projections), mask=causal).data
    for h in range(4)
]
together = multi.w_o(Tensor(np.concatenate(alone, axis=-1)))
apart = np.abs((together - multi(x, mask=causal)).data).max()
marks.at_most("four heads, one by one, against the layer", apart, 1e-12, ".0e")
print(f"   Four heads, one by one, and the layer are {apart:.0e} apart.")
for name, layer in (("SelfAttention", single), ("MultiHeadAttention", multi)):
    moved = np.array([moved_by(word, x) for word in layer(x, mask=causal)[0]])  # (T, S)
    later, earlier = moved[~causal].max(), moved[causal].min()
    marks.at_most(f"{name}: what a later word moves", later, 0, "g")
    marks.at_least(f"{name}: what an earlier one moves", earlier, 1e-4, ".0e")
    print(f"   {name}, causal: a later word moves {later:g}, an earlier one {earlier:.0e} or more.")

# %%
# The text says that one head has a limited capacity. A task shows it (demos/texts/_two_places.py).

print()
tried = two_places.compare(marks, seed=chosen.seed, steps=20 if chosen.quick else 200)
save_figure(two_places.draw(tried, source.SENTENCE.split()), chosen.out / "two_places")

# %% 4 · What no text shows: the way back
# L = ⟨g, output⟩ for one draw and a random g. Every initialisation gets the same words and g.


def loss(x, w_q, w_k, w_v):
    """Return the text's example, scaled, as one number."""
    return (attention(x @ w_q, x @ w_k, x @ w_v) * g).sum()


of_four = of_weights(multi, mask=causal)


def loss_of_four(*points):
    """Return the masked second class's number, from its input and its four weights."""
    return (of_four(*points)[0] * g).sum()


print("\n4 · The way back\n")
*inputs, g = example(ids, "N(0, 1)", chosen.seed)
for name, f, at in (
    ("its example, W from N(0, 1)", loss, inputs),
    ("its example, W from N(0, 1/d)", loss, example(ids, "N(0, 1/d)", chosen.seed)[:4]),
    ("four heads, causal", loss_of_four, (x, *(p.weight for p in (*projections, multi.w_o)))),
):
    report = gradcheck(f, *at)
    total, agree = len(report.comparisons), len(report.comparisons) - len(report.unresolved)
    marks.at_least(f"{name}: derivatives that agree", agree, total, ".0f")
    print(f"   {name}: {agree} of {total} derivatives agree.")

# %%
# All agree, and nothing seems wrong with the first example. But the largest terms dominate a sum
# over words. Here is each word by itself: its ∂L/∂q, the error of that gradient from the replay
# (against `from_pairs`, in which no digits cancel), and what finite differences find.

print(f"\n   {'':8}{'‖∂L/∂q‖':>10}{'largest weight':>17}{'error, relative':>17}   differences")
norms, by_word = [], []
for word, (norm, largest, wrong_by, seen) in zip(words, word_by_word(*inputs, g), strict=True):
    norms.append(norm)
    verdict = "find another: this one is rounding"
    if seen:
        verdict = "agree" if seen.verdict == "agrees" else f"too coarse, {seen.resolution:.0e}"
    by_word.append([word, f"{norm:.1e}", f"{largest:.6f}", f"{wrong_by:.0e}", verdict])
    print("   {:8}{:>10}{:>17}{:>17}   {}".format(*by_word[-1]))
print()
say(
    "The smaller a gradient, the fewer of its digits are right: softmax's rule subtracts an average"
    " from numbers that hardly differ from it. Differences cannot confirm small gradients either."
)

# %% What the scale does to this example, and what the initialisation does

print(
    f"\n   {DRAWS} draws of eight queries, d = d_k = {WIDTH}; dead is ‖∂L/∂q‖ < 0.001\n\n"
    f"   {'W':11}{'scale':8}{'Var scores':>12}{'Var values':>11}{'entropy':>9}{'largest':>9}"
    f"{'mean ‖∂L/∂q‖':>14}{'median':>8}{'dead':>6}{'top tenth':>11}"
)
by_recipe = []
for (initial, name), m in TABLE.items():
    by_recipe.append([initial, name, f"{m.variance.mean():,.2f}"])
    by_recipe[-1] += [f"{each:.2f}" for each in (m.value_variance, m.entropy, m.largest)]
    by_recipe[-1] += [f"{m.gradient.mean():.2f}", f"{np.median(m.gradient):.2g}"]
    by_recipe[-1] += [f"{m.dead():.0%}", f"{m.top_tenth():.0%}"]
    print("   {:11}{:8}{:>12}{:>11}{:>9}{:>9}{:>14}{:>8}{:>6}{:>11}".format(*by_recipe[-1]))
same = np.abs(rescued.weights - unit.weights).max()
pairs = ("N(0, 1)", "1/√d"), ("N(0, 1/d)", "1"), ("N(0, 1/d)", "1/√d"), ("U(±1/√d)", "1")
lost, few, none, of_classes = (f"{TABLE[pair].dead():.0%}" for pair in pairs)
medians = [f"{np.median(m.gradient):.2g}" for m in (unit_raw, unit)]
tenths = [f"{m.top_tenth():.0%}" for m in (unit_raw, unit)]
for paragraph in (
    f"The scale alone, 1/√d, leaves {lost} of the queries dead. 1/(d√d) gives the weights of "
    "N(0, 1/d) at 1/√d, draw for draw, "
    f"but the values stay at a variance of {rescued.value_variance:.0f}.",
    f"From N(0, 1/d), {few} are dead without the scale and {none} with it. The median gradient is "
    f"{medians[0]} without and {medians[1]} with it; the luckiest tenth of the queries holds "
    f"{tenths[0]} of the squared gradient without and {tenths[1]} with it.",
    f"The text's two classes draw from nn.Linear, U(±1/√d), a third of that variance: {of_classes} "
    "are dead even unscaled. The classes repair the fault of the example, and the text does not "
    "mention it.",
):
    print()
    say(paragraph)
marks.at_least("its recipe, scaled: variance of scores", scaled.variance.mean(), 900, ".0f")
marks.at_least("its recipe, scaled: dead queries", scaled.dead(), 0.5)
marks.at_least("its recipe, scaled: largest weight", scaled.largest, 0.75, ".2f")
marks.at_most("N(0, 1/d), scaled: dead queries", unit.dead(), 0.001)
marks.at_most("N(0, 1/d), scaled: largest weight", unit.largest, 0.4, ".2f")
marks.at_most("N(0, 1/d), unscaled: dead queries", unit_raw.dead(), 0.1)
marks.at_most("1/(d√d) against N(0, 1/d) at 1/√d: weights apart", same, 1e-9, ".0e")

# %% Pictures
# The graphs, on one colour scale, are the record of one word's output. We take the word whose
# gradient is nearest to the median of all draws of the recipe, neither a lucky one nor the worst.

t = int(np.argmin(np.abs(np.log(norms / np.median(scaled.gradient)))))
at_w_q, passes, drawn_graphs = [], [], []
for initial, stem in (("N(0, 1)", "graph"), ("N(0, 1/d)", "graph_unit")):
    X, W_Q, W_K, W_V, g = example(ids, initial, chosen.seed)
    with Steps() as steps:
        one = attention(X[t : t + 1] @ W_Q, X @ W_K, X @ W_V)
        of_word = (one * Tensor(g.data[t], name="g")).sum()
    picture = graph(of_word, grads=True, limits=(1e-8, 100), steps=steps)
    steps.backward(of_word)
    passes.append(steps)
    said = f"One word, W from {initial}: {described(picture)}."
    drawn_graphs.append((chosen.out / f"{stem}.svg", said, f"W from {initial}"))
    at_w_q += [v.grad_rms for v in picture.vertices if v.title.startswith("W_Q")]
    for ending in ("png", "svg"):
        picture.save(chosen.out / f"{stem}.{ending}")
marks.at_least("graph_unit: the gradient of W_Q", at_w_q[1], 0.05, ".2f")
marks.at_most("graph: the gradient of W_Q, over that", at_w_q[0] / at_w_q[1], 0.05, ".0e")

drawn = [key for key in TABLE if key[1] == "1/√d" or key == ("N(0, 1/d)", "1")]
maps = np.array([TABLE[key].weights[0] for key in drawn])
one_draw = ", ".join(f"{spread / np.log(len(words)):.2f}" for spread in entropy(maps).mean(axis=-1))
means = ", ".join(f"{TABLE[key].entropy:.2f}" for key in drawn)
titles = [f"W from {initial}, scale {name}" for initial, name in drawn]
save_figure(plot_heads(maps, words, words, titles=titles), chosen.out / "weights")
of_word = ids[:, None] == np.unique(ids)  # (S, V): a word's places, for weights over all of them
decided = [int(((looks @ of_word).max(axis=-1) >= 0.9).sum()) for looks in maps]

figure = new_figure(6.8, 8.0)
above, below = figure.subplots(2, 1, height_ratios=(2, 3))
above.hist(raw.variance, np.geomspace(theory / 8, theory * 8, 80), color="#c4c4c4")
above.set(xscale="log", xlabel="variance of the unscaled scores", ylabel=f"of {DRAWS} draws")
name_place(above, theory, f"theory: {theory:,.0f}", "black", "right")
name_place(above, its_raw, f" the text's: {its_raw:,.0f}", TEXT, "left")
above.set_title("The text's draw is an ordinary one", fontsize=10, pad=18)
colours = {"N(0, 1)": TEXT, "U(±1/√d)": HALFWAY, "N(0, 1/d)": UNIT}
styles, ends = {"1": "-", "1/√d": "--", "1/(d√d)": ":"}, []
for (initial, name), m in TABLE.items():
    ordered = np.maximum(np.sort(m.gradient, axis=None)[::-1], 1e-12)
    width = 4 if name == "1/(d√d)" else 1.8  # it lies under the line of N(0, 1/d), 1/√d
    how = {"color": colours[initial], "linestyle": styles[name], "linewidth": width}
    below.plot(np.linspace(0, 1, len(ordered)), ordered, **how)
    ends.append((ordered[-1], f"{initial}, {name}", colours[initial]))
below.set(yscale="log", ylim=(1e-9, 1e2), xlabel="share of queries, the largest gradient first")
name_ends(below, ends + draw_levels(below, {"dead below": 1e-3}))
below.set_ylabel("‖∂L/∂q‖, by initial values and scale")
said = f"Scaled by 1/√d, {scaled.dead():.0%} of its queries are dead; from N(0, 1/d) none is"
below.set_title(said, fontsize=10)
below.grid(alpha=0.25)
save_figure(figure, chosen.out / "spread")
print()
say(f"Each map of weights.png is one draw. Entropies / log n: {one_draw}; means: {means}.")

# %% The page

page = TextPage(
    source,
    "“The sky is blue …”: a scale that is not enough",
    claim="1/√d_k divides the variance of the scores by 32, and that is not enough where W is "
    "drawn from N(0, 1). Scale and initial values are needed together.",
)
page.section("The text")
page.say(
    "The text is the article “Wrapping your head around Self-Attention, Multi-head Attention” by "
    "Ashvanth.S, of June 23, 2024. We have it as a text without an address.",
    "It turns “The sky is blue and world is round” into 8 vectors of 32 features, draws W_Q, W_K "
    "and W_V from N(0, 1), and prints the variance of the scores before and after the scale. Then "
    "it writes two classes, SelfAttention and MultiHeadAttention, and prints their shapes.",
)
page.ask(
    f"The article prints a variance of {its_raw:,.0f} before the scale, and {its_scaled:,.0f} "
    "after it. If its recipe is drawn many times, what share of the queries gets next to no "
    "gradient after the scale?",
    f"{lost} of them, in {DRAWS} draws of eight queries. (The article's own draw cannot be made "
    "again, because nothing is seeded.) Such a query is called dead here: its ‖∂L/∂q‖ is below "
    f"0.001. The variance of their scores is {scaled.variance.mean():,.0f} on average, which is "
    "still far from 1, so softmax is almost one-hot.",
)
blank.show(page, answers, chosen.out.parent / "charlm" / "index.html")
page.numbers(
    *("token ids", "variances"),
    names={"token ids": ((), words), "variances": (("unscaled", "scaled"), ("variance",))},
)
page.say(
    f"Nothing is seeded, so the recipe is drawn {DRAWS} times. Unscaled, the variance is "
    f"{mean:,.0f} ± {error:,.0f} on average, and theory says {theory:,.0f}. Nine draws of ten lie "
    f"between {low_draw:,.0f} and {high_draw:,.0f}, so the text's draw is an ordinary one.",
)
page.table(
    ["what", "the text", "ours"],
    [
        [name, str(source.SHAPES[name]), str(shape)]
        for name, shape in source.shapes(x, single, multi).items()
    ],
    caption="Its printed shapes, beside ours",
)
page.doubts(shown)
two_places.show(page, tried, chosen.out / "two_places.svg", seed=chosen.seed)
page.section("The way back: which words get a gradient")
page.say(
    "L = ⟨g, output⟩ for one draw and a random g. Finite differences agree with all derivatives of "
    "order 1 and 2, and nothing seems wrong. But the largest terms dominate a sum over words, so "
    "here is each word by itself.",
)
page.table(
    ["word", "‖∂L/∂q‖", "largest weight", "error, relative", "finite differences"],
    by_word,
    caption="The gradient of each word's query, W from N(0, 1), scaled",
)
page.say(
    "The error is that of the replay's ∂L/∂q, over ‖∂L/∂q‖: it is compared with a formula in which "
    "no digits cancel. Finite differences are too coarse where they could not see an error of the "
    "size that stands beside these words, also over ‖∂L/∂q‖.",
    "The smaller a gradient, the fewer of its digits are right: softmax's rule subtracts an "
    "average from numbers that hardly differ from it. Differences cannot confirm small gradients "
    "either.",
)
page.figures(drawn_graphs)
page.say(
    f"Both graphs are the record of one word's output, “{words[t]}”, whose gradient is nearest to "
    "the median of all draws. The words are the same in both, and so is the box g: a random "
    "∂L/∂output, from which the way back begins.",
)
page.steps(
    passes[0].save(
        chosen.out / "steps.html",
        beside=passes[1],
        titles=("W from N(0, 1)", "W from N(0, 1/d)"),
        title=f"The output of “{words[t]}”",
        limits=(1e-8, 100),
    ),
    title="Both passes of one word's output, with W from N(0, 1) and from N(0, 1/d)",
)
page.section("Initial values, and then the scale")
page.ask(
    "Draw W from N(0, 1/d) and leave the scale out. Are more queries dead than with the scale "
    "alone, or fewer?",
    f"Far fewer: {few} without the scale, against {lost} with the scale alone. With both none is "
    "dead.",
)
page.table(
    [
        *("W from", "scale", "Var scores", "Var values", "entropy", "largest"),
        *("mean ‖∂L/∂q‖", "median", "dead", "top tenth"),
    ],
    by_recipe,
    caption=f"{DRAWS} draws of eight queries, d = d_k = {WIDTH}; dead is ‖∂L/∂q‖ < 0.001; entropy "
    "is over log n, that of equal weights; the last column is the share of the squared gradient "
    "that a tenth of the queries holds",
)
page.figure(
    chosen.out / "spread.svg",
    alt=f"The text's variance, {its_raw:,.0f}, lies among those of the draws. Scaled by 1/√d "
    f"{lost} of its queries are dead; from N(0, 1/d) {none} are.",
    caption="The variance in all draws, and the gradients of all queries. Below, a colour is for "
    "the initial values; a line is solid without a scale, dashed with 1/√d and dotted with 1/(d√d)",
)
page.figure(
    chosen.out / "weights.svg",
    alt="Four maps of weights, each of one draw. "
    + " ".join(
        f"{title}: {n} of {len(words)} words give .9 or more to one word, all its places together."
        for title, n in zip(titles, decided, strict=True)
    ),
    caption=f"The first draw of each recipe, with entropies / log n of {one_draw}. Over all "
    f"{DRAWS} draws the means are {means}",
)
page.judged(marks)
page.conclude(
    "1/√d_k is made for queries and keys of variance 1. Here W from N(0, 1) makes their variance "
    "32, and then the scale is not enough. The text's own classes draw W smaller, and that repairs "
    "the fault; the text does not mention it. Several heads are needed where one average of the "
    "values cannot hold what a word asks for.",
    try_it(chosen.file),
)
print(f"   The page: {page.write(chosen.out, quick=chosen.quick, note=marks.note)}")
marks.end()

# %% Try it
# - Set `SENTENCE` to eight different words: what becomes of the largest weights, and why?
# - Set `WIDTH` to 256: how many queries are dead without the scale now, and how many at 32?
