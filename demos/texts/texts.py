"""The five source texts: numbers reproduced, doubtful lines, steps completed.

Claim. This project grew out of five texts about attention. For every number that they print we know
whether it comes back from our code, as text, and if not, why not. We name what is wrong in them,
unclear or left open, and do the steps that they leave undone. Most of the lines that mislead are
not errors of arithmetic. They are claims that were never computed.

    python -m demos texts [--out DIR] [--seed N]  # 1 s
"""

# %% Set-up

from demos import options
from demos.publish import publish
from demos.texts._text_page import strip
from demos.texts.sources import (
    KINDS,
    counted,
    kinds,
    love_transformers,
    love_you,
    mammal_and_reptile,
    sky_is_blue,
    your_journey,
)

chosen = options("texts", __doc__.splitlines()[0])
page = publish(chosen)
TEXTS = (love_transformers, love_you, sky_is_blue, your_journey, mammal_and_reptile)
NAMES = [text.__name__.rpartition(".")[2] for text in TEXTS]

# %% The table
# A number is counted if it comes out the same as text, in every digit that is printed. Shapes are
# not counted. A line is wrong if what the text says, prints or runs is not so; unclear if it can be
# read in two ways or a name says something else; left open if nothing is wrong, but a condition, a
# choice or a further case is not mentioned.

counts = [counted(text) for text in TEXTS]
rows = [
    [total, same, *kinds(text), len(text.COMPLETED)]
    for text, (same, total) in zip(TEXTS, counts, strict=True)
]
together = [sum(column) for column in zip(*rows, strict=True)]
page.table(
    ["text", "numbers printed", "come back", *KINDS, "steps completed"],
    [[name, *row] for name, row in zip([*NAMES, "together"], [*rows, together], strict=True)],
)
cells = "".join(f"<div>{strip(text)}</div>" for text in TEXTS)
page.finding(
    f"{together[1]} of the {together[0]:,} numbers come back, digit by digit.",
    page.html(
        f"<figure>{cells}<figcaption>Every printed number, array by array: a filled cell comes "
        "back, a cross is another number, an empty cell is not computed. Point at a cell to see "
        "the text's number and ours.</figcaption></figure>"
    ),
)
page.ask(
    "How many lines of the five texts, do you think, can mislead a reader?",
    f"We found {sum(together[2:5])}: "
    + ", ".join(f"{n} {kind}" for kind, n in zip(KINDS, together[2:5], strict=True))
    + ". The lists below have each of them.",
)

# %% Each text: what is lost, doubtful and completed

for name, text in zip(NAMES, TEXTS, strict=True):
    lost = f" It cannot give back {text.LOST}." * bool(text.LOST)
    page.say(f"**{name}**, {text.TITLE}.{lost}")
    with page.folded(f"{len(text.SLIPS)} doubtful lines and {len(text.COMPLETED)} completed steps"):
        page.table(["kind", "the text", "what is so"], [slip[:3] for slip in text.SLIPS])
        page.say("\n".join(f"- {step}" for step in text.COMPLETED))

# %% What is claimed
# Every number comes back that is neither lost nor taken over from the text.

ASIDE = {"love_you": 470, "sky_is_blue": 2}
for name, (same, total) in zip(NAMES, counts, strict=True):
    kept = total - ASIDE.get(name, 0)
    page.marks.at_least(f"{name}: numbers that come back", same, kept, "d")
page.end()

# %% Try it
# - Let `seed` be 1 in `love_transformers.layer`: which four of its 121 numbers come back, and why?
# - Let `as_numpy_prints` print with `precision=6`: which arrays come back all the same?
