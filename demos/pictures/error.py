"""Pictures · The V of error against step (chapter 4.1)."""

import numpy as np

from demos.pictures import data, figure, line, number, place, shapes, slider, text
from minigrad.checks.differences import difference

STEPS = np.arange(-12.0, 0.01, 0.25)  # of their logarithms
AXES, FLOOR = (452, 34, 33, 16), 1e-13  # powers of ten both ways; no error is drawn lower


def error(power: float) -> float:
    """Return the error of a central difference of x³ at 1, with a step of 10 to this power."""
    return abs(difference(lambda x: x * x * x, 1.0, 1.0, 10.0**power) - 3.0)


def picture() -> str:
    """Return the figure: the errors, and two lines that explain them."""
    at = lambda power, wrong: place(AXES, power, np.log10(max(wrong, FLOOR)))
    errors = [error(power) for power in STEPS]
    parts = [
        line([at(-12.0, 2e-16 / 1e-12), at(-5.0, 2e-16 / 1e-5)], "soft"),
        line([at(-6.0, 1e-12), at(0.0, 1.0)], "soft"),
        line([at(*point) for point in zip(STEPS, errors, strict=True)]),
    ]
    parts.append(line([at(-12, FLOOR), at(0, FLOOR)], "soft"))
    for power in (-12, -8, -4, 0):
        (x, y), name = at(power, 10.0**power), f"10^{power}" if power else "1"
        parts += [text(x, 261, name), text(48, y + 5, name, "end")]
    parts += [text(254, 280, "step h"), text(224, 114, "rounding, 2·10^-16 / h", "soft")]
    parts.append(text(60, 20, "error of (f(1 + h) - f(1 - h)) / 2h, f = x³", "start"))
    parts += [text(384, 172, "third derivative,", "soft"), text(384, 192, "f′′′ h²/6 = h²", "soft")]
    parts.append(shapes.circle(0, 0, 6, hidden=True))
    best = int(np.argmin(errors))
    alt = f"The error of a central difference of x³ at 1 over the step is a V: {errors[0]:.0e} at "
    alt += f"1e-12, {errors[best]:.0e} at {10 ** STEPS[best]:.0e}, {errors[-1]:.0e} at 1."
    bar = slider("Step h", -12, 0, -3, 0.25) + shapes.answer()
    given = {"axes": AXES, "floor": FLOOR}
    says = "With a large step the third derivative counts: for x³ the difference is wrong by h². "
    says += "With a small step rounding counts, because it is divided by 2h. "
    says += f"The best step here is near 10^{number(STEPS[best])}."
    return figure("error", (470, 292), parts, alt, says, bar + data(given))
