"""Demos · Pretrained: four Llamas that calculate, and the problems that they were trained on."""

from __future__ import annotations

from attention import GPT, generate

DIGITS = range(10)
PROBLEMS = {  # the name of a model's folder in the wheel: every problem, and its right answer
    "add": {f"{a}+{b}=": str(a + b) for a in DIGITS for b in DIGITS},
    "sub": {f"{a}-{b}=": str(a - b) for a in DIGITS for b in range(a + 1)},
    "mul": {f"{a}*{b}=": str(a * b) for a in DIGITS for b in DIGITS},
    "div": {f"{a}/{b}=": f"Q{a // b}R{a % b}" for a in DIGITS for b in range(1, 10)},
}
SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
END, LONGEST = 2, 5  # the token that ends an answer, and the tokens of an answer at most


def tokens(problem: str, ids: dict[str, int]) -> list[int]:
    """A token for each character."""
    return [ids[character] for character in problem]


def answers(name: str, model: GPT, ids: dict[str, int]) -> list[list[int]]:
    """What the model writes after each problem, up to and with the token that ends it."""
    prompts = [tokens(problem, ids) for problem in PROBLEMS[name]]
    written = generate(model, prompts, LONGEST, temperature=0, end=END)[:, len(prompts[0]) :]
    return [row[: row.index(END) + 1] if END in row else row for row in written.tolist()]


def right(name: str, model: GPT, ids: dict[str, int]) -> int:
    """How many problems the model solves."""
    expected = ([*tokens(answer, ids), END] for answer in PROBLEMS[name].values())
    return sum(row == y for row, y in zip(answers(name, model, ids), expected, strict=True))
