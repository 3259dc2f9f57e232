"""Pretrained: somebody else's models in ours, and what the scale does in weights that are in use.

Claim. The weights of six models that other people have trained load through the public functions
of chapters 15.3 and 18, and every number agrees with that of the models' own authors: logits,
answers and all gradients. In them the scale 1/√d_k can be taken away, and it matters: most
arithmetic fails, the loss rises, the typical query of a decided head loses its gradient while the
mean over the queries grows, and W_Q and W_K do not find their way back.

Whose weights: `mathformer` 2.0.0 (the MathFormer authors) and `glassllm` 0.1.0 (Oséias Dias de
Farias), both under the MIT licence, are installed by `pip install -e ".[pretrained]"`. Their files
hold 3 MB of weights. Only arrays are read from them, and no pickle.

    python -m demos pretrained [--prompt TEXT] [--head B.H] [--full] [--jobs N] [--out DIR]  # 45 s
"""

# %% Set-up

import numpy as np

from attention import generate, stream
from attention.figures import save_figure
from attention.laboratory.results import SweepError
from attention.laboratory.sweeps import progress, sweep
from attention.laboratory.workers import workers
from attention.maps import plot_heads
from attention.masks import causal_mask
from demos import options, stop
from demos._page import Page, try_it
from demos._training import Marks
from demos.pretrained._agreement import compare_calculator, compare_writer
from demos.pretrained._alice import ALICE
from demos.pretrained._arithmetic import PROBLEMS, SIGNS, right
from demos.pretrained._figures import (
    OPTIMIZERS,
    plot_factor,
    plot_rates,
    plot_ratios,
    plot_recovery,
)
from demos.pretrained._heads import see, sharpened
from demos.pretrained._loading import (
    LANGUAGES,
    WeightsError,
    calculators,
    tokenizer,
    untrained,
    writer,
)
from demos.pretrained._recovery import (
    LEARNED,
    LOOKS,
    OTHERS,
    loss_on,
    own_texts,
    recovery,
    set_scale,
)


def add(parser):
    """The options that only this demo has."""
    parser.add_argument(
        "--prompt",
        default="The White Rabbit looked at Alice and said",
        help="a text to be continued",
    )
    parser.add_argument(
        "--head",
        default="2.1",
        help="the head that loses its scale alone: block.head (%(default)s)",
    )
    parser.add_argument(
        "--full",
        action="store_true",
        help="the trainings at more rates, with five seeds: 10 minutes",
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes that train (%(default)s)")


chosen = options("pretrained", __doc__.splitlines()[0], quick=True, add=add)
marks = Marks(enforced=not chosen.quick)
size = "quick" if chosen.quick else "full" if chosen.full else "default"
D_K, BLOCKS, HEADS, LONGEST = 32, 4, 4, 128  # of glassllm's models
AWAY = D_K**0.5  # the factor that takes the scale 1/√d_k away
NAMES = [f"{block}.{head}" for block in range(1, BLOCKS + 1) for head in range(1, HEADS + 1)]
WRITTEN = 40  # tokens that continue the prompt
TEXTS = 2 if chosen.quick else 8  # of the model's own, to measure gradients on


def sized(quick, default, full):
    """A size by the size of the run."""
    return {"quick": quick, "default": default, "full": full}[size]


try:
    model, tok = writer(), tokenizer()  # (what is missing is said before the work begins)
    those_that_calculate = calculators()
except WeightsError as error:
    stop(f"pretrained: {error}")
prompt = tok.encode(chosen.prompt)
if not prompt:
    stop("pretrained: the prompt is empty: give a text of at least one character")
if tok.unk_id in prompt:
    strange = next(each for each in chosen.prompt if tok.unk_id in tok.encode(each))
    stop(f"pretrained: the model has no token for {strange!r} of the prompt: leave it out")
if len(prompt) > LONGEST:
    stop(
        f"pretrained: the prompt has {len(prompt)} tokens, and the model was trained with "
        f"{LONGEST} positions: give a shorter one"
    )
if chosen.head not in NAMES:
    stop(f"pretrained: --head is one of {NAMES[0]}, …, {NAMES[-1]}: got {chosen.head!r}")
alone = NAMES.index(chosen.head)
print("\nSix models that other people have trained, in the classes of chapter 15")
print("   mathformer 2.0.0, the MathFormer authors, MIT: four Llamas that calculate")
print("   glassllm 0.1.0, Oséias Dias de Farias, MIT: two GPTs that write")

# %% 1 · The numbers of their authors

print("\n1 · Our numbers are those of the models' authors, in float64\n")
calculated = {name: compare_calculator(name) for name in PROBLEMS}
for name, found in calculated.items():
    print(
        f"   {SIGNS[name]}  {found.problems:>3} problems: {found.same} answers are theirs, "
        f"{found.right} are right; logits within {found.logits:.0e} of at most {found.largest:.0f}"
    )
written = {language: compare_writer(language, seed=chosen.seed) for language in LANGUAGES}
for language, found in written.items():
    print(
        f"   {language}: logits within {found.logits:.0e}, {found.arrays} gradients within "
        f"{found.gradients:.0e} of at most {found.largest:.2f}, {found.greedy} tokens alike"
    )
problems = sum(found.problems for found in calculated.values())
print()
marks.at_most(
    "largest difference of a logit, of all six models",
    max(found.logits for found in [*calculated.values(), *written.values()]),
    1e-9,
    ".0e",
)
marks.at_most(
    "largest difference of a gradient, of both GPTs",
    max(found.gradients for found in written.values()),
    1e-9,
    ".0e",
)
marks.at_least("gradients compared, of each GPT", min(w.arrays for w in written.values()), 38, "d")
marks.at_least("answers like theirs", sum(c.same for c in calculated.values()), problems, "d")
marks.at_least("tokens written alike", min(w.greedy for w in written.values()), 40, "d")

# %% 2 · It writes

room = min(WRITTEN, LONGEST + 1 - len(prompt))
print(
    f"\n2 · The English model continues, greedily and with the cache\n\n   {chosen.prompt}", end="|"
)
continued = []
for token in stream(model, [prompt], room, temperature=0):
    continued.append(int(token[0]))
    print(tok.decode(continued[-1:]).replace("\n", "\n   "), end="", flush=True)
uncached = generate(model, [prompt], room, temperature=0, cached=False)[0, len(prompt) :].tolist()
rng = np.random.default_rng(chosen.seed)
drawn = generate(model, [prompt], room, temperature=0.8, top_p=0.9, rng=rng)[0, len(prompt) :]
print("\n\n   drawn at temperature 0.8 from the tokens with probability 0.9 together:\n")
print("   " + (chosen.prompt + "|" + tok.decode(drawn.tolist())).replace("\n", "\n   ") + "\n")
alike = sum(x == y for x, y in zip(continued, uncached, strict=True))
marks.at_least("tokens that are the same without the cache", alike / room, 1.0)

# %% 3 · Where its heads look

print("\n3 · Which head looks at the token before?\n")
alice = np.array(tok.encode(ALICE)[: LONGEST + 1])
with_scale, without = see(model, alice), see(model, alice, AWAY)
order = np.argsort(-with_scale.previous)
for h in order[:3]:
    print(
        f"   head {NAMES[h]}: {with_scale.previous[h]:.2f} of its weight is on the token before; "
        f"entropy {with_scale.entropy[h]:.2f}"
    )
fast = writer(dtype=np.float32)  # (where speed counts)
own = own_texts(fast, TEXTS, LONGEST + 1, rng=np.random.default_rng(chosen.seed))
pairs = [(see(fast, text), see(fast, text, AWAY)) for text in own]
before_own = np.array([found.previous for found, _ in pairs])  # (texts, heads)
uniform = float(np.mean(1 / np.arange(2, LONGEST + 1)))
print(f"   equal weights would have {uniform:.2f} there\n")
looks_back, second = map(int, order[:2])
lead = before_own[:, looks_back] - np.delete(before_own, looks_back, axis=1).max(axis=1)
lead_error = lead.std(ddof=1) / TEXTS**0.5
marks.at_least(
    f"head {NAMES[looks_back]} on “Alice”: weight on the token before",
    with_scale.previous[looks_back],
    0.4,
    ".2f",
)
marks.at_least(
    f"  on {TEXTS} of the model's own texts: more than any other head has, in standard errors",
    lead.mean() / lead_error,
    2.0,
    ".1f",
)
shown = prompt[:14]
shown_names = [name.replace("▁", "_").replace("\n", "↵") for name in tok.tokens(shown)]
maps = np.concatenate([each[0] for each in model.maps([shown])])  # (16, T, T)
figure = plot_heads(
    maps,
    shown_names,
    shown_names,
    titles=[f"head {n}" for n in NAMES],
    mask=causal_mask(len(shown)),
)
save_figure(figure, chosen.out / "maps")

# %% 4 · Arithmetic without the scale

SCALES = {  # what the scores are multiplied by, beside d_k = 4
    "1/√d_k, as trained": lambda d_k: d_k**-0.5,
    "no scale": lambda d_k: 1.0,
    "half of 1/√d_k": lambda d_k: 0.5 * d_k**-0.5,
    "0: all keys alike": lambda d_k: 0.0,
}
print("\n4 · Right answers of the models that calculate, d_k = 4\n")
print(f"   {'':20}" + "".join(f"{SIGNS[n]:>10}" for n in PROBLEMS))
table = {}
for said, scale in SCALES.items():
    for name, (calculates, ids) in those_that_calculate.items():
        set_scale(calculates, scale)
        table[said, name] = right(name, calculates, ids)
        set_scale(calculates, None)
    cells = [f"{table[said, n]}/{len(PROBLEMS[n])}" for n in PROBLEMS]
    print(f"   {said:20}" + "".join(f"{cell:>10}" for cell in cells))
print()
trained, away, _, flat = SCALES
marks.at_least("right with the trained scale", sum(table[trained, n] for n in PROBLEMS), 345, "d")
marks.at_most("divisions right without the scale", table[away, "div"], 20, "d")
marks.at_most("subtractions right without the scale", table[away, "sub"], 20, "d")
marks.at_least("additions right with equal weights", table[flat, "add"], 100, "d")

# %% 5 · The loss over the scale

print("\n5 · The loss over a factor on the trained scale, d_k = 32\n")
one_line = np.array(tok.encode(ALICE.replace("\n\n", "¶").replace("\n", " ").replace("¶", "\n\n")))
FACTORS = [0.0, 0.25, 0.5, 0.5**0.5, 1.0, 2**0.5, 2.0, AWAY]
GIVEN = {
    "“Alice”": alice[None],
    "its own texts": own,
    "“Alice” in long lines": one_line[None, : LONGEST + 1],
}
over = {name: [] for name in GIVEN}
each_own = []  # the losses of each of its own texts
for factor in FACTORS:
    set_scale(fast, lambda d_k, factor=factor: factor * d_k**-0.5)
    for name, texts in GIVEN.items():
        over[name].append(loss_on(fast, texts))
    each_own.append([loss_on(fast, text[None]) for text in own])
set_scale(fast, None)
print(f"   {'factor':24}" + "".join(f"{factor:>7.2f}" for factor in FACTORS))
for name, losses in over.items():
    print(f"   {name:24}" + "".join(f"{loss:>7.3f}" for loss in losses))
print()
ONE = FACTORS.index(1.0)
rise = np.array(each_own) - each_own[ONE]  # (factors, texts)
nearest = min((ONE - 1, ONE + 1), key=lambda i: rise[i].mean())
error = rise[nearest].std(ddof=1) / TEXTS**0.5
marks.at_most(
    "factor with the smallest loss on “Alice”, from 1",
    abs(FACTORS[int(np.argmin(over["“Alice”"]))] - 1),
    0.0,
    ".2f",
)
marks.at_least(
    f"its own texts: loss at {FACTORS[nearest]:.2f} above that at 1, in standard errors",
    rise[nearest].mean() / error,
    2.0,
    ".1f",
)
uphill = rise[ONE:].mean(axis=1)
marks.at_least(
    "its own texts: smallest rise of the loss from a factor to the next, from 1 on",
    np.diff(uphill).min(),
    0.0,
    ".3f",
)
q_smaller = writer()
for block in q_smaller.blocks:
    block.attention.w_q.weight.data = block.attention.w_q.weight.data / AWAY
set_scale(q_smaller, 1.0)
absorbed = abs(loss_on(q_smaller, alice[None]) - loss_on(model, alice[None]))
marks.at_most("no scale, and W_Q / √d_k: loss, from the trained one", absorbed, 1e-9, ".0e")

# %% 6 · The gradients of the queries

print("\n6 · ‖∂L/∂q‖ without the scale over that with it: “Alice”, 128 queries\n")
HEADER = ["head", "std of scores", "no scale", "entropy", "no scale", "median", "mean", "dead"]


def medians_and_means(found):
    """The median and the mean over the queries, of each head."""
    return np.median(found.gradient, axis=-1), found.gradient.mean(axis=-1)


median_before, mean_before = medians_and_means(with_scale)
median_after, mean_after = medians_and_means(without)
dead = (without.gradient < 0.01 * median_before[:, None]).mean(axis=-1)
rows = [
    [
        NAMES[h],
        f"{with_scale.score_std[h]:.2f}",
        f"{without.score_std[h]:.1f}",
        f"{with_scale.entropy[h]:.2f}",
        f"{without.entropy[h]:.2f}",
        f"× {median_after[h] / median_before[h]:.2g}",
        f"× {mean_after[h] / mean_before[h]:.2g}",
        f"{dead[h]:.0%}",
    ]
    for h in range(len(NAMES))
]
for cells in (HEADER, *rows):
    print("   " + "".join(f"{cell:>14}" for cell in cells))
std_before, std_after = with_scale.score_std.mean(), without.score_std.mean()
entropy_before, entropy_after = with_scale.entropy.mean(), without.entropy.mean()
print(f"\n   the mean of the heads: std {std_before:.2f} and {std_after:.1f}, ", end="")
print(f"entropy {entropy_before:.2f} and {entropy_after:.2f} of log n\n")
log_ratio = np.array(
    [
        [np.log(y / x) for x, y in zip(medians_and_means(a), medians_and_means(b), strict=True)]
        for a, b in pairs
    ]
)  # (texts, 2, heads)
of_median, of_mean = log_ratio[:, 0], log_ratio[:, 1]


def middle(values):
    """The mean of logarithms over the texts, and its standard error."""
    return values.mean(axis=0), values.std(axis=0, ddof=1) / len(values) ** 0.5


DECIDED = slice(HEADS, None)  # blocks 2 to 4: the first block's heads are the least decided
(typical, typical_error), (average, average_error) = (
    middle(values[:, DECIDED].mean(axis=1)) for values in (of_median, of_mean)
)
head_median, head_error = middle(of_median)
head_mean, head_mean_error = middle(of_mean)
falls = int((head_median < -2 * head_error).sum())
grows = int((head_median > 2 * head_error).sum())
mean_grows = int((head_mean > 2 * head_mean_error).sum())
print(f"   on {TEXTS} of its own texts, of {len(NAMES)} heads, by more than two standard errors:")
print(f"   the median falls in {falls} and grows in {grows}; the mean grows in {mean_grows}\n")
marks.at_most(
    "blocks 2 to 4: median × its two standard errors",
    np.exp(typical + 2 * typical_error),
    0.5,
    ".2f",
)
marks.at_least(
    "blocks 2 to 4: mean ∕ its two standard errors", np.exp(average - 2 * average_error), 1.5, ".2f"
)
marks.at_least(f"heads in which the mean grows, of {len(NAMES)}", mean_grows, len(NAMES), "d")
marks.at_least("heads in which the median falls", falls, 5, "d")


def top_tenth(found):
    """The share of the squared gradient that a tenth of the queries has, in blocks 2 to 4."""
    squares = np.sort(found.gradient[DECIDED] ** 2, axis=-1)
    few = -(-squares.shape[-1] // 10)
    return float((squares[:, -few:].sum(axis=-1) / squares.sum(axis=-1)).mean())


tenth_before, tenth_after = (
    float(np.mean([top_tenth(found[i]) for found in pairs])) for i in (0, 1)
)
marks.at_least("a tenth of the queries, without the scale: share of ‖∂L/∂q‖²", tenth_after, 0.6)
marks.at_least(f"dead queries of head {NAMES[looks_back]} on “Alice”", dead[looks_back], 0.3)
lost = sharpened(model, alice, alone, AWAY)
print(
    f"\n   without the scale in head {chosen.head} alone: loss {lost:.3f}, and not {with_scale.loss:.3f}"
)
start = see(untrained(), alice, AWAY)
print(
    f"   before its training: the raw scores have the standard deviation {start.score_std.mean():.2f}\n"
)
marks.at_most("untrained: standard deviation of the raw scores", start.score_std.mean(), 0.5, ".2f")

# %% 7 · Can W_Q and W_K learn it back?

print(f"\n7 · W_Q and W_K alone, trained {LOOKS[-1]} steps on {LEARNED} of its own texts\n")
RATES = {
    "sgd": sized([0.3], [0.03, 1.0], [0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0]),
    "adam": sized([1e-3], [1e-3, 3e-3], [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2]),
}
STARTS = {1.0: "too flat: 1/d_k", 0.0: "too sharp: no scale"}
results = []
try:
    with workers(chosen.jobs) as executor:
        for optimizer, rates in RATES.items():
            with progress(OPTIMIZERS[optimizer]) as bar:
                found = sweep(
                    recovery,
                    {
                        "optimizer": [optimizer],
                        "lr": rates,
                        "a": sorted(STARTS),
                        "steps": [sized(5, LOOKS[-1], LOOKS[-1])],
                    },
                    seed=chosen.seed,
                    repeats=sized(1, 1, 5),
                    paired=("optimizer", "lr", "a", "steps"),  # all see the same texts
                    executor=executor,
                    path=chosen.out / f"recovery_{optimizer}_{size}_seed_{chosen.seed}.jsonl",
                    shown=bar,
                )
            results += [result for _, result in found]
except SweepError as error:
    stop(f"pretrained: {error}")

after = {
    (optimizer, a, lr): [
        # (a training that broke has no loss)
        r.losses[-1] if r.broke_at is None else np.inf
        for r in results
        if (r.optimizer, r.a, r.lr) == (optimizer, a, lr)
    ]
    for optimizer, rates in RATES.items()
    for a in STARTS
    for lr in rates
}
before = {a: float(np.mean([r.losses[0] for r in results if r.a == a])) for a in STARTS}
norm = {a: float(np.mean([r.gradient for r in results if r.a == a])) for a in STARTS}
as_trained = float(np.mean([r.trained for r in results]))
best = {
    (optimizer, a): min(rates, key=lambda lr: np.mean(after[optimizer, a, lr]))
    for optimizer, rates in RATES.items()
    for a in STARTS
}


def recovered(optimizer, a, lr, look=-1):
    """The share of what the loss lost with the trained scale that a training won back."""
    return np.array(
        [
            (r.losses[0] - r.losses[look]) / (r.losses[0] - r.trained)
            for r in results
            if (r.optimizer, r.a, r.lr) == (optimizer, a, lr) and r.broke_at is None
        ]
    )


RECOVERY = ["start", "‖gradient‖", "before", "optimizer", "best rate", "after", "won back"]
recovery_rows = []
for a, said in STARTS.items():
    for optimizer, name in OPTIMIZERS.items():
        lr = best[optimizer, a]
        losses, shares = np.array(after[optimizer, a, lr]), recovered(optimizer, a, lr)
        spread = f" ± {losses.std(ddof=1):.3f}" if len(losses) > 1 else ""
        recovery_rows.append(
            [
                said,
                f"{norm[a]:.2f}",
                f"{before[a]:.3f}",
                name,
                f"{lr:g}",
                f"{losses.mean():.3f}{spread}",
                f"{shares.mean():.0%}",
            ]
        )
for cells in (RECOVERY, *recovery_rows):
    print(f"   {cells[0]:22}" + "".join(f"{cell:>16}" for cell in cells[1:]))
print(f"   the trained scale, on the same texts: {as_trained:.3f}\n")
ALL = ["start", "optimizer", "rate", "before", *(f"{n} steps" for n in LOOKS[1:])]
all_rows = []
for optimizer, rates in RATES.items():
    for a, said in STARTS.items():
        for lr in rates:
            of_rate = [r for r in results if (r.optimizer, r.a, r.lr) == (optimizer, a, lr)]
            whole = [r.losses for r in of_rate if r.broke_at is None]
            cells = [f"{loss:.3f}" for loss in np.mean(whole, axis=0)] if whole else ["broke"]
            cells += [""] * (len(LOOKS) - len(cells))
            all_rows.append([said, OPTIMIZERS[optimizer], f"{lr:g}", *cells])
for optimizer, name in OPTIMIZERS.items():
    flat_share, sharp_share = (
        float(recovered(optimizer, a, best[optimizer, a]).mean()) for a in (1.0, 0.0)
    )
    marks.at_least(f"{name}: won back from too flat, at its best rate", flat_share, 0.4)
    marks.at_most(f"{name}: won back from too sharp, at its best rate", sharp_share, 0.25)
marks.at_least("gradient from too sharp over that from too flat", norm[0.0] / norm[1.0], 4.0, ".1f")

# %% Pictures

drawn_figures = {
    "factor": plot_factor(FACTORS, over),
    "ratios": plot_ratios(
        NAMES,
        of_median,
        of_mean,
        title=f"The mean grows in {mean_grows} heads of {len(NAMES)}, the median falls in {falls}",
    ),
    "recovery": plot_recovery(
        {
            (o, a): [r.losses for r in results if (r.optimizer, r.a, r.lr) == (o, a, lr)]
            for (o, a), lr in best.items()
        },
        LOOKS,
        as_trained,
    ),
}
if chosen.full:
    drawn_figures["rates"] = plot_rates(after, before, as_trained)
for name, figure in drawn_figures.items():
    save_figure(figure, chosen.out / name)

# %% The page

page = Page(
    "Somebody else's models, in ours",
    claim="Six models that other people have trained give their authors' numbers in our classes, "
    "to rounding. Without the scale that they were trained with they fail, and W_Q and W_K hardly "
    "find their way back.",
)
page.say(
    "The other demos train their own small models. Here the weights are somebody else's, so "
    "nothing in them was made to fit. `mathformer` 2.0.0 (the MathFormer authors) holds four "
    "Llamas of 1,480 parameters that calculate with digits. `glassllm` 0.1.0 (Oséias Dias de "
    "Farias) holds two GPTs of 852,608 parameters that write English and Portuguese. Both are "
    "under the MIT licence.",
    "Only arrays were read from their files: safetensors, and npz without pickle. mathformer's "
    "package also has pickles, which can run any code when they are loaded. Nothing here opens "
    "them.",
)

page.section("1 · Our numbers are those of the models' authors", name="agreement")
page.say(
    "How can you know that a model was loaded rightly? Wrong names and shapes raise errors, but a "
    "wrong eps, other pairs of rotary positions or a square matrix that is not transposed raise "
    "none. The check is to compare known outputs. mathformer calculates in plain Python, and "
    "glassllm has an engine of its own, so both can be asked for the same numbers.",
)
page.table(
    ["mathformer", "problems", "answers like theirs", "right", "logits differ by", "largest logit"],
    [
        [SIGNS[n], c.problems, c.same, c.right, f"{c.logits:.0e}", f"{c.largest:.0f}"]
        for n, c in calculated.items()
    ],
    caption="Every problem with digits; logits at every position, in float64",
)
page.table(
    ["glassllm", "logits differ by", "gradients", "they differ by", "largest", "tokens alike"],
    [
        [n, f"{w.logits:.0e}", w.arrays, f"{w.gradients:.0e}", f"{w.largest:.2f}", w.greedy]
        for n, w in written.items()
    ],
    caption="128 random tokens, in float64: logits, and the gradients of all parameters against "
    "glassllm's own autograd; then what both write greedily",
)

page.section("2 · It writes", name="writing")
page.say(
    f"The English model continues “{chosen.prompt}”. `stream` gives each token when it is chosen, "
    "and the cache of chapter 13.1 keeps the keys and values of those before. Greedily:",
)
page.code((chosen.prompt + "|" + tok.decode(continued)).splitlines())
page.say("Drawn at temperature 0.8, from the tokens that have probability 0.9 together:")
page.code((chosen.prompt + "|" + tok.decode(drawn.tolist())).splitlines())
page.say(
    f"It was trained on books of Lewis Carroll's. Without the cache {alike} of {room} greedy tokens "
    "are the same."
)

page.section(f"3 · Head {NAMES[looks_back]} looks at the token before", name="maps")
page.ask(
    "The model has 16 heads: four in each of its four blocks. Look at the maps below. Which head "
    "looks at the token just before the query, that is, just below the diagonal?",
    f"Head {NAMES[looks_back]}: on 128 tokens of “Alice” {with_scale.previous[looks_back]:.0%} of "
    f"its weight is there. Next are "
    + " and ".join(f"{NAMES[h]} with {with_scale.previous[h]:.0%}" for h in order[1:3])
    + f". Equal weights would have {uniform:.0%} there. In a text as short as this one several heads "
    "do it.",
)
page.figure(
    chosen.out / "maps.svg",
    alt=f"The maps of 16 heads on the prompt. The heads of block 1 spread their weight; head "
    f"{NAMES[looks_back]} has most of it on the token before the query.",
    caption="Where each head looks, block.head, on the tokens of the prompt; _ is a space",
)

page.section("4 · Arithmetic without the scale", name="arithmetic")
page.ask(
    "In the models that calculate d_k is 4, so the scale is ½. What happens to their answers if "
    "it is taken away, and what if all keys get the same weight?",
    f"Without the scale {table[away, 'div']} of {len(PROBLEMS['div'])} divisions are right and "
    f"{table[away, 'sub']} of {len(PROBLEMS['sub'])} subtractions. But all "
    f"{table[away, 'add']} additions are, and with equal weights still {table[flat, 'add']}. A "
    "sum does not depend on the order of its digits: their mean is enough, so addition needs no "
    "attention weights.",
)
page.table(
    ["scale", *SIGNS.values()],
    [[said, *(f"{table[said, n]} of {len(PROBLEMS[n])}" for n in PROBLEMS)] for said in SCALES],
    caption="Right answers, with the weights as they were trained",
)

page.section("5 · The loss is smallest near the trained scale", name="factor")
page.figure(
    chosen.out / "factor.svg",
    alt="The loss over a factor on the scale: "
    + "; ".join(
        f"{n} {v[0]:.2f} at 0, {v[ONE]:.2f} at 1, {v[-1]:.2f} at {AWAY:.2f}"
        for n, v in over.items()
    ),
    caption="Loss of the English model; the factor √32 = 5.66 takes the scale away, and with 0 all "
    "keys get the same weight",
)
page.table(
    ["text", *(f"{factor:.3g}" for factor in FACTORS)],
    [[name, *(f"{loss:.3f}" for loss in losses)] for name, losses in over.items()],
    caption="The same in numbers, over the factor",
)
smallest = {name: FACTORS[int(np.argmin(losses))] for name, losses in over.items()}
page.say(
    "“Alice” is the first 128 tokens after its first one, in the lines of the book. Written without "
    "its line breaks the same text is strange to the model, which was trained on short lines, and "
    f"its loss is smallest at the factor {smallest['“Alice” in long lines']:.2g}. So the smallest "
    "loss is at the trained scale only where the text is of the kind that it was trained on. On "
    f"{TEXTS} of its own texts the loss at {FACTORS[nearest]:.2g} is {rise[nearest].mean():.3f} ± "
    f"{error:.3f} higher than at 1 (one standard error).",
    "Does this show that attention needs the scale? No: it shows what these weights were trained "
    "for. W_Q can take the factor in. If it is divided by √d_k, the model without a scale is the "
    "model that was trained, to {absorbed:.0e}. And before its training it did not need the "
    "scale: its weights began with a standard deviation of 0.02, and with them the raw scores on "
    f"“Alice” have the standard deviation {start.score_std.mean():.2f}. They grew to "
    f"{std_after:.0f} in training, with the scale there to divide them.",
)

page.section(
    "6 · The typical query loses its gradient, and the mean does not show it", name="heads"
)
page.ask(
    "The scale is taken away, and the weights stay. ‖∂L/∂q‖ is measured for each query of each "
    "head. Does its median over the queries fall? Does its mean?",
    f"On {TEXTS} of its own texts the median falls in {falls} of 16 heads by more than two "
    f"standard errors and grows in {grows}; the mean grows in {mean_grows}. In blocks 2 to 4 the "
    f"median is × {np.exp(typical):.2f} (± {typical_error:.0%}) and the mean × "
    f"{np.exp(average):.1f} (± {average_error:.0%}).",
)
page.figure(
    chosen.out / "ratios.svg",
    alt="For each of 16 heads, the gradient without the scale over that with it. In block 1 median "
    f"and mean grow alike. In head {NAMES[looks_back]} the median is × "
    f"{np.exp(head_median[looks_back]):.1g} and the mean × {np.exp(head_mean[looks_back]):.1f}.",
    caption=f"{TEXTS} of the model's own texts of 128 tokens; bars are two standard errors over the "
    "texts",
)
page.table(
    HEADER,
    rows,
    groups=[("", 1), ("scores", 2), ("entropy / log n", 2), ("‖∂L/∂q‖ without the scale", 3)],
    caption="“Alice”: all heads, with the scale and without it. A query is dead if it has less than "
    "a hundredth of the head's median with the scale",
)
page.say(
    "The four heads of block 1 are diffuse: with the scale their scores have standard deviations "
    f"of at most {with_scale.score_std[:HEADS].max():.2f}. There the gradient of every query grows, since it is multiplied by 5.66 and "
    f"softmax is not yet saturated. The decided heads are on the other side of chapter 16's hill. "
    f"Over all heads the std of the scores goes from {std_before:.1f} to {std_after:.1f}, and the "
    f"entropy from {entropy_before:.2f} to {entropy_after:.2f} of log n.",
    f"A saturated head may be a finished one. With the scale that it was trained with, head "
    f"{NAMES[looks_back]} has scores of standard deviation {with_scale.score_std[looks_back]:.1f} "
    f"and the entropy {with_scale.entropy[looks_back]:.2f}, and it is the head that looks at the "
    f"token before. Without the scale in head {chosen.head} alone the loss is {lost:.3f}, and with "
    f"all scales it is {with_scale.loss:.3f}.",
)

page.section("7 · From too sharp there is hardly a way back", name="recovery")
page.ask(
    "Two models start equally far from the trained scale: one with 1/d_k, √d_k times too small, "
    "and one with no scale, √d_k times too large. W_Q and W_K alone are trained. The second has "
    f"a gradient that is {norm[0.0] / norm[1.0]:.0f} times longer. Which of them learns more?",
    "The first. At the best rate of each, "
    + "; ".join(
        f"{name} wins back {recovered(o, 1.0, best[o, 1.0]).mean():.0%} of the lost loss from too "
        f"flat and {recovered(o, 0.0, best[o, 0.0]).mean():.0%} from too sharp"
        for o, name in OPTIMIZERS.items()
    )
    + ".",
)
page.figure(
    chosen.out / "recovery.svg",
    alt="The loss over the steps, by SGD and by Adam. From 1/d_k it falls towards that of the "
    "trained scale; without a scale it stays near its start.",
    caption=f"Loss on {OTHERS} other texts, at the best rate of each start; bands go from the "
    "smallest to the largest of the seeds",
)
if chosen.full:
    page.figure(
        chosen.out / "rates.svg",
        alt="The loss after the last step over the learning rate. At no rate does the start "
        "without a scale come far below its first loss; at large rates it rises.",
        caption=f"The same after {LOOKS[-1]} steps, at every rate; dotted lines are the losses before",
    )
seeds = len({id(r) for r in results}) // len(after)
page.table(
    RECOVERY,
    recovery_rows,
    caption=f"W_Q and W_K trained on {LEARNED} texts of 64 tokens, {LOOKS[-1]} steps of 4; seeds: "
    f"{seeds}, rates: {', '.join(f'{len(r)} of {OPTIMIZERS[o]}' for o, r in RATES.items())}; the "
    f"trained scale has {as_trained:.3f} on the same other texts",
)
with page.folded("Every rate, and the loss on the way"):
    page.table(ALL, all_rows, caption="Loss on the other texts, the mean over the seeds")
page.say(
    "The first gradient is long because of a few queries: on the model's own texts a tenth of them "
    f"has {tenth_after:.0%} of ‖∂L/∂q‖² in blocks 2 to 4 without the scale, and {tenth_before:.0%} "
    "with it. A rate that suits these few is too small for the typical query, and a larger rate "
    "makes the loss worse.",
    "There is no hill in between. Dividing W_Q by a number is the same as a smaller factor on the "
    "scale, so the way back is a straight line, and section 5 has the loss along it: it falls all "
    "the way from 5.66 to 1.",
    "With `--full` five seeds and all rates from 0.003 to 10 (SGD) and from 0.0001 to 0.03 (Adam) "
    "are measured. This is about 80 steps and 16 texts: nothing is said of a training that has "
    "more.",
)
page.conclude(
    "A model that loads without an error may still be wrong, and comparing it with known outputs "
    "shows it. In trained weights the scale matters because they were trained with it: its absence "
    "could be made up for in W_Q. But gradient descent does not find that from a saturated "
    "softmax in 80 steps, although the loss falls all the way along a straight line to it.",
    try_it(chosen.file),
)
with page.folded("All marks of this run"):
    marks.table(page, "Scores beside their pass marks")
print(f"\nThe page: {page.write(chosen.out, quick=chosen.quick, note=marks.note)}")
marks.end()

# %% Try it
# - Take the scale away in one head alone: `--head 2.1`, then another. Which head costs the most, and
#   is it one that looks at the token before?
# - Find the head that looks at the token before in the maps of your own sentence: `--prompt "…"`.
#   Does the same head win?
# - Make the model continue your own sentence, and change `temperature=0.8`: when does it leave
#   English?
