"""A language model of characters: a small GPT on Python's own documentation, against counting.

Claim. A model knows a text well if it needs few bits for each character of a part that it never
saw. A small GPT looks back up to 64 characters and weighs what it finds there. It passes counting
what followed the last two characters within half a minute and comes close to n = 3, which it passes
with twice as many steps. If the same model is shown one character at a time, the same number of
steps brings it to what counting with n = 1 reaches, and no further. Asked for the blank in `The sky
is ___`, the model needs more bits for each character of "blue" than for words that do not fit,
since its text never speaks of a sky. A training step that recomputes each block (chapter 2.4) needs
60 % of the memory, and its gradients are the same.

    python -m demos charlm [--out DIR] [--seed N] [--steps N] [--quick] [--resume]
"""

# %% Set-up

import re
import time
import tracemalloc

import numpy as np

from attention import attention, causal_mask, generate, llama
from attention.figures import ABLATION, MODEL, name_ends, new_figure
from attention.maps import plot_heads
from demos import options
from demos._training import Run
from demos._training_curves import centred, draw_levels, draw_line
from demos.pages.publish import publish
from demos.pages.templates import fill
from demos.tasks import _counting as counting
from minigrad import cross_entropy, gradients, log_softmax, no_grad, recompute
from minigrad.optim import Adam, clip_gradients, warmup_cosine

SECONDS = 42  # of a run

chosen = options("charlm", __doc__.splitlines()[0], steps=400, quick=8)
page = publish(chosen)
T = 64
BATCH = 16
D_MODEL = 96
HEADS = 4
BLOCKS = 2

# %% The text: what `help("while")` and its like show in every Python
# Each paragraph is taken once: otherwise the held-out part would hold paragraphs of the training
# text. (Phrases still repeat. Counting and the model both profit from that.) The last tenth is held
# out.

text = counting.documentation()
letters = sorted(set(text))
text = text[:40_000] if chosen.quick else text  # counting all of it takes seconds
cut = len(text) * 9 // 10
train_text, held_out_text = text[:cut], text[cut:]
# Counting and the model predict the same held-out characters, which fill whole half windows.
FIRST = T // 2 + 1
LAST = FIRST - 1 + (len(held_out_text) - FIRST) // (T // 2) * (T // 2)
page.say(
    f"It has {len(text):,} characters, {len(letters)} different ones; {len(held_out_text):,} are "
    "held out. Bits for each of these characters are 0 for a model that is always certain and "
    f"right, and {np.log2(len(letters)):.1f} for one that knows nothing."
)

# %% Counting
# Order n looks at the last n characters. It counts what followed them in the training text, and
# where the counts are small the next lower order gets more weight (`chances` says how).

following = counting.followers(train_text, 5)
predicted = [(held_out_text[i - 5 : i], held_out_text[i]) for i in range(FIRST, LAST + 1)]
by_counting = -np.mean(
    [np.log2(counting.chances(following, *pair, len(letters))) for pair in predicted], axis=0
)
best = int(by_counting.argmin())

# %% The model, and what it is asked
# The model is a GPT with Llama's parts: RMSNorm, rotary positions, gated silu. It predicts each
# held-out character once, from at least T / 2 characters before it: the windows overlap by half,
# and only their second halves count.

number = {letter: i for i, letter in enumerate(letters)}
to_ids = lambda text: np.array([number[c] for c in text])
train_ids, held_out_ids = to_ids(train_text), to_ids(held_out_text)


def held_out_bits(model, length):
    """Return the bits per held-out character of a model that sees `length` characters at a time."""
    half = length // 2
    losses = []
    starts = np.arange(FIRST - 1 - half, LAST - half, max(half, 1))
    windows = held_out_ids[starts[:, None] + np.arange(length + 1)]
    with no_grad():
        for some in np.array_split(windows, -(-windows.size // 8192)):
            logits = model(some[:, :-1])[:, half:]
            losses.append(cross_entropy(logits, some[:, half + 1 :]).item() * len(some))
    return sum(losses) / len(windows) / np.log(2)


def written(model):
    """Continue "The " by the model, at temperature 0.8.

    The model writes T / 2 characters after T / 2 known ones: it never saw a position beyond T.
    """
    rng = np.random.default_rng(chosen.seed + 1)
    ids = to_ids("The ")[None]
    while ids.shape[1] < (100 if chosen.quick else 300):
        known = ids[:, -T // 2 :]
        longer = generate(model, known, T // 2, temperature=0.8, rng=rng)
        ids = np.concatenate([ids, longer[:, known.shape[1] :]], axis=1)
    return "".join(letters[i] for i in ids[0])


# %% The training, whole
# Two things make each step shorter: the model's numbers are float32, and `Run` calls
# `keep_memory()`, as every training here does.


def train(length, what):
    """Train on `length` characters at a time; return the model, its untrained text, and its run."""
    rng = np.random.default_rng(chosen.seed)
    model = llama(
        len(letters),
        d_model=D_MODEL,
        num_heads=HEADS,
        num_kv_heads=HEADS,
        num_blocks=BLOCKS,
        rng=rng,
    ).astype(np.float32)
    optimizer = Adam(model.parameters(), betas=(0.9, 0.99))
    before = written(model)
    run = Run(chosen, what, model=model, optimizer=optimizer, rng=rng)
    for step in run:
        starts = rng.integers(0, len(train_ids) - length, BATCH * T // length)
        tokens = train_ids[starts[:, None] + np.arange(length + 1)]
        logits = model(tokens[:, :-1])
        loss = cross_entropy(logits, tokens[:, 1:])
        optimizer.lr = warmup_cosine(step, peak=6e-3, warmup=50, total=chosen.steps)
        optimizer.zero_grad()
        loss.backward()
        clip_gradients(model.parameters(), 1.0)
        optimizer.step()
        run.show(loss=loss.item(), accuracy=np.mean(logits.argmax(-1) == tokens[:, 1:]))
        if step % 100 == 0 or step == chosen.steps:
            run.keep(held_out=held_out_bits(model, length), at=step)
    return model, before, run


model, before, run = train(T, f"{T} characters")
_, _, run_of_one = train(1, "one character")
bits, bits_of_one = run.history["held_out"][-1], run_of_one.history["held_out"][-1]

# %% Bits for each character

figure = new_figure(5.4, 4.6)
ends = []
axes = figure.subplots()
for name, one, colour, style in (
    (f"shown {T} characters", run, MODEL, "-"),
    ("shown one character", run_of_one, ABLATION, "--"),
):
    draw_line(axes, np.array(one.losses) / np.log(2), colour, centred, style)
    axes.plot(one.history["at"], one.history["held_out"], "D", color=colour)
    ends.append((one.history["held_out"][-1], name, colour))
levels = {f"counting, n = {n}": by_counting[n] for n in sorted({0, 1, 2, best})}
axes.set_ylim(1.5, 5.5)
name_ends(axes, ends + draw_levels(axes, levels))
axes.set(xlabel="step", ylabel="bits per character (◆ held out)")
axes.set_title("Shown one character,\na GPT learns what counting with n = 1 knows", fontsize=11)
drawn = page.figure(
    figure,
    "bits",
    alt=f"Bits for each character at each step. Shown {T} characters, the GPT ends at {bits:.2f} "
    f"on held-out text; shown one character, at {bits_of_one:.2f}. Counting with n = 2 needs "
    f"{by_counting[2]:.2f}.",
    caption="Lines are the training text, diamonds the held-out text, dotted lines counting",
)
page.finding(
    f"After {chosen.steps} steps the GPT needs {bits:.3f} bits for a held-out character, and "
    f"{bits_of_one:.3f} if it is shown one character at a time. Counting with n = 1 needs "
    f"{by_counting[1]:.3f}.",
    drawn,
)
ahead = [f"n = {n}" for n, needs in enumerate(by_counting) if needs < bits]
page.ask(
    "Counting with n = 1 knows the last character, with n = 2 the last two, and so on up to n = 5. "
    "How far does it pay to go?",
    f"Counting is best at n = {best}, with {by_counting[best]:.2f} bits. At n = 5 too many "
    f"contexts were seen too seldom ({by_counting[5]:.2f} bits). Counting is better than the GPT "
    f"at {', '.join(ahead) or 'no n'}.",
    guesses=("n = 2", "n = 4", "n = 5"),
)
reached = list(zip(run.history["at"], run.history["held_out"], strict=True))
passed = [next((step for step, x in reached if x < needs), "not") for needs in by_counting]
page.table(
    ["Predicted by", "bits per character", "passed by the GPT at step"],
    [
        *([f"n = {n}", f"{by_counting[n]:.3f}", passed[n]] for n in range(6)),
        [f"GPT, {T}", f"{bits:.3f}", ""],
        ["GPT, one", f"{bits_of_one:.3f}", ""],
    ],
    caption="Held-out text, by counting what followed n characters, and by the GPT, shown "
    f"{T} characters or one. It reads that text every 100 steps; more `--steps` pass more",
)
page.marks.at_most(f"GPT, {T} characters, below counting, n = 2", bits, by_counting[2], ".3f")
page.marks.at_least("ablation, one character at a time", bits_of_one, by_counting[2], ".3f")
distance = abs(bits_of_one - by_counting[1])
page.marks.at_most("its distance from counting, n = 1", distance, 0.05, ".3f")
for block in model.blocks:  # the same weights, by chapter 11's steps from here on
    block.attention.attend = attention
distance = abs(held_out_bits(model, T) - bits)
page.marks.at_most("fused attention, its distance in bits", distance, 1e-4, ".0e")

# %% What it writes
# Both texts continue "The ", drawn at temperature 0.8.

for when, sample in (("Before the training", before), ("After the training", written(model))):
    with page.folded(when):
        page.html(fill("pages/html/written.html", text=sample))

# %% The blank in `The sky is ___`
# A source text opens with this blank (`python -m demos sky_is_blue`). It fills in “blue”, and says
# that “hesitating”, “destroyed” and “skipping” do not fit. A word is scored with the space after
# it: without it, “round” would be the beginning of “rounding” too.


def expected_after(read):
    """Return log₂ p of all characters, after each character of `read`.   → (len, letters)"""
    with no_grad():
        return log_softmax(model(to_ids(read)[None])).data[0] / np.log(2)


def bits_by_model(word):
    """Return the mean of -log₂ p over the characters of the word after “The sky is ”."""
    expected = expected_after(counting.BEGINNING + word)[len(counting.BEGINNING) - 1 : -1]
    return -expected[np.arange(len(word)), to_ids(word)].mean()


next_one = 2 ** expected_after(counting.BEGINNING)[-1]  # (letters,)
likely = ", ".join(f"{letters[i]!r} {next_one[i]:.0%}" for i in np.argsort(-next_one)[:5])
greedy = generate(model, to_ids(counting.BEGINNING)[None], 40, temperature=0)[0]
page.say(
    f"The GPT's probabilities of the next character are: {likely}. If the likeliest character is "
    f"taken each time, the text goes on: `{''.join(letters[i] for i in greedy)}`."
)
blank = {}
for word in counting.FILLERS:
    counted = counting.bits_of(f"{word} ", following, counting.BEGINNING, len(letters))
    blank[word] = (*counted[[1, best]], bits_by_model(f"{word} "))
page.table(
    ["word in the blank", "counting, n = 1", f"counting, n = {best}", "GPT"],
    [[word, *(f"{bits:.2f}" for bits in needs)] for word, needs in blank.items()],
    caption="Bits for each character of the word and of the space after it; fewer are likelier",
)
whole = {word: (len(word) + 1) * needs[-1] for word, needs in blank.items()}
page.say(
    f"For each character of “blue”, both the GPT and counting with n = {best} need more bits than "
    "for those of the three words that do not fit. (In all, the GPT needs fewer bits for a shorter "
    f"word: {whole['blue']:.0f} for “blue”, {whole['destroyed']:.0f} for “destroyed”. But “used” "
    f"is as short as “blue”, and takes {whole['used']:.0f}.) The documentation speaks of objects "
    "that are destroyed or used, and never of a sky. A model knows what fits in a blank only from "
    "the text that it was trained on."
)
beyond = blank["blue"][-1] - max(blank[word][-1] for word in counting.UNFITTING)
what = "bits of “blue”, beyond those of any word that does not fit"
page.marks.at_least(what, beyond, 0, ".2f")

# %% The memory of a step, and how `recompute` (chapter 2.4) saves much of it
# A forward pass keeps a record of every block until the backward pass. `recompute` keeps only the
# block's input, and makes the record again when the backward pass comes to the block. So one record
# exists at a time instead of BLOCKS of them, and each block runs forward twice. The mark is that
# share, 1 / BLOCKS, and a tenth for what both steps hold: inputs, gradients, the head's record.
# (With dropout a block must also draw the same numbers again: `gpt2(…, recompute=True)` does.)


def recomputed(block):
    """Return the block as a function that keeps its input alone, and computes the rest again."""
    return lambda x, **others: recompute(lambda x: block(x, **others), x)


def measured(blocks):
    """Return the gradients of one step through these blocks, its peak memory (MB) and seconds."""
    model.blocks = blocks
    step = lambda: gradients(cross_entropy(model(tokens), targets), parameters)
    tracemalloc.start()  # NumPy reports its arrays to it
    result = step()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    started = time.perf_counter()
    for _ in range(5):
        step()
    return result, peak / 1e6, (time.perf_counter() - started) / 5


blocks = model.blocks
parameters = model.parameters()
tokens, targets = (train_ids[i : i + BATCH * T].reshape(BATCH, T) for i in (0, 1))
plain, megabytes, seconds = measured(blocks)
again, fewer, longer = measured([recomputed(block) for block in blocks])
model.blocks = blocks
apart = np.max([np.abs(g - h).max() / np.abs(h).max() for g, h in zip(again, plain, strict=True)])
page.table(
    ["One step", "MB", "ms"],
    [
        ["every block's record is kept", f"{megabytes:.1f}", f"{1000 * seconds:.0f}"],
        ["blocks are recomputed", f"{fewer:.1f}", f"{1000 * longer:.0f}"],
    ],
)
page.marks.at_most("memory with recompute, over that without", fewer / megabytes, 1 / BLOCKS + 0.1)
page.marks.at_most("largest difference of the gradients, over the largest", apart, 1e-6, ".0e")

# %% Where the heads look

start = re.search("[A-Z][a-z ]{19}", held_out_text).start()  # words, and not an indented line
window = held_out_ids[None, start : start + 20]
maps = np.concatenate([weights[0] for weights in model.maps(window)])  # (4 · 2, 20, 20)
names = [letters[i].replace("\n", "↵").replace(" ", "·") for i in window[0]]
near = [np.mean([np.trace(m), np.trace(m, -1)]) * 2 / len(m) for m in maps]
page.figure(
    plot_heads(
        maps,
        names,
        names,
        titles=[f"block {i + 1}, head {h + 1}" for i in range(BLOCKS) for h in range(HEADS)],
        mask=causal_mask(window.size),
    ),
    "weights",
    alt=f"The weights of {len(maps)} heads over 20 characters. The mean weight on the character "
    f"itself and the one before it is {', '.join(f'{share:.0%}' for share in near)}.",
    caption="A row is a character that was read, and predicts the next one (· is a space)",
)

# %% What to conclude
# What a model can know is bounded by what it is shown. Counting cannot use long contexts, because
# each is rare. A GPT weighs what it finds in them, and so it can, but it needs many steps to learn
# how.

page.end()

# %% Try it
# - Take each paragraph as often as it occurs (in `documentation` of `_counting.py`, return
#   `"\n\n".join(paragraphs)`): which gains more by text that it has seen before, counting or the
#   model?
# - Let the model write 300 characters at once (`known = ids`, and 300 for `T // 2`): what becomes
#   of the text from the 65th character on, at positions that no training step contained?
