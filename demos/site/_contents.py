"""Site · Contents: the chapters in their order, and what each needs and leads to.

A chapter's number and title are the first line of its file. They are not written here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from demos.pages.source import Source, sources
from demos.pages.text import slug

ROOT = Path(__file__).parents[2]
STOP = "A first reading may stop here."
# Of each part: its name and its folder; of each file: ★ if it is of the evening, and what a reader
# knows afterwards.
CONTENTS = """The idea, minigrad
    idea               ★ backpropagation through the weights of attention, in forty lines
The engine, minigrad/engine
    tensor             ★ what a tensor holds, and what it refuses to keep every gradient
    record             ★ what an operation leaves behind, and how to compute without a trace
    rules              ★ how a value and its derivatives become an operation, yours too
    words                how operators, methods and NumPy's own functions come to record
    replay             ★ why reverse mode, in what order, and why gradients add up
    autograd             `backward` and `gradients`, as arrays or to differentiate again
    derivatives          `grad`, `vjp`, `jvp`, `jacobian`, `hessian`, `hvp`
    recomputing          how to pay for memory with time
Primitives, minigrad/ops
    __init__           ★ which functions are differentiated by hand, how to read a rule
    elementwise        ★ why a diagonal Jacobian is only a product
    shape                what a derivative is where nothing is computed: the way back
    indexing             where the gradient of `x[2]` goes, and why it is added there
    reduce             ★ how one gradient is shared among many inputs
    linalg             ★ where the transposes in G Bᵀ and Aᵀ G come from
    softmaxes          ★ softmax's Jacobian, and the moment when attention stops learning
    fused                what layer normalisation costs, and its derivative in one line
    products             how `einsum` does without transposes, forward and backward
    inverses             how to differentiate the solution of an equation: A⁻¹, A⁻¹ B
    classification       what a classifier learns from: prediction minus truth
Checks, minigrad/checks
    differences        ★ how far to believe a numerical derivative
    claims               what exactly is compared with a finite difference
    checking             how one random direction tests a million derivatives
Graphs, minigrad/graphs
    __init__             how to see a record, with its gradients
Functions, minigrad/functional
    __init__             how few operations need a derivative of their own
    activations          why the computer gets another formula than the blackboard
    reductions           what to do where a right formula divides 0 by 0
    losses               why a loss takes logits, and what padding and dropout do
Layers, minigrad/nn
    module               how parameters are found, named, frozen, saved and loaded
    layers               the layers every model is built of, a few lines each
Training, minigrad
    optim                what to do with a gradient: from SGD to AdamW
Attention, attention
    scaled_dot_product ★ attention, and the way back through it, with numbers
    masks                what True means in a mask, and how to build the usual ones
    additive             what came before the product, and where its scale was hidden
    fused                how softmax is summed up online, both ways without T² numbers
    multi_head         ★ what is split among heads, and what is not
    positions            why attention knows no order, and three places to put it in
Transformers, attention
    blocks               what stands around attention, and where the normalisation goes
    transformer          encoder, decoder, and the paper's model of both
    models               what GPT-2 and Llama changed, part by part
    generation           greedy, top-k, top-p and beams, and what a cache saves
The scale, attention
    scaling            ★ what is true about √d_k, what is folklore
The laboratory, attention/laboratory
    chain                which factor of ∂L/∂q makes it short or long
    freezing             what the number of keys changes
    sharpness            how curved the loss is where a training begins
    basin                which learning rates work at which width
    trained              what a trained model loses with its scale
    neighbours           what other models do instead of √d_k, all measured alike
    over_training        when gradients fall without the scale, and whether 1 is good
"""
# Which chapters need one of the evening, in their prose. (What a file imports is another matter: 11
# imports indexing, and can be read without it.)
NEEDED_BY = {
    "0": "1.1 4.1",
    "1.1": "1.2 7.1",
    "1.2": "1.3 2.1 5",
    "1.3": "1.4 3",
    "2.1": "2.2 2.3 2.4 4.3 8",
    "3": "3.1 3.2 3.3 6",
    "3.1": "3.4 3.5 6.1",
    "3.4": "3.6 6.3",
    "3.5": "3.8 3.9 7.3 11",
    "3.6": "3.7 3.10 6.4 11 16",
    "4.1": "4.2 4.3",
    "11": "11.1 11.2 12 13 14 16",
    "13": "15.1 15.2 15.3 15.4 16.6",
    "16": "16.2 16.3 16.4 16.5 16.6 16.7 16.8",
}
PICTURES = {  # files of demos/pictures/ that a chapter shows, and what they say
    "15.3": [("gpt", "GPT-2 with twelve blocks: equal blocks are drawn once.")],
    "16": [
        (
            "usual",
            "The gradient from the loss back to q, without the scale over with it. With 64 keys at "
            "d_k = 64 it is about 5 times larger at q.",
        ),
        ("extreme", "The same with 5 keys at d_k = 512: it is about 2,000 times smaller at q."),
    ],
}


@dataclass(eq=False)
class Chapter:
    """One file of the book: its first line, its length in minutes, and its neighbours."""

    source: Source
    part: str
    star: bool
    after: str
    number: str = ""  # 3.6
    title: str = ""
    says: str = ""  # what the first line says after the title
    needs: list[Chapter] = field(default_factory=list)  # before it, of the evening
    uses: list[Chapter] = field(default_factory=list)  # which its file imports
    leads: list[Chapter] = field(default_factory=list)

    def __post_init__(self) -> None:
        line = self.source.docstring.partition("\n")[0].rstrip(".")
        heading = re.fullmatch(r"([\d.]+) · ([^:]+): (.+)", line)
        self.number, self.title, self.says = heading.groups()

    @property
    def page(self) -> str:
        """The file name of its page."""
        return f"{self.number}-{slug(self.title)}.html"

    @cached_property
    def minutes(self) -> int:
        """Words / 120 and other lines / 6, up to the line where a reading may stop.

        Imports are not read, and neither are empty lines.
        """
        lesson = self.source.text.partition(STOP)[0]
        prose = " ".join(re.findall(r'"""(.*?)"""', lesson, re.DOTALL))
        code = re.sub(r'""".*?"""', "", lesson, flags=re.DOTALL)
        code = re.sub(r"^(from|import) .*?(\(\n[^)]*\))?$", "", code, flags=re.MULTILINE)
        lines = sum(map(bool, map(str.strip, code.split("\n"))))
        return round(len(prose.split()) / 120 + lines / 6) or 1


def book() -> tuple[dict[str, Chapter], dict[str, Source]]:
    """Return the chapters by number, in order, and all files of the two packages by module."""
    files = sources(ROOT, ("minigrad", "attention"))
    chapters = {}
    for line in CONTENTS.splitlines():
        if line[0] != " ":
            part, folder = line.split(", ")
            continue
        stem, star, after = re.fullmatch(r" +(\w+) +(★?) +(.+)", line).groups()
        name = f"{folder}/{stem}".replace("/", ".").removesuffix(".__init__")
        chapter = Chapter(files[name], part, bool(star), after)
        chapters[chapter.number] = chapter
    for needed, numbers in NEEDED_BY.items():
        for number in numbers.split():
            chapters[number].needs.append(chapters[needed])
    for chapter in chapters.values():  # (a package leads to what it gathers)
        names = chapter.source.imported(files) - {chapter.source.name}
        for other in chapters.values():
            if other.source.name in names:
                inside = other.source.name.startswith(f"{chapter.source.name}.")
                first, second = (chapter, other) if inside else (other, chapter)
                first.leads.append(second)
                second.uses.append(first)
    return chapters, files
