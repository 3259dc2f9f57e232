"""Twenty-four exercises, checked as you write them: derivatives by hand, rules, attention.

You get a folder of your own with a file for each exercise, in which some lines are missing. This
command looks for the first exercise that is not solved yet, runs its check on your file, and says
what to look at: a value, a derivative or a law that does not hold. A check does not tell the
answer; three hints lead to it.

    python -m demos learn init FOLDER            # makes the folder, outside of the repository
    python -m demos learn [--in FOLDER]          # 1 s
    python -m demos learn [--in FOLDER] --watch  # checks again whenever you save
    python -m demos learn [--in FOLDER] --path   # eight of them, for a first contact

`--in` is not needed in that folder, nor in a folder inside it. The exit code is 0 if everything
that was checked is solved, and 1 if not.
"""

# %% Set-up

import argparse
import difflib
import importlib
import os
import shlex
import sys
import textwrap
import time

from demos import stop
from demos.learn import EXERCISES, GROUPS, PATH
from demos.learn._folder import find, make
from demos.learn._running import run
from demos.learn.exercises import number, solution, title

POLL = 0.2  # seconds between two looks at the files
NEXT = {
    EXERCISES: "All twenty-four exercises are solved. Next, train a model of your own (README.md, "
    '"Your own model"), or read chapter 12, attention/fused.py: attention in blocks, backward too.',
    PATH: "The eight exercises of the path are solved. Can you say now how a gradient gets back "
    "through attention? Chapter 11, attention/scaled_dot_product.py, says it on one page. "
    "Without --path the other sixteen exercises come next.",
}


def coloured(text, code):
    """Colour a text, where a person reads it in a terminal that has colours."""
    shown = sys.stdout is not None and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return f"\033[{code}m{text}\033[0m" if shown else text


def say(text, indent=""):
    """Print sentences on lines of at most 80 letters; lines that are indented stay as they are."""
    for line in text.splitlines():
        if line.startswith("    "):
            print(indent + line)
        else:
            kinds = {"break_long_words": False, "break_on_hyphens": False}
            print(textwrap.fill(line, 80, initial_indent=indent, subsequent_indent=indent, **kinds))


def headed(name):
    """Return an exercise's number and title."""
    return f"Exercise {number(name)} of {len(EXERCISES)} · {title(name)}"


def check_of(name):
    """Import the module with an exercise's check, chapter and hints."""
    return importlib.import_module(f"demos.learn.checks.{name}")


def meant(word):
    """Return the exercise that a learner means by 7, e07, exp or e07_exp."""
    plain = word.casefold().removesuffix(".py")
    digits = plain.removeprefix("e")
    if digits.isdecimal():
        found = [name for name in EXERCISES if number(name) == int(digits)]
    else:
        found = [name for name in EXERCISES if plain in (name, name[4:])]
    if len(found) == 1:
        return found[0]
    if found:
        stop(f"{word!r} may be {' or '.join(found)}: say its number")
    stop(f"there is no exercise {word!r}: they are numbered 1 to {len(EXERCISES)}")


# %% One check
# Each check runs in a process of its own, with a time limit.


def tried(folder, name):
    """Run an exercise's check, print its answer, and return True if the exercise is solved."""
    print(coloured(headed(name), 1))
    print(folder.file(name), flush=True)
    before = folder.fingerprint(name)  # if the file is saved during the check, it is another one
    answer = run(folder.file(name), name)
    if answer.printed:
        print("  It printed:")
        print(textwrap.indent(answer.printed, "  | ", lambda line: True))
    for warning in answer.warned:
        say(f"warning: {warning}", "  ")
    if answer.solved:
        print(coloured("  Solved.\n", 32))
        kept = folder.kept()
        kept["solved"][name] = before
        folder.keep(kept)
    else:
        print()
        say(f"{answer.kind}: {answer.said}" if answer.kind else answer.said, "  ")
        print()
    return answer.solved


def next_words(folder, name, again, *, watched):
    """Print the next step after a check that said no."""
    left = len(check_of(name).HINTS) - folder.kept()["hints"].get(name, 0)
    end = " and save it." if watched else ", save it, and run the same command again."
    what = f"For a hint ({left} left)" if left else "To see our lines beside yours"
    print(f"Next: change {name}.py{end}\n{what}:")
    print(f"    {again} {'--hint' if left else '--solution'}")


def go_on(folder, again, names, *, watched=False):
    """Check the exercises that are not known to be solved, in order, until one is not solved."""
    for name in names:
        known = len(names) > 1 and folder.state(name) == "solved"
        if not known and not tried(folder, name):
            next_words(folder, name, again, watched=watched)
            return False
    if names in NEXT:
        say(NEXT[names])
    return True


def first(folder, names):
    """Return the first exercise that is not known to be solved, or the last one if all are."""
    return next((name for name in names if folder.state(name) != "solved"), names[-1])


# %% Again whenever a file is saved


def saved(folder):
    """Return when each file was saved; None while an editor is replacing one."""
    try:
        return {path.name: path.stat().st_mtime_ns for path in folder.path.glob("*.py")}
    except FileNotFoundError:
        return None


def watch(folder, again, names):
    """Check, and check again whenever a file has been saved, until all is solved or Ctrl-C."""
    seen = None
    try:
        while True:
            now = saved(folder)
            if now is not None and now != seen:
                seen = now
                if go_on(folder, again, names, watched=True):
                    return
                print("\nWaiting until you save. Ctrl-C ends.\n", flush=True)
            time.sleep(POLL)
    except KeyboardInterrupt:
        print()


# %% Hints, our lines, progress


def hint(folder, name, again):
    """Print the next of an exercise's hints; after the last one, all of them."""
    hints = check_of(name).HINTS
    kept = folder.kept()
    shown = kept["hints"].get(name, 0)
    new = [shown] if shown < len(hints) else range(len(hints))
    kept["hints"][name] = new[-1] + 1
    folder.keep(kept)
    print(coloured(headed(name), 1))
    for i in new:
        say(f"hint {i + 1} of {len(hints)}: {hints[i]}", "  ")
    if new[-1] + 1 == len(hints):
        print(f"These are all hints. To see our lines beside yours:\n    {again} --solution")


def compare(folder, name):
    """Print the changes that lead from the learner's lines to ours."""
    print(coloured(headed(name), 1))
    ours = solution(name).splitlines()
    path = folder.file(name)
    yours = path.read_text(encoding="utf-8-sig", errors="replace") if path.exists() else ""
    changes = list(difflib.unified_diff(yours.splitlines(), ours, n=3, lineterm=""))[2:]
    if not changes:
        print("  Your file is the same as ours.")
        return
    print("  - yours    + ours\n")
    for line in changes:
        mark = line[0]
        shown = "  ⋯" if mark == "@" else f"{mark} {line[1:]}".rstrip()
        print(coloured(shown, {"-": 31, "+": 32}.get(mark, 0)))


def progress(folder):
    """Print every exercise, with a mark if it is solved."""
    marks = {"solved": "x", "changed": "~", "": " "}
    states = {name: folder.state(name) for name in EXERCISES}
    for group, names in GROUPS.items():
        print(group)
        for name in names:
            mark, star = marks[states[name]], "*" if name in PATH else " "
            print(f"  [{mark}] {number(name):>2}{star} {check_of(name).CHAPTER:5} {title(name)}")
    done = list(states.values()).count("solved")
    print(f"\n{done} of {len(states)} solved, in {folder.path} (second number: the chapter)")
    print(f"* is on the path for a first contact: {', '.join(str(number(n)) for n in PATH)}")
    if "changed" in states.values():
        print("~ has changed since it was solved, and will be checked again")


# %% The command


def main():
    """Do what the options say."""
    parser = argparse.ArgumentParser(
        prog="python -m demos learn", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "words",
        nargs="*",
        metavar="init FOLDER | EXERCISE",
        help="make a folder; or a number or a name, for this exercise alone",
    )
    parser.add_argument("--in", dest="folder", metavar="FOLDER", help="your folder (the current)")
    parser.add_argument("--path", action="store_true", help="eight exercises, for a first contact")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--watch", action="store_true", help="check again whenever you save")
    what.add_argument("--hint", action="store_true", help="the next of three hints")
    what.add_argument("--solution", action="store_true", help="our lines beside yours")
    what.add_argument("--list", action="store_true", help="what is solved")
    what.add_argument("--reset", action="store_true", help="as given; your file is kept")
    chosen = parser.parse_args([] if "get_ipython" in globals() else None)  # (as in `options`)
    again = "python -m demos learn"
    if chosen.words[:1] == ["init"]:
        if len(chosen.words) != 2:
            stop(f"init takes one folder: {again} init FOLDER")
        begin(chosen.words[1], again)
        return True
    if len(chosen.words) > 1:
        stop(f"one exercise at a time: got {' '.join(chosen.words)}")
    if chosen.reset and not chosen.words:
        stop("say which exercise, such as --reset 7")
    folder = find(chosen.folder)
    if chosen.folder is not None:
        again += f" --in {shlex.quote(chosen.folder)}"
    names = PATH if chosen.path else EXERCISES
    again += " --path" if chosen.path else ""
    if chosen.words:
        names = (meant(chosen.words[0]),)
        again += f" {number(names[0])}"
    if chosen.reset:
        kept = folder.reset(names[0])
        where = f"; your file is now {kept.name}" if kept else ""
        print(f"{names[0]}.py is as it was given{where}")
    elif chosen.list:
        progress(folder)
    elif chosen.hint:
        hint(folder, first(folder, names), again)
    elif chosen.solution:
        compare(folder, first(folder, names))
    elif chosen.watch:
        watch(folder, again, names)
    else:
        return go_on(folder, again, names)
    return True


def begin(text, again):
    """Make a folder, and print the first thing to do with it."""
    folder, written = make(text)
    if not written:
        print(f"All exercises are in {folder.path} already; nothing was changed.")
    else:
        print(f"New in {folder.path}: {written} of {len(EXERCISES)} exercises.")
    say(f"Next: open {EXERCISES[0]}.py there in an editor, read its first lines, and run")
    print(f"    {again} --in {shlex.quote(str(folder.path))} --watch")


if __name__ == "__main__" and not main():
    raise SystemExit(1)

# %% Try it
# - Solve exercise 1 with (f(x + h) - f(x)) / h. Which law does it break, and what would hold for it
#   instead?
# - In checks/e05_order.py, let the long chain have 500 values. Which answer that was refused is
#   accepted now, and what does an engine lose that is built on it?
