"""Handwritten digits: attention as a classifier without any training, and an encoder beside it.

Claim. Take an image as the query, all training images as the keys and their labels as the values.
Then attention is a classifier that was never trained. It reads between a fifth and 99 % of the
digits, depending on the length of the keys and on how sharp the softmax is. An encoder that takes
the rows of an image as its tokens learns to read at least 97 %. Without positions, so that the rows
are in a bag, the same encoder stays below 95 %. Here the writers of the test images also wrote
training images. Both classifiers read the handwriting of other people worse.

    python -m demos digits [--out DIR] [--seed N] [--steps N] [--quick] [--resume]
"""

# %% Set-up

import numpy as np
from sklearn.datasets import load_digits

from attention import Encoder, attention
from attention.figures import KINDS, name_ends, name_place, new_figure
from demos import options
from demos._training import Run
from demos._training_curves import compare, draw_levels
from demos.pages.publish import publish
from minigrad import Tensor, broadcast_to, concatenate, cross_entropy, no_grad
from minigrad.nn import Linear, Module
from minigrad.optim import AdamW, warmup_cosine

SECONDS = 12  # of a run

chosen = options("digits", __doc__.splitlines()[0], steps=600, quick=10)
page = publish(chosen)
ROWS = 8
D_MODEL = 48
HEADS = 4
BLOCKS = 2
BATCH = 32

# %% The data: 1,797 images of 8 × 8 pixels, from scikit-learn
# The models are trained on 1,197 images. Every choice is made on 200 others, and every claim is
# measured on the last 400, once. The images are shuffled first, since the file is sorted by writer.

data = load_digits()
images, labels = data.images / 16, data.target  # (1797, 8, 8) from 0 to 1, (1797,)
rng = np.random.default_rng(chosen.seed)
train, validation, held_out = np.split(rng.permutation(len(images)), [1197, 1397])

# %% Without training
# The answer is the average of the training images' labels, weighted by softmax(scale · q·k). Two
# things decide the weight of each image, and neither has to do with learning.
#
# The length of the keys: a dot product favours long keys, which are images with much ink, whatever
# they show. If all keys have length 1, only the angle between the images counts.
#
# The scale: near 0 all images get the same weight, and at infinity the best one gets all of it.

flat = images.reshape(-1, 64)
centred = flat - flat[train].mean(axis=0)
unit = lambda x: x / np.linalg.norm(x, axis=1, keepdims=True)  # vectors of length 1
FORMS = {
    "as they are": flat,
    "mean removed": centred,
    "length 1": unit(flat),
    "mean removed, length 1": unit(centred),
}
SCALES = np.array([0.125, 0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256])  # 0.125 = 1/√64 = 1/√d_k


def looked_up(which, form, scale, known=train):
    """Return True for each image that attention to the known images reads correctly."""
    q, k = (Tensor(FORMS[form][some]) for some in (which, known))
    with no_grad():
        shares = attention(q, k, Tensor(np.eye(10)[labels[known]]), scale=scale)  # (n, 10)
    return shares.argmax(axis=-1) == labels[which]


curves = {form: [looked_up(validation, form, x).mean() for x in SCALES] for form in FORMS}
best = max(curves, key=lambda name: max(curves[name]))
best_scale = SCALES[int(np.argmax(curves[best]))]
worst = min(map(min, curves.values()))
looking = looked_up(held_out, best, best_scale)
as_attention = looked_up(held_out, "as they are", SCALES[0]).mean()

# %% The model: a row of pixels is a token
# One more token is the same for all images. Its vector after two blocks, which it has gathered from
# the rows, goes to the classifier. (This is BERT's [CLS], Devlin et al. 2019.)


class Reader(Module):
    """(B, 8, 8) pixels → (B, 10) scores."""

    def __init__(self, *, positions, rng):
        self.rows = Linear(ROWS, D_MODEL, rng=rng)
        self.asking = Tensor(rng.standard_normal((1, D_MODEL)), requires_grad=True)
        places = rng.standard_normal((ROWS, D_MODEL))
        self.positions = Tensor(places, requires_grad=True) if positions else None
        sizes = (BLOCKS, D_MODEL, HEADS, 2 * D_MODEL)
        self.encoder = Encoder(*sizes, norm_first=True, dropout=0.1, rng=rng)
        self.head = Linear(D_MODEL, 10, rng=rng)

    def tokens(self, pixels):
        rows = self.rows(Tensor(pixels))  # (B, 8, d_model)
        if self.positions is not None:
            rows = rows + self.positions
        asking = broadcast_to(self.asking, (len(pixels), 1, D_MODEL))
        return concatenate([asking, rows], axis=1)  # (B, 9, d_model)

    def __call__(self, pixels):
        return self.head(self.encoder(self.tokens(pixels))[:, 0])


pixels = ((images - images[train].mean()) / images[train].std()).astype(np.float32)

# %% The training, whole


def train_reader(positions, what, known=train, asked=held_out):
    """Train a model; return it, its run, and True for each asked image that it reads correctly."""
    rng = np.random.default_rng(chosen.seed)
    model = Reader(positions=positions, rng=rng).astype(np.float32)
    matrices = [p for p in model.parameters() if p.ndim > 1]
    others = {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0}
    optimizer = AdamW([{"params": matrices}, others], weight_decay=0.1)
    run = Run(chosen, what, model=model, optimizer=optimizer, rng=rng)
    for step in run:
        some = rng.choice(known, BATCH, replace=False)
        logits = model(pixels[some])
        loss = cross_entropy(logits, labels[some], label_smoothing=0.1)
        optimizer.lr = warmup_cosine(step, peak=3e-3, warmup=50, total=chosen.steps)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.show(loss=loss.item(), accuracy=np.mean(logits.argmax(axis=-1) == labels[some]))
    model.eval()
    with no_grad():
        return model, run, model(pixels[asked]).argmax(axis=-1) == labels[asked]


model, run, reading = train_reader(True, "rows with positions")
_, bag_run, in_a_bag = train_reader(False, "rows in a bag")

# %% What both read

figure = new_figure(5.4, 4.6)
ends = []
axes = figure.subplots()
for form, colour, style in zip(FORMS, KINDS, ("o-", "s--", "^-.", "D:"), strict=False):
    axes.plot(SCALES, curves[form], style, color=colour, markersize=4)
    ends.append((curves[form][-1], form, colour))
axes.set_ylim(0, 1.02)
levels = {"the encoder, held out": reading.mean(), "chance": 0.1}
name_ends(axes, ends + draw_levels(axes, levels))
name_place(axes, SCALES[0], "1/√d_k")
axes.set_xscale("log")
axes.set(xlabel="scale", ylabel="validation images read right")
axes.set_title("Without training, a sharp look-up reads nearly all digits", fontsize=11, pad=18)
axes.grid(alpha=0.25)
drawn = page.figure(
    figure,
    "without_training",
    alt=f"The share of digits that are read, over the scale. The best of four forms of the keys, "
    f"{best}, reaches {max(curves[best]):.1%} at scale {best_scale:g}; the worst number of all is "
    f"{worst:.1%}.",
    caption="The share of 200 validation images that are read, by the form of the keys",
)
page.finding(
    f"Without any training attention reads {looking.mean():.1%} of 400 held-out images. The "
    f"encoder learns to read {reading.mean():.1%}.",
    drawn,
)
page.ask(
    "If the images stay as they are, and the scale is 1/√d_k, how many of the 400 does attention "
    "read without training? Chance is 10 %.",
    f"It reads {as_attention:.1%}. With the form of the keys and the scale that are best on the "
    f"validation images ({best}, scale {best_scale:g}) it reads {looking.mean():.1%}.",
    guesses=("20 %", "80 %", "99 %"),
)
page.marks.at_most("no training, the worst form and scale", worst, 0.25)
page.marks.at_least("no training, as chosen", looking.mean(), 0.96)
page.marks.at_most("no training, images as they are, scale 1/√d_k", as_attention, 0.9)

# %% An encoder, with positions and without

page.ask(
    "In the ablation the same rows come in a bag: without positions. How much does the encoder "
    "lose?",
    f"It reads {in_a_bag.mean():.1%}. Most digits can be told from which rows there are, "
    "and some cannot.",
    guesses=("almost nothing", "7 %", "half"),
)
compare(
    page,
    "In a bag the rows of an image say less\n(smoothed labels keep the loss above 0.5)",
    (run, reading.mean()),
    (bag_run, in_a_bag.mean()),
    choices=10,
    at_least=0.97,
    at_most=0.95,
    counted="images",
    scored="held-out images",
)

# %% Where the asking token looks in four images
# Where all rows are pale, the rest of the weight, up to 1, is on the asking token itself.

shown = held_out[:4]
digits = model(pixels[shown]).argmax(axis=-1)
first, last = (x[:, :, 0, 1:] for x in model.encoder.maps(model.tokens(pixels[shown])))  # (4, H, 8)
figure = new_figure(7.6, 3.9)
panels = figure.subplots(4, 1 + 2 * HEADS, subplot_kw={"xticks": [], "yticks": []})
for i, row in enumerate(panels):
    for panel in row:
        panel.imshow(images[shown[i]], cmap="Greys")
    row[0].set_ylabel(f"read as {digits[i]}", fontsize=9)
    for panel, weights in zip(row[1:], [*first[i], *last[i]], strict=True):
        rows = np.repeat(weights[:, None], 8, axis=1)
        image = panel.imshow(rows, cmap="Blues", alpha=0.6, vmin=0, vmax=1)
for i, panel in enumerate(panels[0, 1:]):
    panel.set_title(f"block {i // HEADS + 1}\nhead {i % HEADS + 1}", fontsize=8)
figure.colorbar(image, ax=panels, aspect=30).set_label("weight of a row of pixels", fontsize=8)
page.figure(
    figure,
    "weights",
    alt=f"Four images, read as {', '.join(map(str, digits))}, and how much the asking "
    f"token takes of each row. In block 2 the rows together have {last.sum(-1).mean():.0%} of its "
    "weight.",
)

# %% Other hands
# The same again, unshuffled: the model is trained on the first 1,197 images of the file and tested
# on the last 400, which other people wrote. This is the real task of a reader of digits.

known, _, others = np.split(np.arange(len(images)), [1197, 1397])
_, _, of_others = train_reader(True, "other hands", known, others)
right_by = {
    "by writers of training images": (looking, reading),
    "by other people": (looked_up(others, best, best_scale, known), of_others),
}
page.table(
    ["Test images", "without training", "encoder"],
    [[who, *(f"{right.mean():.2%}" for right in both)] for who, both in right_by.items()],
    caption="Digits read, of 400",
)

# %% Is the encoder better than the look-up?
# Only the images that exactly one of them reads can show it. If both were equally good, each such
# image would be the toss of a coin.

gained = int(np.sum(reading & ~looking))
lost = int(np.sum(looking & ~reading))
differs = "a difference" if abs(gained - lost) > 2 * np.sqrt(gained + lost) else "no difference"
page.say(
    f"{gained} images are read by the encoder alone, {lost} by the look-up alone, and "
    f"{np.sum(~looking & ~reading)} by neither: {differs} "
    "of more than two standard deviations of as many tosses of a coin."
)

# %% What to conclude
# A look-up among enough similar images is hard to beat, and attention is such a look-up. Both
# classifiers read the handwriting of other people worse, and this is the real task.

page.end()

# %% Try it
# - Read the columns instead (`data.images.transpose(0, 2, 1) / 16`): which bag, of rows or of
#   columns, reads more digits, and why?
# - Keep 100 training images of the 1,197 (`train = train[:100]`): which classifier loses more?
