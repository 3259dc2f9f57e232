"""“The sky is blue …”: a scale that is not enough.

Claim. The text shows that 1/√d_k divides the variance of its scores by 32. That holds for any
numbers. Its example stays saturated all the same, since it draws the projections from N(0, 1). With
projections from N(0, 1/d) and the same scale, every query of the sentence gets a gradient. Scale
and initial values are needed together. Two heads learn a task that one head of any width cannot
learn.

    python -m demos sky_is_blue [--out DIR] [--seed N] [--quick]

The text is the article “Wrapping your head around Self-Attention, Multi-head Attention” by
Ashvanth.S, of June 23, 2024. We have it as a text without an address. It turns “The sky is blue and
world is round” into 8 vectors of 32 features, draws W_Q, W_K and W_V from N(0, 1), and prints the
variance of the scores before and after the scale.
"""

# %% Set-up

import numpy as np

from attention import attention, attention_weights, causal_mask, padding_mask, split_heads
from attention.figures import HALFWAY, TEXT, UNIT, name_ends, name_place, new_figure
from demos import options
from demos._training_curves import draw_levels
from demos.pages.publish import publish
from demos.texts import _two_places as two_places
from demos.texts._text_page import Slips, both_passes, checked, numbers
from demos.texts.sources import agreeing, of_weights
from demos.texts.sources import sky_is_blue_text as source
from demos.texts.sources.sky_is_blue_text import (
    PRINTED,
    complaint,
    example,
    measure,
    moved_by,
    token_ids,
)
from minigrad import Tensor, gradients, softmax

SECONDS = 9  # of a run

chosen = options("sky_is_blue", __doc__.splitlines()[0], quick=True)
page = publish(chosen)
marks = page.marks
SENTENCE = source.REPAIRED  # the printed ids are not those of source.SENTENCE
WIDTH = source.D_MODEL  # of the many draws; d_k too, as there is one head
DRAWS = max(2_000 * 32**2 // WIDTH**2 // (20 if chosen.quick else 1), 2)
LIKE = {"draws": DRAWS, "seed": chosen.seed, "d_model": WIDTH}
ids, words = token_ids(SENTENCE), SENTENCE.split()
x, single, multi = source.layers(chosen.seed)

# %% Its numbers beside ours

numbers(page, source)

# %% Its recipe, drawn many times
# The text's variances are those of one draw, without a seed. So we draw its recipe many times, and
# others: with other initial values of W and other scales. A query is called dead here if its
# ‖∂L/∂q‖ is below 0.001, for L = ⟨g, output⟩ with a random g.

TABLE = {
    (initial, name): measure(ids, initial, scale, **LIKE)
    for initial in ("N(0, 1)", "N(0, 1/d)", "U(±1/√d)")
    for name, scale in (("1", 1.0), ("1/√d", None))
}
raw, scaled, unit_raw, unit, uniform_raw, _ = TABLE.values()
its_raw = float(PRINTED["variances"].split()[0])
theory = source.expected_variance(ids, WIDTH)
mean, error = raw.variance.mean(), raw.variance.std() / np.sqrt(DRAWS)
low_draw, high_draw = np.quantile(raw.variance, (0.05, 0.95))
above = np.mean(raw.variance > its_raw)
off = np.abs(raw.variance / scaled.variance - WIDTH).max()
figure = new_figure(5.4, 6.6)
top, below = figure.subplots(2, 1, height_ratios=(2, 3))
top.hist(raw.variance, np.geomspace(theory / 8, theory * 8, 80), color="#c4c4c4")
top.set(xscale="log", xlabel="variance of the unscaled scores", ylabel=f"of {DRAWS} draws")
name_place(top, theory, f"theory: {theory:,.0f}", "black", "right")
name_place(top, its_raw, f" the text's: {its_raw:,.0f}", TEXT, "left")
top.set_title("The text's draw is an ordinary one", fontsize=10, pad=18)
colours = {"N(0, 1)": TEXT, "U(±1/√d)": HALFWAY, "N(0, 1/d)": UNIT}
ends = []
for (initial, name), m in TABLE.items():
    ordered = np.maximum(np.sort(m.gradient, axis=None)[::-1], 1e-12)
    style, colour = "-" if name == "1" else "--", colours[initial]
    below.plot(np.linspace(0, 1, len(ordered)), ordered, style, color=colour)
    ends.append((ordered[-1], f"{initial}, {name}", colours[initial]))
below.set(yscale="log", ylim=(1e-9, 1e2), xlabel="share of queries, the largest gradient first")
name_ends(below, ends + draw_levels(below, {"dead below": 1e-3}))
below.set_ylabel("‖∂L/∂q‖, by initial values and scale")
title = f"Scaled by 1/√d, {scaled.dead():.0%} of its queries are dead; from N(0, 1/d) none is"
below.set_title(title, fontsize=10)
below.grid(alpha=0.25)
spread = page.figure(
    figure,
    "spread",
    alt=f"The text's variance, {its_raw:,.0f}, lies among those of the draws. {title}.",
    caption="A colour is for the initial values; solid: unscaled, dashed: 1/√d",
)
page.finding(
    f"Scaled by 1/√d_k, the scores of the text's recipe still have a variance of "
    f"{scaled.variance.mean():,.0f}, and {scaled.dead():.0%} of the queries get next to no "
    f"gradient. From N(0, 1/d) the variance is {unit.variance.mean():.2f}, and {unit.dead():.0%} "
    "get next to none.",
    spread,
)
page.ask(
    "Draw W from N(0, 1/d) and leave the scale out. Do more queries get next to no gradient than "
    "with the scale alone, or fewer?",
    f"Far fewer: {unit_raw.dead():.0%} without the scale, against {scaled.dead():.0%} with the "
    f"scale alone. But a tenth of the queries holds {unit_raw.top_tenth():.0%} of the squared "
    f"gradient without the scale, and {unit.top_tenth():.0%} with it.",
    guesses=("more", "fewer"),
)
page.say(
    f"1/√d_k is made for queries and keys of variance 1, and here it is {scaled.key_variance:.0f}. "
    "The text's two classes repair that, which it does not mention: they draw from nn.Linear, "
    "U(±1/√d), a third of the variance 1/d, and "
    f"{uniform_raw.dead():.0%} are dead even unscaled."
)
with page.folded(f"The {DRAWS} draws in numbers", place="below"):
    page.say(
        f"The unscaled variance is {mean:,.0f} ± {error:,.0f} on average. Theory says "
        f"{theory:,.0f}: d³ = {WIDTH**3:,} for single scores, here less, as words repeat. Nine "
        f"draws of ten lie between {low_draw:,.0f} and {high_draw:,.0f}, and {above:.0%} lie above "
        "the text's."
    )
    page.table(
        [
            "W from",
            "scale",
            "Var scores",
            "Var values",
            "largest weight",
            "mean ‖∂L/∂q‖",
            "median",
            "dead",
            "top tenth",
        ],
        [
            [
                initial,
                name,
                f"{m.variance.mean():,.2f}",
                f"{m.value_variance:.2f}",
                f"{m.largest:.2f}",
                f"{m.gradient.mean():.2f}",
                f"{np.median(m.gradient):.2g}",
                f"{m.dead():.0%}",
                f"{m.top_tenth():.0%}",
            ]
            for (initial, name), m in TABLE.items()
        ],
        caption=f"d = d_k = {WIDTH}; the last column is the share of the squared gradient that a "
        "tenth of the queries holds",
    )
marks.at_most("standard errors between mean and theory", abs(mean - theory) / error, 4, ".1f")
marks.at_most(f"ratio of our variances, from {WIDTH} in any draw", off, 1e-10, ".0e")
marks.at_least("draws above the text's variance: it is ordinary", min(above, 1 - above), 0.05)
marks.at_least("its recipe, scaled: variance of scores", scaled.variance.mean(), 900, ".0f")
marks.at_least("its recipe, scaled: dead queries", scaled.dead(), 0.5)
marks.at_least("its recipe, scaled: largest weight", scaled.largest, 0.75, ".2f")
marks.at_most("N(0, 1/d), scaled: dead queries", unit.dead(), 0.001)
marks.at_most("N(0, 1/d), scaled: largest weight", unit.largest, 0.4, ".2f")
marks.at_most("N(0, 1/d), unscaled: dead queries", unit_raw.dead(), 0.1)

# %% What is wrong in it, unclear or left open

slips = Slips(page)
as_printed = token_ids(source.SENTENCE)
q, k, v = single.w_q(x), single.w_k(x), single.w_v(x)  # (1, T, d_model) each

agree = agreeing(PRINTED["token ids"], source.as_text(as_printed))
slips.wrong(
    "The printed token ids are not those of the sentence.",
    'They belong to "… world is blue".',
    f"{as_printed} for the sentence, {agree} of 8 as printed; with blue for round, all 8.",
)

unused = sorted(set(range(8)) - set(ids.tolist()))
each_once = token_ids(SENTENCE, distinct=True)
slips.left_open(
    "The text does not say that words are numbered with their repetitions.",
    "So some ids are never used, which does no harm.",
    f"No word is numbered {unused}; each once, the ids are {each_once}.",
)

noisy = "sky (blue);"
slips.left_open(
    "The text does not say that its second replace changes nothing.",
    "It looks for all nine characters in a row, and the loop before it has done the work.",
    f"`{noisy}` becomes `{noisy.replace(source.IGNORED, '')}`.",
)

inverted = measure(ids, "N(0, 1)", 1 / WIDTH**-0.5, **LIKE)
times = inverted.variance.mean() / raw.variance.mean()
slips.wrong(
    "Multiplying by 1/√d_k is called dividing by it.",
    "That would go the other way.",
    f"Divided by 1/√d_k, the variance is {times:.0f} times as large.",
)

squares = np.arange(64.0) ** 2
ratio = squares.var() / (squares / 32**0.5).var()
slips.unclear(
    "The ratio 32 is shown as an effect.",
    "Var(x/√32) = Var(x)/32 holds for any numbers.",
    f"Divided by √32, even the squares from 0 to 63² have {ratio:g} times less variance.",
)

slips.wrong(
    "The text says that keys and values grow because nothing is scaled.",
    "They grow because W is drawn from N(0, 1). A scale of the scores does not change them.",
    f"From N(0, 1) keys have variance {scaled.key_variance:.1f} and values "
    f"{scaled.value_variance:.1f}, at any scale; from N(0, 1/d) {unit_raw.key_variance:.2f} and "
    f"{unit_raw.value_variance:.2f}. Unscaled, only the scores grow, to "
    f"{unit_raw.variance.mean():.1f}.",
    weighty=True,
)

other = measure(as_printed, "N(0, 1)", None, **LIKE)
other_unit = measure(as_printed, "N(0, 1/d)", None, **LIKE)
slips.left_open(
    "The scale is said to give more stable gradients.",
    "It does not suffice here. Most queries look at one word, as W is N(0, 1).",
    f"Scaled, the largest weight of a query is {scaled.largest:.2f} on average, and from N(0, 1/d) "
    f"{unit.largest:.2f}. With its printed sentence: {other.largest:.2f} and "
    f"{other_unit.largest:.2f}.",
    weighty=True,
)

# Softmax over the queries makes each *column* sum to 1. The weights of one query may then sum to
# almost nothing, or to several words. And the future leaks in: the sum over a column includes the
# later queries.
sums = softmax(Tensor(scaled.scores), axis=-2).data.sum(axis=-1)  # (draws, T): one for each query
low, high = np.median(sums.min(axis=-1)), np.median(sums.max(axis=-1))
causal = causal_mask(8)
by_columns, by_rows = (
    moved_by((source.as_it_masks(single, x, causal, axis) @ v)[0, 0], x)[1:].max()
    for axis in (-2, -1)
)
what = "what a later word moves, softmax by"
marks.at_least(f"{what} columns", by_columns, 1e-3, ".0e")
marks.at_most(f"{what} rows", by_rows, 0, "g")
slips.wrong(
    "Softmax runs over the queries (dim=0) in the worked example.",
    "It has to run over the keys, as it does in the class.",
    f"The rows of a typical draw sum to {low:.0e} … {high:.1f}, of all at most to "
    f"{sums.max():.1f}. Under a causal mask a later word moves the first output by "
    f"{by_columns:.1e}; by rows, {by_rows:g}.",
    weighty=True,
)

weights = attention_weights(q, k)
slips.wrong(
    "The text says that values may have any width, and that the shape of (8, 8) weights and the "
    "shape of (8, 32) values are the same.",
    "They are not, and need not be.",
    f"Weights {weights.shape[1:]} times values {v.shape[1:]}: only the inner axes have to agree. "
    f"Values of 5 features give an output {(weights @ v[..., :5]).shape[1:]}.",
)

one, four = (8 * split_heads(q, num_heads).size for num_heads in (1, 4))
slips.wrong(
    "The text says that heads speed the work up like a team.",
    "They do as many multiplications as one head.",
    f"Q Kᵀ takes {one:,} multiplications with one head, {four:,} with four.",
)

slips.wrong(
    "`nn` and `F` are used and never imported.",
    "So the code does not run.",
    f"A class on `nn`: {complaint('class Layer(nn.Module): pass')}. A method with `F`: "
    f"{complaint('def forward(x): F.softmax(x)')}, until it is called: "
    f"{complaint('(lambda x: F.softmax(x))(0)')}.",
)

slips.wrong(
    "A comment lacks its #.",
    "That is a SyntaxError.",
    f"{complaint('d_model = 32 features')}.",
)

# A query that may look nowhere: here the first one, which may look only at words *before* it.
before = np.tril(np.ones((8, 8), dtype=bool), -1)
leaves = {"X": x, "W_Q": single.w_q.weight, "W_K": single.w_k.weight, "W_V": single.w_v.weight}
with np.errstate(invalid="ignore"):
    nan_output = (source.as_it_masks(single, x, before) @ v).sum()
    sick = gradients(nan_output, list(leaves.values()), retain_graph=True)
nan = {name: np.isnan(g).mean() for name, g in zip(leaves, sick, strict=True)}
nowhere = single(x, mask=before)
ours = gradients(nowhere.sum(), list(leaves.values()))
healthy = np.mean([np.isfinite(g).all() for g in ours])
silent = np.abs(nowhere.data[0, 0]).max()
what = "a query that may look nowhere"
marks.at_least(f"{what}, the text: NaN in X and in W_V", min(nan["X"], nan["W_V"]), 1.0)
marks.at_most(f"{what}, the text: NaN in W_Q and in W_K", max(nan["W_Q"], nan["W_K"]), 0.0)
marks.at_least(f"{what}: our gradients without NaN", healthy, 1.0)
marks.at_most(f"{what}: our output", silent, 0, "g")
shares = ", ".join(f"{name} {share:.0%}" for name, share in nan.items())
slips.left_open(
    "The text passes no mask.",
    "With one, a query that may look nowhere gets NaN, and so does the gradient.",
    f"The share of NaN in each gradient: {shares} (`where` passes none to what it refused). Ours: "
    f"that word's output is {silent:g}, and {healthy:.0%} of the gradients are without NaN.",
)

batch = Tensor(np.concatenate([x.data] * 4))  # (B, T, d_model), and B = H = 4
lengths = padding_mask([8, 6, 4, 2], 8)  # (B, 1, S)
heads = (split_heads(layer(batch), 4) for layer in (multi.w_q, multi.w_k))
by_text, by_us = (
    (p.data[0, :, 0] > 0).sum(axis=-1)  # (H,): keys with a weight, heads of the first sequence
    for p in (attention_weights(*heads, mask=lengths), multi.weights(batch, mask=lengths))
)
what = "words for the head that has least"
marks.at_most(f"masks (B, T, S), the text: {what}", min(by_text), 2, "d")
marks.at_least(f"masks (B, T, S), our layer: {what}", min(by_us), 8, "d")
slips.left_open(
    "The shape of a mask is not said.",
    "A mask (B, T, S) meets scores (B, H, T, S): if B = H, a head gets a sequence's mask.",
    f"Of 8 words the first sequence's heads may look at {by_text}; through our layer {by_us}.",
)

slips.wrong(
    "`SelfAttention.scale` is a tensor and not a buffer.",
    "So it stays behind when the class is moved to another device, and the division there fails.",
    "A plain number would do, `embed_size ** 0.5`, as in the text's second class. We cannot run "
    "this, as NumPy knows one device.",
)

w = single.w_q.weight
there, back = (x @ w).data, (x @ w.mT).data
slips.unclear(
    "The formulas write q = W x, the code X W.",
    "W is square, so both orders run, and W means its transpose in one of them.",
    f"x W and x Wᵀ: both {there.shape}; {np.mean(there != back):.0%} of the numbers differ.",
)

scores = Tensor(scaled.scores[0])  # (T, S)
whole, by_column = (softmax(scores, axis=axis).data.sum() for axis in (None, -2))
slips.unclear(
    "Softmax is said to be applied to the entire matrix and to give one probability distribution.",
    "The code gives eight, one for each column.",
    f"Over the entire matrix all weights sum to {whole:.0f}; over columns, as in the code, to "
    f"{by_column:.0f}, 1 for each.",
)

slips.unclear(
    "The word query stands for a matrix of weights, W_q, and for its result, Q.",
    "Key and value have two meanings too.",
    f"Ours: `w_q` has shape {w.shape}, and q, which it makes, {q.shape[1:]}.",
)

of_printed, of_repaired = (len(set(s.split())) for s in (source.SENTENCE, SENTENCE))
slips.unclear(
    "`itos` holds the ids of the words, and `vocab_size` is explained as the number of unique "
    "words.",
    "`itos` would be read as id → string, and `vocab_size` is 100.",
    f"The printed sentence has {of_printed} different words, that of the printed ids "
    f"{of_repaired}; {source.VOCABULARY - of_repaired} rows of the embedding are never read.",
)
slips.show()

# %% What several heads are for
# The text says that one attention has a limited capacity, and does not show it. A task does. Each
# word's place holds 16 random numbers. A word asks for the numbers of the word before it, and then
# for those of the word after it. Queries and keys are made from the places.

two_places.compare(
    page, source.SENTENCE.split(), seed=chosen.seed, steps=20 if chosen.quick else 200
)

# %% Its two classes, with a mask

projections = (multi.w_q, multi.w_k, multi.w_v)
alone = [
    attention(*(layer(x)[..., 8 * h : 8 * h + 8] for layer in projections), mask=causal).data
    for h in range(4)
]
together = multi.w_o(Tensor(np.concatenate(alone, axis=-1)))
apart = np.abs((together - multi(x, mask=causal)).data).max()
marks.at_most("four heads, one by one, against the layer", apart, 1e-12, ".0e")
sentences = [f"Four heads, one by one, and the layer are {apart:.0e} apart."]
for name, layer in (("SelfAttention", single), ("MultiHeadAttention", multi)):
    moved = np.array([moved_by(word, x) for word in layer(x, mask=causal)[0]])  # (T, S)
    later, earlier = moved[~causal].max(), moved[causal].min()
    marks.at_most(f"{name}: what a later word moves", later, 0, "g")
    marks.at_least(f"{name}: what an earlier one moves", earlier, 1e-4, ".0e")
    sentences.append(f"{name}: a later word moves {later:g}, an earlier one {earlier:.0e} or more.")
page.say(" ".join(sentences))

# %% What no text shows: the way back
# L = ⟨g, output⟩ for one draw. In a sum over words the largest terms dominate.


def loss(x, w_q, w_k, w_v):
    """Return the text's example, scaled, as one number."""
    return (attention(x @ w_q, x @ w_k, x @ w_v) * g).sum()


*inputs, g = example(ids, "N(0, 1)", chosen.seed)
of_four = of_weights(multi, mask=causal)
checked(
    page,
    {
        "its example, W from N(0, 1)": (loss, inputs),
        "its example, W from N(0, 1/d)": (loss, example(ids, "N(0, 1/d)", chosen.seed)[:4]),
        "four heads, causal": (
            lambda *points: (of_four(*points)[0] * g).sum(),
            [x, *(layer.weight for layer in (*projections, multi.w_o))],
        ),
    },
)

# %% Both passes of one word's output
# We take the word whose gradient is nearest to the median of all draws of the recipe. Its g, from
# which the way back begins, is the same in both.

q, k, v = (inputs[0] @ w for w in inputs[1:])
norms = np.linalg.norm(gradients(attention(q, k, v), [q], g.data)[0], axis=1)
t = int(np.argmin(np.abs(np.log(norms / np.median(scaled.gradient)))))
examples = [example(ids, initial, chosen.seed) for initial in ("N(0, 1)", "N(0, 1/d)")]


def of_word(X, W_Q, W_K, W_V, g):
    """Return L for one word."""
    one = attention(X[t : t + 1] @ W_Q, X @ W_K, X @ W_V)
    return (one * Tensor(g.data[t], name="g")).sum()


both_passes(
    page,
    {
        "graph": ("W from N(0, 1)", lambda: of_word(*examples[0])),
        "graph_unit": ("W from N(0, 1/d)", lambda: of_word(*examples[1])),
    },
    title=f"The output of “{words[t]}”",
    limits=(1e-8, 100),
)
gradients_of_w_q = [gradients(of_word(*inputs), inputs[1:2])[0] for inputs in examples]
at_w_q = [np.sqrt(np.mean(gradient**2)) for gradient in gradients_of_w_q]
marks.at_least("graph_unit: the gradient of W_Q", at_w_q[1], 0.05, ".2f")
marks.at_most("graph: the gradient of W_Q, over that", at_w_q[0] / at_w_q[1], 0.05, ".0e")

page.end()

# %% Try it
# - Set `SENTENCE` to eight different words: what becomes of the largest weights, and why?
# - Set `WIDTH` to 256: how many queries are dead without the scale now, and how many at 32?
