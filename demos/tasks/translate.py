"""Translate: the paper's encoder and decoder on two small invented languages.

Claim. The model of "Attention Is All You Need" learns to translate between two languages that
differ in their words and their order: in the second one adjectives follow their noun and agree with
it, the verb is last, and the adverb is first. At least 95 % of the sentences with pairs of nouns
that the model never saw come out exactly right. Without cross-attention the decoder writes the same
sentence for every source. (The model is pre-LN, chapter 15.1, so it needs no long warm-up.)

    python -m demos translate [--out DIR] [--seed N] [--steps N] [--quick] [--resume]
"""

# %% Set-up

from itertools import zip_longest

import numpy as np

from attention import Transformer, causal_mask, translate
from attention.maps import plot_heads
from demos import options
from demos._training import Run
from demos._training_curves import compare
from demos.pages.publish import publish
from minigrad import cross_entropy, no_grad
from minigrad.optim import Adam, clip_gradients, warmup_cosine

SECONDS = 22  # of a run

chosen = options("translate", __doc__.splitlines()[0], steps=400, quick=10)
page = publish(chosen)
PAD, START, END = 0, 1, 2
D_MODEL = 64
HEADS = 4
BLOCKS = 2
BATCH = 32

# %% The languages
# The words of the second language are those of the first, read backwards, with an ending: u for a
# noun, and o or a for an adjective, depending on the kind of its noun. The article is sol or sola.

NOUNS = ["dog", "cat", "bird", "horse", "child", "king", "river", "house"]
ADJECTIVES = ["big", "small", "old", "red", "quick"]
VERBS = ["knows", "likes", "follows", "hears"]
ADVERBS = ["today", "often", "never"]
KIND_A = set(NOUNS[::2])

OURS = ["<pad>", "<start>", "<end>", "the", *NOUNS, *ADJECTIVES, *VERBS, *ADVERBS]
THEIRS = ["<pad>", "<start>", "<end>", "sol", "sola", *(noun[::-1] + "u" for noun in NOUNS)]
THEIRS += [adjective[::-1] + ending for adjective in ADJECTIVES for ending in "oa"]
THEIRS += [word[::-1] for word in (*VERBS, *ADVERBS)]


def phrase(noun, rng):
    """Draw an article, up to two adjectives and the noun, in both languages."""
    adjectives = list(rng.choice(ADJECTIVES, rng.integers(0, 3), replace=False))
    ending, article = ("a", "sola") if noun in KIND_A else ("o", "sol")
    theirs = [article, noun[::-1] + "u", *(word[::-1] + ending for word in adjectives[::-1])]
    return ["the", *adjectives, noun], theirs


# 8 of the 64 pairs of a subject and an object are held out. They have each noun once in each place.
HELD_OUT = {(noun, NOUNS[(5 * i + 2) % 8]) for i, noun in enumerate(NOUNS)}
SEEN = [(one, other) for one in NOUNS for other in NOUNS if (one, other) not in HELD_OUT]


def sentence(pairs, rng):
    """Draw a sentence (who does what to whom, perhaps when), and translate it."""
    nouns = pairs[rng.integers(len(pairs))]
    (subject, their_subject), (other, their_other) = (phrase(noun, rng) for noun in nouns)
    verb = rng.choice(VERBS)
    adverb = [rng.choice(ADVERBS)] if rng.random() < 0.5 else []
    ours = [*subject, verb, *other, *adverb]
    return ours, [*(word[::-1] for word in adverb), *their_subject, *their_other, verb[::-1]]


def batch(rng, n, pairs):
    """Draw n sentences and translations: tokens padded to (n, S) and (n, T), and words."""
    sentences = [sentence(pairs, rng) for _ in range(n)]
    sources = [[OURS.index(word) for word in ours] for ours, _ in sentences]
    targets = [[START, *map(THEIRS.index, theirs), END] for _, theirs in sentences]
    padded = (np.array(list(zip_longest(*rows, fillvalue=PAD))).T for rows in (sources, targets))
    return *padded, sentences


# %% The training, whole
# "Without cross-attention" is a mask that hides the whole source from the decoder. A query without
# keys gets zeros (chapter 11).


def train(looks_at_source, what):
    """Train a model; return it and its run."""
    rng = np.random.default_rng(chosen.seed)
    sizes = {"d_model": D_MODEL, "num_heads": HEADS, "num_blocks": BLOCKS, "d_ff": 2 * D_MODEL}
    model = Transformer(len(OURS), len(THEIRS), **sizes, norm_first=True, rng=rng)
    model.astype(np.float32)
    optimizer = Adam(model.parameters(), betas=(0.9, 0.98))
    run = Run(chosen, what, model=model, optimizer=optimizer, rng=rng)
    for step in run:
        source, target, _ = batch(rng, BATCH, SEEN)
        visible = (source != PAD)[:, None] & looks_at_source
        logits = model(source, target[:, :-1], source_mask=visible)
        following = target[:, 1:]
        loss = cross_entropy(logits, following, ignore_index=PAD, label_smoothing=0.1)
        optimizer.lr = warmup_cosine(step, peak=3e-3, warmup=100, total=chosen.steps)
        optimizer.zero_grad()
        loss.backward()
        clip_gradients(model.parameters(), 1.0)
        optimizer.step()
        right = (logits.argmax(-1) == following)[following > 0]
        run.show(loss=loss.item(), accuracy=np.mean(right))
    return model.eval(), run


model, run = train(True, "with cross-attention")
blind, blind_run = train(False, "without cross-attention")

# %% The sentences with other pairs of nouns

asked = 5 if chosen.quick else 200
source, target, pairs = batch(np.random.default_rng(chosen.seed + 1), asked, sorted(HELD_OUT))


def translated(model, looks_at_source, num_beams):
    """Return the translations of the sources as words, and the share of those without an error."""
    visible = (source != PAD)[:, None] & looks_at_source
    ends = {"start": START, "end": END, "max_tokens": 16}
    translations = translate(model, source, **ends, num_beams=num_beams, source_mask=visible)
    translations = [[THEIRS[word] for word in words] for words in translations]
    right = [words == theirs for words, (_, theirs) in zip(translations, pairs, strict=True)]
    return translations, float(np.mean(right))


greedy, exact = translated(model, True, num_beams=1)
_, exact_beams = translated(model, True, num_beams=4)
unseeing, exact_unseeing = translated(blind, False, num_beams=1)
different = len(set(map(tuple, unseeing)))
sentences = "1 sentence" if different == 1 else f"{different} sentences"
page.table(
    ["source", "translation"],
    [[" ".join(ours), " ".join(seen)] for (ours, _), seen in zip(pairs[:3], greedy, strict=False)],
    caption=f"Three of the {asked} sentences",
)
page.marks.at_least("four beams", exact_beams, 0.95)
page.marks.at_most("different sentences without the source", different, 1, "d")

# %% Where the decoder looks in the source, while writing each word

ours, theirs = pairs[0]
with no_grad():
    memory = model.encode(source[:1, : len(ours)])
    words = target[:1, : len(theirs) + 1]
    x = model.embed(words, model.target_tokens)
    mask = causal_mask(words.shape[1])
    maps = []
    for block in model.decoder.blocks:
        itself = x + block.attention(block.norm_attention(x), mask=mask)
        maps += list(block.cross.weights(block.norm_cross(itself), memory).data[0])
        x = block(x, memory, mask=mask)
sharpest = np.max(maps, axis=(0, 2)).mean()  # each word's largest weight in any head
looks = page.figure(
    plot_heads(
        np.array(maps),
        [f"→ {word}" for word in (*theirs, "<end>")],
        ours,
        titles=[f"block {i + 1}, head {h + 1}" for i in range(BLOCKS) for h in range(HEADS)],
    ),
    "cross_attention",
    alt=f"The weights of {len(maps)} heads from the words that are written to the words of the "
    f"source. Each word that is written has a head with {sharpest:.0%} of its weight on one word "
    "of the source, on average.",
    caption="A row is a word that is written, a column is a word of the source",
)
page.finding(
    f"{exact:.1%} of {asked} sentences with pairs of nouns that the model never saw are translated "
    f"without an error; with four beams {exact_beams:.1%}.",
    looks,
)

# %% What it reaches, with cross-attention and without

page.ask(
    "Without cross-attention the decoder does not see the source. If it is given the words of a "
    "translation up to one, how often does it know this word? A guess is right in "
    f"{1 / len(THEIRS):.0%}.",
    f"In {np.mean(blind_run.history['accuracy'][-20:]):.0%}: it learns what a sentence looks like, "
    f"and not which one is asked for. Alone it writes {sentences} "
    f"for all {asked} sources, such as `{' '.join(unseeing[0])}`.",
    guesses=("5 %", "35 %", "65 %"),
)
compare(
    page,
    "Without cross-attention every source has the same translation\n"
    "(smoothed labels keep the loss above 0.6)",
    (run, exact),
    (blind_run, exact_unseeing),
    choices=len(THEIRS),
    at_least=0.95,
    at_most=0.05,
    counted="words",
    scored="held-out sentences",
)

# %% What to conclude
# All that the decoder knows of the source comes through cross-attention. It can look at any word of
# the source at any time, so the order of the two languages may differ.

page.end()

# %% Try it
# - Write `KIND_A.add("cat")` after the training: which of the sentences are wrong now, and where?
# - Hold out all pairs with a king (`if "king" in (one, other)`, for both sets): does the model ever
#   write a word that it never saw in a sentence?
