"""Handwritten digits: attention as a classifier without any training, and an encoder beside it.

Claim. Take an image as the query, all training images as the keys and their labels as the values.
Then attention is a classifier that was never trained. It reads between a fifth and 99 % of the
digits, depending on the length of the keys and on how sharp the softmax is. An encoder that takes
the rows of an image as its tokens learns to read at least 97 %. Without positions, so that the rows
are in a bag, the same encoder stays below 95 %. Here the writers of the test images also wrote
training images. Both classifiers read the handwriting of other people worse.

    python -m demos digits [--out DIR] [--seed N] [--steps N] [--quick] [--resume]  # 12 s
"""

# %% Set-up

import numpy as np
from sklearn.datasets import load_digits

from attention import attention
from attention.figures import KINDS, name_ends, name_place, new_figure, save_figure
from attention.transformer import Encoder
from demos import options
from demos._losses import described, draw_levels, plot_training
from demos._page import Page, try_it
from demos._training import Marks, Run
from minigrad import Tensor, broadcast_to, concatenate, cross_entropy, no_grad
from minigrad.nn import Linear, Module
from minigrad.optim import AdamW, warmup_cosine

chosen = options("digits", __doc__.splitlines()[0], steps=600, quick=10)
marks = Marks(chosen, findings=True)
ROWS, D_MODEL, HEADS, BLOCKS, BATCH = 8, 48, 4, 2, 32

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

mean = images[train].mean(axis=0)


def flat(x):
    """(n, 8, 8) → (n, 64)."""
    return x.reshape(len(x), -1)


def unit(x):
    """Return the images as vectors of length 1."""
    return flat(x) / np.linalg.norm(flat(x), axis=1, keepdims=True)


FORMS = {
    "as they are": flat,
    "mean removed": lambda x: flat(x - mean),
    "length 1": unit,
    "mean removed, length 1": lambda x: unit(x - mean),
}
SCALES = np.array([0.125, 0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256])  # 0.125 = 1/√64 = 1/√d_k


def looked_up(which, form, scale, known=train):
    """Return the digits that attention to the known images reads in other images."""
    q, k = (Tensor(form(images[some])) for some in (which, known))
    with no_grad():
        shares = attention(q, k, Tensor(np.eye(10)[labels[known]]), scale=scale)  # (n, 10)
    return shares.argmax(axis=-1)


def right(found, which):
    """Return the share of digits that were read correctly."""
    return float(np.mean(found == labels[which]))


curves = {
    name: [right(looked_up(validation, form, scale), validation) for scale in SCALES]
    for name, form in FORMS.items()
}
best_form = max(curves, key=lambda name: max(curves[name]))
best_scale = SCALES[int(np.argmax(curves[best_form]))]
print("Right without training, on the 200 validation images, by scale")
print(f"   {'':23}" + "".join(f"{scale:>7g}" for scale in SCALES))
for name, curve in curves.items():
    print(f"   {name:23}" + "".join(f"{share:7.1%}" for share in curve))
by_looking = looked_up(held_out, FORMS[best_form], best_scale)
as_attention = right(looked_up(held_out, flat, SCALES[0]), held_out)
print(f"\nChosen there: {best_form}, scale {best_scale:g}. On the 400 held-out images:")
worst = min(min(curve) for curve in curves.values())
marks.at_most("no training, the worst of the table", worst, 0.25)
marks.at_least("no training, as chosen", right(by_looking, held_out), 0.96)
marks.at_most("no training, images as they are, scale 1/√d_k", as_attention, 0.9)

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


def read(model, which):
    """Return the digits that the model reads."""
    with no_grad():
        return model(pixels[which]).argmax(axis=-1)


# %% The training, whole


def train_reader(positions, what, known=train):
    """Train a model; return it and its run."""
    rng = np.random.default_rng(chosen.seed)
    model = Reader(positions=positions, rng=rng).astype(np.float32)
    optimizer = AdamW(model.parameters(), decay=0.1, matrices_only=True)
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
    return model.eval(), run


model, run = train_reader(True, "rows with positions")
bag, bag_run = train_reader(False, "rows in a bag")

# %% What came of it

by_reading = read(model, held_out)
print("\nRight on the 400 held-out images")
marks.at_least("encoder", right(by_reading, held_out), 0.97)
of_bag = right(read(bag, held_out), held_out)
marks.at_most("ablation, rows in a bag", of_bag, 0.95)
marks.trained("ablation", bag_run.losses)

# %%
# The same again, unshuffled: the model is trained on the first 1,197 images of the file and tested
# on the last 400, which other people wrote. This is the real task of a reader of digits.

first, _, others = np.split(np.arange(len(images)), [1197, 1397])
stranger, _ = train_reader(True, "other hands", first)
of_others = looked_up(others, FORMS[best_form], best_scale, first)
other_hands = right(of_others, others), right(read(stranger, others), others)
print(f"\n   other hands: without training {other_hands[0]:.2%}, encoder {other_hands[1]:.2%}")

# %%
# Is the trained classifier better than the untrained one? Only the images that exactly one of them
# reads can show it. If both were equally good, each such image would be the toss of a coin.

truth = labels[held_out]
gained = int(np.sum((by_reading == truth) & (by_looking != truth)))
lost = int(np.sum((by_reading != truth) & (by_looking == truth)))
both = int(np.sum((by_reading != truth) & (by_looking != truth)))
print(
    f"\n   without training {right(by_looking, held_out):.2%}, encoder "
    f"{right(by_reading, held_out):.2%}; neither reads {both} images.\n"
    f"   {gained} more are read by the encoder alone, {lost} by the look-up alone: "
    f"{'a difference' if abs(gained - lost) > 2 * np.sqrt(gained + lost) else 'no difference'} "
    "of more than\n   two standard deviations of as many tosses of a coin."
)

# %% Pictures: the curves, and where the asking token looks in four images
# Where all rows are pale, the rest of the weight, up to 1, is on the asking token itself.

figure = new_figure(6.8, 4.6)
axes = figure.subplots()
for curve, colour, style in zip(curves.values(), KINDS, ("o-", "s--", "^-.", "D:"), strict=False):
    axes.plot(SCALES, curve, style, color=colour, markersize=4)
ends = [(c[-1], name, colour) for (name, c), colour in zip(curves.items(), KINDS, strict=False)]
axes.set_ylim(0, 1.02)
levels = {"the encoder, held out": right(by_reading, held_out), "chance": 0.1}
name_ends(axes, ends + draw_levels(axes, levels))
name_place(axes, SCALES[0], "1/√d_k")
axes.set_xscale("log")
axes.set(xlabel="scale", ylabel="validation images read right")
axes.set_title("Without training, a sharp look-up reads nearly all digits", fontsize=11, pad=18)
axes.grid(alpha=0.25)
save_figure(figure, chosen.out / "without_training")

shown = held_out[:4]
first, last = model.encoder.maps(model.tokens(pixels[shown]))  # (4, H, 9, 9)
figure = new_figure(7.6, 3.9)
panels = figure.subplots(len(shown), 1 + 2 * HEADS)
for i, row in enumerate(panels):
    row[0].imshow(images[shown[i]], cmap="Greys")
    row[0].set_ylabel(f"read as {by_reading[i]}", fontsize=9)
    for number, panel in enumerate(row[1:]):
        block, head = divmod(number, HEADS)
        looks = (first, last)[block][i, head, 0, 1:]  # how much the asking token takes of each row
        panel.imshow(images[shown[i]], cmap="Greys")
        rows = np.repeat(looks[:, None], 8, axis=1)
        drawn = panel.imshow(rows, cmap="Blues", alpha=0.6, vmin=0, vmax=1)
        if i == 0:
            panel.set_title(f"block {block + 1}\nhead {head + 1}", fontsize=8)
    for panel in row:
        panel.set_xticks([])
        panel.set_yticks([])
figure.colorbar(drawn, ax=panels, aspect=30).set_label("weight of a row of pixels", fontsize=8)
save_figure(figure, chosen.out / "weights")
runs = {
    "rows with positions": (run, right(by_reading, held_out)),
    "rows in a bag": (bag_run, of_bag),
}
plot_training(
    chosen.out / "loss",
    "In a bag the rows of an image say less\n(smoothed labels keep the loss above 0.5)",
    runs,
    choices=10,
    mark=0.97,
    counted="images",
    scored="images, held out",
)
print(f"\nPictures: {chosen.out}/without_training.png, weights.png, loss.png")

# %% The page

of_rows = last[:, :, 0, 1:].sum(axis=-1).mean()
page = Page(
    "Handwritten digits",
    claim="Attention to all training images is a classifier without any training. An encoder that "
    "takes the rows of an image as its tokens learns to read as many, and reads fewer if the rows "
    "have no positions.",
)
page.say(
    "An image has 8 × 8 pixels. Without training the image is the query, the 1,197 training "
    "images are the keys, and their labels are the values: the answer is an average of labels, "
    "weighted by softmax(scale · q·k).",
)
page.ask(
    "How many of 400 digits does this read, if nothing was trained? Chance is 10 %.",
    f"With the images as they are and the scale 1/√d_k it reads {as_attention:.1%}. With the form "
    f"of the keys and the scale that are best on other images ({best_form}, scale "
    f"{best_scale:g}) it reads {right(by_looking, held_out):.1%}.",
)
page.section("Without training")
page.figure(
    chosen.out / "without_training.svg",
    alt=f"The share of digits that are read, over the scale. The best of four forms of the keys, "
    f"{best_form}, reaches {max(curves[best_form]):.1%} at scale {best_scale:g}; the worst number "
    f"of all is {worst:.1%}.",
    caption="The share of 200 validation images that are read, by the form of the keys",
)
page.table(
    ["Form of the keys", *(f"{scale:g}" for scale in SCALES)],
    [[name, *(f"{share:.0%}" for share in curve)] for name, curve in curves.items()],
    caption="The same numbers: read without training, by scale",
)
page.section("An encoder, with positions and without")
page.ask(
    "In the ablation the same rows come in a bag: without positions. How much does the encoder "
    "lose?",
    f"It reads {of_bag:.1%}, and {right(by_reading, held_out):.1%} with positions. Most digits can "
    "be told from which rows there are, and some cannot.",
)
page.figure(
    chosen.out / "loss.svg",
    alt=described(runs, "held-out images"),
    caption="The loss, and the share of images that are read, at each step",
)
page.figure(
    chosen.out / "weights.svg",
    alt=f"Four images, read as {', '.join(map(str, by_reading[:4]))}, and how much the asking "
    f"token takes of each row. In block 2 the rows together have {of_rows:.0%} of its weight.",
    caption="Where the asking token looks in four images. Where all rows are pale, the rest of the "
    "weight is on the asking token itself.",
)
marks.table(page, "Scores on images that were held out")
page.section("Other hands")
page.table(
    ["Test images", "without training", "encoder"],
    [
        [who, *(f"{share:.1%}" for share in shares)]
        for who, shares in (
            (
                "by writers of training images",
                [right(r, held_out) for r in (by_looking, by_reading)],
            ),
            ("by other people", other_hands),
        )
    ],
    caption="Digits read, of 400",
)
page.conclude(
    "A look-up among enough similar images is hard to beat, and attention is such a look-up. Both "
    "classifiers read the handwriting of other people worse, and this is the real task.",
    try_it(chosen.file),
)
print(f"The page: {page.write(chosen.out, quick=chosen.quick, note=marks.note)}")
marks.end()

# %% Try it
# - Read the columns instead (`data.images.transpose(0, 2, 1) / 16`): which bag, of rows or of
#   columns, reads more digits, and why?
# - Keep 100 training images of the 1,197 (`train = train[:100]`): which classifier loses more?
