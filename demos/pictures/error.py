"""Pictures · The V of error against step (chapter 4.1)."""

import numpy as np

from demos.pictures import drawing, figure, line, number, text
from minigrad.checks.differences import difference

STEPS = np.arange(-12.0, 0.01, 0.25)  # of their logarithms


def error(power: float) -> float:
    """Return the error of a central difference of x³ at 1, with a step of 10 to this power."""
    return abs(difference(lambda x: x * x * x, 1.0, 1.0, 10.0**power) - 3.0)


def place(power: float, wrong: float) -> tuple[float, float]:
    """Return where an error is drawn: powers of ten both ways."""
    return 60 + 40 * (power + 12), 30 - 16 * np.log10(max(wrong, 1e-13))


def picture() -> str:
    """Return the figure: the errors, and two lines that explain them."""
    errors = [error(power) for power in STEPS]
    ends = [(-12.0, 2e-16 / 1e-12), (-5.0, 2e-16 / 1e-5)], [(-6.0, 1e-12), (0.0, 1.0)]
    parts = [line([place(*end) for end in each], "soft") for each in ends]
    parts.append(line([place(*each) for each in zip(STEPS, errors, strict=True)]))
    for power in (-12, -8, -4, 0):
        name = f"10^{power}" if power else "1"
        parts.append(text(place(power, 1)[0], 262, name))
        parts.append(text(48, place(-12, 10.0**power)[1] + 5, name, "end"))
    parts.append(text(300, 284, "step h"))
    parts.append(text(66, 22, "error of the difference", "start"))
    parts.append(text(200, 110, "rounding / h", "soft"))
    parts.append(text(480, 170, "curvature, h²", "soft"))
    best = int(np.argmin(errors))
    parts.append('<circle class="fill-back" r="6" cx="0" cy="0" style="display: none"/>')
    alt = f"The error of a central difference of x³ at 1 over the step is a V: {errors[0]:.0e} at "
    alt += f"1e-12, {errors[best]:.0e} at {10 ** STEPS[best]:.0e}, {errors[-1]:.0e} at 1."
    bar = '<input type="range" min="-12" max="0" step="0.25" value="-3" aria-label="Power of ten of'
    bar += ' the step h"><p aria-live="polite"></p>'
    says = "Too large a step meets the curvature, too small a one the last digits. "
    says += f"The best here is near 10^{number(STEPS[best])}."
    return figure("error", drawing(570, 295, parts, alt), says, bar)
