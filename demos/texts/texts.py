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
from demos.texts._text_page import KINDS, cells, kinds, parts
from demos.texts.sources import (
    compared,
    counted,
    love_transformers_text,
    love_you_text,
    mammal_and_reptile_text,
    returning,
    sky_is_blue_text,
    your_journey_text,
)

SECONDS = 1  # of a run

chosen = options("texts", __doc__.splitlines()[0])
page = publish(chosen)
TEXTS = {
    "love_transformers": love_transformers_text,
    "love_you": love_you_text,
    "sky_is_blue": sky_is_blue_text,
    "your_journey": your_journey_text,
    "mammal_and_reptile": mammal_and_reptile_text,
}

# %% The table
# A number is counted if it comes out the same as text, in every digit that is printed. Shapes are
# not counted. A line is wrong if what the text says, prints or runs is not so; unclear if it can be
# read in two ways or a name says something else; left open if nothing is wrong, but a condition, a
# choice or a further case is not mentioned.

rows = []
for name, text in TEXTS.items():
    same, total = counted(text)
    rows.append([name, total, same, *kinds(name), len(text.COMPLETED)])
together = [sum(column) for column in zip(*(numbers for _, *numbers in rows), strict=True)]
page.table(
    ["text", "numbers printed", "come back", *KINDS, "steps completed"],
    [*rows, ["together", *together]],
)


def picture(name, text):
    """Return all numbers of a text as one picture under its name."""
    arrays = compared(text).items()
    places = [array for array, (_, pairs) in arrays for _ in pairs]
    pairs = [pair for _, (_, pairs) in arrays for pair in pairs]
    return parts.text(name, cells(name, places, pairs, 60))


printed, back, *of_kinds, _ = together
pictures = [picture(name, text) for name, text in TEXTS.items()]
caption = (
    "A cell is a printed number; point at it to see both. A filled cell comes back, a cross is "
    "another number, an empty cell is not computed."
)
page.finding(
    f"{back} of the {printed:,} numbers come back, digit by digit.",
    page.html(parts.arrays(pictures, caption)),
)
by_kind = ", ".join(f"{n} {kind}" for kind, n in zip(KINDS, of_kinds, strict=True))
page.ask(
    "How many lines of the five texts, do you think, can mislead a reader?",
    f"We found {sum(of_kinds)}: {by_kind}. The page of each text has them.",
)

# %% Each text: what cannot come back, and the steps completed

for name, text in TEXTS.items():
    sentence = f"**{name}**, {text.TITLE}."
    if text.LOST:
        sentence += f" It cannot give back {'; '.join(text.LOST.values())}."
    page.say(sentence)
    with page.folded(f"{len(text.COMPLETED)} steps that it leaves undone"):
        page.say("\n".join(f"- {step}" for step in text.COMPLETED))
written = [name for name in TEXTS if (chosen.out.parent / name / "index.html").exists()]
alone = parts.pages("../{}/index.html", written)
page.html(alone, at_site=parts.pages("demo-{}.html", TEXTS))

# %% What is claimed
# Every number comes back that is neither lost nor taken over from the text.

for name, text in TEXTS.items():
    same, _ = counted(text)
    page.marks.at_least(f"{name}: numbers that come back", same, returning(text), "d")
page.end()

# %% Try it
# - Let `seed` be 1 in `love_transformers_text.layer`: which four of its 121 numbers come back, and
#   why?
# - Let `as_numpy_prints` print with `precision=6`: which arrays come back all the same?
