"""Reverse a sequence: a head learns to look at the mirror image of its own place.

Claim. With positions, one block with one head learns to write a sequence backwards, exactly, and
its attention weights are an anti-diagonal. Without positions it cannot: attention does not depend
on the order of the tokens, so no place has a mirror image.

    python -m demos reverse [--out DIR] [--seed N] [--steps N] [--quick] [--resume]  # 8 s
"""

# %% Set-up

import numpy as np

from attention.figures import save_figure
from attention.maps import animate_weights, changing, plot_heads
from attention.transformer import Encoder
from demos import options
from demos._losses import described, plot_training
from demos._page import Page, try_it
from demos._training import Marks, Run
from minigrad import Tensor, cross_entropy, no_grad
from minigrad.nn import Embedding, Linear, Module
from minigrad.optim import Adam, warmup_cosine

chosen = options("reverse", __doc__.splitlines()[0], steps=500, quick=20)
marks = Marks(chosen, findings=True)
LENGTH, VOCAB_SIZE, D_MODEL, BATCH = 10, 10, 32, 64

# %% The model: embeddings, positions, one block, and a score for each token


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

# %% What came of it

print("\nExact held-out sequences, of 1,000")
marks.at_least("with positions", exact, 0.99)
marks.at_most("ablation, without positions", exact_without, 0.01)
marks.trained("ablation", without.losses)
frames, steps = np.array(run.history["frames"]), run.history["steps"]
mirrors = [np.fliplr(frame).diagonal().mean() for frame in frames]
mirror = float(mirrors[-1])
marks.at_least("weight on the mirror image", mirror, 0.8)

# %% Pictures

names = [str(token) for token in shown]
save_figure(plot_heads(frames[-1][None], names, names, titles=["reverse"]), chosen.out / "weights")
animate_weights(
    frames, names, names, chosen.out / "weights.gif", titles=[f"step {step}" for step in steps]
)
runs = {"with positions": (run, exact), "without positions": (without, exact_without)}
plot_training(
    chosen.out / "loss",
    "Without positions no place has a mirror image",
    runs,
    choices=VOCAB_SIZE,
    mark=0.99,
    counted="tokens",
    scored="sequences, held out",
)
print(f"\nPictures: {chosen.out}/weights.png, weights.gif, loss.png")

# %% The page

page = Page(
    "Reverse a sequence",
    claim="With positions, one head learns to write a sequence backwards: each place looks at its "
    "mirror image. Without positions it cannot.",
)
page.say(
    f"The model reads {LENGTH} digits, such as {' '.join(names)}, and writes them from the last to "
    "the first. It has one block with one head, and all places are written at the same time.",
)
page.ask(
    "The head must copy the right digit to each place. What does its map of weights look like "
    "after the training? (A row is a place that is written, a column is a place that is read.)",
    "It is an anti-diagonal. The first place looks at the last one, the second place at the last "
    f"but one, and so on: on average {mirror:.0%} of a row's weight is on the mirror image.",
)
page.section("Where the head looks, through the training")
page.slider(
    chosen.out / "weights.gif",
    [f"step {steps[i]}" for i in changing(frames)],
    alts=[f"{mirrors[i]:.0%} of the weight is on the anti-diagonal." for i in changing(frames)],
    caption="Move the slider: the head's weights from the first step to the last",
)
page.section("What it reaches, with positions and without")
page.ask(
    "The ablation has the same block, but no positions. Which share of the sequences does it "
    "write backwards?",
    f"{exact_without:.1%} of 1,000, and {exact:.1%} with positions. Attention does not depend on "
    "the order of the tokens. Without positions the model knows which digits there are, and not "
    "where.",
)
page.figure(
    chosen.out / "loss.svg",
    alt=described(runs, "held-out sequences"),
    caption="The loss, and the share of digits that are right, at each step",
)
marks.table(page, "Scores after the training, on 1,000 sequences that were held out")
page.conclude(
    "A head can look at a place, and not only at a content, if each token also holds its position. "
    "Without positions no place has a mirror image.",
    try_it(chosen.file),
)
print(f"The page: {page.write(chosen.out, quick=chosen.quick, note=marks.note)}")
marks.end()

# %% Try it
# - Shift the sequence by one place instead: what does the map look like?
# - Test on sequences of length 8 (`(1000, LENGTH - 2)`): what have the positions learned?
