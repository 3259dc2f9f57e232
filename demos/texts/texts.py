"""The five source texts: numbers reproduced, doubtful lines, steps completed.

Claim. This project grew out of five texts about attention. For every number that they print we know
whether it comes back from our code, as text, and if not, why not. We name what is wrong in them,
unclear or left open, and do the steps that they leave undone. Most of the lines that mislead are
not errors of arithmetic. They are claims that were never computed.

    python -m demos texts [--out DIR] [--seed N]
"""

# %% Set-up

from demos import options
from demos.pages.publish import publish
from demos.texts._text_page import cells
from demos.texts.sources import (
    KINDS,
    compared,
    counted,
    kinds,
    love_transformers,
    love_you,
    mammal_and_reptile,
    sky_is_blue,
    your_journey,
)

SECONDS = 1  # of a run

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


def drawn(name, text):
    """Return all numbers of a text as one picture under its name."""
    arrays = compared(text).items()
    places = [array for array, (_, pairs) in arrays for _ in pairs]
    pairs = [pair for _, (_, pairs) in arrays for pair in pairs]
    return (
        f'<div style="margin-top:.7rem"><code>{name}</code></div>{cells(name, places, pairs, 60)}'
    )


pictures = "".join(map(drawn, NAMES, TEXTS))
said = "A cell is a printed number; point at it to see both. A filled cell comes back, a cross is "
said += "another number, an empty cell is not computed."
page.finding(
    f"{together[1]} of the {together[0]:,} numbers come back, digit by digit.",
    page.html(f"<figure>{pictures}<figcaption>{said}</figcaption></figure>"),
)
page.ask(
    "How many lines of the five texts, do you think, can mislead a reader?",
    f"We found {sum(together[2:5])}: "
    + ", ".join(f"{n} {kind}" for kind, n in zip(KINDS, together[2:5], strict=True))
    + ". The page of each text has them.",
)

# %% Each text: what cannot come back, and the steps completed

for name, text in zip(NAMES, TEXTS, strict=True):
    lost = f" It cannot give back {text.LOST}." * bool(text.LOST)
    page.say(f"**{name}**, {text.TITLE}.{lost}")
    with page.folded(f"{len(text.COMPLETED)} steps that it leaves undone"):
        page.say("\n".join(f"- {step}" for step in text.COMPLETED))
links = (
    f'<a href="../{name}/index.html">{name}</a>'
    for name in NAMES
    if (chosen.out.parent / name / "index.html").exists()
)
page.html(f"<p>Their pages: {', '.join(links)}</p>")

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
