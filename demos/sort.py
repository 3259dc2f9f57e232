"""Sort numbers: every position asks which number belongs there.

Claim. Two blocks learn to put ten digits in order: at least 98 % of the sequences they never saw
come out exactly right, all ten places of them. A network that looks at each place by itself, with
the same positions and as many parameters in its feed-forward part, gets none: where a number goes
depends on all the others, and only attention looks at them.

    python -m demos sort [--out FOLDER] [--seed N] [--steps N] [--quick] [--resume]  # 11 s
"""

# %% Set-up

import numpy as np

from attention.blocks import FeedForward
from attention.figures import save_figure
from attention.maps import block_weights, plot_heads
from attention.transformer import Encoder
from demos import options
from demos._training import Marks, Run, plot_losses
from minigrad import Tensor, cross_entropy, no_grad
from minigrad.nn import Embedding, Linear, Module, Sequential
from minigrad.optim import Adam, warmup_cosine

chosen = options("sort", __doc__.splitlines()[0], steps=900, quick=20)
marks = Marks(enforced=not chosen.quick)
LENGTH, DIGITS, D_MODEL, HEADS, BATCH = 10, 10, 32, 2, 64


class Sorter(Module):
    """(B, T) digits → (B, T, DIGITS) scores; `mixing` is all that looks at several places."""

    def __init__(self, mixing, rng):
        self.words = Embedding(DIGITS, D_MODEL, rng=rng)
        self.positions = Tensor(rng.standard_normal((LENGTH, D_MODEL)), requires_grad=True)
        self.mixing = mixing
        self.head = Linear(D_MODEL, DIGITS, rng=rng)

    def __call__(self, words):
        return self.head(self.mixing(self.words(words) + self.positions))


# %% The training, whole


def train(model, rng, what):
    """The losses on the way, and the share of held-out sequences that come out exactly."""
    model.astype(np.float32)
    optimizer = Adam(model.parameters())
    run = Run(chosen, what, model=model, optimizer=optimizer, rng=rng)
    for step in run:
        words = rng.integers(0, DIGITS, (BATCH, LENGTH))
        logits = model(words)
        loss = cross_entropy(logits, np.sort(words))
        optimizer.lr = warmup_cosine(step, peak=3e-3, warmup=50, total=chosen.steps)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.show(loss=loss.item(), accuracy=np.mean(logits.argmax(-1) == np.sort(words)))
    held_out = np.random.default_rng(chosen.seed + 1).integers(0, DIGITS, (1000, LENGTH))
    with no_grad():
        exact = np.all(model(held_out).argmax(-1) == np.sort(held_out), axis=-1).mean()
    return run.losses, float(exact)


rng = np.random.default_rng(chosen.seed)
encoder = Encoder(2, D_MODEL, HEADS, 4 * D_MODEL, norm_first=True, rng=rng)
model = Sorter(encoder, rng)
losses, exact = train(model, rng, "with attention")
alone = Sequential(*(FeedForward(D_MODEL, 4 * D_MODEL, rng=rng) for _ in range(2)))
losses_alone, exact_alone = train(Sorter(alone, rng), rng, "each place alone")

# %% What came of it

print("\nExact held-out sequences, of 1,000")
marks.at_least("with attention", exact, 0.98)
marks.at_most("ablation, each place alone", exact_alone, 0.01)

# %% Where the heads look
# Rows are places of the sorted sequence, columns the digits as they were given.

shown = np.random.default_rng(chosen.seed + 2).integers(0, DIGITS, (1, LENGTH))
embedded = model.words(shown) + model.positions
maps = [weights[0] for weights in block_weights(encoder.blocks, embedded)]
titles = [f"block {i + 1}, head {h + 1}" for i in range(2) for h in range(HEADS)]
save_figure(
    plot_heads(
        np.concatenate(maps),
        [f"place {t}: {n}" for t, n in enumerate(np.sort(shown[0]))],
        [str(n) for n in shown[0]],
        titles=titles,
    ),
    chosen.out / "weights",
)
plot_losses(
    {"with attention": losses, "each place alone": losses_alone}, chosen.out / "loss", "sort"
)
print(f"\nPictures: {chosen.out}/weights.png, loss.png")
marks.end()

# %% Try it
# - Leave one block: how many sequences come out now, and which digits go wrong?
# - Sort in falling order: does anything but the training data have to change?
