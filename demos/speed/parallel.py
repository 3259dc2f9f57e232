"""Parallel: one training on many machines makes the steps of one process, also if workers die.

Claim. The gradient of a mean over a batch is the mean of its shards' gradients, weighted by their
counted targets. So workers that each have the model, and a share of the batch, make the same step
as one process: after 20 steps in float64 the parameters are equal to 1e-12, with 2 shards and 3,
and also if a worker dies in its forward pass, between gradient and step, or during the step. A
batch is not sent: a worker makes its shard from seed, step and rows.

    python -m demos parallel [--out DIR] [--seed N] [--quick] [--dask ADDRESS]

It needs the extra `cluster`. Workers of a cluster elsewhere (`dask worker ADDRESS`) are started in
the project's folder, by the same Python and NumPy. They need a nanny, which Dask has as it comes.
"""

# %% Set-up

import logging
import time
from contextlib import ExitStack

import dask
import numpy as np
from distributed import Client, LocalCluster

from attention.figures import CRIMSON, GREY, INK, new_figure
from demos import options
from demos.pages.publish import publish
from demos.speed._crew import MOMENTS, Backwards, Crew, alone, mean

SECONDS = 22  # of a run


def add(parser):
    """Add the option that only this demo has."""
    parser.add_argument("--dask", metavar="ADDRESS", help="a Dask cluster, of 2 workers or more")


chosen = options("parallel", __doc__.splitlines()[0], quick=True, add=add)
page = publish(chosen)
STEPS = 20
training = Backwards(chosen.seed)


def apart(parameters, others):
    """Return the largest difference between the parameters of two trainings."""
    return max(np.abs(parameters[name] - others[name]).max() for name in parameters)


# %% The arithmetic, in one process
# If shard i counts nᵢ targets, and gᵢ is the gradient of their mean loss, then the batch has
#
#     g = Σᵢ nᵢ gᵢ / Σᵢ nᵢ
#
# Words differ in length, so shards of equally many words count different numbers of letters. The
# plain mean of the gᵢ is another gradient, and another training.


def plain(shares):
    """Return the means of shards as if all counted equally many targets."""
    return mean([(1, gradients) for _, gradients in shares])


one = alone(training, STEPS)
sharded = max(apart(one, alone(training, STEPS, parts=parts)) for parts in (2, 3))
unweighted = apart(one, alone(training, STEPS, parts=3, mean=plain))

# %% Workers that die
# Each worker is a Dask actor: an object that stays in its process, with model and optimizer. In
# step 7 a process ends. Dask starts it again without the actor, and a new one is filled from a
# worker that is left. No worker steps before all gradients are in. So before the update nobody has
# stepped, and all compute the gradient again; in the update all others make the step.

stack = ExitStack()
if chosen.dask is None:
    # A cluster that has lost a worker looks for it 15 seconds later, and gives it up if it is away.
    dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"})
    local = {"threads_per_worker": 1, "dashboard_address": None, "silence_logs": logging.CRITICAL}
    chosen.dask = stack.enter_context(LocalCluster(n_workers=3, **local))
client = stack.enter_context(Client(chosen.dask, timeout=5))
whole = max(apart(one, Crew(client, training, parts).train(STEPS)) for parts in (2, 3))
rows, dead = [], []
for moment in MOMENTS:
    events = []
    crew = Crew(client, training, 2, say=events.append, accident=(7, moment))
    dead.append(apart(one, crew.train(STEPS)))
    rows.append([moment, "; ".join(events), f"{dead[-1]:.1g}"])
page.table(["Worker 0 dies", "what the run says", "from one process"], rows)

# %% Seconds and bytes of a step
# In a step this program gets the gradient of each worker, and sends each their mean.

large = Backwards(chosen.seed, rows=32 if chosen.quick else 128, d_model=64)
times = 2 if chosen.quick else 9


def median(work):
    """Return the median seconds of some steps."""
    seconds = []
    for step in range(1, times + 1):
        begin = time.perf_counter()
        work(step)
        seconds.append(time.perf_counter() - begin)
    return float(np.median(seconds))


steps = [["one process", alone_seconds := median(lambda step: alone(large, 1)), 0]]
for count in (1, 2):
    crew = Crew(client, large, count)
    steps.append([f"workers: {count}", median(crew.step), crew.bytes // times])
[(of_model, of_optimizer)] = crew.ask("state", {0: ()}).values()
filling = sum(array.nbytes for array in [*of_model.values(), *of_optimizer.values()])
per_byte = median(lambda _: crew.ask("state", {0: ()})) / filling
stack.close()
page.table(["", "ms", "bytes"], [[who, f"{1000 * s:.0f}", f"{n:,}"] for who, s, n in steps])

# %% To a thousand workers
# All gradients of a star go through one machine, one after the other: 2 · workers · bytes. In a
# ring each worker passes parts of sums to the next, all at once: each sends 2 (N-1)/N · bytes. The
# computation is shared by N in both. Its time grows with tokens · parameters, and that of sending
# with parameters alone, so it is the batch that decides whether many workers pay, not the model.

parameters = sum(p.size for p in large.make()[0].parameters())
rate = alone_seconds / (parameters * large.rows * 24)  # seconds for a token and a parameter
pays = 4 * 2 * 8 * per_byte / rate  # tokens: two workers save half of W, and cost 4 · bytes
SIZE, TOKENS = 124e6, 2**19  # GPT-2 (small) in float32, and a batch of 512 · 1,024 tokens
workers = np.arange(1, 1001)
compute = rate * SIZE * TOKENS / workers
star = compute + 2 * workers * 4 * SIZE * per_byte
ring = compute + 2 * (workers - 1) / workers * 4 * SIZE * per_byte
best = workers[star.argmin()]
figure = new_figure(6.0, 3.8)
axes = figure.subplots()
axes.loglog(workers, star, color=CRIMSON, label="star: through one machine")
axes.loglog(workers, ring, color=INK, label="ring: each to the next")
axes.loglog(workers, compute, ":", color=GREY, label="computing alone")
axes.set(xlabel="workers N", ylabel="seconds of a step")
axes.set_title("A star has a best number of workers", fontsize=11)
axes.legend(frameon=False)
drawn = page.figure(
    figure,
    "laws",
    alt=f"The seconds of a step over the number of workers. A star is fastest at {best} workers, "
    f"{star.min():,.0f} s; at 1,000 it needs {star[-1]:,.0f} s, and a ring {ring[-1]:,.0f} s.",
    caption=f"GPT-2 of 124 M parameters in float32, 2¹⁹ tokens a step, at the measured "
    f"{1e-9 / per_byte:.2f} GB/s and {1e-9 / rate:.2f} · 10⁹ tokens · parameters a second",
)
page.say(
    f"This model has {parameters:,} parameters. Two workers of a star are faster than one process "
    f"from {pays:,.0f} tokens a batch on, if each has a core to itself; this batch has "
    f"{large.rows * 24:,}. For a ring take a library: `Allreduce` of mpi4py sums NumPy's arrays, "
    "and PyTorch has DistributedDataParallel, which sends while it still computes."
)

# %% What was found

page.finding(
    f"After {STEPS} steps the parameters of two workers and of three are those of one process to "
    f"{whole:.1g}, and to {max(dead):.1g} where a worker died.",
    drawn,
)
page.ask(
    "Shards count different numbers of targets. If all weighed the same, how far from those of one "
    "process would the parameters be?",
    f"One is {unweighted:.1g} away. The mean of means is another gradient.",
    guesses=("1e-12", "1e-6", "0.001 or more"),
)
page.marks.at_most("shards in one process", sharded, 1e-12, ".1g")
page.marks.at_most("two workers and three", whole, 1e-12, ".1g")
page.marks.at_most("a worker that died", max(dead), 1e-12, ".1g")
page.marks.at_least("shards of equal weight", unweighted, 1e-3, ".1g")
page.end()

# %% Try it
# - Let two words make a batch (`rows=2`), for three workers: what does the third do?
# - Where workers die, give `Crew` three workers and `wait=0`: what does the run say, and are the
#   parameters still equal?
