"""Induction: two layers learn to continue what they have seen once, and how they do it can be seen.

Claim. In a sequence of random words that begins to repeat itself, nothing can be predicted until
the repetition starts, and everything after that. Two blocks learn it: a head of the first looks one
word back and writes down "before me stood A", and a head of the second, at the next A, looks for
that note and copies the word it lies on (Olsson et al. 2022). One block cannot: it takes two looks.
The distance of the repetition is another in each sequence, so that a position alone says nothing.

    python -m demos induction [--out DIR] [--seed N] [--steps N] [--quick] [--resume]  # 22 s
"""

# %% Set-up

import numpy as np

from attention.blocks import Block, FeedForward
from attention.figures import save_figure
from attention.maps import animate_weights, block_weights, plot_heads
from attention.masks import causal_mask
from attention.models import GPT
from attention.multi_head import MultiHeadAttention
from attention.positions import SinusoidalPositions
from demos import options
from demos._training import Marks, Run, plot_losses
from minigrad import cross_entropy, no_grad
from minigrad.nn import Embedding, LayerNorm, Linear
from minigrad.optim import Adam, clip_gradients, warmup_cosine

chosen = options("induction", __doc__.splitlines()[0], steps=600, quick=10)
marks = Marks(enforced=not chosen.quick)
WORDS, LENGTH, D_MODEL, BATCH = 32, 24, 64, 64

# %% The data: random words that start again after 6 to 12 of them
# No word comes twice before that: of two that follow the same word, none would be right.


def batch(rng, n):
    """Sequences (n, LENGTH), and after how many words each repeats itself (n,)."""
    period = rng.integers(6, 13, n)
    words = rng.permuted(np.tile(np.arange(WORDS), (n, 1)), axis=1)
    return np.take_along_axis(words, np.arange(LENGTH) % period[:, None], axis=1), period


def repeats(period):
    """At which predictions (n, LENGTH - 1) the word before has been seen: there it can be known."""
    return np.arange(1, LENGTH) > period[:, None]


# %% The model: a GPT with one head in each block


def decoder(num_blocks, rng):
    """(B, T) words → (B, T, WORDS) scores of the next one."""
    blocks = [
        Block(
            MultiHeadAttention(D_MODEL, 1, rng=rng),
            FeedForward(D_MODEL, 2 * D_MODEL, rng=rng),
            norm_first=True,
        )
        for _ in range(num_blocks)
    ]
    words = Embedding(WORDS, D_MODEL, std=0.5, rng=rng)
    head = Linear(D_MODEL, WORDS, rng=rng)
    return GPT(words, blocks, LayerNorm(D_MODEL), positions=SinusoidalPositions(), head=head)


def weights(model, words):
    """Where each block's head looks: a list of (B, T, T)."""
    embedded, mask = model.positions(model.tokens(words)), causal_mask(words.shape[1])
    return [found[:, 0] for found in block_weights(model.blocks, embedded, mask=mask)]


# %% The training, whole


def train(num_blocks, what):
    """A model, its losses, its accuracy where the next word can be known, and maps on the way."""
    rng = np.random.default_rng(chosen.seed)
    model = decoder(num_blocks, rng).astype(np.float32)
    optimizer = Adam(model.parameters())
    run = Run(chosen, what, model=model, optimizer=optimizer, rng=rng)
    for step in run:
        words, period = batch(rng, BATCH)
        known = repeats(period)
        logits = model(words[:, :-1])
        loss = cross_entropy(logits, np.where(known, words[:, 1:], -1), ignore_index=-1)
        optimizer.lr = warmup_cosine(step, peak=3e-3, warmup=50, total=chosen.steps)
        optimizer.zero_grad()
        loss.backward()
        clip_gradients(model.parameters(), 1.0)
        optimizer.step()
        run.show(loss=loss.item(), accuracy=np.mean((logits.argmax(-1) == words[:, 1:])[known]))
        if step == 1 or step % max(chosen.steps // 25, 1) == 0:
            run.keep(frames=weights(model, shown[:1])[-1][0], steps=step)
    words, period = batch(np.random.default_rng(chosen.seed + 1), 1000)
    with no_grad():
        right = model(words[:, :-1]).argmax(-1) == words[:, 1:]
    return model, run.losses, float(right[repeats(period)].mean()), run.history


shown, period = batch(np.random.default_rng(chosen.seed + 2), 200)
shown = shown[:, :-1]
model, losses, right, history = train(2, "two blocks")
_, losses_one, right_one, _ = train(1, "one block")

# %% What came of it

print("\nNext words told, where they can be known, in 1,000 sequences never seen")
marks.at_least("two blocks", right, 0.95)
marks.at_most("ablation, one block", right_one, 0.6)
marks.trained("ablation", losses_one)

# %% The two heads
# In block 1 the weight one word back, before the repetition begins: these are the notes that block
# 2 reads. Nobody reads the later ones, and there the head looks anywhere. In block 2, from then on,
# the weight on what followed the word before: one period less one back, and whole periods further.

first, second = weights(model, shown)  # (200, T, T) each
back = [first[i, t, t - 1] for i, p in enumerate(period) for t in range(1, p)]
after = [
    second[i, t, (t + 1) % p : t : p].sum()
    for i, p in enumerate(period)
    for t in range(p, LENGTH - 1)
]
print("\nWhere the two heads look, the mean over 200 sequences")
marks.at_least("block 1: weight one word back", float(np.mean(back)), 0.5)
marks.at_least("block 2: weight on what followed the word", float(np.mean(after)), 0.8)

names = [str(word) for word in shown[0]]
names[period[0]] += " again"
maps = np.array([first[0], second[0]])
save_figure(plot_heads(maps, names, names, titles=["block 1", "block 2"]), chosen.out / "weights")
frames = np.array(history["frames"])
titles = [f"block 2, step {step}" for step in history["steps"]]
animate_weights(frames, names, names, chosen.out / "weights.gif", titles=titles)
plot_losses(
    {"two blocks": losses, "one block": losses_one}, chosen.out / "loss", "continue a repetition"
)
print(f"\nPictures: {chosen.out}/weights.png, weights.gif, loss.png")
marks.end()

# %% Try it
# - Let all sequences repeat after 8 words (`rng.integers(8, 9, n)`): what does one block learn?
# - Take two heads in a single block: is it the number of heads, or of looks one after the other?
