"""Pretrained: other people's models give their authors' numbers, and do worse without a scale.

Claim. The weights of six models that other people have trained load through the public functions
of chapter 15.3, and every number agrees with that of the models' own authors: logits,
answers and all gradients. Then the scale 1/√d_k is taken away from them. Most subtractions and
divisions fail, some products and no addition, and the loss of the English model rises. The mean of
‖∂L/∂q‖ grows in each of its heads, and its median falls in some and grows in others. The scale is
easy to learn back: one number for each head does it in 80 steps on 16 texts. W_Q and W_K
overfit the 16 texts instead, and do not become better on others.

Whose weights: `mathformer` 2.0.0 (the MathFormer authors) and `glassllm` 0.1.0 (Oséias Dias de
Farias), both under the MIT licence, are installed by `pip install -e ".[pretrained]"`. Only arrays
are read from their files, and no pickle.

    python -m demos pretrained [--prompt TEXT] [--heads B.H …] [--full] [--jobs N]  # 40 s
"""

# %% Set-up

import numpy as np

from attention import generate, stream
from attention.figures import save_figure
from attention.laboratory.sweeps import sweep, workers
from attention.maps import plot_heads
from attention.masks import causal_mask
from demos import options, stop
from demos._kept import keep, made
from demos._page import Page, try_it
from demos._training import Marks
from demos.pretrained._agreement import Agreement
from demos.pretrained._alice import ALICE
from demos.pretrained._arithmetic import Arithmetic, refuse_strange
from demos.pretrained._factor import AWAY, OverFactor
from demos.pretrained._gradients import NAMES, Gradients
from demos.pretrained._heads import see, sharpened
from demos.pretrained._kept_heads import TwoModels, kept_heads
from demos.pretrained._loading import WeightsError, calculators, origin, tokenizer, writer
from demos.pretrained._recovered import MANY, Recovered, kept
from demos.pretrained._recovery import LEARNED, LOOKS, own_texts, recovery


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
        default=["1.1", "1.2", "1.3", "1.4"],
        metavar="B.H",
        help="heads, as block.head, that lose their scale together (%(default)s)",
    )
    parser.add_argument(
        "--full", action="store_true", help="train at more rates with five seeds: some 10 minutes"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes that train (%(default)s)")


chosen = options("pretrained", __doc__.splitlines()[0], quick=True, add=add)
if chosen.jobs < 1:
    stop(f"pretrained: --jobs must be 1 or larger: got {chosen.jobs}")
marks = Marks(chosen)
size = "quick" if chosen.quick else "full" if chosen.full else "default"


def sized(quick, default, full):
    """Return the one of three sizes that belongs to the size of the run."""
    return {"quick": quick, "default": default, "full": full}[size]


LONGEST = 128  # positions that the English model was trained with
SIZES = 4, 4, 32, LONGEST  # its blocks, heads, d_k and positions
WRITTEN, SHOWN = 40, 10  # tokens that continue the prompt, and tokens of a map at most
TEXTS = sized(4, 16, 32)  # of the model's own, to take losses and gradients on
STEPS = sized(5, LOOKS[-1], LOOKS[-1])  # of a training of W_Q and W_K
TRAININGS: dict = {  # what learns, from how many texts, by which optimizer: starts and rates
    ("weights", LEARNED, "adam"): ([0.0, 1.0], sized([1e-3], [1e-3], [3e-4, 1e-3, 3e-3])),
    ("weights", MANY, "adam"): (
        sized([0.0], [0.0], [0.0, 1.0]),
        sized([1e-3], [1e-3], [1e-3, 3e-3]),
    ),
    ("temperatures", LEARNED, "adam"): ([0.0, 1.0], sized([0.1], [0.1], [0.03, 0.1])),
}
if size == "full":
    TRAININGS["weights", LEARNED, "sgd"] = [0.0, 1.0], [0.03, 0.3, 1.0]
    TRAININGS["temperatures", LEARNED, "sgd"] = [0.0, 1.0], [1.0, 3.0]

# %% The weights, and the prompt

try:
    model, pieces, four = writer(), tokenizer(), calculators()
    for name, found in four.items():
        refuse_strange(name, *found)
    heads = model.blocks[0].attention
    sizes = len(model.blocks), heads.num_heads, heads.w_q.weight.shape[1] // heads.num_heads
    if (*sizes, model.max_length, len(model.tokens.weight.data)) != (*SIZES, pieces.vocab_size):
        raise WeightsError("weights/en.npz of glassllm has other sizes")
except WeightsError as error:
    stop(f"pretrained: {error}")
prompt = pieces.encode(chosen.prompt)
if not prompt:
    stop("pretrained: the prompt is empty: give a text of at least one character")
if pieces.unk_id in prompt:
    strange = next(each for each in chosen.prompt if pieces.unk_id in pieces.encode(each))
    stop(f"pretrained: the model has no token for {strange!r} of the prompt: leave it out")
if len(prompt) > LONGEST:
    stop(
        f"pretrained: the prompt has {len(prompt)} tokens, and the model was trained with "
        f"{LONGEST} positions: give a shorter one"
    )
for name in chosen.heads:
    if name not in NAMES:
        stop(f"pretrained: --heads are some of {NAMES[0]}, …, {NAMES[-1]}: got {name!r}")
if not 0 < chosen.temperature < np.inf:
    stop(f"pretrained: --temperature is a finite number above 0: got {chosen.temperature}")
print("\nSix models that other people have trained")
print("   mathformer 2.0.0, the MathFormer authors, MIT: four Llamas that calculate")
print("   glassllm 0.1.0, Oséias Dias de Farias, MIT: two GPTs that write")

# %% 1 · The numbers of their authors

print("\n1 · Our numbers are those of the models' authors, in float64\n")
agreement = Agreement(chosen.seed)
agreement.tell(marks)

# %% 2 · It writes

room = min(WRITTEN, LONGEST + 1 - len(prompt))
print(
    "\n2 · The English model continues, greedily and with the cache\n\n   "
    + chosen.prompt.replace("\n", "\n   "),
    end="|",
)
continued = []
for token in stream(model, [prompt], room, temperature=0):
    continued.append(int(token[0]))
    print(pieces.decode(continued[-1:]).replace("\n", "\n   "), end="", flush=True)
uncached = generate(model, [prompt], room, temperature=0, cached=False)[0, len(prompt) :].tolist()
rng = np.random.default_rng(chosen.seed)
options = {"temperature": chosen.temperature, "top_p": 0.9, "rng": rng}
drawn = generate(model, [prompt], room, **options)[0, len(prompt) :]
drawn_text = f"{chosen.prompt}|{pieces.decode(drawn.tolist())}"
how = f"Drawn at temperature {chosen.temperature:g}, from the likeliest tokens (top_p=0.9):"
print(f"\n\n   {how}")
print("\n   " + drawn_text.replace("\n", "\n   ") + "\n")
alike = sum(x == y for x, y in zip(continued, uncached, strict=True))
marks.at_least("greedy tokens that are the same without the cache", alike / room, 1.0)

# %% 3 · Where its heads look

print("\n3 · Which head looks at the token before?\n")
BEFORE = "of its weight is on the token before"


def equal_weight(n):
    """Return the mean weight of the token before, if the keys of n tokens had equal weights."""
    return float(np.mean(1 / np.arange(2, n + 1)))


written = np.concatenate([each[0] for each in model.maps([prompt])])  # (16, T, T)
names = [name.replace("▁", "_").replace("\n", "↵") for name in pieces.tokens(prompt[:SHOWN])]
answer = "A prompt of one token has no token before it."
if len(prompt) > 1:
    looks = np.diagonal(written, -1, -2, -1).mean(axis=-1)  # (16,)
    nearest, equal = int(looks.argmax()), equal_weight(len(prompt))
    answer = f"On the {len(prompt)} tokens of the prompt it is head {NAMES[nearest]}: "
    answer += f"{looks[nearest]:.0%} {BEFORE}. (Equal weights would have {equal:.0%} there.)"
print(f"   {answer}\n")
alice = np.array(pieces.encode(ALICE)[: LONGEST + 1])
seen = see(model, alice)
fast = writer().astype(np.float32)  # (where speed counts)
own = own_texts(fast, TEXTS, LONGEST + 1, rng=np.random.default_rng(chosen.seed))
previous = seen.previous
first, second, third = np.argsort(-previous)[:3]
print(
    f"   On the first {LONGEST} tokens of “Alice's Adventures in Wonderland”, called “Alice” below:"
)
for h in (first, second, third):
    print(f"   head {NAMES[h]}: {previous[h]:.2f} {BEFORE}")
uniform = equal_weight(LONGEST)
print(f"   equal weights would have {uniform:.2f} there\n")
seen_own = [(see(fast, text), see(fast, text, AWAY)) for text in own]
of_own = np.array([trained.previous for trained, _ in seen_own])  # (texts, heads)
own_error = of_own[:, first].std(ddof=1) / TEXTS**0.5
rival = np.delete(of_own.mean(axis=0), first).max()
print(
    f"   On {TEXTS} texts that the model wrote itself at temperature 1, its own texts:\n"
    f"   head {NAMES[first]}: {of_own[:, first].mean():.2f} ± {own_error:.2f}, and the next head "
    f"{rival:.2f}\n"
)
marks.at_least(f"“Alice”, head {NAMES[first]}: weight on the token before", previous[first], 0.4)
marks.at_least(
    "its own texts, the same head, two standard errors less",
    of_own[:, first].mean() - 2 * own_error,
    0.3,
)
cut = f"the first {SHOWN} of the {len(prompt)}" if len(prompt) > SHOWN else f"the {len(prompt)}"
of_prompt = f"{cut} tokens of the prompt"
titles, mask = [f"head {name}" for name in NAMES], causal_mask(len(names))
maps = written[:, : len(names), : len(names)]  # (causal: later tokens change nothing)
save_figure(plot_heads(maps, names, names, titles=titles, mask=mask), chosen.out / "maps")

# %% 4 · Arithmetic without the scale

print("\n4 · Right answers of the models that calculate, d_k = 4\n")
arithmetic = Arithmetic(four)
arithmetic.tell(marks)

# %% 5 · The loss over the scale

print("\n5 · The loss over a factor on the trained scale, d_k = 32\n")
over = OverFactor(fast, pieces, alice, own)
over.tell(marks)

# %% 6 · The gradients of the queries

print(f"\n6 · Scores, weights and ‖∂L/∂q‖ of each head, on {TEXTS} of its own texts\n")
scaled = sharpened(fast, own, [], 1.0)  # (texts,)
alone = [sharpened(fast, own, [h], AWAY) - scaled for h in range(len(NAMES))]  # (heads, texts)
gradients = Gradients(seen_own, np.transpose(alone))
gradients.tell(marks, first)
taken = [NAMES.index(name) for name in dict.fromkeys(chosen.heads)]
rises = [
    gradients.together(said, heads, sharpened(fast, own, heads, AWAY) - scaled)
    for said, heads in (
        (", ".join(NAMES[h] for h in taken), taken),
        ("all decided heads", np.flatnonzero(gradients.decided)),
    )
]
print(f"\n   The loss with all scales is {scaled.mean():.3f}.\n   " + "\n   ".join(rises))

two = TwoModels(kept_heads()[1])
print("\n   The same in a second model, from a run that is kept:\n")
two.tell(marks, median=gradients.median, mean=gradients.mean)

# %% 7 · Can the scale be learned back?

print(f"\n7 · W_Q and W_K alone, or a temperature for each head, trained for {STEPS} steps\n")
results = []
try:
    with workers(chosen.jobs):
        for (part, texts, optimizer), (starts, rates) in TRAININGS.items():
            settings = {
                "part": [part],
                "texts": [texts],
                "optimizer": [optimizer],
                "lr": rates,
                "a": starts,
                "steps": [STEPS],
                "files": [origin()],
            }
            found = sweep(
                recovery,
                settings,
                seed=chosen.seed,
                repeats=sized(1, 1, 5),
                paired=list(settings),  # all trainings of a repeat see the same texts
                folder=chosen.out / "results",
                label=f"{part}, {texts} texts, {optimizer}",
            )
            results += [result for _, result in found]
except WeightsError as error:
    stop(f"pretrained: {error}")
recovered = Recovered(results)
recovered.tell(marks)
if chosen.full:
    path = chosen.out / "results_full.jsonl"
    keep(path, results, made("python -m demos pretrained --full", chosen.seed))
    print(f"\n   {path} can be kept in demos/pretrained")

# %% The page

page = Page(
    "Somebody else's models, in ours",
    claim="Six models that other people have trained give their authors' numbers in our classes, "
    "to rounding. Without the scale that they were trained with, three of the four models that "
    "calculate fail at many problems, and the English one predicts worse. One number for each "
    f"head learns the scale back in {STEPS} steps. Its W_Q and W_K overfit their few texts.",
)
page.say(
    "The other demos train their own small models. Here the weights are somebody else's. "
    "`mathformer` 2.0.0 (the MathFormer authors) has four Llamas of 1,480 parameters, which "
    "calculate with digits. `glassllm` 0.1.0 (Oséias Dias de Farias) has two GPTs of 852,608 "
    "parameters, which write English and Portuguese. Both are under the MIT licence.",
    "Only arrays were read from their files: safetensors, and npz without pickle. mathformer's "
    "package also has pickles, which can run any code when they are loaded. Nothing here opens "
    "them.",
)
page.section("1 · Our numbers are those of the models' authors", name="agreement")
page.say(
    "How can you know that a model was loaded rightly? Wrong names and shapes raise errors, but a "
    "wrong eps, other pairs of rotary positions or a square matrix that is not transposed raise "
    "none. The check is to compare the logits of a text with those of the author's program. They "
    "have to be equal to rounding: with a wrong eps many models still write the same text. "
    "mathformer calculates in plain Python, and glassllm has an autograd engine of its own, so "
    "both can be asked for the same numbers.",
)
agreement.show(page)
page.section("2 · The English model writes", name="writing")
page.say(
    "It continues the text before the bar. `stream` gives each token when it is chosen, and the "
    "cache keeps the keys and values of those before. Greedily:",
)
page.code(f"{chosen.prompt}|{pieces.decode(continued)}".splitlines())
page.say(how)
page.code(drawn_text.splitlines())
page.say(
    "Its author trained it on books by Lewis Carroll. Without the cache "
    f"{alike} of the {room} greedy tokens are the same.",
)
page.section("3 · Some heads look at the token before", name="maps")
page.ask(
    "The model has 16 heads, four in each of its four blocks. In the maps below, which of them "
    "looks most at the token just before the query? (Its weight is just below the diagonal.) Is "
    "it the same one on other texts?",
    f"{answer} On the first {LONGEST} tokens of “Alice's Adventures in Wonderland”, called “Alice” "
    f"from here on, it is head {NAMES[first]} with {previous[first]:.0%}. Next are {NAMES[second]} "
    f"with {previous[second]:.0%} and {NAMES[third]} with {previous[third]:.0%}; equal weights "
    f"would have {uniform:.0%} there. On {TEXTS} texts that the model wrote itself at temperature "
    f"1, called its own texts, head {NAMES[first]} has {of_own[:, first].mean():.0%} ± "
    f"{own_error:.0%} (one standard error), and the best of the others {rival:.0%}.",
)
page.say(
    "Heads that look at a fixed distance are known from other models: in BERT (Clark et al. 2019), "
    "and in a translator (Voita et al. 2019), where the specialised heads were the last to be "
    "pruned. (Of both, the abstracts were read.)",
)
page.figure(
    chosen.out / "maps.svg",
    alt=f"The maps of 16 heads on {of_prompt}. {answer}",
    caption=f"Where each head, block.head, looks, on {of_prompt}; _ is a space. A title gives the "
    "mean of a row's entropy / log n, where n is the number of keys that the row may look at: 1 is "
    "equal weights, 0 is one key alone",
)
page.section("4 · Arithmetic without the scale", name="arithmetic")
arithmetic.show(page)
page.section("5 · The loss is smallest near the trained scale", name="factor")
over.show(page, chosen.out, grown=seen.score_std.mean() * AWAY)
page.section("6 · The gradient of each query without the scale", name="gradients")
gradients.show(page, chosen.out, first, " ".join(rises))
two.show(page, kept_heads()[0])
page.section("7 · Can the scale be learned back?", name="recovery")
recovered.show(page, chosen.out, full=kept())
page.conclude(
    "A model that loads without an error may still be wrong, and comparing known outputs shows it. "
    "In trained weights the scale matters because they were trained with it. It is easy to learn "
    "back where nothing else can move: one number for each head is enough, and the gradients that "
    "pass the sharp softmax suffice. W_Q and W_K could make up for it exactly. From a scale that "
    "is too sharp they fit the texts that they see, and generalise worse.",
    try_it(chosen.file),
)
with page.folded("All marks of this run"):
    marks.table(page, "Scores beside their pass marks")
print(f"\nThe page: {page.write(chosen.out, quick=chosen.quick, note=marks.note)}")
marks.end()

# %% Try it
# - The last column of section 6's table takes the scale away in one head alone. Take it away in
#   several, first in heads of one block and then of different blocks, with `--heads 2.1 2.2` and
#   others: is the rise of the loss the sum of the single rises, within two standard errors? (A
#   second run in the same folder keeps the trainings and takes 10 seconds.)
# - Find the head that looks at the token before in the maps of your own sentence, before you open
#   the answer: `--prompt "…"`. Is it the same head in a sentence of yours that is not English?
# - Make the model continue your own sentence with `--temperature 0.3`, `0.8` and `1.5`, each with
#   `--seed 0`, `1` and `2`, and `--quick`: how many of its words do not exist?
