"""The demos that train: quickly, whole, twice alike, and stopped in the middle.

The slow group (`pytest -m slow`) trains each of them to its end, and asks for its pass marks and
its ablation. (Those of the five source texts run whole in the tests of their texts.)
"""

import importlib
import re
import shutil
import signal
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from attention.figures import new_figure
from demos import files, fingerprint
from demos._losses import Line, centred, draw_losses, smoothed
from demos._page import Page
from demos._training import Marks
from minigrad.runs.checkpoints import checkpoint_facts
from tests.demos.running import ROOT, assert_light, demo, python

safetensors = pytest.importorskip("safetensors.numpy")

# A demo's name → its pictures, and the trainings it keeps, in the order in which it runs them.
TRAIN = {
    "two_moons": ({"boundary", "loss"}, ["two_hidden_layers", "no_hidden_layer"]),
    "recall": (
        {"weights", "loss"},
        [f"{how}_rate_{rate}" for rate in ("1.0", "0.1") for how in ("scaled", "unscaled")],
    ),
    "reverse": ({"weights", "loss"}, ["with_positions", "without_positions"]),
    "sort": ({"weights", "loss"}, ["all_places", "each_place_alone"]),
    "addition": ({"weights", "loss"}, ["with_positions", "without_positions"]),
    "induction": ({"weights", "loss"}, ["two_blocks", "one_block"]),
    "translate": (
        {"cross_attention", "loss"},
        ["with_cross_attention", "without_cross_attention"],
    ),
    "charlm": ({"bits", "weights"}, ["64_characters", "one_character"]),
    "digits": (
        {"without_training", "weights", "loss"},
        ["rows_with_positions", "rows_in_a_bag", "other_hands"],
    ),
}
ANIMATED = {"reverse", "induction"}


@pytest.fixture
def quick(run_once):
    """quick(name, *options): the folder of a demo that ran quickly, and its process."""
    return lambda name, *options: run_once(name, "--quick", *options)


def kept(path):
    """A checkpoint's arrays, and its facts but for the time it was begun."""
    facts = checkpoint_facts(path)
    del facts["begun"]
    return safetensors.load_file(path), facts


def assert_same_bits(path, other):
    (arrays, facts), (other_arrays, other_facts) = kept(path), kept(other)
    assert facts == other_facts  # every loss on the way, and the last
    assert arrays.keys() == other_arrays.keys()
    for name, array in arrays.items():
        other = other_arrays[name]
        assert (array.dtype, array.shape) == (other.dtype, other.shape), name
        assert array.tobytes() == other.tobytes(), name


# ---------------------------------------------------------------- value


def each(*options):
    """Every demo that trains, and the mark that lets it run beside other tests."""
    return [pytest.param(name, marks=pytest.mark.beside(name, *options)) for name in TRAIN]


@pytest.mark.parametrize("name", each("--quick"))
def test_a_demo_runs_quickly_and_leaves_its_pictures_and_its_trainings(name, quick):
    folder, done = quick(name)
    assert done.returncode == 0, done.stderr
    pictures, trainings = TRAIN[name]
    expected = {f"{stem}.{ending}" for stem in pictures for ending in ("png", "svg")}
    expected |= {f"{stem}.safetensors" for stem in trainings} | {"index.html"}
    expected |= {"weights.gif"} if name in ANIMATED else set()
    assert {path.name for path in folder.iterdir()} == expected
    assert_light(folder)
    assert re.search(r"\n\d+ of \d+ checks passed; --marks shows them\n$", done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("name", each("--marks"))
def test_a_demo_reaches_its_marks_and_its_ablation_does_not(name, run_once):
    folder, done = run_once(name, "--marks")
    print(done.stdout)
    assert done.returncode == 0, done.stderr[done.stderr.rfind("\nFailed:") :]
    assert_light(folder)
    judged = re.findall(
        r"^   (.+): expected (at (?:least|most)) \S+, got \S+: passed$", done.stdout, re.M
    )
    assert any("ablation" in what for what, _ in judged)
    assert any(kind == "at least" for _, kind in judged) or name == "charlm"


def test_recomputing_the_blocks_of_charlm_saves_memory_and_keeps_the_gradients(quick):
    _, done = quick("charlm")
    form = r"One training step: (\S+) MB in \d+ ms. With recomputed blocks: (\S+) MB in \d+ ms"
    plain, recomputed = map(float, re.search(form, done.stdout).groups())
    assert recomputed < 0.6 * plain  # one block's record instead of two, and a tenth
    reached = r"^   (memory with recompute|largest difference of the gradients), [^:]+: \S+$"
    assert len(re.findall(reached, done.stdout, re.MULTILINE)) == 2


def test_the_smoothed_loss_does_not_lag():
    decay = np.exp(-np.arange(100) / 7)
    losses = decay * np.random.default_rng(0).uniform(0.9, 1.1, 100)
    np.testing.assert_allclose(smoothed(decay)[:-2], decay[:-2])
    assert np.std(np.log(smoothed(losses) / decay)[:-2]) < 0.6 * np.std(np.log(losses / decay))


def test_the_mean_of_a_step_is_centred_at_the_step():
    step = np.where(np.arange(500) < 200, 1.0, 1e-4)
    between = smoothed(step)[199:201]  # the last value before the fall, and the first after it
    assert between[0] > 1e-2 > between[1] and between[0] * between[1] == pytest.approx(1e-4)
    np.testing.assert_allclose(centred(step)[199:201].mean(), step[199:201].mean())


def test_a_run_that_breaks_ends_in_a_cross_with_its_step():
    panel = new_figure(6, 4).subplots()
    lines = [Line("whole", [2.0] * 50, "black"), Line("broken", [2.0] * 30 + [900.0], "black")]
    draw_losses(panel, lines, {"chance": 3.0})
    said = {text.get_text(): text for text in panel.texts}
    assert said.keys() == {"whole", "broken, NaN at step 32", "chance"}
    crosses = [line for line in panel.lines if line.get_marker() == "X"]
    assert [line.get_xdata()[0] for line in crosses] == [31]
    bottom, top = panel.get_ylim()
    assert bottom < crosses[0].get_ydata()[0] < top < 100  # not up to where it broke


def test_a_failed_mark_prints_expected_and_got_and_ends_with_code_1(tmp_path):
    done = demo("two_moons", "--steps", 1, "--out", tmp_path)
    assert done.returncode == 1
    failed = done.stderr[done.stderr.rfind("\nFailed:") :]
    assert re.search(r"with hidden layers: expected at least 97\.0%, got \d+\.\d%: FAILED", failed)


# ---------------------------------------------------------------- value: the page


@pytest.mark.parametrize("name", TRAIN)
def test_its_page_says_what_it_is_and_shows_what_the_run_found(name, quick, visit, serious):
    folder, done = quick(name)
    narrow = {"viewport": {"width": 320, "height": 800}, "color_scheme": "dark"}
    page = visit(folder / "index.html", bypass_csp=True, **narrow)  # (so that axe may run)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert page.inner_text(".warning").startswith("This is a --quick run")
    assert f"The page: {folder}/index.html" in done.stdout
    drawn = page.locator("main svg[role=img]")
    assert drawn.count() == len(TRAIN[name][0]) - (name == "reverse")  # (its slider shows the map)
    assert all(len(svg.get_attribute("aria-label")) > 40 for svg in drawn.all())
    scores = re.findall(r"^   (.+): expected (.+), got (\S+): ", done.stdout, re.MULTILINE)
    found = page.locator("tr:has(td)").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    assert {(what.strip(), mark, got) for what, mark, got in scores} <= {
        (row[0].strip(), row[2], row[1]) for row in found if len(row) == 4
    }
    assert page.locator("details.ask").count() >= 1
    assert page.locator("h2").all_inner_texts()[-2:] == ["What to conclude", "Try it"]
    assert page.locator("main > ul > li").count() == 2
    assert not serious(page, drawn=False)


@pytest.mark.parametrize("name", sorted(ANIMATED))
def test_a_slider_shows_the_frames_of_the_animation_one_by_one(name, quick, visit):
    folder, _ = quick(name)
    last = int(re.search(r'max="(\d+)"', (folder / "index.html").read_text("utf-8"))[1])
    page = visit(folder / "index.html")
    shown, said = page.locator(".slider img:visible"), page.locator("output")
    page.focus("input[type=range]")
    labels = [said.inner_text()]
    for _ in range(last):
        page.keyboard.press("ArrowRight")
        labels.append(said.inner_text())
        assert shown.count() == 1 and shown.get_attribute("alt").startswith(labels[-1])
        assert page.get_attribute("input[type=range]", "aria-valuetext") == labels[-1]
    steps = [int(re.search(r"step (\d+)", label)[1]) for label in labels]
    assert steps == sorted(set(steps)) and steps[0] == 1
    assert steps[-1] == kept(next(folder.glob("*.safetensors")))[1]["steps"]
    page = visit(folder / "index.html", java_script_enabled=False)
    assert page.locator(".slider img:visible").get_attribute("alt").startswith(labels[-1])
    assert page.locator("output").inner_text() == labels[-1]
    assert not page.locator("input").is_visible()


@pytest.mark.parametrize("every", [False, True], ids=["", "--marks"])
@pytest.mark.parametrize("findings", [False, True], ids=["", "findings"])
def test_a_mark_that_passed_is_counted_and_one_that_was_missed_is_shown(every, findings, capsys):
    marks = Marks(Namespace(quick=False, marks=every), findings=findings)
    marks.at_most("error", 0.25, 0.5, ".2f")
    marks.at_least("score", 0.5, 0.9)
    with pytest.raises(SystemExit, match="^1$"):
        marks.end()
    first = "   error: 0.25\n" if findings else ""
    first = "   error: expected at most 0.50, got 0.25: passed\n" if every else first
    out, err = capsys.readouterr()
    second = "   score: expected at least 90.0%, got 50.0%: FAILED\n"
    hint = "" if every else "; --marks shows them"
    assert (out, err) == (f"{first}{second}\n1 of 2 checks passed{hint}\n", f"\nFailed:\n{second}")


def test_the_page_of_a_run_that_failed_a_mark_says_so(tmp_path):
    marks = Marks(Namespace(quick=False, marks=False))
    marks.at_least("score", 0.5, 0.9)
    folder = tmp_path / "one"
    folder.mkdir()
    page = Page("Title", claim="Claim").write(folder, note=marks.note)
    assert "This run failed 1 of its 1 marks" in page.read_text("utf-8")
    assert Marks(Namespace(quick=True, marks=False)).note == ""


# ---------------------------------------------------------------- law: the same seed, the same bits


# `reverse` and `two_moons` are compared below: what is stopped and resumed is the same run again.
LONG = {"charlm", "digits", "induction", "translate"} | {"reverse", "two_moons"}  # slow, as CI has
SOME = [
    pytest.param(*run.values, marks=[*run.marks, pytest.mark.slow] if name in LONG else run.marks)
    for name, run in zip(TRAIN, each("--quick"), strict=True)
]


@pytest.mark.parametrize("name", SOME)
def test_the_same_seed_gives_the_same_losses_and_weights_to_the_last_bit(name, quick, tmp_path):
    """The second run is stopped at the end of its last training: its pictures are not compared."""
    folder, _ = quick(name)
    last = TRAIN[name][1][-1]
    steps = checkpoint_facts(folder / f"{last}.safetensors")["steps"]
    stopped(last, steps, signal.SIGINT, name, "--quick", "--out", tmp_path)
    assert_same_trainings(folder, tmp_path)


@pytest.mark.beside("two_moons", "--quick", "--seed", "1")
def test_another_seed_gives_other_losses(quick):
    folders = [quick("two_moons", *seed)[0] for seed in ((), ("--seed", "1"))]
    name = "two_hidden_layers.safetensors"
    losses = [checkpoint_facts(folder / name)["history"]["loss"] for folder in folders]
    assert losses[0] != losses[1]


# ---------------------------------------------------------------- law: stopped, it goes on


def assert_same_trainings(folder, other):
    paths = list(folder.glob("*.safetensors"))
    assert paths
    for path in paths:
        assert_same_bits(path, other / path.name)


# `python -m demos …`, which sends itself a signal in the middle of a step.
STOPPED = """
import os, runpy, signal, sys
from demos._training import Run

# Whoever runs the tests behind `&` ignores SIGINT, and hands that on.
signal.signal(signal.SIGINT, signal.default_int_handler)
training, step, number, *sys.argv[1:] = sys.argv[1:]
show = Run.show

def show_and_stop(run, **numbers):
    show(run, **numbers)
    if (run.path.stem, run.done + 1) == (training, int(step)):
        os.kill(os.getpid(), int(number))

Run.show = show_and_stop
runpy.run_module("demos", run_name="__main__")
"""


def stopped(training, step, how, *arguments):
    """Run a demo that gets a signal in this step of this training."""
    done = python("-c", STOPPED, training, step, int(how), *arguments)
    if how == signal.SIGKILL:
        assert done.returncode == -how
    else:
        assert done.returncode == 128 + how
        assert re.search(
            rf"stopped '.+' after step {step} of \d+, and saved it in \S+{training}\S+: the same "
            r"command with --resume continues from there\n$",
            done.stderr,
        )
        assert "Traceback" not in done.stderr


STOPS = {
    "again and again": [
        ("with_positions", 21, signal.SIGKILL),  # before it saved anything but its beginning
        ("with_positions", 21, signal.SIGINT),
        ("with_positions", 23, signal.SIGTERM),
        ("without_positions", 121, signal.SIGKILL),  # of which it saved a hundred steps
    ],
    "in both trainings": [
        ("with_positions", 121, signal.SIGKILL),
        ("without_positions", 21, signal.SIGINT),
    ],
}


WHOLE = ("reverse", "--steps", "150")  # never stopped


def stopped_and_resumed(folder, stops):
    """The last of the runs that it takes."""
    run = [*WHOLE, "--out", folder]
    for training, step, how in STOPS[stops]:
        stopped(training, step, how, *run)
        assert not (folder / "index.html").exists()
        run = [*run[:5], "--resume"]
    return demo(*run)


STOPPED_RUNS = {stops: pytest.mark.beside(stopped_and_resumed, stops) for stops in STOPS}


@pytest.mark.beside(*WHOLE)
@pytest.mark.parametrize(
    "stops",
    [
        pytest.param("again and again", marks=STOPPED_RUNS["again and again"]),
        pytest.param(
            "in both trainings", marks=[STOPPED_RUNS["in both trainings"], pytest.mark.slow]
        ),
    ],
)
def test_a_demo_that_is_stopped_and_resumed_ends_as_if_it_never_was(stops, run_once):
    folder, done = run_once(stopped_and_resumed, stops)
    whole, run = run_once(*WHOLE)
    strip = lambda text: text.rpartition("\nPictures")[0]
    assert strip(done.stdout) == strip(run.stdout) != ""
    assert_same_trainings(whole, folder)
    assert (whole / "weights.gif").read_bytes() == (folder / "weights.gif").read_bytes()


def digits_stopped_and_resumed(folder, step):
    run = ["digits", "--quick", "--out", folder]
    stopped("rows_with_positions", step, signal.SIGINT, *run)
    return demo(*run, "--resume")


@pytest.mark.beside(digits_stopped_and_resumed, 5)  # of 10
def test_dropout_goes_on_where_it_was_stopped(quick, run_once):
    """`digits` draws its dropout from the generator that draws its batches."""
    folder, _ = run_once(digits_stopped_and_resumed, 5)
    assert_same_trainings(quick("digits")[0], folder)


def test_a_training_left_by_an_earlier_run_is_not_taken_for_ones_own(quick, tmp_path):
    """Both trainings of seed 1 are done; one of seed 0 is stopped in its first: not 1's second."""

    folder, _ = quick("two_moons")
    shutil.copytree(quick("two_moons", "--seed", "1")[0], tmp_path, dirs_exist_ok=True)
    refused = demo("two_moons", "--steps", 901, "--out", tmp_path, "--resume")
    assert refused.returncode == 2
    run = ["two_moons", "--quick", "--out", tmp_path]
    stopped("two_hidden_layers", 9, signal.SIGINT, *run)
    demo(*run, "--resume")
    assert_same_trainings(folder, tmp_path)


# ---------------------------------------------------------------- refusal


def test_resuming_nothing_or_something_else_is_one_sentence(quick, tmp_path):
    done = demo("two_moons", "--quick", "--resume", "--out", tmp_path)
    assert done.returncode == 2
    assert re.fullmatch(
        r"there is no \S+two_hidden_layers\.safetensors to resume: start again without --resume\n",
        done.stderr,
    )
    assert list(tmp_path.iterdir()) == []
    folder, _ = quick("two_moons")
    done = demo("two_moons", "--steps", 30, "--resume", "--out", folder)
    assert done.returncode == 2
    assert done.stderr.endswith(
        "was begun with another --steps, 20 and not 30: start again without --resume\n"
    )
    (tmp_path / "two_hidden_layers.safetensors").write_text("not at all")
    done = demo("two_moons", "--quick", "--resume", "--out", tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "is not a checkpoint of minigrad, or is damaged" in done.stderr


def test_a_run_does_not_go_on_with_another_text_of_its_files(quick, tmp_path):
    """Somebody stops a run, does what "Try it" says, and resumes: old weights, new claims."""
    folder, _ = quick("two_moons")
    elsewhere = tmp_path / "project"
    for part in ("demos", "attention", "minigrad"):
        shutil.copytree(ROOT / part, elsewhere / part, ignore=shutil.ignore_patterns("*.pyc"))
    with (elsewhere / "demos/_training.py").open("a") as changed:
        changed.write("# another line\n")
    again = ("-m", "demos", "two_moons", "--quick", "--resume", "--out", folder)
    done = python(*again, cwd=elsewhere, PYTHONPATH=str(elsewhere))
    assert done.returncode == 2
    assert "was begun with another text of its files" in done.stderr


def test_the_files_of_a_demo_are_all_that_it_imports(monkeypatch):
    read, file = [], str(files()["love_transformers"])
    importlib.import_module("demos.texts.sources.love_transformers")
    before = fingerprint(file)
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path.name) or b"another")
    assert fingerprint(file) != before and read.count("love_transformers.py") == 2
    assert {"_training.py", "__init__.py"} <= set(read)


def test_a_run_of_another_demo_in_the_same_folder_is_refused(quick):
    folder, _ = quick("reverse")
    done = demo("addition", "--quick", "--resume", "--out", folder)
    assert done.returncode == 2
    assert "was begun with another demo, reverse and not addition" in done.stderr
