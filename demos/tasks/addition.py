"""Add numbers: a decoder learns to carry.

Claim. A small GPT reads 417+385= and writes the sum digit by digit, from the right. So each digit
depends only on what is known by then: two digits and a carry. At least 98 % of sums of numbers that
it never saw are exactly right. Without positions almost none is right, because the model cannot
tell units from hundreds.

    python -m demos addition [--out DIR] [--seed N] [--steps N] [--quick] [--resume]
"""

# %% Set-up

import numpy as np

from attention import GPT, LearnedPositions, causal_mask, generate
from attention.maps import plot_heads
from attention.transformer import Stack
from demos import options
from demos._training import Run
from demos._training_curves import compare
from demos.pages.publish import publish
from minigrad import cross_entropy
from minigrad.nn import Embedding, Linear
from minigrad.optim import Adam, clip_gradients, warmup_cosine

SECONDS = 16  # of a run

chosen = options("addition", __doc__.splitlines()[0], steps=1000, quick=10)
page = publish(chosen)
PLUS = 10
EQUALS = 11
BATCH = 32
PROMPT = 8  # abc+def=
LENGTH = 12  # with the four digits of the sum
D_MODEL = 64
HEADS = 4
BLOCKS = 2

# %% The data
# One sum in a hundred is held out and never trained on: the number abcdef of its six digits is
# divisible by 101. This depends on every digit.


def sums(rng, n, *, held_out):
    """Draw n rows of tokens: a, +, b, = and the sum with its last digit first."""
    a, b = rng.integers(0, 1000, (2, 3 * n if not held_out else 200 * n))
    a, b = (x[((a * 1000 + b) % 101 == 0) == held_out][:n] for x in (a, b))
    from_right = [(a + b) // 10**i % 10 for i in range(4)]
    columns = [a // 100, a // 10 % 10, a % 10, a * 0 + PLUS]
    columns += [b // 100, b // 10 % 10, b % 10, b * 0 + EQUALS, *from_right]
    return np.stack(columns, axis=1)


# %% The model: a GPT of two blocks
# The embeddings begin with a standard deviation of ½, not with GPT-2's 0.02, because there are few
# tokens and few steps.


def decoder(positions, rng):
    """Return a model: (B, T) tokens → (B, T, 12) scores of the next one."""
    body = Stack(BLOCKS, D_MODEL, HEADS, 2 * D_MODEL, norm_first=True, rng=rng)
    tokens = Embedding(12, D_MODEL, std=0.5, rng=rng)
    places = LearnedPositions(LENGTH, D_MODEL, rng=rng) if positions else None
    if positions:
        places.weight.data = 0.5 * rng.standard_normal((LENGTH, D_MODEL))
    head = Linear(D_MODEL, 12, rng=rng)
    return GPT(tokens, body.blocks, body.final_norm, positions=places, head=head)


# %% The training, whole


def train(positions, what):
    """Train a model; return it, its run, and True for each of 1,000 held-out sums that is right."""
    rng = np.random.default_rng(chosen.seed)
    model = decoder(positions, rng).astype(np.float32)
    optimizer = Adam(model.parameters(), betas=(0.9, 0.98))
    run = Run(chosen, what, model=model, optimizer=optimizer, rng=rng)
    for step in run:
        tokens = sums(rng, BATCH, held_out=False)
        targets = np.where(np.arange(1, LENGTH) < PROMPT, -1, tokens[:, 1:])  # only the sum counts
        logits = model(tokens[:, :-1])
        loss = cross_entropy(logits, targets, ignore_index=-1)
        optimizer.lr = warmup_cosine(step, peak=4e-3, warmup=50, total=chosen.steps)
        optimizer.zero_grad()
        loss.backward()
        clip_gradients(model.parameters(), 1.0)
        optimizer.step()
        right = (logits.argmax(-1) == targets)[:, PROMPT - 1 :]
        run.show(loss=loss.item(), accuracy=np.mean(right))
    written = generate(model, asked[:, :PROMPT], 4, temperature=0.0)
    return model, run, np.all(written == asked, axis=1)  # (1000,)


asked = sums(np.random.default_rng(chosen.seed + 1), 1000, held_out=True)
model, run, exact = train(True, "with positions")
_, without, exact_without = train(False, "without positions")

# %% One sum, and where the heads look while writing it
# Each row is a token that was read, and predicts the next token. The digits of the sum are in the
# order in which they are written, from the right.

tokens = sums(np.random.default_rng(chosen.seed + 2), 1, held_out=True)
written = generate(model, tokens[:, :PROMPT], 4, temperature=0.0)
names = ["+" if t == PLUS else "=" if t == EQUALS else str(t) for t in written[0]]
total = "".join(names[: PROMPT - 1 : -1]).lstrip("0")
maps = np.concatenate([weights[0] for weights in model.maps(written[:, :-1])])  # (8, 11, 11)
same_column = [  # of the head that looks there most: the two digits of units, tens and hundreds
    f"{maps[:, PROMPT - 1 + i, [2 - i, 6 - i]].sum(axis=-1).max():.0%}" for i in range(3)
]
weights = page.figure(
    plot_heads(
        maps,
        names[:-1],
        names[:-1],
        titles=[f"block {i + 1}, head {h + 1}" for i in range(BLOCKS) for h in range(HEADS)],
        mask=causal_mask(LENGTH - 1),
    ),
    "weights",
    alt="The weights of eight heads. Of the head that looks there most, the weight on the two "
    f"digits of units, tens and hundreds is {', '.join(same_column)}.",
    caption=f"After {''.join(names[:PROMPT])} the model writes, from the right, "
    f"{' '.join(names[PROMPT:])}, which is {total}",
)
page.finding(f"The model writes {exact.mean():.1%} of 1,000 held-out sums exactly.", weights)
page.ask(
    "Why is it easier to write the sum from the right than from the left?",
    "From the right each digit needs two digits and a carry, which is 0 or 1 and follows from what "
    "is known. From the left the first digit can depend on all six: 499+500 and 499+501 differ in "
    "all digits of their sums.",
)

# %% What it reaches, with positions and without

a, b = (asked[:, [i, i + 1, i + 2]] @ [100, 10, 1] for i in (0, 4))
carries = np.array(
    [a % 10**i + b % 10**i >= 10**i for i in (1, 2, 3)]
)  # from units, tens, hundreds
page.table(
    ["Carries in the sum", "sums", "with positions", "without"],
    [
        [n, some.sum(), f"{exact[some].mean():.1%}", f"{exact_without[some].mean():.1%}"]
        for n in range(4)
        if (some := carries.sum(axis=0) == n).any()
    ],
    caption="Exact held-out sums, by the number of carries",
)
compare(
    page,
    "Without positions the model cannot tell units from hundreds",
    (run, float(exact.mean())),
    (without, float(exact_without.mean())),
    choices=10,
    at_least=0.98,
    at_most=0.05,
    counted="digits",
    scored="held-out sums",
)
thrice = float(exact[carries.all(axis=0)].mean())
page.marks.at_least("sums that carry three times", thrice, 0.95)

# %% What to conclude
# Written from the right, each digit of a sum needs two digits and a carry. The heads find the two
# digits by their positions.

page.end()

# %% Try it
# - Write the sum from the left (`for i in (3, 2, 1, 0)` in `sums`): which marks are still reached?
# - Hold out all sums that carry from the tens (`a % 100 + b % 100 >= 100` for `… % 101 == 0`): does
#   the model carry there anyway?
