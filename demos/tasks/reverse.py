"""Reverse a sequence: a head learns to look at the mirror image of its own place.

Claim. With positions, one block with one head learns to write a sequence backwards, exactly, and
its attention weights are an anti-diagonal. Without positions it cannot: attention does not depend
on the order of the tokens, so no place has a mirror image.

    python -m demos reverse [--out DIR] [--seed N] [--steps N] [--quick] [--resume]
"""

# %% Set-up

import numpy as np

from attention import Encoder
from attention.maps import changing, plot_heads
from demos import options
from demos._training import Run
from demos._training_curves import compare
from demos.pages.publish import publish
from minigrad import Tensor, cross_entropy, no_grad
from minigrad.nn import Embedding, Linear, Module
from minigrad.optim import Adam, warmup_cosine

SECONDS = 8  # of a run

chosen = options("reverse", __doc__.splitlines()[0], steps=500, quick=20)
page = publish(chosen)
LENGTH = 10
VOCAB_SIZE = 10
D_MODEL = 32
BATCH = 64

# %% The model
# Embeddings, positions, one block with one head, and a score for each token. All places are written
# at the same time.


class Reverser(Module):
    """(B, T) tokens → (B, T, VOCAB_SIZE) scores."""

    def __init__(self, *, positions, rng):
        self.embedding = Embedding(VOCAB_SIZE, D_MODEL, rng=rng)
        rows = rng.standard_normal((LENGTH, D_MODEL))
        self.positions = Tensor(rows, requires_grad=True) if positions else None
        self.encoder = Encoder(1, D_MODEL, 1, 2 * D_MODEL, norm_first=True, rng=rng)
        self.head = Linear(D_MODEL, VOCAB_SIZE, rng=rng)

    def embed(self, tokens):
        x = self.embedding(tokens)
        return x if self.positions is None else x + self.positions[: tokens.shape[1]]

    def __call__(self, tokens):
        return self.head(self.encoder(self.embed(tokens)))

    def weights(self, tokens):
        """Return the attention weights of the head, (B, T, T)."""
        return self.encoder.maps(self.embed(tokens))[0][:, 0]


# %% The training, whole


def train(positions, what):
    """Train a model; return the run, its share of exact held-out sequences, and one to look at."""
    rng = np.random.default_rng(chosen.seed)
    model = Reverser(positions=positions, rng=rng).astype(np.float32)
    optimizer = Adam(model.parameters())
    shown = np.random.default_rng(chosen.seed + 1).integers(0, VOCAB_SIZE, (1, LENGTH))
    run = Run(chosen, what, model=model, optimizer=optimizer, rng=rng)
    looked_at = np.geomspace(1, chosen.steps, 40).astype(int)  # most of them early
    for step in run:
        tokens = rng.integers(0, VOCAB_SIZE, (BATCH, LENGTH))
        logits = model(tokens)
        loss = cross_entropy(logits, tokens[:, ::-1])
        optimizer.lr = warmup_cosine(step, peak=3e-3, warmup=50, total=chosen.steps)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.show(loss=loss.item(), accuracy=np.mean(logits.argmax(-1) == tokens[:, ::-1]))
        if step in looked_at:
            run.keep(frames=model.weights(shown)[0], steps=step)
    held_out = np.random.default_rng(chosen.seed + 2).integers(0, VOCAB_SIZE, (1000, LENGTH))
    with no_grad():
        exact = np.all(model(held_out).argmax(-1) == held_out[:, ::-1], axis=-1).mean()
    return run, float(exact), shown[0]


run, exact, shown = train(True, "with positions")
without, exact_without, _ = train(False, "without positions")

# %% Where the head looks, through the training
# A row is a place that is written, a column is a place that is read.

names = [str(token) for token in shown]
frames = np.array(run.history["frames"])
steps = run.history["steps"]
mirrors = [np.fliplr(frame).diagonal().mean() for frame in frames]
slider = page.slider(
    [plot_heads(frames[i][None], names, names, titles=["reverse"]) for i in changing(frames)],
    "weights",
    [f"step {steps[i]}" for i in changing(frames)],
    alt=[f"{mirrors[i]:.1%} of the weight is on the anti-diagonal." for i in changing(frames)],
    caption="The head's weights, from the first step to the last",
)
page.finding(
    f"With positions {exact:.1%} of 1,000 held-out sequences are written exactly, and "
    f"{mirrors[-1]:.1%} of the head's weight is on the mirror image.",
    slider,
)
page.marks.at_least("weight on the mirror image", mirrors[-1], 0.8)

# %% What it reaches, with positions and without

page.ask(
    "Without positions almost no sequence comes out right. Of single digits, are more right than "
    f"the {1 / VOCAB_SIZE:.0%} of a guess?",
    f"{np.mean(without.history['accuracy'][-20:]):.0%} of the digits are right, and "
    f"{exact_without:.1%} of the sequences. The model knows which digits there are, and not where: "
    "it can write the one that occurs most often to all places.",
    guesses=("no", "yes"),
)
compare(
    page,
    "Without positions no place has a mirror image",
    (run, exact),
    (without, exact_without),
    choices=VOCAB_SIZE,
    at_least=0.99,
    at_most=0.01,
    counted="tokens",
    scored="held-out sequences",
)

# %% What to conclude
# A head can look at a place, and not only at a content, if tokens hold their positions.

page.end()

# %% Try it
# - Shift the sequence by one place instead: what does the map look like?
# - Test on sequences of length 8 (`(1000, LENGTH - 2)`): what have the positions learned?
