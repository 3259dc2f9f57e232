"""Induction: two layers learn to continue what they have seen once, and how they do it can be seen.

Claim. A sequence of random tokens begins to repeat itself. Before the repetition starts nothing can
be predicted, and afterwards everything. Two blocks learn to predict it. A head of the first block
looks one token back, so that each position also holds the token before it, for example A. At the
next A a head of the second block looks for the position that holds A as the token before it, and
copies the token there (Olsson et al. 2022). One block cannot do this, because it takes two looks in
sequence. The distance of the repetition differs between sequences, so positions alone do not help.

    python -m demos induction [--out DIR] [--seed N] [--steps N] [--quick] [--resume]  # 14 s
"""

# %% Set-up

import numpy as np

from attention.blocks import Block, FeedForward
from attention.figures import REFERENCE, save_figure
from attention.maps import animate_weights, changing, plot_heads
from attention.masks import causal_mask
from attention.models import GPT
from attention.multi_head import MultiHeadAttention
from attention.positions import SinusoidalPositions
from demos import options
from demos._losses import described, plot_training
from demos._page import Page, try_it
from demos._training import Marks, Run
from minigrad import cross_entropy, no_grad
from minigrad.nn import Embedding, LayerNorm, Linear
from minigrad.optim import Adam, clip_gradients, warmup_cosine

chosen = options("induction", __doc__.splitlines()[0], steps=500, quick=10)
marks = Marks(chosen, findings=True)
VOCAB_SIZE, LENGTH, D_MODEL, BATCH = 32, 24, 64, 32

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
    """Return the attention weights of each block's head: a list of (B, T, T)."""
    return [found[:, 0] for found in model.maps(tokens)]


# %% The training, whole


def train(num_blocks, what):
    """Train a model; return it, its run, and its accuracy where the next token can be known."""
    rng = np.random.default_rng(chosen.seed)
    model = decoder(num_blocks, rng).astype(np.float32)
    optimizer = Adam(model.parameters())
    run = Run(chosen, what, model=model, optimizer=optimizer, rng=rng)
    looked_at = np.geomspace(1, chosen.steps, 40).astype(int)  # most of them early
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
            run.keep(frames=weights(model, shown[:1])[-1][0], steps=step)
    tokens, period = batch(np.random.default_rng(chosen.seed + 1), 1000)
    with no_grad():
        right = model(tokens[:, :-1]).argmax(-1) == tokens[:, 1:]
    return model, run, float(right[repeats(period)].mean())


shown, period = batch(np.random.default_rng(chosen.seed + 2), 200)
shown = shown[:, :-1]
model, run, right = train(2, "two blocks")
_, one, right_one = train(1, "one block")

# %% What came of it

print("\nNext tokens predicted, where they can be known, in 1,000 sequences never seen")
marks.at_least("two blocks", right, 0.95)
marks.at_most("ablation, one block", right_one, 0.6)
marks.trained("ablation", one.losses)

# %% The two heads
# In block 1 we measure the weight one token back, before the repetition begins. Block 2 uses these
# positions only, so at later positions the head of block 1 may look anywhere. In block 2 we measure
# the weight, once the repetition has begun, on what followed the same token before: one period less
# one token back, or whole periods more.

first, second = weights(model, shown)  # (200, T, T) each
back = [first[i, t, t - 1] for i, p in enumerate(period) for t in range(1, p)]


def followed(weights, p):
    """Return, for each row of the repetition, the weight on tokens that followed the same token."""
    return [weights[t, (t + 1) % p : t : p].sum() for t in range(p, LENGTH - 1)]


after = [weight for map_, p in zip(second, period, strict=True) for weight in followed(map_, p)]
print("\nWhere the two heads look, the mean over 200 sequences")
marks.at_least("block 1: weight one token back", float(np.mean(back)), 0.5)
marks.at_least("block 2: weight on what followed the token", float(np.mean(after)), 0.8)

names = [str(token) for token in shown[0]]
maps, mask = np.array([first[0], second[0]]), causal_mask(len(names))
titles = ["block 1: one token back", "block 2: what followed the token before"]
figure = plot_heads(maps, names, names, titles=titles, mask=mask)
for panel in figure.axes[:2]:  # the last is the colour bar
    panel.axhline(period[0] - 0.5, color=REFERENCE, linestyle="--", linewidth=1)
    at, ground = (LENGTH - 1.8, period[0] - 0.8), {"facecolor": "white", "linewidth": 0}
    panel.annotate("below, the tokens repeat", at, ha="right", fontsize=8, bbox=ground)
save_figure(figure, chosen.out / "weights")
frames = np.array(run.history["frames"])
titles = [f"block 2, step {step}" for step in run.history["steps"]]
animate_weights(frames, names, names, chosen.out / "weights.gif", titles=titles, mask=mask)
runs = {"two blocks": (run, right), "one block": (one, right_one)}
plot_training(
    chosen.out / "loss",
    "It takes two looks in sequence: one block stays behind",
    runs,
    choices=VOCAB_SIZE,
    mark=0.95,
    counted="tokens",
    scored="tokens, held out",
)
print(f"\nPictures: {chosen.out}/weights.png, weights.gif, loss.png")

# %% The page

page = Page(
    "Induction",
    claim="Two blocks learn to continue a sequence that they have seen once. One block cannot, "
    "because the task takes two looks in sequence.",
)
page.say(
    "Random tokens begin to repeat themselves after 6 to 12 of them. Nothing can be predicted "
    "before, and everything afterwards. The example on this page is "
    f"{' '.join(names[: period[0]])} | {' '.join(names[period[0] :])}, where | is the place at "
    "which it starts again.",
)
page.ask(
    "After a token A the model must write what followed the earlier A. What do the heads of the "
    "two blocks have to look at?",
    "The head of block 1 looks one token back, so each position also holds the token before it. "
    "The head of block 2 looks for the position that holds A as the token before it, and copies "
    f"the token there. On average {np.mean(back):.0%} and {np.mean(after):.0%} of the weight is "
    "there.",
)
page.section("Where the head of block 2 looks, through the training")
page.slider(
    chosen.out / "weights.gif",
    [titles[i] for i in changing(frames)],
    alts=[
        f"In the repetition {np.mean(followed(frames[i], period[0])):.0%} of the weight is on what "
        "followed the same token before."
        for i in changing(frames)
    ],
    caption="Move the slider: a row is a token that was read, a column a token that it looks at",
)
page.section("Both heads after the training")
page.figure(
    chosen.out / "weights.svg",
    alt=f"Before the repetition the head of block 1 has {np.mean(back):.0%} of its weight one "
    f"token back. In the repetition the head of block 2 has {np.mean(after):.0%} of its weight on "
    "what followed the same token before.",
    caption="Below the dashed line the tokens repeat. Block 2 uses block 1 above the line only, so "
    "below it block 1 may look anywhere.",
)
page.section("What it reaches, with two blocks and with one")
page.figure(
    chosen.out / "loss.svg",
    alt=described(runs, "held-out tokens"),
    caption="The loss, and the share of tokens that are right, at each step",
)
marks.table(page, "Scores after the training, on sequences that were held out")
page.conclude(
    "Block 2 finds the place by what block 1 wrote there. This is what depth is for: a second look "
    "can use the result of the first.",
    try_it(chosen.file),
)
print(f"The page: {page.write(chosen.out, quick=chosen.quick, note=marks.note)}")
marks.end()

# %% Try it
# - Let all sequences repeat after 8 tokens (`rng.integers(8, 9, n)`): what does one block learn?
# - Take two heads in a single block: does the task need two heads, or two looks in sequence?
