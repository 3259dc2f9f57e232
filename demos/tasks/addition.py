"""Add numbers: a decoder learns to carry.

Claim. A small GPT reads 417+385= and writes the sum digit by digit, from the right. So each digit
depends only on what is known by then: two digits and a carry. At least 98 % of sums of numbers that
it never saw are exactly right. Without positions almost none is right, because the model cannot
tell units from hundreds.

    python -m demos addition [--out DIR] [--seed N] [--steps N] [--quick] [--resume]  # 16 s
"""

# %% Set-up

import numpy as np

from attention.blocks import Block, FeedForward
from attention.figures import save_figure
from attention.generation import generate
from attention.maps import plot_heads
from attention.masks import causal_mask
from attention.models import GPT
from attention.multi_head import MultiHeadAttention
from attention.positions import LearnedPositions
from demos import options
from demos._losses import described, plot_training
from demos._page import Page, try_it
from demos._training import Marks, Run
from minigrad import cross_entropy
from minigrad.nn import Embedding, LayerNorm, Linear
from minigrad.optim import Adam, clip_gradients, warmup_cosine

chosen = options("addition", __doc__.splitlines()[0], steps=1000, quick=10)
marks = Marks(chosen, findings=True)
PLUS, EQUALS, BATCH = 10, 11, 32
PROMPT, LENGTH = 8, 12  # abc+def= and the four digits of the sum
D_MODEL, HEADS, BLOCKS = 64, 4, 2

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
    blocks = [
        Block(
            MultiHeadAttention(D_MODEL, HEADS, bias=True, rng=rng),
            FeedForward(D_MODEL, 2 * D_MODEL, rng=rng),
            norm_first=True,
        )
        for _ in range(BLOCKS)
    ]
    tokens = Embedding(12, D_MODEL, std=0.5, rng=rng)
    places = LearnedPositions(LENGTH, D_MODEL, rng=rng) if positions else None
    if places is not None:
        places.weight.data = 0.5 * rng.standard_normal((LENGTH, D_MODEL))
    head = Linear(D_MODEL, 12, rng=rng)
    return GPT(tokens, blocks, LayerNorm(D_MODEL), positions=places, head=head)


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
    questions = sums(np.random.default_rng(chosen.seed + 1), 1000, held_out=True)
    written = generate(model, questions[:, :PROMPT], 4, temperature=0.0)
    return model, run, np.all(written == questions, axis=1)  # (1000,)


model, run, exact = train(True, "with positions")
_, without, exact_without = train(False, "without positions")

# %% What came of it

asked = sums(np.random.default_rng(chosen.seed + 1), 1000, held_out=True)
a, b = (asked[:, [i, i + 1, i + 2]] @ [100, 10, 1] for i in (0, 4))
carries = np.array(
    [a % 10**i + b % 10**i >= 10**i for i in (1, 2, 3)]
)  # from units, tens, hundreds
print("\nExact held-out sums, of 1,000")
marks.at_least("with positions", float(exact.mean()), 0.98)
marks.at_least("sums that carry three times", float(exact[carries.all(axis=0)].mean()), 0.95)
marks.at_most("ablation, without positions", float(exact_without.mean()), 0.05)
marks.trained("ablation", without.losses)

# %% One sum, and where the heads look while writing it
# Each row is a token that was read, and predicts the next token. The digits of the sum are in the
# order in which they are written, from the right.

tokens = sums(np.random.default_rng(chosen.seed + 2), 1, held_out=True)
written = generate(model, tokens[:, :PROMPT], 4, temperature=0.0)
names = ["+" if t == PLUS else "=" if t == EQUALS else str(t) for t in written[0]]
total = "".join(names[: PROMPT - 1 : -1]).lstrip("0")
print(f"\n   {''.join(names[:PROMPT])} and, from the right, {' '.join(names[PROMPT:])}: {total}")
read, names = written[:, :-1], names[:-1]
maps, mask = [weights[0] for weights in model.maps(read)], causal_mask(read.shape[1])
titles = [f"block {i + 1}, head {h + 1}" for i in range(BLOCKS) for h in range(HEADS)]
drawn = plot_heads(np.concatenate(maps), names, names, titles=titles, mask=mask)
save_figure(drawn, chosen.out / "weights")
runs = {
    "with positions": (run, float(exact.mean())),
    "without positions": (without, float(exact_without.mean())),
}
plot_training(
    chosen.out / "loss",
    "Without positions the model cannot tell units from hundreds",
    runs,
    choices=10,
    mark=0.98,
    counted="digits",
    scored="sums, held out",
)
print(f"\nPictures: {chosen.out}/weights.png, loss.png")

# %% The page

same_column = [  # of the head that looks there most: the two digits of units, tens and hundreds
    np.max([m[..., PROMPT - 1 + i, [2 - i, 6 - i]].sum(axis=-1) for m in maps]) for i in range(3)
]
page = Page(
    "Add numbers",
    claim="A small GPT learns to add numbers of three digits, and to carry. Without positions it "
    "cannot tell units from hundreds.",
)
page.say(
    f"The model reads {''.join(names[:PROMPT])} and writes the sum digit by digit, from the right. "
    f"Here it writes {' '.join(str(t) for t in written[0, PROMPT:])}, which is {total}. One sum in "
    "a hundred is never trained on.",
)
page.ask(
    "Why is it easier to write the sum from the right than from the left?",
    "From the right each digit needs two digits and a carry, which is 0 or 1 and follows from what "
    "is known. From the left the first digit can depend on all six: 499+500 and 499+501 differ in "
    "all digits of their sums.",
)
page.section("What it reaches, with positions and without")
page.table(
    ["Carries in the sum", "sums", "with positions", "without"],
    [
        [n, some.sum(), f"{exact[some].mean():.1%}", f"{exact_without[some].mean():.1%}"]
        for n in range(4)
        if (some := carries.sum(axis=0) == n).any()
    ],
    caption="Exact held-out sums, by the number of carries",
)
page.figure(
    chosen.out / "loss.svg",
    alt=described(runs, "held-out sums"),
    caption="The loss, and the share of digits that are right, at each step",
)
marks.table(page, "Scores after the training, on 1,000 sums that were held out")
page.section("Where the heads look while they write one sum")
page.figure(
    chosen.out / "weights.svg",
    alt="The weights of eight heads. Of the head that looks there most, the weight on the two "
    "digits of the column is "
    + ", ".join(
        f"{share:.0%} for the {name}"
        for name, share in zip(("units", "tens", "hundreds"), same_column, strict=True)
    )
    + ".",
    caption="A row is a token that was read, and predicts the next token.",
)
page.conclude(
    "Written from the right, each digit of a sum needs two digits and a carry. The heads find the "
    "two digits by their positions.",
    try_it(chosen.file),
)
print(f"The page: {page.write(chosen.out, quick=chosen.quick, note=marks.note)}")
marks.end()

# %% Try it
# - Write the sum from the left (`for i in (3, 2, 1, 0)` in `sums`): which marks are still reached?
# - Hold out all sums that carry from the tens (`a % 100 + b % 100 >= 100` for `… % 101 == 0`): does
#   the model carry there anyway?
