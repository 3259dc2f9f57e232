"""The five source texts in one table: numbers reproduced, doubtful lines, steps completed.

Claim. This project grew out of five texts about attention. For every number that they print we know
whether it comes back from our code, as text, and if not, why not. We name what is wrong in them,
unclear or left open, and do the steps that they leave undone. `python -m demos love_transformers`
and so on compute each.

    python -m demos texts [--out DIR] [--seed N]  # 1 s
"""

# %% Set-up

from demos import options
from demos._page import Page, link, try_it
from demos._training import Marks
from demos.texts.sources import (
    KINDS,
    counted,
    kinds,
    love_transformers,
    love_you,
    mammal_and_reptile,
    say,
    sky_is_blue,
    your_journey,
)

chosen = options("texts", __doc__.splitlines()[0])
marks = Marks(chosen)
TEXTS = (love_transformers, love_you, sky_is_blue, your_journey, mammal_and_reptile)


def show(name, *cells):
    """Print a row of the table."""
    widths = (17, 21, 8, 10, 12, 18)
    print(f"{name:18}" + "".join(f"{n:{w}}" for n, w in zip(cells, widths, strict=True)))


# %% The table
# Numbers are counted without the shapes that the texts print.

counts = {text.__name__.rpartition(".")[2]: counted(text) for text in TEXTS}
HEADER = "numbers printed   reproduced as text   wrong   unclear   left open   steps completed"
print(f"{'':20}{HEADER}")
for (name, (reproduced, printed)), text in zip(counts.items(), TEXTS, strict=True):
    show(name, printed, reproduced, *kinds(text), len(text.COMPLETED))
reproduced, printed = map(sum, zip(*counts.values(), strict=True))
by_kind = map(sum, zip(*map(kinds, TEXTS), strict=True))
show("together", printed, reproduced, *by_kind, sum(len(t.COMPLETED) for t in TEXTS))
print()
for name, text in zip(counts, TEXTS, strict=True):
    if text.LOST:
        say(f"{name} cannot give back {text.LOST}.")

# %% Each doubtful line and each step in a sentence

say(
    "Wrong: what the text says, prints or runs is not so. Unclear: it can be read in two ways, or "
    "a name says something else. Left open: nothing is wrong, but a condition, a choice or a "
    "further case is not mentioned.",
)

for name, text in zip(counts, TEXTS, strict=True):
    print(f"\n{name}   {text.TITLE}\n\n   Wrong, unclear or left open")
    for slip in text.SLIPS:
        say(str(slip), "   - ", "     ")
    print("\n   Steps completed")
    for step in text.COMPLETED:
        say(step, "   - ", "     ")

# %% The page

page = Page(
    "Five source texts",
    claim=f"Five texts about attention print {printed:,} numbers. {reproduced} of them come back, "
    "digit by digit, and for each of the others we say why it does not.",
)
page.say(
    "This project grew out of five texts about attention: notebooks and an article that work out "
    "small examples. For each there is a page with its numbers beside ours, with what is wrong in "
    "it, unclear or left open, and with the backward pass, which none of them has.",
)
page.ask(
    "How many lines of the five texts, do you think, can mislead a reader?",
    f"We found {sum(len(text.SLIPS) for text in TEXTS)}: "
    + ", ".join(f"{sum(kinds(t)[i] for t in TEXTS)} {kind}" for i, kind in enumerate(KINDS))
    + ". Open the lists below for each of them.",
)


def named(name):
    """Return a text's name, with a link if its page is there already."""
    there = (chosen.out.parent / name / "index.html").exists()
    return link(name, f"../{name}/index.html") if there else name


page.table(
    ["text", "numbers printed", "come back", *KINDS, "steps completed"],
    [
        [named(name), total, came, *kinds(text), len(text.COMPLETED)]
        for (name, (came, total)), text in zip(counts.items(), TEXTS, strict=True)
    ],
    caption="The texts, their numbers, and their doubtful lines",
)
page.say("A name becomes a link as soon as `python -m demos NAME` has written that page.")
for name, text in zip(counts, TEXTS, strict=True):
    page.section(text.TITLE, name=name)
    if text.LOST:
        page.say(f"What cannot come back: {text.LOST}.")
    with page.folded(f"{len(text.SLIPS)} lines that are wrong, unclear or left open"):
        page.table(
            ["kind", "the text", "what is so"],
            [[slip.kind, slip.says, slip.so] for slip in text.SLIPS],
            caption=f"The doubtful lines of {name}",
        )
    with page.folded(f"{len(text.COMPLETED)} steps that the text leaves undone"):
        page.list(text.COMPLETED)
page.conclude(
    "A printed number is a test: it either comes back as the same text, or there is a reason. Most "
    "of the lines that mislead are not errors of arithmetic. They are claims that were never "
    "computed.",
    try_it(chosen.file),
)

# %% What is claimed: every number comes back that is neither lost nor taken over from the text

ASIDE = {"love_you": 470, "sky_is_blue": 2}
print(f"   The page: {page.write(chosen.out, quick=chosen.quick)}")
for name, (reproduced, printed) in counts.items():
    kept = printed - ASIDE.get(name, 0)
    marks.at_least(f"{name}: numbers that come back", reproduced, kept, "d")
marks.end()

# %% Try it
# - Let `seed` be 1 in `love_transformers.layer`: which four of its 121 numbers come back, and why?
# - Let `as_numpy_prints` print with `precision=6`: which arrays come back all the same?
