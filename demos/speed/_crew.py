"""One training by many workers: what a worker does, and what happens when one of them dies.

Every worker has the whole model and its optimizer. In each step it computes the gradient of its
shard, gets the mean of all shards' gradients, and steps. All step from the same parameters by the
same bits, so their parameters stay equal bit for bit.
"""

import contextlib
import hashlib
import os
import time
import traceback

import numpy as np
from threadpoolctl import threadpool_limits

from attention import gpt2
from minigrad import cross_entropy
from minigrad.nn import Dropout
from minigrad.optim import Adam

MOMENTS = ("in its forward pass", "between gradient and step", "during the step")
IGNORED = -1  # a target that does not count
LONGEST = 12  # letters of a word


class Backwards:
    """A training: a GPT writes words of 2 to 12 letters backwards, and only these letters count."""

    def __init__(self, seed, *, rows=14, d_model=16):
        self.seed, self.rows, self.d_model = seed, rows, d_model

    def make(self):
        """Return the model at its start, and its optimizer."""
        sizes = {"d_model": self.d_model, "num_heads": 4, "num_blocks": 2}
        model = gpt2(11, 2 * LONGEST, rng=np.random.default_rng(self.seed), **sizes)
        return model, Adam(model.parameters())

    def batch(self, step, rows):
        """Return tokens and targets of some rows of a step's batch; each row has its own draws."""
        texts = np.zeros((len(rows), 2 * LONGEST + 1), int)  # (0 ends a word, and is the padding)
        targets = np.full(texts.shape, IGNORED)
        for text, target, row in zip(texts, targets, rows, strict=True):
            rng = np.random.default_rng([self.seed, step, row])
            n = rng.integers(2, LONGEST + 1)
            text[:n] = rng.integers(1, 11, n)
            text[n + 1 : 2 * n + 1] = target[n + 1 : 2 * n + 1] = text[:n][::-1]
        return texts[:, :-1], targets[:, 1:]


def share(model, tokens, targets):
    """Return the number of a shard's counted targets, and the gradients of their mean loss."""
    for p in model.parameters():
        p.grad = None
    cross_entropy(model(tokens), targets, ignore_index=IGNORED).backward()
    return np.sum(targets != IGNORED), [p.grad for p in model.parameters()]


def mean(shares):
    """Return the batch's gradients: the means of the shards', weighted by counted targets."""
    counted, gradients = zip(*shares, strict=True)
    weights = np.array(counted) / sum(counted)
    return [sum(map(np.multiply, weights, of_one)) for of_one in zip(*gradients, strict=True)]


def take(model, optimizer, gradients):
    """Make a step by given gradients."""
    for p, gradient in zip(model.parameters(), gradients, strict=True):
        p.grad = gradient
    optimizer.step()


def alone(training, steps, *, parts=1, mean=mean):
    """Train in this process, with `parts` shards of a batch; return the parameters."""
    model, optimizer = training.make()
    for step in range(1, steps + 1):
        shards = np.array_split(np.arange(training.rows), parts)
        take(model, optimizer, mean([share(model, *training.batch(step, s)) for s in shards]))
    return model.state_dict()


class Worker:
    """A model and its optimizer in a process of the cluster: a Dask actor."""

    def __init__(self, training, accident):
        threadpool_limits(1, user_api="blas")
        self.training, self.accident = training, accident

    def do(self, method, *arguments):
        """Return (result, ""), or (None, traceback): what Dask raises is then about processes."""
        try:
            return getattr(self, method)(*arguments), ""
        except Exception:
            return None, traceback.format_exc()

    def fill(self, state):
        """Make the model, and continue from the state of another worker if there is one."""
        self.model, self.optimizer = self.training.make()
        if state:
            self.model.load_state_dict(state[0])
            self.optimizer.load_state_dict(state[1], self.model)

    def state(self):
        return self.model.state_dict(), self.optimizer.state_dict(self.model)

    def digest(self):
        bits = b"".join(p.data.tobytes() for p in self.model.parameters())
        return hashlib.sha256(bits).hexdigest()

    def gradient(self, step, rows):
        if self.accident == (step, MOMENTS[0]):
            self.model.norm = lambda x: os._exit(1)
        return share(self.model, *self.training.batch(step, rows))

    def step(self, step, gradients):
        if self.accident == (step, MOMENTS[1]):
            os._exit(1)
        if self.accident == (step, MOMENTS[2]):  # all parameters move but the last
            take(self.model, self.optimizer, [*gradients[:-1], None])
            os._exit(1)
        take(self.model, self.optimizer, gradients)


class Crew:
    """Workers that train one model together. No worker steps before all gradients are in.

    wait      seconds to wait for a process in place of a lost one; with 0 the others go on
    say       a function that is called with a sentence whenever a worker is lost or replaced
    accident  (step, moment): when the first worker dies
    """

    def __init__(self, client, training, count, *, wait=30.0, say=print, accident=None):
        if any(isinstance(m, Dropout) and m.p for m in training.make()[0].modules()):
            raise ValueError("workers would drop other numbers than one process: set dropout to 0")
        client.wait_for_workers(count, timeout=30)
        self.client, self.training, self.count = client, training, count
        self.wait, self.say, self.accident = wait, say, accident
        self.actors, self.addresses = {}, []  # of each number; a lost worker's address stays
        self.now, self.bytes = "before step 1", 0
        self._complete()

    def train(self, steps):
        """Make the steps 1, 2, …; return the parameters, which all workers have bit for bit."""
        for step in range(1, steps + 1):
            self.step(step)
        if len({*self.ask("digest", dict.fromkeys(self.actors, ())).values()}) > 1:
            raise ValueError("the workers have different parameters: do all run the same sources?")
        [(parameters, _)] = self.ask("state", {min(self.actors): ()}).values()
        return parameters

    def step(self, step):
        """Make one step."""
        for _ in range(3):
            self.now = f"step {step}, before the update"
            shards = np.array_split(np.arange(self.training.rows), len(self.actors))
            rows = {
                n: (step, some) for n, some in zip(self.actors, shards, strict=True) if some.size
            }
            shares = self.ask("gradient", rows)
            if len(shares) == len(rows):
                break
            self._complete()  # nobody has made the step, so all gradients are computed again
        else:
            raise OSError(f"{self.now}: workers were lost in three attempts; is a shard too large?")
        gradients = mean(shares.values())
        self.now = f"step {step}, in the update"
        updates = dict.fromkeys(self.actors, (step, gradients))
        self.bytes += sum(g.nbytes for g in gradients) * (len(shares) + len(updates))
        if len(self.ask("step", updates)) < len(updates):
            self._complete()  # the others have made the step

    def ask(self, method, arguments):
        """Call a method of workers; return the answers, by number, of those that are not lost."""
        calls, answers = {}, {}
        for number, given in arguments.items():
            with self._losing(number):
                calls[number] = self.actors[number].do(method, *given)
        for number, call in calls.items():
            with self._losing(number):
                answers[number] = call.result()
        for number, (_, error) in answers.items():
            if error:
                raise ValueError(f"{self.now}: the code of worker {number} has failed\n{error}")
        if not self.actors:
            raise OSError(f"{self.now}: the last worker was lost, and the model with it")
        return {number: answer for number, (answer, _) in answers.items()}

    @contextlib.contextmanager
    def _losing(self, number):
        """Drop a worker whose process has ended. (Dask starts the process again without it.)"""
        try:
            yield
        except (OSError, RuntimeError) as error:
            self.actors.pop(number, None)
            self.say(f"{self.now}: worker {number} was lost ({error})")

    def _complete(self):
        """Make workers in idle processes until all are there, or no process comes."""
        until = time.monotonic() + self.wait
        while len(self.actors) < self.count:
            if idle := [each for each in self.client.nthreads() if each not in self.addresses]:
                self._hire(idle[0])
            elif time.monotonic() < until:
                time.sleep(0.05)
            else:
                self.say(f"{self.now}: nobody came in its place, {len(self.actors)} go on")
                return

    def _hire(self, address):
        """Make a worker in an idle process; it continues from another if there is one."""
        number, state = len(self.addresses), None
        if self.actors:
            source = min(self.actors)
            state = self.ask("state", {source: ()}).get(source)
            if state is None:  # lost just now
                return
        self.addresses.append(address)
        accident = None if number else self.accident
        with self._losing(number):
            made = self.client.submit(
                Worker, self.training, accident, workers=address, actor=True, pure=False
            )
            self.actors[number] = made.result(timeout=30)
        if number in self.actors and self.ask("fill", {number: (state,)}) and number >= self.count:
            self.say(f"{self.now}: worker {number} is filled from worker {source}")
