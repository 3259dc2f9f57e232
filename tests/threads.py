"""Threads that take turns at almost every instruction, for tests of what they share."""

import contextlib
import sys
import threading


@contextlib.contextmanager
def switching_often():
    """Let Python change threads at almost every instruction."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def in_threads(*tasks):
    """Run the tasks at once, each in its thread, and return what they gave or raised."""
    answers = [None] * len(tasks)
    barrier = threading.Barrier(len(tasks), timeout=20)

    def run(i):
        barrier.wait()
        try:
            answers[i] = tasks[i]()
        except RuntimeError as error:
            answers[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(tasks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers
