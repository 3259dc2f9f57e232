"""Demos · Speed: the rows in this project's own words, as a user writes them."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import numpy as np

import attention
import minigrad as mg
from attention import encoders, models
from demos.speed.bench.by_hand import Program
from demos.speed.bench.rows import Given
from minigrad.optim import Adam


def versions() -> dict[str, str]:
    """Return the version of the measured framework."""
    return {"minigrad": version("minigrad-attention")}


def limit_threads(threads: int) -> None:
    """Do nothing: BLAS has read its number of threads from the environment."""


def leaves(given: Given, names: Any) -> list[mg.Tensor]:
    """Return tensors that get a gradient."""
    return [mg.Tensor(given[name], requires_grad=True) for name in names]


def chain(sizes: dict[str, Any], x: mg.Tensor, others: list[mg.Tensor], word: Any) -> Program:
    """Apply one operation, `word`, many times in a row, and then go back."""

    def step() -> Given:
        y = x
        for _ in range(sizes["nodes"]):
            y = word(y)
        for each in (x, *others):
            each.grad = None
        y.sum().backward()
        found = {name: each.grad for name, each in zip("xw", (x, *others), strict=False)}
        return {"y": y.data} | found

    return step, step


def products(sizes: dict[str, Any], given: Given) -> Program:
    """Multiply by w in each step."""
    x, w = leaves(given, "xw")
    return chain(sizes, x, [w], lambda y: y * w)


def sums(sizes: dict[str, Any], given: Given) -> Program:
    """Add 1 in each step."""
    (x,) = leaves(given, "x")
    return chain(sizes, x, [], lambda y: y + 1.0)


def attend(function: Any) -> Any:
    """Return the program of the rows of attention, by one of our functions."""

    def program(sizes: dict[str, Any], given: Given) -> Program:
        q, k, v = leaves(given, "qkv")
        g, T = given["g"], sizes["shape"][-2]
        mask = attention.causal_mask(T) if sizes["causal"] else None

        def step() -> Given:
            y = function(q, k, v, mask=mask)
            q.grad = k.grad = v.grad = None
            y.backward(g)
            return {"y": y.data, "q": q.grad, "k": k.grad, "v": v.grad}

        return step, step

    return program


def training(attend: Any) -> Any:
    """Return the program of a training step, its layers with one of our attention functions."""

    def program(sizes: dict[str, Any], given: Given) -> Program:
        model = models.gpt2(
            sizes["V"],
            sizes["T"],
            d_model=sizes["d"],
            num_heads=sizes["heads"],
            num_blocks=sizes["blocks"],
            attend=attend,
            rng=np.random.default_rng(0),
        )
        load(model, given)
        optimizer = Adam(model.parameters())
        words, targets = given["words"], given["targets"]

        def step() -> float:
            loss = mg.cross_entropy(model(words), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss.item()

        def results() -> Given:
            losses = [step()]
            found = {name: p.grad.copy() for name, p in model.named_parameters()}
            return {"losses": np.array([*losses, step(), step()])} | found

        return step, results

    return program


def load(model: Any, given: Given) -> None:
    """Give a model the row's weights, in float32."""
    model.astype(np.float32)
    model.eval()
    for name, p in model.named_parameters():
        p.data = given[name]


def second_order(sizes: dict[str, Any], given: Given) -> Program:
    """Return the program of the gradient of a gradient's length."""
    x, w = given["x"], leaves(given, ("w_1", "w_2"))

    def step() -> Given:
        loss = ((np.tanh(x @ w[0]) @ w[1]) ** 2).mean()
        slopes = mg.gradients(loss, w, create_graph=True)
        return mg.gradients(0.5 * sum((g * g).sum() for g in slopes), w)

    return step, lambda: dict(zip(("w_1", "w_2"), step(), strict=True))


def encoder(sizes: dict[str, Any], given: Given) -> Program:
    """Return the program of BERT, without a record."""
    model = encoders.bert(
        sizes["V"],
        sizes["T"],
        d_model=sizes["d"],
        num_heads=sizes["heads"],
        num_blocks=sizes["blocks"],
        rng=np.random.default_rng(0),
    )
    load(model, given)

    def step() -> mg.Tensor:
        with mg.no_grad():
            return model(given["words"])

    return step, lambda: {"y": step().data}


def generation(sizes: dict[str, Any], given: Given) -> Program:
    """Return the program of `generate` with a cache, which takes the best token each time."""
    model = models.llama(
        sizes["V"],
        d_model=sizes["d"],
        num_heads=sizes["heads"],
        num_kv_heads=sizes["kv_heads"],
        num_blocks=sizes["blocks"],
        d_ff=sizes["d_ff"],
        rng=np.random.default_rng(0),
    )
    load(model, given)

    def step() -> Any:
        return attention.generate(model, given["words"], sizes["tokens"], temperature=0.0)

    def results() -> Given:
        words = step()
        with mg.no_grad():
            return {"words": words, "logits": model(words[:, :-1]).data[:, -1]}

    return step, results


PROGRAMS: dict[str, dict[str, Any]] = {
    "products": {"": products},
    "sums": {"": sums},
    "attention": {"": attend(attention.attention), "fused": attend(attention.fused_attention)},
    "step": {"": training(attention.attention), "fused": training(attention.fused_attention)},
    "second_order": {"": second_order},
    "encoder": {"": encoder},
    "generation": {"": generation},
}
