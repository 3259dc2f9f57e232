"""Demos · Pretrained: four Llamas that calculate, and the problems that they were trained on."""

from __future__ import annotations

from attention import GPT, generate
from demos._page import Page
from demos._training import Marks
from demos.pretrained._loading import WeightsError
from demos.pretrained._recovery import set_scale

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
    """Return a token for each character."""
    return [ids[character] for character in problem]


def refuse_strange(name: str, model: GPT, ids: dict[str, int]) -> None:
    """Raise WeightsError if the model cannot read its problems, or write their answers."""
    vocab_size = len(model.tokens.weight.data)
    for character in sorted(set("".join([*PROBLEMS[name], *PROBLEMS[name].values()]))):
        number = ids.get(character) if isinstance(ids, dict) else None
        if type(number) is not int or not 0 <= number < vocab_size:
            raise WeightsError(f"{name}former/vocab.json of mathformer has no id for {character!r}")
    if vocab_size <= END or model.max_length < 4 + LONGEST:
        raise WeightsError(f"{name}former/config.json of mathformer has other sizes")


def answers(name: str, model: GPT, ids: dict[str, int]) -> list[list[int]]:
    """Return the tokens written after each problem, up to and with the one that ends the answer."""
    prompts = [tokens(problem, ids) for problem in PROBLEMS[name]]
    written = generate(model, prompts, LONGEST, temperature=0, end=END)[:, len(prompts[0]) :]
    return [row[: row.index(END) + 1] if END in row else row for row in written.tolist()]


def right(name: str, model: GPT, ids: dict[str, int]) -> int:
    """Return the number of problems that the model solves."""
    expected = ([*tokens(answer, ids), END] for answer in PROBLEMS[name].values())
    return sum(row == y for row, y in zip(answers(name, model, ids), expected, strict=True))


SCALES = {  # what the scores are multiplied by; d_k is 4
    "1/√d_k, as trained": lambda d_k: d_k**-0.5,
    "no scale": lambda d_k: 1.0,
    "half of 1/√d_k": lambda d_k: 0.5 * d_k**-0.5,
    "0: all keys alike": lambda d_k: 0.0,
}


class Arithmetic:
    """The number of problems that are solved with each scale."""

    def __init__(self, models: dict[str, tuple[GPT, dict[str, int]]]) -> None:
        self.right = {}
        for said, scale in SCALES.items():
            for name, (model, ids) in models.items():
                set_scale(model, scale)
                self.right[said, name] = right(name, model, ids)
                set_scale(model, None)

    def tell(self, marks: Marks) -> None:
        """Print the table, and judge it."""
        print(f"   {'':20}" + "".join(f"{SIGNS[name]:>10}" for name in PROBLEMS))
        for said in SCALES:
            cells = [f"{self.right[said, name]}/{len(PROBLEMS[name])}" for name in PROBLEMS]
            print(f"   {said:20}" + "".join(f"{cell:>10}" for cell in cells))
        trained, away, _, flat = SCALES
        total = sum(self.right[trained, name] for name in PROBLEMS)
        marks.at_least("right with the trained scale", total, 345, "d")
        marks.at_most("divisions right without the scale", self.right[away, "div"], 20, "d")
        marks.at_most("subtractions right without the scale", self.right[away, "sub"], 20, "d")
        marks.at_least("additions right with equal weights", self.right[flat, "add"], 100, "d")

    def show(self, page: Page) -> None:
        """Add a question and the table to the page."""
        _, away, _, flat = SCALES
        page.ask(
            "In the models that calculate d_k is 4, so the scale is ½. What happens to their "
            "answers if it is taken away, and what if all keys get the same weight?",
            f"Without the scale {self.right[away, 'div']} of {len(PROBLEMS['div'])} divisions are "
            f"right and {self.right[away, 'sub']} of {len(PROBLEMS['sub'])} subtractions. But "
            f"{self.right[away, 'add']} of {len(PROBLEMS['add'])} additions are right, and with "
            f"equal weights still {self.right[flat, 'add']}: for a sum the mean of the digits is "
            "enough. (A product does not depend on the order of its digits either. But the model "
            "that multiplies has learned to need its weights: with equal ones "
            f"{self.right[flat, 'mul']} of {len(PROBLEMS['mul'])} products are right.)",
        )
        rows = [
            [said, *(f"{self.right[said, n]} of {len(PROBLEMS[n])}" for n in PROBLEMS)]
            for said in SCALES
        ]
        caption = "Right answers, with the weights as they were trained"
        page.table(["scale", *SIGNS.values()], rows, caption=caption)
