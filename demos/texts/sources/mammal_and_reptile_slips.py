"""Demos · What can mislead in the source text "mammal and reptile", and what shows it."""

from __future__ import annotations

import numpy as np

from attention import attention, attention_weights
from attention.scaled_dot_product import unit_length
from demos._training import Marks
from demos.texts.sources import left_open, unclear, wrong
from demos.texts.sources import mammal_and_reptile_text as source
from demos.texts.sources.mammal_and_reptile_text import ANIMALS, ATTRIBUTES, NAMES, QUERIES
from minigrad import Tensor


class Slips:
    """The slips, measured on the animals, the two queries and the text's head."""

    def __init__(self, marks: Marks) -> None:
        self.marks = marks
        self.animals, self.queries = Tensor(ANIMALS), Tensor(QUERIES)
        self.head = source.layer(1)

    @unclear(
        "The embeddings are said to have changed little, without a number.",
        "The lizard's moves by 39 % of its length, the whale's by 17 %.",
    )
    def how_far_they_move(self) -> str:
        moved = attention(self.animals, self.animals, self.animals).data - ANIMALS
        far = np.linalg.norm(moved, axis=1) / np.linalg.norm(ANIMALS, axis=1)
        shares = (f"{name} {share:.1%}" for name, share in zip(NAMES, far, strict=True))
        return f"Each moves by a share of its length: {', '.join(shares)}."

    @unclear(
        "The weights are said to measure similarity.",
        "Of two keys in one direction the longer gets more. Of the mammals the query looks "
        "least at the whale, which is most like it, and lizard and whale look more at others "
        "than at themselves.",
        weighty=True,
    )
    def a_longer_key_gets_more(self) -> str:
        at_themselves = []  # how many rows look most at themselves
        for features in (self.animals, unit_length(self.animals)):
            winners = attention_weights(features, features).argmax(-1)
            at_themselves.append(int((winners == np.arange(len(NAMES))).sum()))
        own, unit = at_themselves
        self.marks.at_most("animals that look most at themselves", own, 3, "d")
        self.marks.at_least("animals of length 1 that look most at themselves", unit, 5, "d")
        return (
            f"Of the five animals {own} look most at themselves, and {unit} do if all have length "
            "1."
        )

    @left_open(
        "The text scales by 1/√3 and stops there.",
        "The scaled scores of a query still spread by 10 and more, where √d_k is meant to leave 1.",
        weighty=True,
    )
    def scaled_scores_still_spread(self) -> str:
        spread = (self.queries @ self.animals.mT).data.std(axis=1) / np.sqrt(3)
        for name, its in zip(("mammal", "reptile"), spread, strict=True):
            self.marks.at_least(f"{name}: its scaled scores spread by", its, 10, ".1f")
        return (
            f"The features have mean {ANIMALS.mean():.1f} and variance {ANIMALS.var():.1f}, not 0 "
            f"and 1. The scaled scores have standard deviations of {spread[0]:.1f} for mammal and "
            f"{spread[1]:.1f} for reptile."
        )

    @left_open(
        "The text calls random projections a bad idea, and leaves open why.",
        "Every training begins with some. Here all weights and features are positive, and then "
        "one key, the longest, wins every row.",
        weighty=True,
    )
    def the_longest_key_wins_every_row(self) -> str:
        longest = np.linalg.norm(self.head.w_k(self.animals).data, axis=1).argmax()
        least = self.head.weights(self.animals).data[0, :, longest].min()
        measured = Tensor(ANIMALS - source.AVERAGE)
        winners = self.head.weights(measured, self.animals).data[0].argmax(axis=1)
        wins = int((winners == longest).sum())
        self.marks.at_least("the text's head: least weight on the longest key", least, 0.9, ".2f")
        self.marks.at_most("queries from the average: rows that it wins", wins, 4, "d")
        return (
            f"Every row puts {least:.3f} or more on the {NAMES[longest]}, whose key is the "
            "longest. Measured from the average animal the queries sum to 0, so each key's scores "
            "sum to 0 too, and no key can be ahead in every row: here it is in "
            f"{wins} of {len(NAMES)}."
        )

    @wrong(
        "The embedding of a query is said to be updated.",
        "3 features go in and 4 attributes come out.",
    )
    def attributes_come_out(self) -> str:
        return f"A query has shape {QUERIES[0].shape}, and its output {ATTRIBUTES[0].shape}."

    @unclear(
        "Self-attention is said to need several heads to be useful.",
        "What it needs, and what the text means by this, are projections; its one head has them.",
    )
    def what_is_needed_are_projections(self) -> str:
        shape = self.head.w_q.weight.shape
        return f"Its one head has W_Q, W_K and W_V, each of shape {shape}."
