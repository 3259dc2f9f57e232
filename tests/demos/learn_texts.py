"""The right and the wrong answers to the exercises, as whole files."""

from demos.learn import EXERCISES
from demos.learn._mistakes import mistaken
from demos.learn.exercises import filled, solution, stub
from tests.demos.learn_answers import RIGHT, TYPICAL, WRONG

OURS = {name: solution(name) for name in EXERCISES}


def texts(name):
    """Return an exercise's stub, our solution, and every other answer that the tests know."""
    found = [stub(name), solution(name), *[filled(name, lines) for lines in RIGHT.get(name, ())]]
    for lines, _ in WRONG[name]:
        holes = [lines] if isinstance(lines, str) else lines
        found.append(mistaken(name) if lines is TYPICAL else filled(name, *holes))
    return found


ANSWERS = [(name, text) for name in EXERCISES for text in texts(name)]
