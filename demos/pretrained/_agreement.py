"""Demos · Pretrained: our numbers beside those of the models' own authors, in float64.

mathformer's inference is plain Python without arrays. glassllm has an autograd engine of its own.
Both were written without our code, so an equal number is hardly an accident.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from attention import GPT, generate
from attention.mapping import to_ours
from demos.pretrained._loading import LANGUAGES, calculator, folder_of, glass_layout, writer
from minigrad import cross_entropy, no_grad

DIGITS = range(10)
PROBLEMS = {  # the name of a model's folder in the wheel: every problem, and its right answer
    "add": {f"{a}+{b}=": str(a + b) for a in DIGITS for b in DIGITS},
    "sub": {f"{a}-{b}=": str(a - b) for a in DIGITS for b in range(a + 1)},
    "mul": {f"{a}*{b}=": str(a * b) for a in DIGITS for b in DIGITS},
    "div": {f"{a}/{b}=": f"Q{a // b}R{a % b}" for a in DIGITS for b in range(1, 10)},
}
SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
END = 2  # the token that ends an answer
LONGEST = 5  # tokens of an answer at most
WRITTEN = 40  # the tokens that a GPT writes, to be compared


def answers(name: str, model: GPT, ids: dict[str, int]) -> list[list[int]]:
    """Return the tokens written after each problem, up to and with the one that ends the answer."""
    prompts = [[ids[character] for character in problem] for problem in PROBLEMS[name]]
    written = generate(model, prompts, LONGEST, temperature=0, end=END)[:, len(prompts[0]) :]
    return [row[: row.index(END) + 1] if END in row else row for row in written.tolist()]


def right(name: str, model: GPT, ids: dict[str, int]) -> int:
    """Return the number of problems that the model solves."""
    expected = ([*(ids[c] for c in answer), END] for answer in PROBLEMS[name].values())
    return sum(row == y for row, y in zip(answers(name, model, ids), expected, strict=True))


class Calculates(NamedTuple):
    """One of mathformer's models, computed by us and by its authors."""

    problems: int
    same: int  # answers that are equal, token for token
    right: int
    logits: float  # the largest difference, at every position of every problem and answer
    largest: float  # the largest logit


def compare_calculator(name: str) -> Calculates:
    """Compare all problems of an operation."""
    folder = folder_of("mathformer") / f"{name}former"
    model, ids = calculator(folder)
    from mathformer.llama import TinyLlama

    author = TinyLlama(str(folder))
    same = 0
    difference = 0.0
    largest = 0.0
    for problem, ours in zip(PROBLEMS[name], answers(name, model, ids), strict=True):
        prompt = [ids[character] for character in problem]
        theirs = author.generate(prompt, LONGEST, END)
        same += ours == theirs
        text = prompt + theirs
        caches = None
        steps = []
        with no_grad():
            logits = model([text]).data[0]
        for position, token in enumerate(text):
            step, caches = author.forward([token], position, caches)
            steps.append(step)
        difference = max(difference, float(np.abs(logits - steps).max()))
        largest = max(largest, float(np.abs(logits).max()))
    return Calculates(len(PROBLEMS[name]), same, right(name, model, ids), difference, largest)


class Writes(NamedTuple):
    """One of glassllm's models, computed by us and by its author."""

    logits: float  # the largest difference
    arrays: int  # so many gradients were compared
    gradients: float  # the largest difference of any element of any gradient
    largest: float  # the largest element of a gradient
    greedy: int  # tokens that both write greedily, until the first that differs


def compare_writer(language: str, *, seed: int) -> Writes:
    """Compare two rows of 64 random tokens, both ways; then a text."""
    model = writer(language)
    from glassllm import GlassLM

    path = folder_of("glassllm") / "weights" / f"{LANGUAGES[language]}.npz"
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
    written = generate(model, prompt[None], WRITTEN, temperature=0)[0, 8:].tolist()
    known = [step.token for step in author.generate(prompt, WRITTEN, greedy=True)]
    equal = [x == y for x, y in zip(written, known, strict=True)]
    return Writes(
        logits=float(np.abs(scores.data - author(read).data).max()),
        arrays=len(theirs.keys() & ours.keys()) if len(theirs) == len(ours) else 0,
        gradients=max(float(np.abs(ours[name] - theirs[name]).max()) for name in theirs),
        largest=max(float(np.abs(gradient).max()) for gradient in theirs.values()),
        greedy=[*equal, False].index(False),
    )
