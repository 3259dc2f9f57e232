"""Tests: one object in several threads. (All chapters.)

For every public name, threads that share an object get, bit for bit, what one thread gets alone; or
a sentence in the docstring says what only one of them may do, or what each needs of its own.
"""

import inspect
import time

import numpy as np
import pytest

import attention as at
import minigrad as mg
from minigrad import Tensor, gradients, graphs, nn, optim
from tests.coverage_table import CASES
from tests.making import DERIVATIVES, A, B, leaf
from tests.threads import in_threads, switching_often

HOLDERS = (mg, mg.ops, mg.functional, graphs, nn, optim, at)
PUBLIC = {name: getattr(holder, name) for holder in HOLDERS for name in holder.__all__}
OPERATIONS = {case.name for case in CASES}


def bits(found):
    """What a task gave, in a form that == compares bit for bit."""
    if isinstance(found, dict):
        found = list(found.items())
    if isinstance(found, tuple | list):
        return [bits(each) for each in found]
    if isinstance(found, Tensor):
        found = found.data
    is_array = isinstance(found, np.ndarray | np.generic)
    return (found.shape, found.dtype.str, found.tobytes()) if is_array else found


def check(*tasks, seconds=0.0):
    """Each task gives the same alone and, twice or for some seconds, beside the others."""

    def often(task):
        found, end = [], time.perf_counter() + seconds
        while len(found) < 2 or time.perf_counter() < end:
            found.append(bits(task()))
        return found

    expected = [bits(task()) for task in tasks]
    with switching_often():
        answers = in_threads(*[lambda task=task: often(task) for task in tasks])
    for right, found in zip(expected, answers, strict=True):
        assert isinstance(found, list) and found == [right] * len(found)


def derived(f, inputs):
    """A task: f's value, its derivatives of order 1 and 2, and those from a record all share."""
    xs = [x for x in inputs if isinstance(x, Tensor)]
    xs += f.parameters() if isinstance(f, nn.Module) else []
    kept = f(*inputs)
    v = np.random.default_rng(0).standard_normal(np.shape(kept))

    def task():
        y = f(*inputs)
        if not (xs and y.requires_grad):
            return y
        first = gradients(y, xs, v, create_graph=True)
        phi = sum((g * g).sum() for g in first)
        second = gradients(phi, xs) if phi.requires_grad else ()
        return y, first, second, gradients(kept, xs, v, retain_graph=True)

    return task


def flipped(x):
    """Other values of the same shape and range."""
    return leaf(np.flip(x.data)) if isinstance(x, Tensor) else np.flip(x) if np.ndim(x) else x


def check_call(f, inputs):
    """Two threads share f and its inputs, and a third calls f with others."""
    shared = derived(f, inputs)
    check(shared, shared, derived(f, [flipped(x) for x in inputs]))


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_threads_that_share_tensors_get_of_an_operation_what_one_gets(name):
    for case in CASES:
        if case.name == name:
            inputs = [leaf(x) if i in case.floating else x for i, x in enumerate(case.inputs)]
            check_call(case.ours, inputs)


# ---------------------------------------------------------------- functions, layers and models


@mg.primitive
def cube(x, /):
    return x**3, lambda g, y: g * 3 * x**2


@mg.fused(definition=lambda x, /: x * x * x)
def fast_cube(x, /):
    return x**3, lambda g, y, needs: (g * 3 * x**2,)


rng = np.random.default_rng(0)
P, Q = leaf(A), Tensor(B)
X, MEMORY = (leaf(rng.standard_normal((2, n, 6))) for n in (5, 7))
q, k, v, *W = (leaf(rng.standard_normal((6, 6))) for _ in range(7))
TOKENS, SOURCE = np.array([[1, 2, 3, 0, 4]]), np.array([[3, 1, 2]])
SMALL = {"d_model": 6, "num_heads": 3, "num_blocks": 1, "rng": rng}
STACK = (1, 6, 2, 11)
HEADS = at.MultiHeadAttention(6, 2, rng=rng)
MASK = at.causal_mask(6)
GPT2 = at.gpt2(11, 13, **SMALL)
TRANSFORMER = at.Transformer(11, 11, d_ff=7, **SMALL)

CALLS = {  # a name, or several that one call shows: the function or module, and its inputs
    "primitive": (cube, P),
    "fused": (fast_cube, P),
    "recompute": (lambda x: mg.recompute(lambda x: np.tanh(x * Q) * P, x), P),
    "Linear Sequential": (nn.Sequential(nn.Linear(6, 3, rng=rng), nn.Linear(3, 2, rng=rng)), X),
    "Dropout": (nn.Dropout(0.5, rng=rng).eval(), X),
    "Embedding": (nn.Embedding(11, 6, rng=rng), TOKENS),
    "LayerNorm": (nn.LayerNorm(6), X),
    "RMSNorm": (nn.RMSNorm(6), X),
    "attention": (lambda *qkv: at.attention(*qkv, mask=MASK), q, k, v),
    "attention_weights": (at.attention_weights, q, k),
    "qk_norm": (at.qk_norm(), q, k, v),
    "additive_attention": (at.additive_attention, q, k, v, leaf(np.arange(6.0))),
    "fused_attention": (lambda *qkv: at.fused_attention(*qkv, mask=MASK, block=2), q, k, v),
    "multi_head_attention": (lambda *ws: at.multi_head_attention(X, X, X, *ws, 2), *W),
    "split_heads merge_heads": (lambda x: at.merge_heads(at.split_heads(x, 3) ** 2), X),
    "MultiHeadAttention": (HEADS, X, MEMORY),
    "mean_over_positions": (at.mean_over_positions, X),
    "rotary": (at.rotary, X),
    "LearnedPositions": (at.LearnedPositions(5, 6, rng=rng), X),
    "RelativeBias": (at.RelativeBias(2, 3, rng=rng), 5),
    "SinusoidalPositions": (at.SinusoidalPositions(), X),
    "FeedForward Block": (at.Block(HEADS, at.FeedForward(6, 11, rng=rng)), X),
    "GatedFeedForward": (at.GatedFeedForward(6, 11, rng=rng), X),
    "Encoder": (at.Encoder(*STACK, attend=at.fused_attention, rng=rng), X),
    "Decoder": (at.Decoder(*STACK, rng=rng), X, MEMORY),
    "Transformer": (TRANSFORMER, SOURCE, TOKENS),
    "GPT gpt2": (GPT2, TOKENS),
    "llama": (at.llama(11, num_kv_heads=1, **SMALL), TOKENS),
    "bert TextEncoder": (at.bert(11, 13, **SMALL), TOKENS),
    "Classifier": (at.Classifier(at.Encoder(*STACK, rng=rng), 6, 3, rng=rng), X),
}


@pytest.mark.parametrize("names", CALLS)
def test_threads_that_share_a_function_or_a_module_get_what_one_gets(names):
    f, *inputs = CALLS[names]
    check_call(f, inputs)
    if isinstance(f, nn.Module):
        check(*[lambda: (f.state_dict(), repr(f))] * 2)


def test_a_module_may_be_walked_while_its_modes_are_set_for_the_first_time():
    with switching_often():
        for _ in range(100):
            model = nn.Sequential(*[nn.LayerNorm(2) for _ in range(5)])
            answers = in_threads(model.eval, model.eval, model.parameters)
            assert answers[:2] == [model, model] and len(answers[2]) == 10


def test_of_threads_that_train_with_one_generator_each_gets_one_of_its_masks():
    x, layers = np.ones(1000), [nn.Dropout(0.5, rng=np.random.default_rng(1)) for _ in range(2)]
    wanted = [bits(layers[0](x)) for _ in range(3)]
    with switching_often():
        found = in_threads(*[lambda: bits(layers[1](x))] * 3)
    assert sorted(found) == sorted(wanted)


def test_one_thread_at_a_time_adds_to_a_grad():
    class Slow(np.ndarray):
        def __add__(self, g):
            time.sleep(0.01)  # in which the other threads run
            return np.array(self) + g

    p = leaf(A)
    p.grad = np.zeros(3).view(Slow)
    in_threads(*[lambda: (p * 2.0).sum().backward()] * 3)
    np.testing.assert_array_equal(p.grad, np.full(3, 6.0))


def test_a_grad_that_another_thread_may_drop_is_read_once():
    class Dropped(Tensor):
        grad = property(lambda p: p.reads.pop(), lambda p, total: vars(p).update(total=total))

    p = Dropped(A, requires_grad=True)
    p.reads = [None, B]
    (p * 2.0).sum().backward()
    np.testing.assert_array_equal(p.total, B + 2.0)
    p.reads = [None, B]
    optim.SGD([p], lr=1.0).step()
    np.testing.assert_array_equal(p.data, A - B)


# ---------------------------------------------------------------- everything else

F = lambda x: np.exp(x * P) * x
TOTAL = lambda x: F(x).sum()
H = cube(P) * Q
SILENCE = mg.no_grad()
drawn = lambda: np.random.default_rng(3)


def silent():
    with SILENCE:
        inside = (P * Q).requires_grad
    return inside, (P * Q).requires_grad


def unfolded():
    with mg.unfused():
        inside = fast_cube(P)
    return bits(inside), inside.node.name, fast_cube(P).node.name


def refused():
    with pytest.raises(mg.GradientError) as caught:
        mg.gradcheck(mg.primitive(lambda x, /: (x**3, lambda g, y: g)), A)
    return str(caught.value)


def stepped():
    """What one thread computes, among others that compute: no step of theirs is noted."""
    with mg.Steps() as steps:
        total = TOTAL(P)
    return [steps.backward(total), steps.contributions, str(steps)]


SAME = {  # a name, or several: what each thread calls, on what all of them share
    "Tensor Node": lambda: (repr(H), H.node.inputs, H.node.name, H.T, H[1:], H.tolist(), H > 1),
    "no_grad": silent,
    "unfused": unfolded,
    "gradients": lambda: gradients(H, [P], A, retain_graph=True),
    "attention_backward": lambda: at.attention_backward(*[A[None]] * 4, scale=0.5),
    " ".join(DERIVATIVES): lambda: [derive(F, P, B) for derive in DERIVATIVES.values()],
    "detect_anomaly": mg.detect_anomaly()(lambda: gradients(TOTAL(P), [P])),
    "numerical_gradient": lambda: mg.numerical_gradient(TOTAL, P),
    "gradcheck": lambda: str(mg.gradcheck(F, P)),
    "GradientError": refused,
    "graph Graph Vertex Box Link": lambda: [
        (g := mg.graph(H, grads=True, gradient=A)),
        *(g.source, str(g), g.arrows),
    ],
    "Steps Contribution": stepped,
    "generate stream": lambda: [
        at.generate(GPT2, TOKENS, 5, rng=drawn()),
        *at.stream(GPT2, TOKENS, 5, end=3, rng=drawn()),
    ],
    "translate": lambda: at.translate(TRANSFORMER, SOURCE, start=1, end=2, max_tokens=5),
    "one_hot causal_mask padding_mask window_mask alibi sinusoidal": lambda: [
        mg.one_hot([2, 0, 0], 5) * at.sinusoidal(3, 10)[:, :5] + at.alibi(2, 3, 5),
        at.causal_mask(3, 5) & at.padding_mask([3, 2], 5) & at.window_mask(3, 5, size=2),
    ],
    "inverse_sqrt warmup_cosine": lambda: [
        optim.inverse_sqrt(3, d_model=6),
        optim.warmup_cosine(3, peak=1.0, warmup=2, total=6),
    ],
    "kaiming_normal normal xavier_uniform": lambda: [
        draw((3, 5), rng=drawn()) for draw in (nn.kaiming_normal, nn.normal, nn.xavier_uniform)
    ],
}
SAID = {  # what the docstring, or that of the class it inherits from, says of threads
    "Module": "Only one thread at a time may change it",
    "Dropout": "If several threads train with one generator",
    "Optimizer SGD Adam AdamW": "Only one thread at a time may call the methods",
    "clip_gradients": "in the thread that makes the steps",
    "no_grad": "for the thread or asynchronous task that entered the block",
    "detect_anomaly": "It watches the thread that entered it",
    "backward": "keeps it for another pass, also for one in another thread",
    "save_checkpoint load_checkpoint": "No other thread may",
    "KVCache": "two threads need two caches",
    "keep_memory": "for this whole process",
    "stream": "Each of them needs an rng of its own",
}
OF_FILES = ["write_whole", "save_checkpoint", "load_checkpoint", "checkpoint_facts"]


@pytest.mark.parametrize("names", SAME)
def test_threads_get_what_one_gets(names):
    check(*[SAME[names]] * 3, seconds=0.05)


def test_threads_that_write_and_read_one_checkpoint_get_what_one_gets(tmp_path):
    def task():
        path = mg.save_checkpoint(tmp_path / "run.safetensors", model=GPT2, step=7)
        model = at.gpt2(11, 13, **SMALL | {"rng": drawn()})
        facts = mg.load_checkpoint(path, model=model), mg.checkpoint_facts(path)
        return facts, model.state_dict(), mg.write_whole(tmp_path / "a", "whole").read_text()

    check(task, task, task)


@pytest.mark.parametrize("names", SAID)
def test_the_docstring_says_what_threads_do_not_share(names):
    for kept in (PUBLIC[name] for name in names.split()):
        bases = inspect.getmro(kept) if inspect.isclass(kept) else [kept]
        assert any(SAID[names] in " ".join((base.__doc__ or "").split()) for base in bases)


def test_no_public_name_is_left_out():
    listed = {name for table in (CALLS, SAME, SAID, OF_FILES) for name in " ".join(table).split()}
    assert PUBLIC.keys() <= listed | OPERATIONS and listed <= PUBLIC.keys()
