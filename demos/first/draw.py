"""Computation graphs: from one expression to a GPT of twelve blocks.

Claim. A record of any size can be read. One query over three keys is eight boxes, and their colours
show how much gradient reaches each. A GPT of twelve blocks has 503 tensors, and a drawing of 15
boxes.

    python -m demos draw [--out DIR] [--seed N]

The pictures of README and of the site's chapters are drawn here: they are this command's SVGs,
copied to `demos/pictures`. The list of demos shows a small picture of a demo that has been run
beside it. For some others `demos/pictures/small` has the small picture of a run, copied. A demo
whose picture depends on the machine has none there: a training can turn a difference in the last
bit of a product into another curve.
"""

# %% Set-up

import numpy as np

from attention import MultiHeadAttention, attention, attention_weights, gpt2
from attention.maps import plot_heads
from demos import options
from demos.first._back import QUERIES, alt, facts
from demos.first._cases import save_cases
from demos.pages.publish import publish
from demos.pages.tables import figure, inlined
from demos.pages.templates import parts
from demos.pictures.forces import save_stills
from minigrad import Steps, Tensor, cross_entropy, graph, log, no_grad, one_hot, softmax, unfused
from minigrad.graphs.render import described
from minigrad.optim import Adam

SECONDS = 3  # of a run

chosen = options("draw", __doc__.splitlines()[0])
page = publish(chosen)
page.style += ".row.rule figure svg { max-height: none; }"  # (a tall drawing stays readable)


def show(drawing, name, caption):
    """Show a graph as a picture; return its part of the page."""
    caption = f"{caption}: {drawing!r}"
    return page.figure(drawing, name, alt=f"{described(drawing)}.", caption=caption)


def show_text(drawing):
    """Show a graph as text."""
    page.html(parts.plain(str(drawing)), str(drawing), "below")


# %% README's first lines

rng = np.random.default_rng(0)
q = Tensor(rng.standard_normal((1, 4)), requires_grad=True, name="q")
k = Tensor(rng.standard_normal((3, 4)), requires_grad=True, name="k")
weights = softmax(q @ k.mT / np.sqrt(4))
loss = -log(weights[0, 2])
first = graph(loss, grads=True)
show(first, "first", "One query, three keys")
show_text(first)

# %% README's first picture
# Attention in a plane: a wide file, and a narrow one for phones. On the site it can be moved.

save_stills(chosen.out)

# %% The way back without the scale
# Two pictures of chapter 16: the gradient without 1/√d_k, divided by the gradient with it, from L
# back to q, in a usual case and in an extreme one. Every query has keys and values of its own.

cases = save_cases(chosen.out, chosen.seed)
unequal = min(np.divide(*case["with"]) / np.divide(*case["without"]) for case in cases)
page.say(f"Without the scale, divided by with it: medians of {QUERIES:,} queries.")
for name, case in zip(("usual", "extreme"), cases, strict=True):
    fact = facts(case)
    page.say(
        f"{fact['keys']}, {fact['d_k']}: {fact['passed']} behind softmax, {fact['end']} at q; 8 of "
        f"10 queries differ {fact['without']}, and {fact['with']} with the scale."
    )
    svg = inlined((chosen.out / f"{name}.svg").read_text("utf-8"), alt(case), name)
    page.html(figure(svg, ""), place="right")
page.marks.at_least("usual case: larger without the scale", cases[0]["line"][0], 3.0, ".1f")
page.marks.at_most("extreme case: smaller without the scale", cases[1]["line"][0], 0.01, ".1g")
page.marks.at_least("spread of 8 of 10 queries, without over with", unequal, 20.0, ".0f")

# %% A layer, by its steps
# A layer computes attention by one fused operation. `unfused()` shows the steps inside. `w_v` and
# `w_o` get their gradient directly, and `w_q` and `w_k` only through the softmax. The bias of the
# keys learns nothing.

rng = np.random.default_rng(chosen.seed)
layer = MultiHeadAttention(12, 3, bias=True, rng=rng)
tokens = Tensor(rng.standard_normal((5, 12)), requires_grad=True, name="tokens")
with Steps(layer) as steps, unfused():
    loss = (layer(tokens) * rng.standard_normal((5, 12))).sum()
drawing = graph(loss, grads=True, steps=steps)
show(drawing, "layer", "A multi-head layer")
show_text(drawing)

# %% A GPT
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
folded = show(gpt, "gpt", "GPT-2 with twelve blocks")
page.finding(
    f"The {len(model.blocks)} blocks of a GPT, and all that is around them, are {len(gpt.boxes)} "
    "boxes.",
    folded,
)
show(opened, "gpt_opened", "The same with its first block opened")
page.ask(
    "If every block and layer is opened, how many boxes is it?",
    f"{len(everything.boxes)}, in a picture eighteen screens high.",
    guesses=("about 50", "nearly 200"),
)
page.marks.at_most("boxes of the GPT", len(gpt.boxes), 15, "d")
page.marks.at_most("boxes with the first attention opened", len(opened.boxes), 60, "d")

# %% An attention map
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
    loss = -log((guess * one_hot(digits[:, ::-1], 10)).sum(axis=-1) + 1e-9).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
mirrored = float(np.mean(weights.data[np.arange(PLACES), np.arange(PLACES)[::-1]]))
names = [str(place) for place in range(1, PLACES + 1)]
page.figure(
    plot_heads(weights.data[None], names, names, titles=["each place looks at its mirror image"]),
    "map",
    alt=f"A map of 8 × 8 weights: on average {mirrored:.0%} are on the mirror image.",
    caption="A head that reverses",
)
page.marks.at_least("weight of the mirror image, on average", mirrored, 0.9)
page.end()

# %% Try it
# - Print `steps` after `steps.backward(loss)`: in which order do the three uses of a block's input
#   send their contributions?
# - Give the layer `bias=False`: which sentence below its picture is gone, and why?
