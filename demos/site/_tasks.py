"""Site · Tasks: "How do I …", each with the lines that do it and the chapter that explains them.

The lines of all tasks run, one after the other, in a test. SETUP stands before them.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from demos.pages.page import Page, one_of
from demos.pages.source import coloured
from demos.pages.templates import fill
from demos.pages.text import inline, slug
from demos.site._book import Book

SETUP = """
import numpy as np
from attention import *
from minigrad import *
from minigrad.nn import *
from minigrad.optim import *

rng = np.random.default_rng(0)
model = gpt2(11, 8, d_model=16, num_heads=2, num_blocks=2, rng=rng)
optimizer = AdamW(model.parameters(), lr=1e-3)
tokens = rng.integers(11, size=(4, 8))
targets = rng.integers(11, size=(4, 8))
"""


ABOUT = {  # what stands below a heading
    "Make it fast": "A factor is the time of a training step after the change, divided by the time "
    "before it, and the same for the memory that a step needs at once: 1 changes nothing. These "
    "are of a GPT with 4 blocks and d_model = 128, 16 × 128 tokens, on one thread of a shared "
    "machine; `python -m demos benchmark --rows changes` prints them for yours.",
}


class Task(NamedTuple):
    """Something to be done: what a reader would ask, a sentence, and the lines that do it.

    `tool` is the module that explains it, where that is not a chapter.
    """

    question: str
    sentence: str
    code: str
    tool: str = ""


TASKS = {
    "Train": (
        Task(
            "do one step of a training",
            "`backward` adds to what is in `.grad`, so clear the gradients first (chapter 8).",
            """
            loss = cross_entropy(model(tokens), targets)
            optimizer.zero_grad()
            loss.backward()
            clip_gradients(model.parameters(), max_norm=1.0)
            optimizer.step()
            """,
        ),
        Task(
            "let the learning rate rise and then fall",
            "An optimizer's rate may be set before each step (chapter 8).",
            """
            for step in range(1, 4):
                optimizer.lr = warmup_cosine(step, peak=1e-3, warmup=100, total=1000)
            """,
        ),
        Task(
            "let weight decay shrink matrices alone",
            "A group has parameters, and options of its own for them (chapter 8).",
            """
            matrices = [p for p in model.parameters() if p.ndim > 1]
            others = [p for p in model.parameters() if p.ndim < 2]
            optimizer = AdamW([{"params": matrices}, {"params": others, "weight_decay": 0.0}])
            """,
        ),
        Task(
            "let rare classes count more",
            "The loss becomes a weighted mean (chapter 3.10).",
            """
            counts = np.bincount(targets.ravel(), minlength=11)
            class_weights = 1 / np.maximum(counts, 1)
            loss = cross_entropy(model(tokens), targets, class_weights=class_weights)
            """,
        ),
        Task(
            "take a gradient through a step",
            "`functional_call` computes with other parameters, which may be results.",
            """
            start = dict(model.named_parameters())
            loss = cross_entropy(model(tokens), targets)
            slopes = gradients(loss, [*start.values()], create_graph=True)
            moved = {name: p - 0.1 * g for (name, p), g in zip(start.items(), slopes)}
            cross_entropy(functional_call(model, moved, tokens), targets).backward()
            """,
            "minigrad.nn.substitution",
        ),
        Task(
            "freeze a part of a model",
            "Optimizers skip a frozen parameter (chapter 7.1).",
            """
            for name, parameter in model.named_parameters():
                if name.startswith("blocks.1."):
                    parameter.requires_grad = False
            """,
        ),
        Task(
            "save a training and resume it",
            "A checkpoint has the model, the optimizer, the generator and facts of your own.",
            """
            save_checkpoint("run.npz", model=model, optimizer=optimizer, rng=rng, step=100)
            facts = load_checkpoint("run.npz", model=model, optimizer=optimizer, rng=rng)
            step = facts["step"]
            """,
            "minigrad.runs.checkpoints",
        ),
    ),
    "Build": (
        Task(
            "mask padding",
            "True means *may look*. A sequence of length 3 has three real keys (chapter 11.1).",
            """
            lengths = np.array([3, 8])
            x = rng.standard_normal((2, 8, 4))
            y = attention(x, x, x, mask=padding_mask(lengths, 8))
            """,
        ),
        Task(
            "leave padding out of the loss",
            "A target equal to `ignore_index` does not count, nor in the mean (chapter 3.10).",
            """
            padded = np.where(np.arange(8) < 5, targets, -100)
            loss = cross_entropy(model(tokens), padded, ignore_index=-100)
            """,
        ),
        Task(
            "load weights",
            "The state is arrays by their names (chapter 7.1). Other people's models have other "
            "names for the same weights.",
            """
            np.savez("weights.npz", **model.state_dict())
            model.load_state_dict(np.load("weights.npz"))
            """,
            "attention.mapping",
        ),
        Task(
            "write a text",
            "The model draws each token from its own probabilities (chapter 15.4).",
            """
            text = generate(model, tokens[:1, :3], 4, temperature=0.8, rng=rng)
            """,
        ),
        Task(
            "give prompts of different lengths",
            "They are padded inside, and each gets the tokens that it gets alone (chapter 15.4): "
            "drawn ones too, if each has a generator of its own. The result is a list of arrays.",
            """
            prompts = [[3, 1, 4, 1], [5]]
            generators = [np.random.default_rng(seed) for seed in range(2)]
            texts = generate(model, prompts, 4, temperature=0.8, rng=generators)
            """,
        ),
        Task(
            "define an operation with a derivative of its own",
            "A rule returns its value and one function for each input (chapter 1.3).",
            """
            @primitive
            def cube(x, /):
                return x**3, lambda g, y: g * 3 * x**2
            """,
        ),
    ),
    "Look": (
        Task(
            "draw a graph for a slide",
            "`.svg` needs the extra `draw`, or Graphviz itself (chapter 5).",
            """
            with Steps(model) as steps:
                loss = cross_entropy(model(tokens), targets)
            graph(loss, grads=True, steps=steps, direction="right", width=960).save("slide.svg")
            """,
        ),
        Task(
            "step through both passes of my own code",
            "The page has every number and needs no server.",
            """
            with Steps(model) as steps:
                cross_entropy(model(tokens), targets).backward()
            steps.save("steps.html")
            """,
            "minigrad.graphs.steps",
        ),
        Task(
            "check a derivative",
            "The error says which rule is wrong, and often why (chapter 4.3).",
            """
            assert gradcheck(lambda x: np.exp(x) * x, np.linspace(-1.0, 1.0, 5))
            """,
        ),
        Task(
            "find where a NaN begins",
            "Inside, the first operation that computes a NaN raises an error that names it.",
            """
            with detect_anomaly():
                loss = cross_entropy(model(tokens), targets)
            """,
            "minigrad.engine.safety",
        ),
        Task(
            "look at the weights of attention",
            "Each row is one query's, and its sum is 1 (chapter 11).",
            """
            x = rng.standard_normal((5, 4))
            weights = attention_weights(x, x)
            """,
        ),
        Task(
            "take a second derivative",
            "`hvp` is the Hessian times a direction, without the Hessian (chapter 2.3).",
            """
            x = np.array([1.0, 2.0])
            H = hessian(lambda x: (x**3).sum())(x)
            Hv = hvp(lambda x: (x**3).sum(), x, np.ones(2))
            """,
        ),
    ),
    "Make it fast": (
        Task(
            "train in float32",
            "The model decides, since its parameters do: arrays of data become float32 beside them "
            "(chapter 7.1). Call it before you make the optimizer. In place of float64: "
            "time 0.62, memory 0.50.",
            """
            model.astype(np.float32)
            optimizer = AdamW(model.parameters(), lr=1e-3)
            """,
        ),
        Task(
            "keep memory from one step to the next",
            "Freed memory stays with the program, so the system need not clear it again. Call it "
            "once, before the first step. In float32: time 0.80, memory 1.00.",
            """
            keep_memory()  # returns in words whether this system can do so
            """,
            "minigrad.runs.memory",
        ),
        Task(
            "choose the number of threads",
            "NumPy's BLAS reads the number when NumPy is imported, so these lines come first. "
            "Without them BLAS takes every core. On a busy machine a step then takes several times "
            "as long. On an idle one, with two cores in place of one: time 0.82, memory 1.00.",
            """
            import os
            os.environ["OPENBLAS_NUM_THREADS"] = "1"
            import numpy as np
            """,
        ),
        Task(
            "attend to thousands of positions",
            "The same result without an array of T² numbers (chapter 12). Models do so unless they "
            "get `attend=attention`. With 512 positions: time 0.80, memory 0.41.",
            """
            x = rng.standard_normal((512, 16))
            y = fused_attention(x, x, x, mask=causal_mask(512))
            """,
        ),
        Task(
            "train with less memory",
            "Each block keeps only its input, and is computed again on the way back, with the same "
            "dropout. `gpt2(…, recompute=True)` makes a model that does so (chapter 15.2). "
            "With four blocks: time 1.48, memory 0.36.",
            """
            for block in model.blocks:
                block.recompute = True
            cross_entropy(model(tokens), targets).backward()
            """,
        ),
        Task(
            "train on a batch that is too large for the memory",
            "Gradients of parts add up to the gradient of the whole, since `backward` adds. In "
            "four parts: time 1.15, memory 0.28.",
            """
            optimizer.zero_grad()
            for part in np.split(np.arange(4), 2):
                (cross_entropy(model(tokens[part]), targets[part]) / 2).backward()
            optimizer.step()
            """,
        ),
    ),
    "Save memory": (
        Task(
            "compute without a record",
            "Nothing is kept for a way back (chapter 1.2).",
            """
            with no_grad():
                scores = model(tokens)
            """,
        ),
        Task(
            "recompute a function of my own on the way back",
            "Only the function's inputs are kept, and the function is computed again on the way "
            "back (chapter 2.4).",
            """
            x = Tensor(rng.standard_normal((8, 16)), requires_grad=True)
            y = recompute(lambda x: np.tanh(x @ x.mT) @ x, x)
            """,
        ),
    ),
    "Teach": (
        Task(
            "grade the exercises of a class",
            "In a terminal: a row for each learner's folder. Nothing is written into the folders. "
            "The page of the demo `learn` says how to read the rows, and what is not found.",
            """
            python -m demos learn grade ann bob --csv
            """,
        ),
        Task(
            "give a class exercises of your own",
            "In a terminal. The folder `course` holds `exercises/c01_mean.py`, with your lines "
            "between `# Your lines begin.` and `# Your lines end.`, and `checks/c01_mean.py`, with "
            "three hints and a function. `demos/learn/exercises/__init__.py` has the whole format. "
            "The first command tries each check on your lines, and on what a learner gets.",
            """
            python -m demos learn grade --course course
            python -m demos learn init ann --course course
            """,
        ),
    ),
}


def lines_of(task: Task) -> list[str]:
    """Return the lines of a task as they are typed."""
    return re.sub(r"^ {12}", "", task.code, flags=re.MULTILINE).strip("\n").rstrip().split("\n")


def tasks(book: Book) -> Page:
    """Return the page of tasks."""
    groups = []
    for heading, members in TASKS.items():
        rows = []
        for task in members:
            place = slug(task.question)
            address = f"tasks.html#{place}"
            book.index.append((f"How do I {task.question}?", "task", address))
            code = coloured("\n".join(lines_of(task)), {})
            sentence = inline(task.sentence, book.links)
            rows.append((place, task.question, sentence, task.tool, code))
        about = inline(ABOUT.get(heading, ""), book.links)
        groups.append((heading, slug(heading), about, rows))
        if about:
            book.index.append((heading, "tasks", f"tasks.html#{slug(heading)}"))
    setup = coloured(SETUP.strip(), {})
    body = fill("site/tasks.html", groups=groups, setup=setup, pages=book.pages)
    sub = "What is to be done, the lines that do it, and the chapter that explains them."
    return one_of("Book", [("tasks.html", "Tasks")], 0, "How do I …?", sub, body)
