"""Computation graphs: from one expression to a GPT of twelve blocks.

Claim. A record of any size can be read. One query over three keys is eight boxes, and their colours
show how much gradient reaches each. A GPT of twelve blocks has 503 tensors, and a drawing of 15
boxes.

README's first picture, `hero`, shows what leaving out 1/√d_k does to a typical gradient at each
station of the way back, once with 64 keys at d_k = 64 and once with 5 keys at d_k = 512. It has a
wide file and a narrow one for phones. All pictures of README and of the site's chapters are drawn
again by this command:

    python -m demos draw [--out demos/pictures] [--seed N]  # 3 s
"""

# %% Set-up

import numpy as np

from attention import MultiHeadAttention, attention, attention_weights, gpt2
from attention.figures import save_figure
from attention.maps import plot_heads
from demos import options
from demos._training import Marks
from demos.first._back import QUERIES, facts
from demos.first._hero import save_hero
from minigrad import Steps, Tensor, cross_entropy, graph, no_grad, one_hot, softmax, unfused
from minigrad.optim import Adam

chosen = options("draw", __doc__.splitlines()[0])
marks = Marks(chosen)


def save(drawing, name):
    """The picture for README, in a format that a browser enlarges without loss."""
    path = drawing.save(chosen.out / f"{name}.svg")
    print(f"   {path}: {drawing!r}")


# %% 1 · README's first lines

rng = np.random.default_rng(0)
q = Tensor(rng.standard_normal((1, 4)), requires_grad=True, name="q")
k = Tensor(rng.standard_normal((3, 4)), requires_grad=True, name="k")
weights = softmax(q @ k.mT / np.sqrt(4))
loss = -np.log(weights[0, 2])
first = graph(loss, grads=True)
print("1 · One query, three keys. As text:\n")
print(first, end="\n\n")
save(first, "first")

# %% 2 · README's first picture
# The gradient without the scale, divided by the gradient with it, at each station from L back to q.
# Every query has keys and values of its own here.

cases = save_hero(chosen.out, chosen.seed)
print(f"\n2 · Without the scale, divided by with it: medians of {QUERIES:,} queries")
print(f"   {chosen.out / 'hero.svg'} and {chosen.out / 'hero_narrow.svg'}")
for said in map(facts, cases):
    print(f"   {said['keys']}, {said['d_k']}: {said['passed']} behind softmax, {said['end']} at q;")
    print(f"      8 of 10 queries differ {said['without']}, and {said['with']} with the scale")
unequal = min(np.divide(*case["with"]) / np.divide(*case["without"]) for case in cases)

# %% 3 · A layer, by its steps
# A layer computes attention by one fused operation. `unfused()` shows the steps inside.

rng = np.random.default_rng(chosen.seed)
layer = MultiHeadAttention(12, 3, bias=True, rng=rng)
tokens = Tensor(rng.standard_normal((5, 12)), requires_grad=True, name="tokens")
with Steps(layer) as steps, unfused():
    loss = (layer(tokens) * rng.standard_normal((5, 12))).sum()
print("\n3 · A multi-head layer. The bias of its keys learns nothing:\n")
drawing = graph(loss, grads=True, steps=steps)
print(drawing, end="\n\n")
save(drawing, "layer")

# %% 4 · A GPT
# Equal blocks are drawn once. The strip below them shows the gradient at the output of the others.
# (At its usual initial weights every weight of attention is nearly the same, so W_Q and W_K get
# little. They are made ten times larger here.)

model = gpt2(11, 8, d_model=16, num_heads=4, num_blocks=12, attend=attention, rng=rng)
with no_grad():
    for name, p in model.named_parameters():
        if name.endswith(("w_q.weight", "w_k.weight")):
            p *= 10.0
words = np.arange(8)[None]
with Steps(model) as steps:
    logits = model(words[:, :-1])
    loss = cross_entropy(logits, words[:, 1:])
gpt, opened, everything = (
    graph(loss, grads=True, steps=steps, depth=depth) for depth in (1, 2, None)
)
print("\n4 · GPT-2 with twelve blocks: folded, with its first block opened, and all of it")
save(gpt, "gpt")
save(opened, "gpt_opened")
print(f"   all of it: {everything!r}, which would be a picture eighteen screens high")

# %% 5 · An attention map
# The smallest head that learns where to look: a query and a key for each of eight places, and
# nothing else. It is trained to write eight digits backwards. Its weights are the picture.

rng = np.random.default_rng(chosen.seed)
PLACES, WIDTH = 8, 16
queries, keys = (
    Tensor(rng.standard_normal((PLACES, WIDTH)), requires_grad=True, name=n) for n in ("Q", "K")
)
optimizer = Adam([queries, keys], lr=0.1)
for _ in range(60):
    digits = rng.integers(0, 10, (32, PLACES))
    weights = attention_weights(queries, keys)  # (8, 8)
    guess = weights @ one_hot(digits, 10)  # (32, 8, 10)
    loss = -np.log((guess * one_hot(digits[:, ::-1], 10)).sum(axis=-1) + 1e-9).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
names = [str(place) for place in range(1, PLACES + 1)]
figure = plot_heads(
    weights.data[None], names, names, titles=["each place looks at its mirror image"]
)
png, _ = save_figure(figure, chosen.out / "map")
png.unlink()  # (a page enlarges an SVG without loss, and needs no other picture)
mirrored = float(np.mean(weights.data[np.arange(PLACES), np.arange(PLACES)[::-1]]))
print(f"\n5 · A head that reverses: {chosen.out / 'map.svg'}")

# %% What is claimed

marks.at_least("weight of the mirror image, on average", mirrored, 0.9)

marks.at_most("boxes of the GPT", len(gpt.boxes), 15, "d")
marks.at_most("boxes with the first attention opened", len(opened.boxes), 60, "d")
marks.at_least("first picture: larger with 64 keys", cases[0]["line"][0], 3.0, ".1f")
marks.at_most("first picture: smaller with 5 keys", cases[1]["line"][0], 0.01, ".1g")
marks.at_least("first picture: spread of 8 of 10 queries, without over with", unequal, 20.0, ".0f")
marks.end()

# %% Try it
# - Print `steps` after `steps.backward(loss)`: in which order do the three uses of a block's input
#   send their contributions?
# - Give the layer of part 3 `bias=False`: which sentence below the picture is gone, and why?
