"""Twenty-four exercises that answer back: derivatives by hand, rules, attention.

You get a folder of your own with a file for each exercise, in which some lines are missing. This
command looks for the first exercise that is not solved yet, runs its check on your file, and says
what to look at: a value, a derivative or a law that does not hold. A check does not tell the
answer; three hints lead to it.

    python -m demos learn init FOLDER                # makes the folder, outside of the repository
    python -m demos learn [--in FOLDER]              # checks the first that is not solved
    python -m demos learn [--in FOLDER] --watch      # checks again whenever you save
    python -m demos learn [--in FOLDER] --path       # eight of them, for a first contact
    python -m demos learn init FOLDER --load FILE    # makes it with what a page's Save has written
    python -m demos learn [--in FOLDER] --save FILE  # writes what a page's Load reads

`--in` is not needed in that folder. The exit code is 0 if everything that was checked is solved,
and 1 if not.

For a class:

    python -m demos learn grade FOLDER…              # a row for each folder: what is solved
    python -m demos learn grade FOLDER… --csv        # for a spreadsheet
    python -m demos learn grade FOLDER… --json       # with what each check says

A row says of each exercise: solved, not yet, out of time, missing, error, or tampered. `-j 4` runs
four checks at a time. The folders stay as they are: each check gets a copy of their Python files.
While a learner's code runs, it can neither import nor open our solutions and checks, and after
"solved" the same process checks a wrong answer, too: a file that makes the check accept it is
tampered. This stops what is tried in passing. It does not stop a program that the learner's code
starts, or a second name of a file of ours, and it does not find whoever pastes our lines, or
changes the check for one answer alone.

With exercises of your own, which lie in the folder COURSE (`demos/learn/exercises/__init__.py`
says how they are written):

    python -m demos learn grade --course COURSE            # does each check accept your own lines?
    python -m demos learn init FOLDER --course COURSE      # a learner's folder; then as above
    python -m demos learn grade FOLDER… --course COURSE

In the row of your own lines, tampered means that the check accepts what the learner gets, too.
"""

# %% Set-up

import argparse
import hashlib
import json
import shlex
import tempfile
import textwrap
import time
from pathlib import Path

from demos import stop
from demos.learn import EXERCISES, GROUPS, PATH
from demos.learn._grading import grade
from demos.learn._moving import packed, unpacked
from demos.learn._running import check_of, run
from demos.learn.exercises import (
    changes,
    chapter,
    number,
    open_course,
    size_of_course,
    solution,
    stub,
    title,
)
from minigrad.runs.saving import write_whole

SECONDS = 1  # of a run
COMMAND = "python -m demos learn"
POLL = 0.2  # seconds between two looks at the files
KEPT = ".minigrad-learn.json"  # of each solved exercise a hash; how many hints were shown
NOTHING = json.dumps({"solved": {}, "hints": {}})
COURSE = ".minigrad-course"  # where the exercises come from, if they are not ours
NEXT = {
    EXERCISES: "All twenty-four exercises are solved. Next, train a model of your own (README.md, "
    '"Your own model"), or read chapter 12, attention/fused.py: attention in blocks, backward too.',
    PATH: "The eight exercises of the path are solved. Can you say now how a gradient gets back "
    "through attention? Chapter 11, attention/scaled_dot_product.py, says it on one page. "
    "Without --path the other sixteen exercises come next.",
}
README = """\
Each file that ends in .py is an exercise. Read its first lines, and write
what is missing between "Your lines begin." and "Your lines end." Save, and
run in the folder of the repository:

    {command}

This checks the first exercise that is not solved. --help says what else there
is: hints, our lines, what is solved. To begin an exercise again, rename your
file: then `init` instead of `--in` writes it as it was given. Nothing here is
overwritten, so change what you like.
"""


def say(text, indent=""):
    """Print sentences on lines of at most 80 letters; lines that are indented stay as they are."""
    for line in text.splitlines():
        if line.startswith("    "):
            print(indent + line)
        else:
            filled = textwrap.fill(
                line,
                80,
                initial_indent=indent,
                subsequent_indent=indent,
                break_long_words=False,
                break_on_hyphens=False,
            )
            print(filled)


def headed(name):
    """Return an exercise's number and title."""
    return f"Exercise {number(name)} of {size_of_course(name)} · {title(name)}"


def hints_of(name):
    """Return the three hints of an exercise; stop with a sentence if a course's check has none."""
    hints = getattr(check_of(name), "HINTS", ())
    if not hints or isinstance(hints, str):
        stop(f"checks/{name}.py has no HINTS = (where to look, the idea, nearly the line)")
    return hints


# %% The learner's folder
# It holds a file for each exercise, README.txt, one hidden file with what has been solved and which
# hints have been shown, and one with the course if that is not ours. What the learner has written
# is never overwritten.


def exercises_of(folder):
    """Return the names of the exercises that a learner's folder is for."""
    try:
        course = (folder / COURSE).read_text("utf-8")
    except FileNotFoundError:
        return EXERCISES
    if not Path(course).is_dir():
        stop(
            f"the course {course} is not there: `init FOLDER --course COURSE` says where it is now"
        )
    return open_course(course)


def init(text, file=None, course=None):
    """Make a folder, or write what is missing in it; print the first thing to do with it.

    If there is a file that a page has saved, the learner's lines are taken from it.
    """
    loaded, were_solved = unpacked(Path(file)) if file else ({}, [])
    folder = Path(text).expanduser().resolve()
    if folder.is_relative_to(Path(__file__).parents[2]):
        stop(f"{text} is inside of the repository: choose a folder outside, which is yours alone")
    folder.mkdir(parents=True, exist_ok=True)
    other = next(folder.iterdir(), None)
    if other and not (folder / KEPT).exists():
        stop(f"{text} has other files in it, such as {other.name}: choose a new or empty folder")
    command = f"{COMMAND} --in {shlex.quote(str(folder))}"
    if course:
        exercises = open_course(course)
        if (folder / KEPT).exists() and not (folder / COURSE).exists():
            stop(f"{text} has exercises of the book in it: choose a new or empty folder")
        write_whole(folder / COURSE, str(Path(course).expanduser().resolve()))
    else:
        exercises = exercises_of(folder)
    texts = {KEPT: NOTHING}
    texts |= {"README.txt": README.format(command=command)}
    texts |= {f"{name}.py": loaded.get(name, stub(name)) for name in exercises}
    missing = [name for name in texts if not (folder / name).exists()]
    for name in missing:
        write_whole(folder / name, texts[name])
    shown = ", ".join(missing) if len(missing) < 9 else f"{len(missing)} files"
    print(f"New in {folder}: {shown or 'nothing'}")
    for name, lines in loaded.items():
        if (folder / f"{name}.py").read_text("utf-8-sig", "replace") != lines:
            say(f"{name}.py is there already, and other than in {file}: it stays as it is.")
        elif name in were_solved:
            keep(folder, "solved", name, hashed(folder, name))
    say(f"Next: open {exercises[0]}.py there in an editor, read its first lines, and run")
    print(f"    {command} --watch")
    if exercises == EXERCISES:
        say(f"With --path it begins with {PATH[0]}.py: eight exercises, for a first contact.")


def kept(folder):
    """Return what is remembered: a hash of each solved exercise, the number of hints shown.

    A file that is damaged is begun anew, which is said once.
    """
    try:
        now = json.loads((folder / KEPT).read_text("utf-8"))
        hints = {name: int(shown) for name, shown in now["hints"].items()}
        return {"solved": dict(now["solved"]), "hints": hints}
    except (AttributeError, KeyError, TypeError, ValueError):  # cut off, or of another kind
        write_whole(folder / KEPT, NOTHING)
        again = "what you have solved is checked again, and hints begin with the first"
        say(f"The file {KEPT} is damaged and was begun anew: {again}.")
        return json.loads(NOTHING)


def keep(folder, kind, name, what):
    """Remember one thing more."""
    now = kept(folder)
    now[kind][name] = what
    write_whole(folder / KEPT, json.dumps(now, indent=1))


def hashed(folder, name):
    """Return a hash of the learner's file; "" if there is none."""
    path = folder / f"{name}.py"
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.is_file() else ""


def solved(folder, name):
    """Return True if the file is as it was when its check said yes."""
    return kept(folder)["solved"].get(name) == hashed(folder, name)


# %% One check
# Each check runs in a process of its own, with a time limit.


def tried(folder, name):
    """Run an exercise's check, print its answer, and return True if the exercise is solved."""
    path = folder / f"{name}.py"
    print(f"{headed(name)}\n{path}", flush=True)
    before = hashed(folder, name)  # if the file is saved during the check, it is another one
    answer = run(path, name)
    if answer.printed:
        print("  It printed:")
        print(textwrap.indent(answer.printed, "  | ", lambda line: True))
    for warning in answer.warned:
        say(f"warning: {warning}", "  ")
    if answer.solved:
        print("  Solved.\n")
        keep(folder, "solved", name, before)
    else:
        print()
        say(f"{answer.kind}: {answer.said}" if answer.kind else answer.said, "  ")
        print()
    return answer.solved


def go_on(folder, again, names, *, watched=False):
    """Check the exercises that are not known to be solved, in order, until one is not solved."""
    for name in names:
        if (len(names) > 1 and solved(folder, name)) or tried(folder, name):
            continue
        left = len(hints_of(name)) - kept(folder)["hints"].get(name, 0)
        end = " and save it." if watched else ", save it, and run the same command again."
        what = f"For a hint ({left} left)" if left else "To see our lines beside yours"
        print(f"Next: change {name}.py{end}\n{what}:")
        print(f"    {again} {'--hint' if left else '--solution'}")
        return False
    say(NEXT.get(names, "" if len(names) == 1 else "All exercises of the course are solved."))
    return True


def first(folder, names):
    """Return the first exercise that is not known to be solved, or the last one if all are."""
    return next((name for name in names if not solved(folder, name)), names[-1])


def watch(folder, again, names, exercises):
    """Check, and check again whenever an exercise has been saved, until all is solved or Ctrl-C."""
    seen = None
    try:
        while True:
            now = {name: hashed(folder, name) for name in exercises}
            if now != seen:
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
    hints, shown = hints_of(name), kept(folder)["hints"].get(name, 0)
    new = [shown] if shown < len(hints) else range(len(hints))
    keep(folder, "hints", name, new[-1] + 1)
    print(headed(name))
    for i in new:
        say(f"hint {i + 1} of {len(hints)}: {hints[i]}", "  ")
    if new[-1] + 1 == len(hints):
        print(f"These are all hints. To see our lines beside yours:\n    {again} --solution")


def compare(folder, name):
    """Print the changes that lead from the learner's lines to ours."""
    print(headed(name))
    path = folder / f"{name}.py"
    yours = path.read_text("utf-8-sig", "replace") if path.is_file() else ""
    lines = changes(name, yours)
    print("  - yours    + ours\n" if lines else "  Your file is the same as ours.")
    for line in lines:
        print("  ⋯" if line[0] == "@" else f"{line[0]} {line[1:]}".rstrip())


def save(folder, file):
    """Write the learner's files into one, which a page loads."""
    if Path(file).exists():
        stop(f"{file} is there already: choose a new name")
    paths = {name: folder / f"{name}.py" for name in EXERCISES if hashed(folder, name)}
    texts = {name: path.read_text("utf-8-sig", "replace") for name, path in paths.items()}
    done = [name for name in texts if solved(folder, name)]
    write_whole(Path(file), packed(texts, done))
    print(f"{file}: {len(texts)} exercises, {len(done)} of them solved. A page's Load reads it.")


def progress(folder, exercises):
    """Print every exercise, with a mark if it is solved."""
    done = [name for name in exercises if solved(folder, name)]
    for group, names in (GROUPS if exercises == EXERCISES else {"": exercises}).items():
        print(group)
        for name in names:
            mark, star = "x" if name in done else " ", "*" if name in PATH else " "
            print(f"  [{mark}] {number(name):>2}{star} {chapter(name):5} {title(name)}")
    print(f"\n{len(done)} of {len(exercises)} solved, in {folder} (second number: the chapter)")
    if exercises == EXERCISES:
        print(f"* is on the path for a first contact: {', '.join(str(number(n)) for n in PATH)}")


# %% The command


def grade_class(chosen, form):
    """Grade the folders of a class, or a course's own lines; return True if all is solved."""
    others = (chosen.folder, chosen.watch, chosen.hint, chosen.solution, chosen.save)
    if any((*others, chosen.load, chosen.list)):
        stop(f"grade takes folders, --path, -j, and --csv or --json: {COMMAND} grade FOLDER…")
    if len(chosen.words) == 1 and not chosen.course:
        stop(f"grade needs folders, or --course for its own lines: {COMMAND} grade FOLDER…")
    if chosen.course and chosen.path:
        stop("--path is eight exercises of the book: --course takes all of a course")
    if chosen.j is not None and chosen.j < 1:
        stop(f"-j {chosen.j} is not a number of checks: write 1 or more")
    names = PATH if chosen.path else EXERCISES
    if chosen.course:
        names = open_course(chosen.course)
    # Without folders the course's own lines are graded: does each check accept them, and refuse
    # what the learner gets?
    with tempfile.TemporaryDirectory() as ours:
        for name in [] if chosen.words[1:] else names:
            hints_of(name)
            Path(ours, f"{name}.py").write_text(solution(name), "utf-8")
        folders = {text: text for text in chosen.words[1:]} or {
            ours: f"{chosen.course} (own lines)"
        }
        return grade(folders, names, jobs=chosen.j or 1, form=form)


def main():
    """Do what the options say."""
    title_line, *_ = __doc__.splitlines()
    parser = argparse.ArgumentParser(prog=COMMAND, description=title_line)
    parser.add_argument(
        "words",
        nargs="*",
        metavar="init FOLDER | grade FOLDER… | NUMBER",
        help="make a folder; grade those of a class; or a number, for this exercise alone",
    )
    parser.add_argument("--in", dest="folder", metavar="FOLDER", help="your folder (the current)")
    parser.add_argument("--path", action="store_true", help="eight exercises, for a first contact")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--watch", action="store_true", help="check again whenever you save")
    what.add_argument("--hint", action="store_true", help="the next of three hints")
    what.add_argument("--solution", action="store_true", help="our lines beside yours")
    what.add_argument("--save", metavar="FILE", help="write all as one file, for a page's Load")
    what.add_argument("--load", metavar="FILE", help="with init: what a page's Save has written")
    what.add_argument("--list", action="store_true", help="what is solved")
    parser.add_argument("--course", metavar="COURSE", help="with init, grade: a folder's exercises")
    for form, help in (("csv", "for a spreadsheet"), ("json", "with the checks' words")):
        what.add_argument(f"--{form}", action="store_true", help=f"with grade: {help}")
    parser.add_argument("-j", type=int, metavar="N", help="with grade: N checks at a time")
    chosen = parser.parse_args([] if "get_ipython" in globals() else None)  # (as in `options`)
    again = COMMAND
    if chosen.words[:1] == ["init"]:
        if len(chosen.words) != 2:
            stop(f"init takes one folder: {again} init FOLDER")
        if chosen.course and chosen.load:
            stop("--load goes with the exercises of the book: a page has no others")
        init(chosen.words[1], chosen.load, chosen.course)
        return True
    form = "csv" if chosen.csv else "json" if chosen.json else ""
    if chosen.words[:1] == ["grade"]:
        return grade_class(chosen, form)
    if chosen.course:
        stop(f"--course goes with init and grade: {again} init FOLDER --course {chosen.course}")
    if form or chosen.j is not None:
        stop(f"--csv, --json and -j go with grade: {again} grade FOLDER…")
    if chosen.load:
        stop(f"--load goes with init: {again} init FOLDER --load {shlex.quote(chosen.load)}")
    folder = Path(chosen.folder or ".").expanduser().resolve()
    if not (folder / KEPT).is_file():
        stop(f"{folder} is not a folder of exercises: `{again} init FOLDER` makes one")
    again += f" --in {shlex.quote(chosen.folder)}" if chosen.folder else ""
    exercises = exercises_of(folder)
    if exercises != EXERCISES and (chosen.path or chosen.save):
        stop(f"--{'path' if chosen.path else 'save'} goes with the exercises of the book")
    names = PATH if chosen.path else exercises
    again += " --path" if chosen.path else ""
    if chosen.words:
        names = tuple(name for name in exercises if chosen.words == [str(number(name))])
        if not names:
            numbers = f"{number(exercises[0])} to {number(exercises[-1])}"
            stop(f"there is no exercise {' '.join(chosen.words)}: they are numbered {numbers}")
        again += f" {chosen.words[0]}"
    if chosen.save:
        save(folder, chosen.save)
    elif chosen.list:
        progress(folder, exercises)
    elif chosen.hint:
        hint(folder, first(folder, names), again)
    elif chosen.solution:
        compare(folder, first(folder, names))
    elif chosen.watch:
        watch(folder, again, names, exercises)
    else:
        return go_on(folder, again, names)
    return True


if __name__ == "__main__" and not main():
    raise SystemExit(1)

# %% Try it
# - Solve exercise 1 with (f(x + h) - f(x)) / h. Which law does it break, and what would hold for it
#   instead?
# - In `checks/e05_order.py`, let the long chain have 500 values. Which answer that was refused is
#   accepted now, and what does an engine lose that is built on it?
