"""Live · Loop: the steps of chapter 0's `backward`, or of a reader's lines in its place.

The lines themselves run, with five values: a = x · x, b = a · c, L = -log b. Python tells of each
line before it runs, and what the line before has changed is a step.
"""

from __future__ import annotations

import dis
import sys
from types import FrameType
from typing import Any

from minigrad import idea

MOST = 500  # lines that may run
LINKS = (("x", "a", 0), ("x", "a", 1), ("a", "b", 0), ("c", "b", 1), ("b", "L", 0))


class Endless(BaseException):
    """The loop has run too long. (An `except Exception` in it does not catch this.)"""


def number(x: Any) -> str:
    """Return a number as a picture shows it."""
    return f"{float(x):.3g}".replace("-", "−")


def plus(x: Any) -> str:
    """Return a number to be added."""
    return f"− {number(-x)}" if x < 0 else f"+ {number(x)}"


def values() -> dict[str, idea.Value]:
    """Return the five values by their names, the oldest first."""
    x, c = idea.Value(2.0), idea.Value(0.5)
    a = idea.multiply(x, x)
    b = idea.multiply(a, c)
    return {"x": x, "c": c, "a": a, "b": b, "L": idea.minus_log(b)}


class Walk:
    """One run of `backward`: its steps, each a dictionary for loop.js."""

    def __init__(self) -> None:
        self.named, self.steps, self.sent = values(), [], [""] * len(LINKS)
        self.code = idea.backward.__code__
        instructions = dis.get_instructions(self.code)
        self.loops = {
            i.positions.lineno for i in instructions if i.positions and i.opname == "FOR_ITER"
        }
        self.grads = {name: value.grad for name, value in self.named.items()}
        self.reached: set[str] = set()  # values that have a gradient
        self.taken: list[str] = []
        self.instructions, self.lines, self.line = 0, 0, 0
        self.waits: list[str] | None = None  # None: there is no `waiting`
        self.is_endless = False  # as far as MOST lines can tell

    def run(self) -> str:
        """Run the loop; return what is to be said of it."""
        before = sys.gettrace()
        sys.settrace(self.watch)
        try:
            idea.backward(self.named["L"])
        except Endless:
            self.is_endless = True
            return f"It may never end: your loop has run {MOST} lines, and goes on."
        except BaseException as error:  # (exit() too)
            return f"Your loop stops: {type(error).__name__}: {error}"
        finally:
            sys.settrace(before)
        if self.waits is None:
            return "Your loop has no `waiting`, so no box is dashed."
        return ""

    def watch(self, frame: FrameType, event: str, _: object) -> Any:
        """Note what the last line has changed."""
        frame.f_trace_opcodes = True  # (`while True: pass` is one line, which begins once)
        self.instructions += event == "opcode"
        if self.instructions > 100 * MOST:
            raise Endless
        if frame.f_code is self.code and event in ("line", "return"):
            self.changed(frame.f_locals)
            self.lines, self.line = self.lines + 1, frame.f_lineno
            if self.lines > MOST:
                raise Endless
        return self.watch

    def changed(self, known: dict[str, Any]) -> None:
        """Add a step for each gradient that is new, for a value that is taken, and for a leaf."""
        names = {id(value): name for name, value in self.named.items()}
        taken = names.get(id(known.get("y")), "")
        if "waiting" in known:
            here = [name for value in known["waiting"] if (name := names.get(id(value)))]
            self.waits = sorted(here, key=lambda name: -self.named[name].time)
        for name, value in self.named.items():
            if value.grad is not self.grads[name]:
                self.arrived(name, taken)
        if taken and taken not in self.taken[-1:]:
            self.take(taken)
        elif taken and not self.named[taken].inputs and self.line in self.loops:
            says = f"{taken} was made from nothing: its gradient is {number(self.grads[taken])}."
            self.step("no inputs", says, taken)
        if self.steps:
            self.steps[-1]["waits"] = self.waits or []

    def take(self, name: str) -> None:
        """Note that a value is taken."""
        others = [n for n in self.waits or () if n != name]
        newer = [n for n in others if self.named[n].time > self.named[name].time]
        says = f"{name} is taken, and {' and '.join(newer)}, which is newer, still waits."
        if not newer:
            listed = ", ".join([name, *others])
            says = f"Of {listed}, {name} is the newest" if others else f"{name} alone waits"
            says += ". What was made from it has sent its share: its gradient is complete."
        self.taken.append(name)
        self.step(f"y = {name}", says, name)

    def arrived(self, name: str, taken: str) -> None:
        """Note that a value has another gradient."""
        old, new = self.grads[name], self.named[name].grad
        self.grads[name] = new
        links = [n for n, link in enumerate(LINKS) if link[:2] == (name, taken)]
        free = [n for n in links if not self.sent[n]] or links
        if not free:
            self.reached.add(name)
            says = f"{name} moves by {number(new)} when {name} moves by 1."
            self.step(f"{name}.grad = {number(new)}", says, taken)
            return
        sender = self.named[taken]
        share = sender.vjps[LINKS[free[0]][2]](sender.grad)
        self.sent[free[0]] = number(share)
        sum_ = f"{number(old)} {plus(share)} = {number(new)}"
        says = f"{taken} sends {number(share)} to {name}"
        if abs(old + share - new) > 1e-12:
            sum_ = number(new)
            says += f", which had {number(old)}, and now has {number(new)}."
        elif name in self.reached:
            says += f" once more: {name} was used twice, so it gets the sum."
        else:
            says += "."
        self.reached.add(name)
        self.step(f"{name}.grad = {sum_}", says, taken, free[0])

    def step(self, note: str, says: str, now: str, link: int = -1) -> None:
        """Add a step."""
        grads = {name: number(self.grads[name]) for name in self.named if name in self.reached}
        line = self.line - self.code.co_firstlineno
        self.steps.append({"line": line, "note": note, "says": says, "now": now, "link": link})
        self.steps[-1] |= {"sent": [*self.sent], "grads": grads, "done": [*self.taken]}


def walked() -> dict[str, Any]:
    """Return the steps of `backward` as it is now, and what is to be said of them."""
    walk = Walk()
    says = walk.run()
    return {"steps": walk.steps, "says": says, "is_endless": walk.is_endless}
