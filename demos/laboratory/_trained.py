"""Section 6 of the laboratory: a trained model whose scale is removed, doubled or given."""

from statistics import median

import numpy as np

from attention.figures import save_figure
from attention.laboratory.figures import plot_changed_scale, plot_heads_learning
from attention.laboratory.trained import over_heads
from attention.scaling import deviation

HEADER = [
    "trained with",
    "d_k",
    "then",
    "right",
    "loss",
    "‖∂L/∂q‖",
    "dead",
    "g passed on",
    "dead",
    "2nd task",
]
NAMES = {0.5: "1/√d_k", 0.0: "no scale"}


class Trained:
    """What was measured of the trainings with one scale at one d_k, at their end."""

    def __init__(self, rows, a, d_k):
        self.rows = [row for row in rows if (row.d_k, row.a) == (d_k, a)]
        self.a, self.d_k = a, d_k
        self.steps = sorted({head.step for head in self.rows[0].heads})
        self.changes = [each.change for each in self.rows[0].second]

    def heads(self, name, change="as trained", step=None):
        """One number of all heads: (trainings, heads), the head that looks best first."""
        step = self.steps[-1] if step is None else step
        return np.array(over_heads(self.rows, name, step=step, change=change))

    def second(self, change="as trained"):
        """Steps until the second task is learned, of each training; infinite for never."""
        each = [each.steps for row in self.rows for each in row.second if each.change == change]
        return [np.inf if steps is None else steps for steps in each]

    def second_said(self, change="as trained"):
        """The same as in a table."""
        every = self.second(change)
        steps = [each for each in every if each < np.inf]
        if not steps:
            return "never"
        spread = f" ± {deviation(steps):.0f}" if len(steps) > 1 else ""
        few = f" ({len(steps)} of {len(every)})" if len(steps) < len(every) else ""
        return f"{np.mean(steps):.0f}{spread}{few}"


class AllTrained:
    """Section 6, all of it."""

    heading = "Without its scale a trained model answers, and learns slowly"
    name = "trained"

    def __init__(self, rows):
        d_ks = sorted({row.d_k for row in rows})
        self.found = {(a, d_k): Trained(rows, a, d_k) for d_k in d_ks for a in NAMES}
        self.widest = [row for row in rows if row.d_k == d_ks[-1]]
        self.rows = table_rows(self.found)

    def print(self, marks):
        """The table, and what must be so."""
        printed(self.rows, self.found, marks)

    def draw(self, folder):
        """The heads while they learn, and what a change of the scale does."""
        save_figure(plot_heads_learning(self.widest), folder / "heads")
        save_figure(plot_changed_scale(self.widest), folder / "changed")

    def show(self, page, folder):
        """The section of the page."""
        section(page, folder, self.rows, self.found)


def table_rows(found):
    """The table: for each scale and width, each change of the scale after the training."""
    return [
        [
            NAMES[a],
            d_k,
            change,
            f"{each.heads('accuracy', change).mean():.1%}",
            f"{each.heads('loss', change).mean():.3f}",
            f"{np.median(each.heads('gradient_median', change)):.1g}",
            f"{each.heads('dead_share', change).mean():.0%}",
            f"{np.median(each.heads('passed_median', change)):.1g}",
            f"{each.heads('passed_dead', change).mean():.0%}",
            each.second_said(change),
        ]
        for (a, d_k), each in found.items()
        for change in each.changes
    ]


def printed(rows, found, marks):
    """The table on the terminal, and what must be so."""
    for cells in (HEADER, *rows):
        print("   " + f"{cells[0]:14}" + "".join(f"{cell!s:>13}" for cell in cells[1:]))
    widest = max(d_k for _, d_k in found)
    scaled, raw = found[0.5, widest], found[0.0, widest]
    kept, removed = (scaled.heads("accuracy", c).mean() for c in ("as trained", "no scale"))
    marks.at_most("trained with 1/√d_k: right answers lost without it", kept - removed, 0.05)
    removed = scaled.heads("passed_dead", "no scale").mean()
    marks.at_least("  and queries that no g reaches then", removed, 0.3)
    slower = median(scaled.second("no scale")) / median(scaled.second())
    if len(scaled.rows) > 2:  # (of one training the quotient is known only to a third of itself)
        marks.at_least("  and the steps of the second task, times", slower, 1.2, ".1f")
    else:
        print(f"\n   trained with 1/√d_k: steps of the second task without it, times {slower:.1f}")
    dead = [each.heads("passed_dead").mean() for each in (scaled, raw)]
    marks.at_most("trained with 1/√d_k: queries that no g reaches", dead[0], 0.05)
    marks.at_least("trained with no scale: queries that no g reaches", dead[1], 0.3)


def section(page, folder, rows, found):
    """The section of the page."""
    widest = max(d_k for _, d_k in found)
    scaled, raw = found[0.5, widest], found[0.0, widest]
    passes = {c: np.median(scaled.heads("passed_median", c)) for c in scaled.changes}
    page.ask(
        f"A model of four heads has learned the same task with 1/√d_k, at d_k = {widest}. Now the "
        "scale is removed. How many of its answers become wrong? And how much longer does it take "
        "to learn another task?",
        f"It answers {scaled.heads('accuracy', 'no scale').mean():.1%} of the questions, and "
        f"before {scaled.heads('accuracy').mean():.1%}. The right pair already has the largest "
        "score, and no positive factor changes which score is the largest. But a random gradient "
        "g at the output of a head gave a typical query a gradient of length "
        f"{passes['as trained']:.1g}, and now it gives {passes['no scale']:.1g}. The second task "
        f"needs {scaled.second_said('no scale')} steps, and with the scale "
        f"{scaled.second_said()}.",
    )
    page.figure(
        folder / "changed.svg",
        alt="What reaches q over the steps of the training, with the scale as trained, doubled, "
        f"and removed or given. At the end, trained with 1/√d_k: {passes['as trained']:.1g} of a "
        f"random g as trained, {passes['no scale']:.1g} without the scale.",
        caption=f"d_k = {widest}. Left: the loss's gradient, which also falls because the answers "
        "become right. Right: a random gradient g at the head's output, whose size stays",
    )
    page.table(
        HEADER,
        rows,
        caption=f"After {scaled.steps[-1]} steps at a rate of {scaled.rows[0].lr:g}; medians and "
        "shares over the heads of all trainings. Dead: less than 0.001 of the gradient before it. "
        "2nd task: steps to 98 % (chapter 16.6)",
    )
    page.say(
        "A small gradient of the loss has two causes. A head may have *finished*, so that little "
        "is wrong. Or it is *saturated*, so that softmax passes nothing on. A random g at the "
        "head's output tells them apart, because it does not become smaller when the answers "
        "become right: a query that is dead for g as well is saturated. With 1/√d_k "
        f"{scaled.heads('dead_share').mean():.0%} of the queries are dead for the loss, and "
        f"{scaled.heads('passed_dead').mean():.0%} for g. Without a scale it is "
        f"{raw.heads('dead_share').mean():.0%} and {raw.heads('passed_dead').mean():.0%}.",
    )
    page.figure(
        folder / "heads.svg",
        alt="Each head's entropy and its weight on the right pair over the steps of the training. "
        + " ".join(
            f"{NAMES[a]}: the entropy begins at {each.heads('entropy', step=0).mean():.2f}, and "
            f"ends between {each.heads('entropy').mean(axis=0).min():.2f} and "
            f"{each.heads('entropy').mean(axis=0).max():.2f}."
            for a, each in ((0.5, scaled), (0.0, raw))
        ),
        caption=f"d_k = {widest}: four heads, sorted by their weight on the right pair",
    )
    page.say(
        "This does not show that a model needs the scale, since W_Q can absorb any factor. It "
        "shows what the weights were trained for. If a model has learned its task, its answers "
        "hide that a scale is missing. A new task shows it.",
    )
