"""Associative recall: one head learns to look up a value by its key, and what √d_k does to it.

Claim. Attention is a look-up. A single head gets eight pairs (key, value) and then one of the keys,
and learns to answer with the value of that key, whatever the keys and values are. At d_k = 512 the
scale 1/√d_k decides whether a learning rate of 1 is possible: without the scale the training
breaks. At a rate of 0.1 the head learns without the scale as well, and sooner, because its initial
weights are small.

    python -m demos recall [--out DIR] [--seed N] [--steps N] [--quick] [--resume]
"""

# %% Set-up

import numpy as np

from attention import MultiHeadAttention
from attention.figures import SCALED, UNSCALED, new_figure
from attention.maps import plot_heads
from demos import options
from demos._training import Run
from demos._training_curves import Line, draw_losses
from demos.pages.publish import publish
from minigrad import Tensor, cross_entropy, no_grad
from minigrad.nn import Embedding, Linear, Module
from minigrad.optim import SGD

SECONDS = 7  # of a run

np.seterr(over="ignore", invalid="ignore")  # one training ends in NaN, and this is shown
chosen = options("recall", __doc__.splitlines()[0], steps=600, quick=20)
page = publish(chosen)
KEYS = 16  # different keys
VALUES = 16  # different values
PAIRS = 8  # in a sequence
D_MODEL = 32
D_K = 512
BATCH = 64

# %% The task
# The pairs of a sequence are drawn anew each time, and no key occurs twice. So the weights of the
# model cannot hold the answers: the head must find the pair with this key.
#
# A pair is one token: the key's vector plus the value's. (If a pair were two tokens, one head in
# one layer could not solve the task, since the value's token would not contain the key before it.)


def batch(rng, size):
    """Draw keys and values (B, PAIRS), a key to ask for (B,), and the value that answers (B,)."""
    keys = rng.permuted(np.tile(np.arange(KEYS), (size, 1)), axis=1)[:, :PAIRS]
    values = rng.integers(0, VALUES, (size, PAIRS))
    asked = rng.integers(0, PAIRS, size)
    rows = np.arange(size)
    return keys, values, keys[rows, asked], values[rows, asked]


class Recall(Module):
    """One head between the question and the pairs."""

    def __init__(self, *, scale, rng):
        self.keys = Embedding(KEYS, D_MODEL, rng=rng)
        self.values = Embedding(VALUES, D_MODEL, rng=rng)
        self.attention = MultiHeadAttention(D_MODEL, 1, d_k=D_K, d_v=D_MODEL, scale=scale, rng=rng)
        self.head = Linear(D_MODEL, VALUES, rng=rng)

    def tokens(self, keys, values, asked):
        """Embed the question as one position, the pairs as PAIRS positions."""
        return self.keys(np.expand_dims(asked, 1)), self.keys(keys) + self.values(values)

    def __call__(self, keys, values, asked):
        question, pairs = self.tokens(keys, values, asked)
        return self.head(self.attention(question, pairs))[:, 0]  # (B, VALUES)


# %% The training, whole
# Four models with one head each, by plain gradient descent (SGD, without momentum)


def train(scale, lr, what):
    """Train as long as the loss is finite; return the model, its losses, and its accuracy."""
    rng = np.random.default_rng(chosen.seed)
    model = Recall(scale=scale, rng=rng).astype(np.float32)
    optimizer = SGD(model.parameters(), lr)
    run = Run(chosen, what, model=model, optimizer=optimizer, rng=rng)
    for _ in run:
        keys, values, asked, answer = batch(rng, BATCH)
        logits = model(keys, values, asked)
        loss = cross_entropy(logits, answer)
        if not np.isfinite(loss.item()):
            break
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.show(loss=loss.item(), accuracy=np.mean(logits.argmax(-1) == answer))
    keys, values, asked, answer = batch(np.random.default_rng(chosen.seed + 1), 2000)
    with no_grad():
        right = np.mean(model(keys, values, asked).argmax(-1) == answer)
    return model, run.losses, float(right)


runs = {
    (name, lr): train(scale, lr, f"{name}, rate {lr}")
    for lr in (1.0, 0.1)
    for name, scale in (("scaled", None), ("unscaled", 1.0))
}

# %% The four trainings

figure = new_figure(5.4, 6.6)
for panel, lr, claim in zip(
    figure.subplots(2, 1, sharex=True),
    (1.0, 0.1),
    ("At a rate of 1 only the scaled head learns", "At a rate of 0.1 both do, unscaled sooner"),
    strict=True,
):
    lines = [
        Line(f"{name}: {runs[name, lr][2]:.0%} right", runs[name, lr][1], colour, style)
        for name, colour, style in (("scaled", SCALED, "-"), ("unscaled", UNSCALED, "--"))
    ]
    draw_losses(panel, lines, {f"chance: ln {VALUES}": np.log(VALUES)})
    panel.set_title(claim, fontsize=11)
panel.set_xlabel("step")
losses = page.figure(
    figure,
    "loss",
    alt="The loss of four trainings. "
    + " ".join(
        f"{name.capitalize()}, rate {lr}: {right:.0%} of the questions are answered, after "
        f"{len(losses)} steps."
        for (name, lr), (_, losses, right) in runs.items()
    ),
    caption="The loss at each step. A cross is a training that broke with NaN.",
)
broke = ""
if len(runs["unscaled", 1.0][1]) < chosen.steps:
    broke = "; its training broke with NaN"
page.finding(
    f"At a rate of 1 the scaled head answers {runs['scaled', 1.0][2]:.1%} of 2,000 held-out "
    f"questions. The unscaled one answers {runs['unscaled', 1.0][2]:.1%} (a guess: "
    f"{1 / VALUES:.1%}){broke}. "
    f"At a rate of 0.1 it is {runs['scaled', 0.1][2]:.1%} and {runs['unscaled', 0.1][2]:.1%}.",
    losses,
)
page.marks.at_least("scaled, rate 1", runs["scaled", 1.0][2], 0.99)
page.marks.at_least("scaled, rate 0.1", runs["scaled", 0.1][2], 0.99)
page.marks.at_least(
    "unscaled, rate 0.1: small steps do not need the scale", runs["unscaled", 0.1][2], 0.99
)
page.marks.at_most("ablation, unscaled, rate 1", runs["unscaled", 1.0][2], 0.9)

# %% How far does one step move the scores?
# The scale is a factor of every score, and of its derivative with respect to W_q and W_k. So the
# same step moves the scores of the unscaled head about √d_k · √d_k = d_k times as far.


def first_step(scale, seed):
    """Return the spread of the scores over the pairs at the start, and of a small step's change."""
    rng = np.random.default_rng([chosen.seed, seed])
    model = Recall(scale=scale, rng=rng)
    keys, values, asked, answer = batch(rng, BATCH)
    optimizer = SGD(model.parameters(), 1e-4)

    def scores():
        log_p = np.log(model.attention.weights(*model.tokens(keys, values, asked)).data)
        return log_p - log_p.mean(axis=-1, keepdims=True)  # softmax sees no constant

    before = scores()
    cross_entropy(model(keys, values, asked), answer).backward()
    optimizer.step()
    return before.std(), (scores() - before).std()


scaled, raw = (np.mean([first_step(s, i) for i in range(10)], axis=0) for s in (None, 1.0))
raw_std = raw[0]
further = raw[1] / scaled[1]
page.ask(
    f"The scale divides the scores by √{D_K} = {D_K**0.5:.1f}. Without it the same step moves "
    "the scores further. How many times?",
    f"Nearly {D_K} times: {further:.0f} (mean of 10 starts). The scale acts twice, on the scores "
    "and on the gradients of W_q and W_k.",
    guesses=(f"{D_K**0.5:.1f} times", f"some {D_K} times"),
)
page.say(
    "That is why the unscaled head is sooner at a rate of 0.1. It can be, because the initial "
    "weights of this model are small (Xavier's): the raw scores spread over the pairs by "
    f"{raw_std:.1f}. If q and k had variance 1, they would spread by about {D_K**0.5:.1f}, and "
    "softmax would be saturated (chapter 16.5)."
)
page.marks.at_least(
    "one step: change of the unscaled scores over the scaled", further, D_K / 2, ".0f"
)
page.marks.at_most("the same, from above", further, D_K * 2, ".0f")

# %% Where the head looks

rng = np.random.default_rng(chosen.seed + 2)
keys, values, *_ = batch(rng, 1)
shown = {"scaled, rate 1": runs["scaled", 1.0][0], "unscaled, rate 0.1": runs["unscaled", 0.1][0]}
maps = []
for model in shown.values():
    with no_grad():
        pairs = model.keys(keys) + model.values(values)
        questions = Tensor(model.keys(keys).data)
        maps.append(model.attention.weights(questions, pairs).data[0, 0])  # (PAIRS, PAIRS)
on_key = [f"{np.diag(m).mean():.0%} ({name})" for name, m in zip(shown, maps, strict=True)]
page.figure(
    plot_heads(
        np.array(maps),
        [f"key {k}?" for k in keys[0]],
        [f"{k}:{v}" for k, v in zip(keys[0], values[0], strict=True)],  # key:value
        titles=list(shown),
    ),
    "weights",
    alt=f"Rows are questions, columns pairs. Of a row's weight {' and '.join(on_key)} are on the "
    "pair of its key, on average.",
    caption="Eight questions about one sequence of pairs: each row should look at the pair of its "
    "key",
)

# %% What to conclude
# The scale is not needed to learn the look-up: small steps are enough. The scale makes large steps
# safe, because the scores stay where softmax passes gradients on.

page.end()

# %% Try it
# - Set `D_K` to 64: does the unscaled head learn at a rate of 1 now? At 16, does the scaled one?
# - Let the pairs be two tokens each (in `tokens`, `concatenate([self.keys(keys),
#   self.values(values)], axis=1)`): what does one head learn then?
