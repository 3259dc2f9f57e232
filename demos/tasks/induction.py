"""Induction: two layers learn to continue what they have seen once, and how they do it can be seen.

Claim. A sequence of random tokens begins to repeat itself. Before the repetition starts nothing can
be predicted, and afterwards everything. Two blocks learn to predict it. A head of the first block
looks one token back, so that each position also holds the token before it, for example A. At the
next A a head of the second block looks for the position that holds A as the token before it, and
copies the token there (Olsson et al. 2022). One block cannot do this, because it takes two looks in
sequence. The distance of the repetition differs between sequences, so positions alone do not help.

    python -m demos induction [--out DIR] [--seed N] [--steps N] [--quick] [--resume]
"""

# %% Set-up

import numpy as np

from attention import GPT, Block, FeedForward, MultiHeadAttention, SinusoidalPositions, causal_mask
from attention.figures import REFERENCE
from attention.maps import changing, plot_heads
from demos import options
from demos._training import Run
from demos._training_curves import compare
from demos.pages.publish import publish
from minigrad import cross_entropy, no_grad
from minigrad.nn import Embedding, LayerNorm, Linear
from minigrad.optim import Adam, clip_gradients, warmup_cosine

SECONDS = 14  # of a run

chosen = options("induction", __doc__.splitlines()[0], steps=500, quick=10)
page = publish(chosen)
VOCAB_SIZE = 32
LENGTH = 24
D_MODEL = 64
BATCH = 32

# %% The data: random tokens that start again after 6 to 12 of them
# No token occurs twice before that. Otherwise two different tokens could follow the same one, and
# the prediction would not be unique.


def batch(rng, n):
    """Draw sequences (n, LENGTH), and the period after which each repeats itself (n,)."""
    period = rng.integers(6, 13, n)
    tokens = rng.permuted(np.tile(np.arange(VOCAB_SIZE), (n, 1)), axis=1)
    return np.take_along_axis(tokens, np.arange(LENGTH) % period[:, None], axis=1), period


def repeats(period):
    """Return True for predictions (n, LENGTH - 1) that can be known: their pair was seen before."""
    return np.arange(1, LENGTH) > period[:, None]


# %% The model: a GPT with one head in each block


def decoder(num_blocks, rng):
    """Return a model: (B, T) tokens → (B, T, VOCAB_SIZE) scores of the next one."""
    blocks = [
        Block(
            MultiHeadAttention(D_MODEL, 1, rng=rng),
            FeedForward(D_MODEL, 2 * D_MODEL, rng=rng),
            norm_first=True,
        )
        for _ in range(num_blocks)
    ]
    tokens = Embedding(VOCAB_SIZE, D_MODEL, std=0.5, rng=rng)
    head = Linear(D_MODEL, VOCAB_SIZE, rng=rng)
    return GPT(tokens, blocks, LayerNorm(D_MODEL), positions=SinusoidalPositions(), head=head)


def weights(model, tokens):
    """Return the attention weights of each block's head, (blocks, B, T, T)."""
    return np.array(model.maps(tokens))[:, :, 0]


# %% The training, whole


def train(num_blocks, what):
    """Train a model; return it, its run, and its accuracy where the next token can be known."""
    rng = np.random.default_rng(chosen.seed)
    model = decoder(num_blocks, rng).astype(np.float32)
    optimizer = Adam(model.parameters())
    run = Run(chosen, what, model=model, optimizer=optimizer, rng=rng)
    looked_at = np.geomspace(1, chosen.steps, 24).astype(int)  # most of them early
    for step in run:
        tokens, period = batch(rng, BATCH)
        known = repeats(period)
        logits = model(tokens[:, :-1])
        loss = cross_entropy(logits, np.where(known, tokens[:, 1:], -1), ignore_index=-1)
        optimizer.lr = warmup_cosine(step, peak=3e-3, warmup=50, total=chosen.steps)
        optimizer.zero_grad()
        loss.backward()
        clip_gradients(model.parameters(), 1.0)
        optimizer.step()
        run.show(loss=loss.item(), accuracy=np.mean((logits.argmax(-1) == tokens[:, 1:])[known]))
        if step in looked_at:
            run.keep(frames=weights(model, example)[:, 0], steps=step)
    tokens, period = batch(np.random.default_rng(chosen.seed + 1), 1000)
    with no_grad():
        right = model(tokens[:, :-1]).argmax(-1) == tokens[:, 1:]
    return model, run, float(right[repeats(period)].mean())


shown, period = batch(np.random.default_rng(chosen.seed + 2), 200)
shown = shown[:, :-1]
example = shown[[period.argmin()], :15]  # repeats itself after 6 tokens
model, run, right = train(2, "two blocks")
_, one, right_one = train(1, "one block")

# %% Where the two heads look, through the training
# In block 1 we measure the weight one token back, before the repetition begins. Block 2 uses these
# positions only, so at later positions the head of block 1 may look anywhere. In block 2 we measure
# the weight, once the repetition has begun, on what followed the same token before: one period less
# one token back, or whole periods more.


def looks(first, second, p):
    """Return the weights one token back, and on what followed the same token, of one sequence."""
    back = [first[t, t - 1] for t in range(1, p)]
    return back, [second[t, (t + 1) % p : t : p].sum() for t in range(p, len(second))]


sequences = zip(*weights(model, shown), period, strict=True)
each = [looks(first, second, p) for first, second, p in sequences]
back, after = (np.mean(np.concatenate(found)) for found in zip(*each, strict=True))
names = [str(token) for token in example[0]]
frames = np.array(run.history["frames"])
steps = run.history["steps"]
figures = []
labels = []
alt = []
for i in changing(frames):
    titles = ["block 1: one token back", "block 2: what followed"]
    figures.append(plot_heads(frames[i], names, names, titles=titles, mask=causal_mask(len(names))))
    for panel in figures[-1].axes[:2]:  # the last is the colour bar
        panel.axhline(period.min() - 0.5, color=REFERENCE, linestyle="--", linewidth=1)
    labels.append(f"step {steps[i]}")
    first, second = frames[i]
    one_back, on_next = map(np.mean, looks(first, second, period.min()))
    alt.append(
        f"Before the repetition {one_back:.0%} of the weight of block 1 is one token back. In the "
        f"repetition {on_next:.0%} of the weight of block 2 is on what followed the same token."
    )
slider = page.slider(
    figures,
    "weights",
    labels,
    alt,
    "A row is a token that was read, a column a token that it looks at; below the dashed line the "
    "sequence repeats itself",
)
page.finding(
    f"Two blocks predict {right:.1%} of what repeats in 1,000 held-out sequences. {back:.1%} of "
    f"the weight of block 1 is one token back, and {after:.1%} of that of block 2 is on what "
    "followed the same token before (means over 200 sequences).",
    slider,
)
page.marks.at_least("block 1: weight one token back", float(back), 0.5)
page.marks.at_least("block 2: weight on what followed the token", float(after), 0.8)

# %% What it reaches, with two blocks and with one

page.ask(
    f"How much of it does one block predict? A guess predicts {1 / VOCAB_SIZE:.0%}.",
    f"It predicts {right_one:.1%}. It can see which tokens came before, and chooses among them. "
    "But it cannot see which of them followed this one.",
    guesses=("3 %", "30 %", "60 %"),
)
compare(
    page,
    "It takes two looks in sequence: one block stays behind",
    (run, right),
    (one, right_one),
    choices=VOCAB_SIZE,
    at_least=0.95,
    at_most=0.6,
    counted="tokens",
    scored="held-out tokens",
)

# %% What to conclude
# Block 2 finds the place by what block 1 wrote there. This is what depth is for: a second look can
# use the result of the first.

page.end()

# %% Try it
# - Let all sequences repeat after 8 tokens (`rng.integers(8, 9, n)`): what does one block learn?
# - Take two heads in a single block: does the task need two heads, or two looks in sequence?
