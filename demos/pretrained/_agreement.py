"""Demos · Pretrained: our numbers beside those of the models' own authors, in float64.

mathformer's inference is plain Python without arrays. glassllm has an autograd engine of its own.
Both were written without our code, so an equal number is hardly an accident.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from attention import generate
from attention.mapping import to_ours
from demos._page import Page
from demos._training import Marks
from demos.pretrained._arithmetic import END, LONGEST, PROBLEMS, SIGNS, answers, right, tokens
from demos.pretrained._loading import LANGUAGES, calculator, folder_of, glass_layout, writer
from minigrad import cross_entropy, no_grad


class Calculates(NamedTuple):
    """One of mathformer's models, computed by us and by its authors."""

    problems: int
    right: int
    same: int  # answers that are equal, token for token
    logits: float  # the largest difference, at every position of every problem and answer
    largest: float  # the largest logit


def compare_calculator(name: str) -> Calculates:
    """Compare all problems of an operation."""
    folder = folder_of("mathformer") / f"{name}former"
    model, ids = calculator(folder)
    from mathformer.llama import TinyLlama

    author = TinyLlama(str(folder))
    prompts = [tokens(problem, ids) for problem in PROBLEMS[name]]
    ours, theirs = answers(name, model, ids), [author.generate(p, LONGEST, END) for p in prompts]
    difference = largest = 0.0
    for prompt, answer in zip(prompts, theirs, strict=True):
        text, caches, steps = prompt + answer, None, []
        with no_grad():
            logits = model([text]).data[0]
        for position, token in enumerate(text):
            step, caches = author.forward([token], position, caches)
            steps.append(step)
        difference = max(difference, float(np.abs(logits - steps).max()))
        largest = max(largest, float(np.abs(logits).max()))
    same = sum(x == y for x, y in zip(ours, theirs, strict=True))
    return Calculates(len(prompts), right(name, model, ids), same, difference, largest)


class Writes(NamedTuple):
    """One of glassllm's models, computed by us and by its author."""

    logits: float  # the largest difference
    gradients: float  # the largest difference of any element of any gradient
    arrays: int  # so many gradients were compared
    largest: float  # the largest element of a gradient
    greedy: int  # tokens that both write greedily, until the first that differs


def compare_writer(language: str, *, greedy: int = 40, seed: int = 0) -> Writes:
    """Compare two rows of 64 random tokens, both ways; then a text."""
    model = writer(language)
    from glassllm import GlassLM

    path: Path = folder_of("glassllm") / "weights" / f"{LANGUAGES[language]}.npz"
    author = GlassLM.load(path, dtype=np.float64)
    vocab_size = len(model.tokens.weight.data)
    words = np.random.default_rng(seed).integers(0, vocab_size, (2, 65))
    read, following = words[:, :-1], words[:, 1:]
    scores = model(read)
    cross_entropy(scores, following).backward()
    author.loss(read, following).backward()
    ours = {name: parameter.grad for name, parameter in model.named_parameters()}
    theirs = {name: parameter.grad for name, parameter in author.named_parameters().items()}
    theirs = to_ours(theirs, glass_layout(len(model.blocks)))
    prompt = words[0, :8]
    written = generate(model, prompt[None], greedy, temperature=0)[0, 8:].tolist()
    known = [step.token for step in author.generate(prompt, greedy, greedy=True)]
    equal = [x == y for x, y in zip(written, known, strict=True)]
    return Writes(
        logits=float(np.abs(scores.data - author(read).data).max()),
        gradients=max(float(np.abs(ours[name] - theirs[name]).max()) for name in theirs),
        arrays=len(theirs.keys() & ours.keys()) if len(theirs) == len(ours) else 0,
        largest=max(float(np.abs(gradient).max()) for gradient in theirs.values()),
        greedy=[*equal, False].index(False),
    )


class Agreement:
    """All six models, printed, judged, and shown on a page."""

    def __init__(self, seed: int) -> None:
        self.calculated = {name: compare_calculator(name) for name in PROBLEMS}
        self.written = {language: compare_writer(language, seed=seed) for language in LANGUAGES}

    def tell(self, marks: Marks) -> None:
        """Print what was found, and judge it."""
        calculated, written = self.calculated.values(), self.written.values()
        for name, found in self.calculated.items():
            print(
                f"   {SIGNS[name]}  {found.problems:>3} problems: {found.same} answers are theirs, "
                f"{found.right} are right; logits of at most {found.largest:.0f} differ "
                f"by {found.logits:.0e}"
            )
        for language, w in self.written.items():
            print(
                f"   {language}: logits differ by {w.logits:.0e}; {w.arrays} arrays of gradients, "
                f"of at most {w.largest:.2f}, by {w.gradients:.0e}; {w.greedy} tokens alike"
            )
        furthest = max(found.logits for found in [*calculated, *written])
        marks.at_most("largest difference of a logit, of all six models", furthest, 1e-9, ".0e")
        furthest = max(found.gradients for found in written)
        marks.at_most("largest difference of a gradient, of both GPTs", furthest, 1e-9, ".0e")
        marks.at_least("gradients compared, of each GPT", min(w.arrays for w in written), 38, "d")
        same, problems = (sum(getattr(c, n) for c in calculated) for n in ("same", "problems"))
        marks.at_least("answers like theirs", same, problems, "d")
        marks.at_least("tokens written alike", min(w.greedy for w in written), 40, "d")

    def show(self, page: Page) -> None:
        """Add two tables to the page."""
        page.table(
            [
                "mathformer",
                "problems",
                "answers alike",
                "right",
                "logits differ by",
                "largest logit",
            ],
            [
                [SIGNS[n], c.problems, c.same, c.right, f"{c.logits:.0e}", f"{c.largest:.0f}"]
                for n, c in self.calculated.items()
            ],
            caption="Every problem with two one-digit numbers, without negative results and "
            "divisions by 0; 7/3= is answered Q2R1. Logits are of every position, in float64",
        )
        page.table(
            [
                "glassllm",
                "logits differ by",
                "parameters",
                "gradients differ by",
                "largest",
                "tokens alike",
            ],
            [
                [n, f"{w.logits:.0e}", w.arrays, f"{w.gradients:.0e}", f"{w.largest:.2f}", w.greedy]
                for n, w in self.written.items()
            ],
            caption="128 random tokens, in float64: the logits; the number of parameters' arrays, "
            "and the largest difference of their gradients from those of glassllm's own autograd; "
            "the tokens that both write greedily",
        )
