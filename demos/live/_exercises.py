"""Live · Exercises: the check of an exercise, with the terminal's own words."""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

from demos.learn import EXERCISES
from demos.learn._running import Answer, Clock, in_time, limit_of, shown
from demos.learn.exercises import changes, stub
from demos.live._examples import Post, Printed


def check(message: dict[str, Any], post: Post, clock: Clock) -> dict[str, Any]:
    """Judge `message["text"]` as the exercise `message["check"]`; return an `Answer` as a dict.

    The learner's other files are in `message["files"]`, by their names: the last exercise imports
    some. A file that is not there is as it was given. What the file prints is sent as it comes,
    and is in the answer too, as short as the terminal shows it.
    """
    name = message["check"]
    texts = {each: stub(each) for each in EXERCISES}
    texts |= {each: text for each, text in message["files"].items() if each in texts}
    texts[name] = message["text"]
    seconds = message.get("seconds") or limit_of(name)
    out = Printed(post)
    with tempfile.TemporaryDirectory() as folder:
        for each, text in texts.items():
            Path(folder, f"{each}.py").write_text(text, "utf-8")
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            found: Answer = in_time(Path(folder, f"{name}.py"), name, seconds, clock)
    return shown(found._replace(printed=out.taken()))._asdict()


def compare(message: dict[str, Any]) -> list[str]:
    """Return the changes that lead from the learner's lines to ours."""
    return changes(message["compare"], message["text"])


if sys.version_info >= (3, 12):

    @contextlib.contextmanager
    def line_by_line(file: str, seconds: float) -> Iterator[None]:
        """Raise KeyboardInterrupt in the lines of a file's folder once the time is up.

        A worker has no second thread and no signals. But Python calls a function at each line and
        each jump back, and stops doing so for code that is not the learner's.
        """
        watch, tool, ends = sys.monitoring, sys.monitoring.DEBUGGER_ID, time.monotonic() + seconds
        folder = Path(file).parent

        def look(code: CodeType, *where: int) -> Any:
            if Path(code.co_filename).parent != folder:
                return watch.DISABLE
            if time.monotonic() > ends:
                raise KeyboardInterrupt
            return None

        watch.use_tool_id(tool, "clock")
        watch.register_callback(tool, watch.events.LINE, look)
        watch.register_callback(tool, watch.events.JUMP, look)
        watch.set_events(tool, watch.events.LINE | watch.events.JUMP)
        watch.restart_events()
        try:
            yield
        finally:
            watch.set_events(tool, 0)
            watch.free_tool_id(tool)
