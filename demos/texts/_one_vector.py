"""Demos · Texts: the opening claim of "Your journey starts with one step": one vector forgets.

A recurrent encoder reads a sentence, and a decoder repeats it. Before 2014 the decoder had the
encoder's last state. Bahdanau's decoder has an average of all states, weighted anew for each word
that it writes. Here the two differ by one mask: "last" may look at the last state alone.
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import numpy as np

from attention import additive_attention
from attention.figures import ABLATION, MODEL, name_ends, new_figure
from demos._training import Run
from demos._training_curves import draw_levels
from demos.pages.publish import Published
from minigrad import Tensor, cross_entropy, no_grad, stack, tanh
from minigrad.nn import Embedding, Linear, Module
from minigrad.optim import Adam, clip_gradients, warmup_cosine

VOCABULARY, D, BATCH, LENGTHS = 10, 32, 64, (2, 4, 8, 16)


class Reader(Module):
    """(B, T) words → (B, T, VOCABULARY) scores, through hₜ = tanh(W xₜ + U hₜ₋₁)."""

    def __init__(self, T: int, mask: Any, rng: np.random.Generator) -> None:
        self.words, self.places = Embedding(VOCABULARY, D, rng=rng), Embedding(T, D, rng=rng)
        self.w_x, self.w_h = Linear(D, D, rng=rng), Linear(D, D, bias=False, rng=rng)
        self.w_q, self.w_k = (Linear(D, D, bias=False, rng=rng) for _ in range(2))
        self.w = Tensor(rng.standard_normal(D) / np.sqrt(D), requires_grad=True)
        self.w_c, self.w_p = Linear(D, D, rng=rng), Linear(D, D, bias=False, rng=rng)
        self.head, self.mask = Linear(D, VOCABULARY, rng=rng), mask

    def __call__(self, words: np.ndarray) -> Tensor:
        places = self.places(np.arange(words.shape[1]))  # (T, D), for the decoder's queries
        read = self.w_x(self.words(words) + places)
        states = [tanh(read[:, 0])]
        for t in range(1, words.shape[1]):
            states.append(tanh(read[:, t] + self.w_h(states[-1])))
        memory = stack(states, axis=1)  # (B, T, D)
        asked, keys = self.w_q(places), self.w_k(memory)
        context = additive_attention(asked, keys, memory, self.w, mask=self.mask)  # (B, T, D)
        return self.head(tanh(self.w_c(context) + self.w_p(places)))


def train(T: int, kind: str, chosen: Namespace) -> np.ndarray:
    """Return for each of the T places the share of 1,000 held-out sentences with the right word."""
    rng = np.random.default_rng(chosen.seed)
    model = Reader(T, np.arange(T) == T - 1 if kind == "last" else None, rng).astype(np.float32)
    optimizer = Adam(model.parameters())
    run = Run(chosen, f"{T} words, {kind}", model=model, optimizer=optimizer, rng=rng)
    for step in run:
        words = rng.integers(0, VOCABULARY, (BATCH, T))
        loss = cross_entropy(model(words), words)
        optimizer.lr = warmup_cosine(step, peak=1e-2, warmup=20, total=chosen.steps)
        optimizer.zero_grad()
        loss.backward()
        clip_gradients(model.parameters(), 1.0)
        optimizer.step()
        run.show(loss=loss.item())
    words = np.random.default_rng(chosen.seed + 1).integers(0, VOCABULARY, (1000, T))
    with no_grad():
        return np.mean(model(words).argmax(-1) == words, axis=0)  # (T,)


def show(page: Published) -> None:
    """Train each length with each kind of reading; show right words, and judge them."""
    chosen, marks = page.chosen, page.marks
    right = {(T, kind): train(T, kind, chosen) for T in LENGTHS for kind in ("all", "last")}
    chance = 1 / VOCABULARY  # (the words that are known, if the rest is guessed)
    known = {run: ((hits - chance) / (1 - chance)).sum() for run, hits in right.items()}
    figure = new_figure(7.6, 3.4)
    by_length, by_place = figure.subplots(1, 2, sharey=True)
    ends = []
    for kind, label, colour, style in (
        ("all", "all states", MODEL, "s-"),
        ("last", "the last state", ABLATION, "o--"),
    ):
        by_length.plot(LENGTHS, [right[T, kind].mean() for T in LENGTHS], style, color=colour)
        by_place.plot(range(1, 17), right[16, kind], style, color=colour, markersize=4)
        ends.append((right[16, kind][-1], label, colour))
    by_length.set(xlabel="words in a sentence", xticks=LENGTHS, ylabel="right words")
    by_place.set(xlabel="place in a sentence of 16", xticks=(1, 4, 8, 12, 16), ylim=(0, 1.04))
    draw_levels(by_length, {"chance": chance})
    name_ends(by_place, ends + draw_levels(by_place, {"chance": chance}))
    by_length.set_title("One vector forgets long sentences", fontsize=10)
    by_place.set_title("and keeps the last words only", fontsize=10)
    for panel in (by_length, by_place):
        panel.grid(alpha=0.25)
    shares = ", ".join(f"{right[T, 'last'].mean():.0%}" for T in LENGTHS)
    drawn = page.figure(
        figure,
        "one_vector",
        alt=f"Right words in sentences of 2, 4, 8 and 16: read through the last state {shares}, "
        "and only the last words of 16; through all states at least "
        f"{min(right[T, 'all'].mean() for T in LENGTHS):.0%}.",
        caption="Right words by length, and by place in a sentence of 16",
    )
    page.finding(
        f"A network reads 16 words drawn from ten. From its last state, which has {D} numbers, a "
        f"decoder knows about {known[16, 'last']:.0f} of them; with attention over all states it "
        f"knows {known[16, 'all']:.0f}.",
        drawn,
    )
    page.ask(
        f"Is there room for the 16 words in {D} numbers?",
        f"Yes: 16 words of ten are {16 * np.log2(VOCABULARY):.0f} bits, and {D} float32 numbers "
        f"have {32 * D:,}. But a training of {chosen.steps} steps does not find it.",
        guesses=("yes", "no"),
    )
    least = min(right[T, "all"].mean() for T in LENGTHS)
    marks.at_least("all states, any length", least, 0.99)
    marks.at_least("2 words, the last state: they fit", right[2, "last"].mean(), 0.99)
    marks.at_most("ablation, 16 words, the last state", right[16, "last"].mean(), 0.35)
    most = np.max([known[T, "last"] for T in LENGTHS])
    marks.at_most("most words known from the last state", most, 4, ".1f")
    gains = np.diff([right[T, "last"].mean() for T in LENGTHS])
    what = "the last state: right words, gained from a length to the next"
    marks.at_most(what, gains.max(), -0.05)
