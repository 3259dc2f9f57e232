"""Live · Reader: the Python of a page. It gets questions as JSON, and answers as JSON.

After the first message, a page and its worker speak in strings of JSON, so that JavaScript keeps
no Python object of an answer alive:

    page → worker  {runtime, code, numpy, viz}           once: addresses (frames/worker.js)
                   {id, run: TEXT, of: MODULE, name}     a block: a doctest, or plain code
                   {id, forget: MODULE}                  the names that its blocks have made
                   {id, define: TEXT, of: MODULE, name}  a definition's lines, changed
                   {id, check: NAME, text, files, seconds}  an exercise; the learner's other files
                   {id, compare: NAME, text}             the learner's lines beside ours
    worker → page  {said: WORDS}                         it is on its way, for the eye
                   {ready: true} or {broken: WORDS}      once
                   {id, begin: I}                        the block's example I begins
                   {id, out: TEXT}                       it prints
                   {id, differs: I}                      and that is not what the book says
                   {id, shown: FILE, text} or {…, base64}  it draws, or has saved a file
                   {id, failed: SENTENCE, trace}         it ends with an error
                   {id, done: RESULT}                    the answer, after which nothing comes
    RESULT         run: whether all is as in the book; define, check, compare: as their functions
                   say; null if there is no answer

Nothing here knows of JavaScript, so that the tests run it in the Python that they are in. The
worker hands in what only it has: a function that sends a text, a clock for exercises, a Graphviz.
"""

from __future__ import annotations

import builtins
import contextlib
import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from demos.learn._running import Clock
from demos.live import _definitions, _examples, _exercises
from demos.live._examples import Spaces
from minigrad.graphs import draw_with


def layout(drawn: Callable[[str], str], source: str) -> tuple[str, str]:
    """Return DOT text as SVG and as Graphviz's JSON."""
    svg, graphviz_json = json.loads(drawn(source))
    return svg, graphviz_json


def without_clock(file: str, seconds: float) -> AbstractContextManager[object]:
    """Return a block that nothing interrupts."""
    return contextlib.nullcontext()


class Reader:
    """One page's Python: the namespaces of its examples, and where its answers go.

    `drawn` returns DOT text as JSON: the SVG, and Graphviz's own.
    """

    def __init__(
        self,
        send: Callable[[str], object],
        clock: Clock = without_clock,
        drawn: Callable[[str], str] | None = None,
    ) -> None:
        self.send, self.clock, self.spaces = send, clock, Spaces()
        builtins.input = _examples.nobody_answers
        if drawn is not None:
            draw_with(partial(layout, drawn))

    def answer(self, question: str) -> None:
        """Answer one question."""
        message: dict[str, Any] = json.loads(question)

        def post(**said: Any) -> None:
            self.send(json.dumps({"id": message["id"], **said}, default=str))

        done: Any = None
        try:
            if "run" in message:
                done = _examples.run(message, post, self.spaces)
            elif "define" in message:
                done = _definitions.define(message, post, self.spaces)
            elif "forget" in message:
                self.spaces.pop(message["forget"], None)
            elif "check" in message:
                done = _exercises.check(message, post, self.clock)
            else:
                done = _exercises.compare(message)
        except BaseException as error:  # (one that left this method would end the page's Python)
            post(failed=_examples.sentence(error), trace=_examples.trace(error))
        post(done=done)
