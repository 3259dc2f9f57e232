"""Tests: one record, one function and one model in several threads. (All chapters.)"""

import functools
import time

import numpy as np

import attention as at
import minigrad as mg
from minigrad import gradients
from tests.making import A, leaf
from tests.threads import in_threads, switching_often


def test_of_two_threads_over_one_trunk_each_is_right_or_refused():
    right = refused = 0
    with switching_often():
        for _ in range(150):
            p = leaf(A, "p")
            trunk = p
            for _ in range(20):
                trunk = np.tanh(trunk) + 1.0
            (slope,) = gradients(trunk.sum(), [p], retain_graph=True)
            losses = [trunk.sum(), (trunk * 2.0).sum()]
            tasks = [functools.partial(gradients, loss, [p]) for loss in losses]
            for factor, answer in zip((1.0, 2.0), in_threads(*tasks), strict=True):
                if isinstance(answer, RuntimeError):
                    assert "dropped" in str(answer)
                    refused += 1
                else:
                    np.testing.assert_array_equal(answer[0], factor * slope)
                    right += 1
    assert right >= 150 and right + refused == 300  # of two, one at least arrives


def test_one_thread_at_a_time_adds_to_a_grad():
    class Slow(np.ndarray):
        def __add__(self, g):
            time.sleep(0.01)  # in which the other threads run
            return np.array(self) + g

    p = leaf(A)
    p.grad = np.zeros(3).view(Slow)
    in_threads(*[lambda: (p * 2.0).sum().backward()] * 3)
    np.testing.assert_array_equal(p.grad, np.full(3, 6.0))


def test_threads_that_share_a_model_get_what_one_gets():
    rng = np.random.default_rng(0)
    model = at.gpt2(11, 5, d_model=6, num_heads=3, num_blocks=1, rng=rng)
    tokens = rng.integers(11, size=(3, 2, 5))

    def task(words):
        logits = model(words)
        found = gradients(mg.cross_entropy(logits, words), model.parameters())
        return [logits.data, *found]

    expected = [task(words) for words in tokens]
    with switching_often():
        answers = in_threads(
            *[lambda words=words: [task(words) for _ in range(3)] for words in tokens]
        )
    for right, found in zip(expected, answers, strict=True):
        assert len(found) == 3
        for each in found:
            for one, other in zip(each, right, strict=True):
                np.testing.assert_array_equal(one, other)
