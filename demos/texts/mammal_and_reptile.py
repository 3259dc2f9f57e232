""" "mammal and reptile": its numbers, its slips, and its made-up weights trained.

Claim. Every number that the text prints comes out again, as text. The text makes up its weights W_Q
and W_K; here they are trained. Asked with noisy features, one head looks at the right animal at
least 19 times in 20, and three heads find its attributes at least 49 times in 50. They learn it if
questions are measured from the average animal. Measured from 0, all questions look at one animal,
and after the same training at another one. A gentler training avoids this (Try it).

The text is the notebook "Attention examples" by Anthony Gitter, of October 18, 2022. We have it as
a text without an address.

    python -m demos mammal_and_reptile [--steps N] [--quick] [--resume] …  # 7 s
"""

# %% Set-up

import numpy as np
from matplotlib.colors import ListedColormap

from attention import attention, attention_weights
from attention.figures import (
    ABLATION,
    KINDS,
    MAMMAL,
    MODEL,
    REPTILE,
    name_ends,
    name_place,
    new_figure,
    save_figure,
)
from attention.maps import plot_heads
from attention.scaled_dot_product import unit_length
from demos import options
from demos._losses import Line, draw_losses
from demos._page import try_it
from demos._training import Marks, Run
from demos.texts._text_page import TextPage
from demos.texts.sources import Teller, beside, counted
from demos.texts.sources import mammal_and_reptile as source
from demos.texts.sources.mammal_and_reptile import (
    ANIMALS,
    ATTRIBUTES,
    AVERAGE,
    NAMES,
    QUERIES,
    Lookup,
    Retriever,
)
from minigrad import Steps, Tensor, gradcheck, gradients, graph, mse, no_grad
from minigrad.graphs.render import described
from minigrad.optim import Adam, clip_gradients, warmup_cosine

chosen = options("mammal_and_reptile", __doc__.splitlines()[0], steps=3000, quick=20)
marks = Marks(chosen)
NOISE = 0.3
animals, attributes, queries = Tensor(ANIMALS), Tensor(ATTRIBUTES), Tensor(QUERIES)
ASKED = ("mammal", "reptile")

# %% 1 · The text's numbers beside ours

print(f"1 · {source.TITLE}: the numbers the text prints, and ours\n")
for name, array in source.ours().items():
    print(beside(name, source.PRINTED[name], array, source.as_text(array)))
same, total = counted(source)
marks.at_least("numbers that agree as text", same, total, "d")

# %% 2 · What is wrong in it, unclear or left open
# The text says, first, that self-attention leaves the animals much as they were.

slip = Teller(source.SLIPS)
looks = attention_weights(animals, animals).data  # (5, 5)
moved = attention(animals, animals, animals).data - ANIMALS
print("\n2 · What is wrong in it, unclear or left open")
slip()
for i, name in enumerate(NAMES):
    far, most = np.linalg.norm(moved[i]) / np.linalg.norm(ANIMALS[i]), looks[i].argmax()
    print(
        f"     {name:8} moves by {far:5.1%} of its length, looks at itself {looks[i, i]:.2f}, "
        f"most at {NAMES[most]} {looks[i, most]:.2f}"
    )

# %%
# Second, that a dot product is a similarity. A dot product is the cosine times both lengths, so of
# two keys in one direction the longer gets more. By angle and by distance the whale is the animal
# most like the query mammal.

cosine = (unit_length(queries[:1]) @ unit_length(animals).mT).data[0]
weight = attention_weights(queries[:1], animals).data[0]
slip()
print("     The keys beside the query mammal:")
print(f"     {'':8}{'length':>8}{'cosine':>8}{'distance':>10}{'weight':>8}")
for i, name in enumerate(NAMES):
    length, apart = np.linalg.norm(ANIMALS[i]), np.linalg.norm(QUERIES[0] - ANIMALS[i])
    print(f"     {name:8}{length:8.3f}{cosine[i]:8.4f}{apart:10.3f}{weight[i]:8.3f}")
own, unit = (
    source.at_themselves(ANIMALS),
    source.at_themselves(unit_length(animals).data),
)
print(f"     Of the five animals {own} look most at themselves, and with lengths 1 {unit} do.")
marks.at_most("animals that look most at themselves", own, 3, "d")
marks.at_least("animals of length 1 that look most at themselves", unit, 5, "d")

# %%
# Third, the scale. 1/√d_k brings scores to a spread of 1 if features have mean 0 and variance 1.

spread = (queries @ animals.mT).data.std(axis=1) / np.sqrt(3)
slip()
print(f"     The features have mean {ANIMALS.mean():.1f} and variance {ANIMALS.var():.1f}.")
for name, found in zip(ASKED, spread, strict=True):
    print(f"     The scaled scores of {name} have a standard deviation of {found:.1f}.")
    marks.at_least(f"{name}: its scaled scores spread by", found, 10, ".1f")

# %%
# Fourth, that random projections are a bad idea, and why these are. All training starts with
# some. But features and weights above 0 give queries and keys above 0, and then one key, mostly
# the longest, wins all. Queries measured from the average animal sum to 0, so no key can have the
# largest score for all.

made_up = source.layer(1)
drawn = made_up.weights(animals).data[0]  # (5, 5)
longest = np.linalg.norm(made_up.w_k(animals).data, axis=1).argmax()
rng = np.random.default_rng(chosen.seed)
positive, signed = rng.random((2, 1000, 3, 2)), rng.uniform(-1, 1, (2, 1000, 3, 2))
slip()
print(f"""     The longest projected key is the {NAMES[longest]}'s, and every row puts at least
     {drawn[:, longest].min():.3f} on it. Draws of 1,000 in which one key wins all rows:""")
for what, share, judge, mark in (
    ("weights from 0 to 1, as in the text", source.one_winner(*positive), marks.at_least, 0.75),
    ("weights from -1 to 1", source.one_winner(*signed), marks.at_most, 0.5),
    (
        *("weights from 0 to 1, queries from the average", source.one_winner(*positive, AVERAGE)),
        *(marks.at_most, 0.0),
    ),
):
    print(f"     {share:6.1%} with {what}")
    judge(f"one key wins all rows: {what}", share, mark)

# %%
# The last two are of words: what the result is, and how the head is called.

slip()
slip()
slip.end()

# %% 3 · The steps left undone: several heads, and back to three dimensions

layer = source.layer()
with no_grad():
    heads, back = layer.weights(animals).data, layer(animals).data
print("\n3 · Three heads and W_O, from the text's generator, which goes on where it stopped")
for head, weights in enumerate(heads, 1):
    wins = sorted({NAMES[i] for i in weights.argmax(axis=1)})
    print(f"   head {head}: all five rows look most at {' or '.join(wins)}")
print("\n   Back in three dimensions, every animal is the same one:")
for name, row in zip(NAMES, back, strict=True):
    print(f"     {name:8}" + "".join(f"{number:9.4f}" for number in row))
gone = [np.linalg.norm(x - x.mean(axis=0)) / np.linalg.norm(x) for x in (ANIMALS, back)]
print(f"   What tells them apart was {gone[0]:.0%} of their length.")
marks.at_most("what tells them apart now", gone[1], 0.003, ".2%")

# %% Training, whole
# The task: an animal's features with noise, and the attributes of that animal to be found.
# `origin` is the point that questions are measured from. (For keys it makes no difference: it
# would add the same to all scores of a query.) With a rate that rises to 0.1 in 50 steps, three
# heads lost an animal at 1 seed of 20. With 0.03 in 300 steps they lose none at 40 seeds of 40.

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


GENTLE = {"peak": 0.03, "warmup": 300}
one, stuck, three = Lookup(), Lookup(), Retriever(rng=np.random.default_rng(chosen.seed))
runs = {
    "one head": train(one, AVERAGE, "one head"),
    "three heads": train(three, AVERAGE, "three heads", **GENTLE),
    "questions from 0": train(stuck, 0.0, "one head, questions from 0"),
    "d_k = 1": train(Lookup(d_k=1), AVERAGE, "one head, d_k = 1"),
}

# %% What came of it
# "looks": the right animal has the largest weight. "finds": the answer is nearest to the attributes
# of the right animal. With d_k = 1 a key is a number, and a score is largest at the largest or the
# smallest of them: three of the five animals can never win.

nearest = ((held_out[:, None] - ANIMALS) ** 2).sum(axis=-1).argmin(axis=1)
plain = attention_weights(Tensor(held_out), animals)  # no projections: the text's first half
found = source.retrieved((plain @ attributes).data)
print("\n   Held-out questions, of 2,000 (by chance: 20 %)\n")
print(f"     {'':28}{'untrained':>18}{'trained':>20}")
print(f"     {'':28}" + f"{'looks':>10}{'finds':>10}" * 2)
for name, (_, *scores) in runs.items():
    print(f"     {name:28}" + "".join(f"{s:10.1%}" for pair in scores for s in pair))
print(
    f"     {'no projections':28}{np.mean(plain.argmax(-1) == right):10.1%}"
    f"{np.mean(found == right):10.1%}\n"
    f"     {'the nearest animal':28}{np.mean(nearest == right):10.1%}\n"
)
marks.at_least("one head, trained, looks at the right animal", runs["one head"][2][0], 0.95)
marks.at_least("three heads, trained, find its attributes", runs["three heads"][2][1], 0.98)
marks.at_most("untrained, as in the text", runs["questions from 0"][1][0], 0.25)
marks.at_most("ablation, trained with questions from 0", runs["questions from 0"][2][0], 0.25)
marks.trained("d_k = 1", runs["d_k = 1"][0])
marks.at_most("ablation, trained with d_k = 1, finds", runs["d_k = 1"][2][1], 0.65)
with no_grad():
    sums = [m.weights(Tensor(held_out)).data.mean(axis=0) for m in (Lookup(), stuck)]
    kept = source.retrieved(three(Tensor(ANIMALS - AVERAGE)).data) == range(5)
looks, finds = runs["three heads"][2]
missed = mse(stuck(Tensor(held_out)), ATTRIBUTES[right])
pull = np.linalg.norm(gradients(missed, [stuck.w_q.weight])[0])
marks.at_least("questions from 0, untrained: weight on the salmon", sums[0][2], 0.9)
marks.at_least("questions from 0, trained: weight on the lizard", sums[1][1], 0.99)
marks.at_most("gradient that remains there, ‖∂L/∂W_Q‖", pull, 1e-9, ".0e")
marks.at_least("three heads: animals they find without noise", kept.sum(), 5, "d")
print(f"""
   Three heads find {finds:.1%}, and {looks:.1%} of their looks go to the right animal: W_O
   computes the answer from three mixtures together, and no single map shows it.""")

# %% What the trained weights look at
# Also for the text's two queries, which are in no training.

everyone, features = (*NAMES, *ASKED), np.concatenate([ANIMALS, QUERIES])
with no_grad():
    untrained = Lookup().weights(Tensor(features)).data
    trained = one.weights(Tensor(features - AVERAGE)).data
    of_three = three.weights(Tensor(features - AVERAGE)).data
print("\n   Where the trained head looks:")
print(f"     {'':8}" + "".join(f"{name:>8}" for name in NAMES))
for name, row in zip(everyone, trained, strict=True):
    print(f"     {name:8}" + "".join(f"{weight:8.3f}" for weight in row))
titles = ("as drawn, asked from 0", "trained, asked from the average")
known = np.linalg.norm(held_out - ANIMALS[right], axis=1).max()
unknown = np.linalg.norm(QUERIES[1] - ANIMALS, axis=1).min()
marks.at_least("mammal looks at the whale, which is most like it", trained[5, 3], 0.5)
marks.at_most("the largest distance of a held-out question", known, unknown / 2, ".1f")
print(f"""
   The distance of reptile to its nearest animal is {unknown:.1f}. That of a held-out question to
   its own is {known:.1f} at most. So the training says nothing about the answer to reptile.""")
maps = np.stack([untrained, trained])
save_figure(plot_heads(maps, everyone, NAMES, titles=titles), chosen.out / "weights")
save_figure(plot_heads(of_three, everyone, NAMES), chosen.out / "heads")
figure = new_figure(6.8, 4.8)
panel = figure.subplots()
drawn = ((MODEL, "-"), (MODEL, "--"), (ABLATION, "-"), (ABLATION, "--"))
lines = [Line(n, run[0], *how) for (n, run), how in zip(runs.items(), drawn, strict=True)]
draw_losses(panel, lines, {"always the mean": ATTRIBUTES.var(axis=0).mean()})
panel.set_xlabel("step")
panel.set_title("Questions from the average animal are learned, from 0 they are not", fontsize=11)
save_figure(figure, chosen.out / "loss")

# %% The plane of W_Q and W_K, before and after
# A score is linear in its key, so only a corner of the keys' hull can win.

figure = new_figure(7.6, 7.0)
print()
for (top, below), title, model, origin in zip(
    figure.subplots(2, 2).T, titles, (Lookup(), one), (0.0, AVERAGE), strict=True
):
    with no_grad():
        keys, asked = model.w_k(animals).data, model.w_q(Tensor(held_out - origin)).data
    corners = source.corners(keys)
    print(f"   {title}: {len(corners)} of 5 keys are corners of their hull")
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
save_figure(figure, chosen.out / "plane")
marks.at_least("trained: keys that can win", len(corners), 5, "d")

# %% 4 · What no text shows: the way back
# Derivatives of order 1 and 2 against finite differences, for both queries and for the text's head.


def through_weights(x, w_q, w_k, w_v):
    """Return the text's head as a function of its input and its three weights."""
    return attention(x @ w_q, x @ w_k, x @ w_v)


w = [getattr(made_up, name).weight for name in ("w_q", "w_k", "w_v")]
checks = {
    "mammal": gradcheck(attention, QUERIES[:1], ANIMALS, ATTRIBUTES),
    "reptile": gradcheck(attention, QUERIES[1:], ANIMALS, ATTRIBUTES),
    "one head": gradcheck(through_weights, ANIMALS, *(weight.data for weight in w)),
}
print("\n4 · Gradients, checked against finite differences")
for name, report in checks.items():
    worst = np.max([c.error for c in report.comparisons])
    print(
        f"   {name:8} {len(report.comparisons)} derivatives of order 1 and 2, "
        f"{len(report.unresolved)} unresolved, largest error {worst:.0e}"
    )
worst = np.max([c.error for report in checks.values() for c in report.comparisons])
marks.at_most("largest error", worst, 1e-8, ".0e")
marks.at_most("derivatives unresolved", sum(len(r.unresolved) for r in checks.values()), 0, "d")
norms = [np.linalg.norm(g) for g in gradients(through_weights(animals, *w).sum(), w)]
print("   The text's head, ‖∂Σ output/∂W‖ for W_Q, W_K, W_V:", *(f"{n:.2f}" for n in norms))

# %% The graph, for each query on one colour scale

drawings, passes = {}, []
for name, query in zip(ASKED, QUERIES, strict=True):
    inputs = {name: query[None], "animals": ANIMALS, "attributes": ATTRIBUTES}
    q, k, v = (Tensor(array, requires_grad=True, name=of) for of, array in inputs.items())
    with Steps() as steps:
        output = attention(q, k, v).sum()
    drawing = drawings[name] = graph(output, grads=True, limits=(1e-3, 100.0), steps=steps)
    steps.backward(output)
    passes.append(steps)
    drawing.save(chosen.out / f"graph_{name}.png")
    drawing.save(chosen.out / f"graph_{name}.svg")

# %% The scale, on this very example
# The entropy of a query's weights, and how much its answer moves with it: ‖∂output/∂query‖.

over = np.geomspace(0.003, 3, 61)
print(f"\n   {'':10}" + "".join(f"{name:>22}" for name in ASKED))
print(f"   {'scale':10}" + f"{'entropy/log 5':>14}{'slope':>8}" * 2)
by_scale = []
for name, scale in source.SCALES.items():
    found = [source.at_scale(q, scale or 1 / (q @ ANIMALS.T).std()) for q in QUERIES]
    by_scale.append([name, *(each for e, s in found for each in (f"{e:.2f}", f"{s:.4f}"))])
    print("   {:10}{:>14}{:>8}{:>14}{:>8}".format(*by_scale[-1]))
curves = np.array([[source.at_scale(q, scale) for scale in over] for q in QUERIES])  # (2, 61, 2)
best = over[curves[..., 1].argmax(axis=1)]
lost = curves[1, :, 1].max() / source.at_scale(QUERIES[1])[1]
print(f"""
   Mammal's answer moves most at a scale of {best[0]:.2f}, reptile's at {best[1]:.3f}. One number
   serves both: √d_k depends on how many features there are, and not on how large they are.
""")
marks.at_least("reptile's best slope, over that at 1/√3", lost, 50, ".0f")
marks.at_least("mammal's best scale, over reptile's", best[0] / best[1], 10, ".1f")
figure = new_figure(6.8, 6.4)
panels = figure.subplots(2, 1, sharex=True)
panels[1].set(yscale="log", ylim=(1e-4, 5), xscale="log", xlabel="scale")
for number, panel in enumerate(panels):
    ends = []
    for name, line, colour, style in zip(
        ASKED, curves[..., number], (MAMMAL, REPTILE), ("-", "--"), strict=True
    ):
        panel.plot(over, line, style, color=colour)
        ends.append((line[-1], name, colour))
    name_ends(panel, ends)
    name_place(panel, 1 / np.sqrt(3), "1/√3")
    panel.set_ylabel(("entropy / log 5", "‖∂output/∂query‖")[number])
    panel.grid(alpha=0.25)
panels[0].set_title("At 1/√3 reptile looks at one animal alone", fontsize=10, pad=18)
panels[1].set_title("and its answer no longer moves: no one scale suits both", fontsize=10, pad=18)
save_figure(figure, chosen.out / "scale")

# %% The page

page = TextPage(
    source,
    "“mammal and reptile”: made-up weights, trained",
    claim="With the weights that the text makes up, all animals look at one of them. The same "
    f"head, trained, looks at the right animal in {runs['one head'][2][0]:.0%} of noisy questions.",
)
page.section("The text")
page.say(
    "The text is the notebook “Attention examples” by Anthony Gitter, of October 18, 2022. We have "
    "it as a text without an address.",
    "Five animals have three features each (the keys) and four attributes (the values). Two "
    "queries, mammal and reptile, look them up. Then the animals look at each other, first as they "
    "are, and then through W_Q, W_K and W_V, which are drawn uniformly from 0 to 1.",
)
page.table(
    ["animal", "feature 1", "2", "3", "attribute 1", "2", "3", "4"],
    [
        [name, *features, *its]
        for name, features, its in zip(NAMES, ANIMALS, ATTRIBUTES, strict=True)
    ]
    + [[name, *query, "", "", "", ""] for name, query in zip(ASKED, QUERIES, strict=True)],
    caption="Five animals, and two queries",
)
page.ask(
    "By angle and by distance the whale is the animal most like the query mammal. Which of kitten, "
    "whale and wolf gets the most of mammal's attention, and which the least?",
    f"The wolf gets the most, {weight[4]:.2f}, and the whale the least, {weight[3]:.2f}. A dot "
    "product is the cosine times both lengths, and of these three keys the whale's is the "
    "shortest.",
)
page.numbers(
    *("mammal: weights", "reptile: weights", "animals, before and after one head"),
    names={
        "mammal: weights": ((), NAMES),
        "reptile: weights": ((), NAMES),
        "animals, before and after one head": (NAMES, ("x₁", "x₂", "x₃", "head 1", "head 2")),
    },
)
page.doubts(slip)
page.section("The step that it leaves undone: training")
page.say(
    "The task: an animal's features with noise go in, and the attributes of that animal are to be "
    "found. “looks” means that the right animal has the largest weight, “finds” that the answer is "
    "nearest to the attributes of the right animal.",
)
page.ask(
    "The same head is trained in the same way, but questions are measured from 0 and not from the "
    "average animal. All its features and weights are above 0. What does it learn?",
    f"Nothing: it looks at the right animal in {runs['questions from 0'][2][0]:.0%} of the "
    "questions, which is chance. All queries and keys are above 0, one key wins for all of them, "
    "and the one-hot softmax passes no gradient.",
)
page.table(
    ["model", "untrained: looks", "finds", "trained: looks", "finds"],
    [[name, *(f"{s:.1%}" for pair in scores for s in pair)] for name, (_, *scores) in runs.items()],
    caption="Held-out questions, of 2,000; by chance 20 %",
)
page.table(
    ["", *NAMES],
    [[name, *(f"{each:.3f}" for each in row)] for name, row in zip(everyone, trained, strict=True)],
    caption="Where the trained head looks; mammal and reptile are in no training",
)
page.figure(
    chosen.out / "plane.svg",
    alt="The plane of queries and keys, as drawn and trained. As drawn, four of five keys are "
    "corners of their hull and all questions fall into the ground of one animal; trained, all five "
    "are corners and each animal has its own ground.",
    caption="A score is linear in its key, so only a corner of the keys' hull can win",
)
page.figure(
    chosen.out / "weights.svg",
    alt="Two maps: as drawn, all rows look at the salmon; trained, each animal looks at itself.",
    caption="Where one head looks, as drawn and trained",
)
page.section("The way back: one scale for two queries")
page.say(
    "L is the sum of a query's output. Both graphs are on one colour scale. Finite differences "
    "confirm all derivatives of order 1 and 2.",
)
page.figures(
    [
        (chosen.out / f"graph_{name}.svg", f"{name}: {described(drawings[name])}.", name)
        for name in ASKED
    ]
)
page.steps(
    passes[0].save(
        chosen.out / "steps.html",
        beside=passes[1],
        titles=ASKED,
        title="A query looks up five animals",
        limits=(1e-3, 100.0),
    ),
    title="Both passes of the look-up, for mammal and for reptile",
)
page.table(
    ["scale", "entropy / log 5", "slope", "entropy / log 5", "slope"],
    by_scale,
    caption="The entropy of a query's weights (1: equal), and how much its answer moves with it",
    groups=[("", 1), ("mammal", 2), ("reptile", 2)],
)
page.figure(
    chosen.out / "scale.svg",
    alt=f"Mammal's answer moves most at a scale of {best[0]:.2f}, reptile's at {best[1]:.3f}; at "
    "1/√3 reptile's hardly moves.",
    caption="Entropy, and ‖∂output/∂query‖, over the scale",
)
page.judged(marks)
page.conclude(
    "Random projections are where every training begins. These ones are hard to train because all "
    "numbers are above 0: then one key wins for every query. Measured from the average, the same "
    "weights learn.",
    try_it(chosen.file),
)
print(f"\nThe page: {page.write(chosen.out, quick=chosen.quick, note=marks.note)}")
marks.end()

# %% Try it
# - Train `stuck` with `**GENTLE` too, from seed 0 and from seed 1: which animals does it lose?
# - Set `NOISE` to 0.5: fewer questions can be answered, but which animal does reptile look at now?
