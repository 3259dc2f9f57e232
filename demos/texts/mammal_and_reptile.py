"""“mammal and reptile”: its made-up weights, trained.

Claim. The text makes up W_Q and W_K; here they are trained. Asked with noisy features, one head
looks at the right animal at least 19 times in 20, and three heads find its attributes at least 49
times in 50. They learn it if questions are measured from the average animal. Measured from 0, all
questions look at one animal, and after the same training at another one.

    python -m demos mammal_and_reptile [--steps N] [--quick] [--resume] …

The text is the notebook “Attention examples” by Anthony Gitter, of October 18, 2022. We have it as
a text without an address. Five animals have three features each (the keys) and four attributes (the
values). Two queries, mammal and reptile, look them up. Then the animals look at each other, first
as they are, and then through W_Q, W_K and W_V, drawn uniformly from 0 to 1.
"""

# %% Set-up

import numpy as np
from matplotlib.colors import ListedColormap

from attention import attention, attention_weights
from attention.figures import KINDS, MAMMAL, REPTILE, new_figure
from attention.maps import plot_heads
from attention.scaled_dot_product import unit_length
from demos import options
from demos._training import Run
from demos.pages.publish import publish
from demos.texts._text_page import Slips, both_passes, checked, numbers, scale_figure
from demos.texts.sources import mammal_and_reptile_text as source
from demos.texts.sources.mammal_and_reptile_text import ANIMALS, ATTRIBUTES, AVERAGE, NAMES, QUERIES
from minigrad import Tensor, gradients, mse, no_grad
from minigrad.optim import Adam, clip_gradients, warmup_cosine

SECONDS = 7  # of a run

chosen = options("mammal_and_reptile", __doc__.splitlines()[0], steps=3000, quick=20)
page = publish(chosen)
marks = page.marks
NOISE = 0.3
animals, attributes, queries = Tensor(ANIMALS), Tensor(ATTRIBUTES), Tensor(QUERIES)
ASKED = ("mammal", "reptile")

# %% Its numbers beside ours

numbers(page, source)

# %% What is wrong in it, unclear or left open

cosine = (unit_length(queries[:1]) @ unit_length(animals).mT).data[0]
apart = np.linalg.norm(QUERIES[0] - ANIMALS, axis=1)
weight = attention_weights(queries[:1], animals).data[0]
page.ask(
    "By angle and by distance the whale is the animal most like the query mammal. Which of kitten, "
    "whale and wolf gets the most of mammal's attention, and which the least?",
    f"The wolf gets the most, {weight[4]:.2f}, and the whale the least, {weight[3]:.2f}, although "
    f"its cosine with the query is {cosine[3]:.4f} and its distance {apart[3]:.3f}; the wolf's are "
    f"{cosine[4]:.4f} and {apart[4]:.3f}. A dot product is the cosine times both lengths, and of "
    "these three keys the whale's is the shortest.",
)
slips = Slips(page)
made_up = source.layer(1)

moved = attention(animals, animals, animals).data - ANIMALS
far = np.linalg.norm(moved, axis=1) / np.linalg.norm(ANIMALS, axis=1)
shares = (f"{name} {share:.1%}" for name, share in zip(NAMES, far, strict=True))
slips.unclear(
    "The embeddings are said to have changed little, without a number.",
    "The lizard's moves by 39 % of its length, the whale's by 17 %.",
    f"Each moves by a share of its length: {', '.join(shares)}.",
)

at_themselves = []  # how many rows look most at themselves
for features in (animals, unit_length(animals)):
    winners = attention_weights(features, features).argmax(-1)
    at_themselves.append(int((winners == np.arange(len(NAMES))).sum()))
own, unit = at_themselves
marks.at_most("animals that look most at themselves", own, 3, "d")
marks.at_least("animals of length 1 that look most at themselves", unit, 5, "d")
slips.unclear(
    "The weights are said to measure similarity.",
    "Of two keys in one direction the longer gets more. Of the mammals the query looks least at "
    "the whale, which is most like it, and lizard and whale look more at others than at "
    "themselves.",
    f"Of the five animals {own} look most at themselves, and {unit} do if all have length 1.",
    weighty=True,
)

spread = (queries @ animals.mT).data.std(axis=1) / np.sqrt(3)
for name, its in zip(ASKED, spread, strict=True):
    marks.at_least(f"{name}: its scaled scores spread by", its, 10, ".1f")
slips.left_open(
    "The text scales by 1/√3 and stops there.",
    "The scaled scores of a query still spread by 10 and more, where √d_k is meant to leave 1.",
    f"The features have mean {ANIMALS.mean():.1f} and variance {ANIMALS.var():.1f}, not 0 and 1. "
    f"The scaled scores have standard deviations of {spread[0]:.1f} for mammal and {spread[1]:.1f} "
    "for reptile.",
    weighty=True,
)

longest = np.linalg.norm(made_up.w_k(animals).data, axis=1).argmax()
least = made_up.weights(animals).data[0, :, longest].min()
measured = Tensor(ANIMALS - AVERAGE)
winners = made_up.weights(measured, animals).data[0].argmax(axis=1)
wins = int((winners == longest).sum())
marks.at_least("the text's head: least weight on the longest key", least, 0.9, ".2f")
marks.at_most("queries from the average: rows that it wins", wins, 4, "d")
slips.left_open(
    "The text calls random projections a bad idea, and leaves open why.",
    "Every training begins with some. Here all weights and features are positive, and then one "
    "key, the longest, wins every row.",
    f"Every row puts {least:.3f} or more on the {NAMES[longest]}, whose key is the longest. "
    "Measured from the average animal the queries sum to 0, so each key's scores sum to 0 too, and "
    f"no key can be ahead in every row: here it is in {wins} of {len(NAMES)}.",
    weighty=True,
)

slips.wrong(
    "The embedding of a query is said to be updated.",
    "3 features go in and 4 attributes come out.",
    f"A query has shape {QUERIES[0].shape}, and its output {ATTRIBUTES[0].shape}.",
)

shape = made_up.w_q.weight.shape
slips.unclear(
    "Self-attention is said to need several heads to be useful.",
    "What it needs, and what the text means by this, are projections; its one head has them.",
    f"Its one head has W_Q, W_K and W_V, each of shape {shape}.",
)
slips.show()

# %% A step left undone: several heads, and back to three dimensions
# The text's generator goes on where it stopped, and draws two more heads and W_O.

layer = source.layer()
with no_grad():
    heads, back = layer.weights(animals).data, layer(animals).data
wins = [" or ".join(sorted({NAMES[i] for i in head.argmax(axis=1)})) for head in heads]
gone = [np.linalg.norm(x - x.mean(axis=0)) / np.linalg.norm(x) for x in (ANIMALS, back)]
page.say(
    f"What tells the animals apart was {gone[0]:.0%} of their length, and is {gone[1]:.2%} after "
    f"the layer. In the three heads all five rows look most at {', '.join(wins)}."
)
marks.at_most("what tells them apart now", gone[1], 0.003, ".2%")

# %% The training, whole
# An animal's features with noise go in, and the attributes of that animal are to be found. `origin`
# is the point that questions are measured from.

held_out, right = source.questions(np.random.default_rng(chosen.seed + 1), 400, NOISE)


def score(model, origin):
    """Return the share of held-out questions that look most at the right animal, or find it."""
    with no_grad():
        asked = Tensor(held_out - origin)
        looks = model.weights(asked).argmax(-1) == right  # in each head, if there are several
        finds = source.retrieved(model(asked).data) == right
    return float(np.mean(looks)), float(np.mean(finds))


def train(model, origin, what, peak=0.1, warmup=50):
    """Train a model; return its losses, and its scores before and after."""
    rng = np.random.default_rng(chosen.seed)
    before = score(model, origin)
    optimizer = Adam(model.parameters())
    run = Run(chosen, what, model=model, optimizer=optimizer, rng=rng)
    for step in run:
        features, which = source.questions(rng, 13, NOISE)  # 13 of each animal
        loss = mse(model(Tensor(features - origin)), ATTRIBUTES[which])
        optimizer.lr = warmup_cosine(step, peak=peak, warmup=warmup, total=chosen.steps)
        optimizer.zero_grad()
        loss.backward()
        clip_gradients(model.parameters(), 1.0)
        optimizer.step()
        run.show(loss=loss.item())
    return run.losses, before, score(model, origin)


# With a rate that rises to 0.1 in 50 steps, three heads lost an animal at 1 seed of 20. With 0.03
# in 300 steps they lose none at 40 seeds of 40. (Keys may be measured from anywhere: another
# origin would add the same to all scores of a query.)
GENTLE = {"peak": 0.03, "warmup": 300}
one, stuck = source.Lookup(), source.Lookup()
three = source.Retriever(rng=np.random.default_rng(chosen.seed))
runs = {
    "one head": train(one, AVERAGE, "one head"),
    "three heads": train(three, AVERAGE, "three heads", **GENTLE),
    "questions from 0": train(stuck, 0.0, "one head, questions from 0"),
}

# %% What came of it
# “looks” means that the right animal has the largest weight, “finds” that the answer is nearest to
# its attributes. Measured from 0, all queries and keys are above 0, one key wins for all, and the
# one-hot softmax passes no gradient.

nearest = ((held_out[:, None] - ANIMALS) ** 2).sum(axis=-1).argmin(axis=1)
plain = attention_weights(Tensor(held_out), animals)  # no projections: the text's first half
answers = source.retrieved((plain @ attributes).data)
shares = [[name, *before, *after] for name, (_, before, after) in runs.items()]
rows = [[name, *(f"{share:.1%}" for share in its)] for name, *its in shares]
looks, finds = np.mean(plain.argmax(-1) == right), np.mean(answers == right)
rows.append(["no projections", f"{looks:.1%}", f"{finds:.1%}", "", ""])
rows.append(["the nearest animal", f"{np.mean(nearest == right):.1%}", "", "", ""])
page.table(
    ["model", "untrained: looks", "finds", "trained: looks", "finds"],
    rows,
    caption="Held-out questions, of 2,000; by chance 20 %",
)
looks, finds = runs["three heads"][2]
from_zero = runs["questions from 0"]
with no_grad():
    sums = [m.weights(Tensor(held_out)).data.mean(axis=0) for m in (source.Lookup(), stuck)]
    without_noise = source.retrieved(three(Tensor(ANIMALS - AVERAGE)).data) == range(5)
missed = mse(stuck(Tensor(held_out)), ATTRIBUTES[right])
pull = np.linalg.norm(gradients(missed, [stuck.w_q.weight])[0])
page.say(
    f"Three heads find {finds:.1%}, and {looks:.1%} of their looks go to the right animal: W_O "
    "computes the answer from three mixtures together, and no single map shows it."
)
marks.at_least("one head, trained, looks at the right animal", runs["one head"][2][0], 0.95)
marks.at_least("three heads, trained, find its attributes", finds, 0.98)
marks.at_most("untrained, as in the text", from_zero[1][0], 0.25)
marks.at_most("ablation, trained with questions from 0", from_zero[2][0], 0.25)
marks.at_least("questions from 0, untrained: weight on the salmon", sums[0][2], 0.9)
marks.at_least("questions from 0, trained: weight on the lizard", sums[1][1], 0.99)
marks.at_most("gradient that remains there, ‖∂L/∂W_Q‖", pull, 1e-9, ".0e")
marks.at_least("three heads: animals they find without noise", without_noise.sum(), 5, "d")

# %% The plane of W_Q and W_K, before and after
# The picture is on top of the page.

titles = ("as drawn, asked from 0", "trained, asked from the average")
figure = new_figure(7.6, 7.0)
counts = []
for (top, below), title, model, origin in zip(
    figure.subplots(2, 2).T, titles, (source.Lookup(), one), (0.0, AVERAGE), strict=True
):
    with no_grad():
        keys, asked = model.w_k(animals).data, model.w_q(Tensor(held_out - origin)).data
    corners = source.corners(keys)
    counts.append(f"{title}, {len(corners)} of 5 keys are corners of their hull")
    top.fill(*keys[corners].T, facecolor="#eeeeee", edgecolor="#999999")
    top.scatter(*keys.T, color=KINDS, zorder=2)
    for key, name in zip(keys, NAMES, strict=True):
        left = name in ("lizard", "wolf")  # where the label has room
        side = {"xytext": (-7 if left else 7, -3), "ha": "right" if left else "left"}
        top.annotate(name, key, textcoords="offset points", fontsize=9, **side)
    top.margins(0.3, 0.2)
    low, high = asked.min(axis=0), asked.max(axis=0)
    edge = 0.1 * (high - low)
    x, y = np.linspace(low - edge, high + edge, 300).T
    winner = (np.stack(np.meshgrid(x, y), axis=-1) @ keys.T).argmax(axis=-1)  # (300, 300)
    below.pcolormesh(
        x, y, winner, cmap=ListedColormap(KINDS), vmin=0, vmax=4, alpha=0.3, rasterized=True
    )
    below.scatter(*asked.T, c=[KINDS[i] for i in right], s=5)
    top.set_title(f"keys, {title}\nonly a corner of the hull can win", fontsize=10)
    legend = "queries: a dot has the colour of its animal,\nthe ground that of the winning key"
    below.set_title(legend, fontsize=10)
    for panel, of in ((top, "k"), (below, "q")):
        panel.set_xlabel(f"{of}₁")
        panel.set_ylabel(f"{of}₂")
plane = page.figure(
    figure,
    "plane",
    alt=f"The plane of keys and queries: {'; '.join(counts)}. As drawn, all questions fall into "
    "the ground of one animal; trained, each animal has its own ground.",
    caption="The plane of W_Q and W_K. A score is linear in its key",
)
page.finding(
    "With the weights that the text makes up, all questions look at one animal. The same head, "
    f"trained, looks at the right one in {runs['one head'][2][0]:.1%} of 2,000 noisy questions.",
    plane,
)
marks.at_least("trained: keys that can win", len(corners), 5, "d")

# %% What the trained weights look at
# The text's two queries are in no training.

everyone, features = (*NAMES, *ASKED), np.concatenate([ANIMALS, QUERIES])
with no_grad():
    untrained = source.Lookup().weights(Tensor(features)).data
    trained = one.weights(Tensor(features - AVERAGE)).data
page.figure(
    plot_heads(np.stack([untrained, trained]), everyone, NAMES, titles=titles),
    "weights",
    alt=f"Two maps. As drawn, each row has {untrained[:, 2].min():.2f} or more at the salmon; "
    f"trained, each animal has {trained.diagonal().min():.2f} or more at itself.",
    caption="Where one head looks, as drawn and trained",
)
known = np.linalg.norm(held_out - ANIMALS[right], axis=1).max()
unknown = np.linalg.norm(QUERIES[1] - ANIMALS, axis=1).min()
page.say(
    f"Mammal looks at the whale, with {trained[5, 3]:.3f}. Reptile looks at the salmon, with "
    f"{trained[6, 2]:.3f}, but it is {unknown:.1f} away from the nearest animal, and a held-out "
    f"question {known:.1f} at most. So the training says nothing about the answer to reptile."
)
marks.at_least("mammal looks at the whale, which is most like it", trained[5, 3], 0.5)
marks.at_most("the largest distance of a held-out question", known, unknown / 2, ".1f")

# %% What no text shows: the way back
# Both graphs are on one scale of colours: L is the sum of a query's output.


def through_weights(x, w_q, w_k, w_v):
    """Return the text's head as a function of its input and its three weights."""
    return attention(x @ w_q, x @ w_k, x @ w_v)


w = [made_up.w_q.weight, made_up.w_k.weight, made_up.w_v.weight]
norms = [np.linalg.norm(g) for g in gradients(through_weights(animals, *w).sum(), w)]
with page.folded("How large the gradients of the text's head are"):
    of_q, of_k, of_v = norms
    page.say(f"‖∂Σ output/∂W‖ is {of_q:.2f} for W_Q, {of_k:.2f} for W_K and {of_v:.2f} for W_V.")
checked(
    page,
    {
        "mammal": (attention, (QUERIES[:1], ANIMALS, ATTRIBUTES)),
        "reptile": (attention, (QUERIES[1:], ANIMALS, ATTRIBUTES)),
        "one head": (through_weights, (animals, *w)),
    },
)


def look_up(name, query):
    """Return the sum of a query's output."""
    inputs = {name: query[None], "animals": ANIMALS, "attributes": ATTRIBUTES}
    q, k, v = (Tensor(array, requires_grad=True, name=of) for of, array in inputs.items())
    return attention(q, k, v).sum()


both_passes(
    page,
    {
        "graph_mammal": ("mammal", lambda: look_up("mammal", QUERIES[0])),
        "graph_reptile": ("reptile", lambda: look_up("reptile", QUERIES[1])),
    },
    title="A query looks up five animals",
    limits=(1e-3, 100.0),
)

# %% One scale for two queries
# How much a query's answer moves with it is the slope ‖∂output/∂query‖. √d_k depends on how many
# features there are, and not on how large they are.

over = np.geomspace(0.003, 3, 61)
curves = np.array([[source.at_scale(q, scale) for scale in over] for q in QUERIES])  # (2, 61, 2)
best = over[curves[..., 1].argmax(axis=1)]
lost = curves[1, :, 1].max() / source.at_scale(QUERIES[1])[1]
sentence = f"Mammal's answer moves most at a scale of {best[0]:.2f}, reptile's at {best[1]:.3f}."
page.say(f"{sentence} At 1/√3 reptile looks at one animal alone, and no one scale suits both.")
styles = zip(ASKED, curves, (MAMMAL, REPTILE), ("-", "--"), strict=True)
scale_figure(
    page,
    over,
    {name: (curve, *style) for name, curve, *style in styles},
    sides=("entropy / log 5", "‖∂output/∂query‖"),
    titles=("At 1/√3 reptile looks at one animal alone", "and its answer no longer moves"),
    usual=(1 / np.sqrt(3), "1/√3"),
    low=1e-4,
    alt=f"Entropy and slope over the scale. {sentence}",
)
marks.at_least("reptile's best slope, over that at 1/√3", lost, 50, ".0f")
marks.at_least("mammal's best scale, over reptile's", best[0] / best[1], 10, ".1f")
page.end()

# %% Try it
# - Train `stuck` with `**GENTLE` too, from seed 0 and from seed 1: which animals does it lose?
# - Set `NOISE` to 0.5: fewer questions can be answered, but which animal does reptile look at now?
