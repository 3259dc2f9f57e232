"""The demos that train: quickly, whole, twice alike, and stopped in the middle.

The slow group (`pytest -m slow`) trains each of them to its end, and asks for its pass marks and
its ablation. (What a stopped run keeps and what `--resume` refuses: test_folders.)
"""

import re
import signal
from argparse import Namespace
from html import unescape

import numpy as np
import pytest

from attention.figures import new_figure
from demos._training import Marks
from demos._training_curves import Line, draw_losses, smoothed
from minigrad.runs.checkpoints import checkpoint_facts
from tests.demos.running import assert_light, demo, python

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
    "translate": ({"cross_attention", "loss"}, ["with_cross_attention", "without_cross_attention"]),
    "charlm": ({"bits", "weights"}, ["64_characters", "one_character"]),
    "digits": (
        {"without_training", "weights", "loss"},
        ["rows_with_positions", "rows_in_a_bag", "other_hands"],
    ),
}
SLIDERS = ["induction", "reverse"]


@pytest.fixture
def quick(run_once):
    """Give quick(name, *options): the folder of a demo that ran quickly, and its process."""
    return lambda name, *options: run_once(name, "--quick", *options)


def kept(path):
    """Return a checkpoint's arrays, and its facts."""
    return safetensors.load_file(path), checkpoint_facts(path)


# ---------------------------------------------------------------- value


@pytest.mark.parametrize("name", TRAIN)
def test_a_demo_runs_quickly_and_leaves_its_pictures_its_trainings_and_its_page(name, quick):
    folder, done = quick(name)
    assert done.returncode == 0, done.stderr
    pictures, trainings = TRAIN[name]
    expected = {f"{stem}.{ending}" for stem in pictures for ending in ("png", "svg")}
    expected |= {f"{stem}.safetensors" for stem in trainings}
    expected |= {"index.html", "content.json", "small.png"}
    assert {path.name for path in folder.iterdir()} == expected
    assert_light(folder)
    assert re.search(r"\n\d+ of \d+ checks passed; --marks shows them\n$", done.stdout)
    assert f"The page: {folder}/index.html" in done.stdout


@pytest.mark.parametrize("name", TRAIN)
def test_its_page_shows_every_picture_in_words_every_score_and_what_to_try(name, quick):
    folder, done = quick(name)
    page = unescape((folder / "index.html").read_text("utf-8"))
    assert page.count("This is a --quick run") == 1
    alts = re.findall(r'<svg\b[^>]*? role="img" aria-label="([^"]*)"', page)
    assert len(alts) == len(TRAIN[name][0]) - (name in SLIDERS)  # (which show the map)
    assert all(len(alt) > 40 for alt in alts)
    texts = lambda row: re.sub("<[^>]*>", "", row.replace("</td>", "|")).replace("−", "-")
    rows = [texts(row) for row in re.findall("<tr>(.*?)</tr>", page)]
    scores = re.findall(r"^   (.+): expected (.+), got (\S+): ", done.stdout, re.MULTILINE)
    for what, mark, got in scores:
        mark = mark.replace("at least", "≥").replace("at most", "≤")
        assert any(row.startswith(f"{what.strip()}|{got}|{mark}|") for row in rows)
    assert '<details class="ask"' in page
    *_, conclusion, last = page.split("<h2")
    assert ">What to conclude<" in conclusion and ">Try it<" in last and last.count("<li>") == 2


@pytest.mark.parametrize("name", SLIDERS)
def test_a_slider_has_the_frames_of_the_training_up_to_the_last_step(name, quick):
    folder, _ = quick(name)
    page = (folder / "index.html").read_text("utf-8")
    labels = re.findall(r'data-label="([^"]*)" width="\d+" alt="\1\. ', page)
    frames = [int(re.search(r"step (\d+)", label)[1]) for label in labels]
    assert frames == sorted(set(frames)) and frames[0] == 1
    assert frames[-1] == kept(next(folder.glob("*.safetensors")))[1]["steps"]
    assert int(re.search(r'max="(\d+)"', page)[1]) == len(frames) - 1


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAIN)
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


def test_the_smoothed_loss_does_not_lag():
    decay = np.exp(-np.arange(100) / 7)
    losses = decay * np.random.default_rng(0).uniform(0.9, 1.1, 100)
    np.testing.assert_allclose(smoothed(decay)[:-2], decay[:-2])
    assert np.std(np.log(smoothed(losses) / decay)[:-2]) < 0.6 * np.std(np.log(losses / decay))


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


@pytest.mark.parametrize("every", [False, True])
def test_a_mark_that_passed_is_counted_and_one_that_was_missed_is_shown(every, capsys):
    marks = Marks(Namespace(quick=False, marks=every))
    marks.at_most("error", 0.25, 0.5, ".2f")
    marks.at_least("score", 0.5, 0.9)
    with pytest.raises(SystemExit, match="^1$"):
        marks.end()
    first = "   error: expected at most 0.50, got 0.25: passed\n" if every else ""
    out, err = capsys.readouterr()
    second = "   score: expected at least 90.0%, got 50.0%: FAILED\n"
    hint = "" if every else "; --marks shows them"
    assert (out, err) == (f"{first}{second}\n1 of 2 checks passed{hint}\n", f"\nFailed:\n{second}")


# ---------------------------------------------------------------- law: the same seed, the same bits


def assert_same_trainings(folder, other):
    paths = list(folder.glob("*.safetensors"))
    assert paths
    for path in paths:
        (arrays, facts), (other_arrays, other_facts) = kept(path), kept(other / path.name)
        assert facts == other_facts  # every loss on the way, and the last
        assert arrays.keys() == other_arrays.keys()
        for name, array in arrays.items():
            assert array.dtype == other_arrays[name].dtype, name
            assert array.tobytes() == other_arrays[name].tobytes(), name


# (What `two_moons` gives when it is stopped and resumed is compared below.)
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in TRAIN if name != "two_moons"])
def test_the_same_seed_gives_the_same_losses_and_weights_to_the_last_bit(name, quick, tmp_path):
    """The second run is stopped in its first training and resumed: dropout goes on, too."""
    folder, _ = quick(name)
    first = TRAIN[name][1][0]
    steps = checkpoint_facts(folder / f"{first}.safetensors")["steps"]
    run = [name, "--quick", "--out", tmp_path]
    stopped(first, steps // 2, signal.SIGINT, *run)
    demo(*run, "--resume")
    assert_same_trainings(folder, tmp_path)


def test_another_seed_gives_other_losses(quick):
    folders = [quick("two_moons", *seed)[0] for seed in ((), ("--seed", "1"))]
    name = "two_hidden_layers.safetensors"
    losses = [checkpoint_facts(folder / name)["history"]["loss"] for folder in folders]
    assert losses[0] != losses[1]


# ---------------------------------------------------------------- law: stopped, it goes on


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


WHOLE = ("two_moons", "--steps", "110")  # never stopped; the shortest of the demos that train
STOPS = [
    ("two_hidden_layers", 21, signal.SIGTERM),
    ("no_hidden_layer", 105, signal.SIGKILL),  # of which it saved a hundred steps
]


def test_a_demo_that_is_stopped_and_resumed_ends_as_if_it_never_was(run_once, tmp_path):
    run = [*WHOLE, "--out", tmp_path]
    for training, step, how in STOPS:
        stopped(training, step, how, *run)
        assert not (tmp_path / "index.html").exists()
        run = [*run[:5], "--resume"]
    done = demo(*run)
    folder, never_stopped = run_once(*WHOLE)
    strip = lambda text: text.rpartition("\nThe page")[0]
    assert strip(done.stdout) == strip(never_stopped.stdout) != ""
    assert_same_trainings(folder, tmp_path)
    pages = [(each / "index.html").read_text("utf-8") for each in (folder, tmp_path)]
    assert pages[0] == pages[1]  # (and so are the pictures)
