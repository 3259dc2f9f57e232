"""Chapters 7 to 15 · Against PyTorch: the same values and gradients, to 1e-10 in float64.

A second implementation, by other people, cannot share our mistakes. Skipped without torch. (The
operations stand against PyTorch in the table of coverage.)
"""

import numpy as np
import pytest

from attention import (
    MultiHeadAttention,
    attention,
    causal_mask,
    fused_attention,
    mapping,
    padding_mask,
)
from attention.mapping import to_theirs
from attention.transformer import Decoder, Encoder
from minigrad import Tensor, gelu, gradients, relu
from minigrad.nn import (
    Embedding,
    LayerNorm,
    Linear,
    Module,
    RMSNorm,
    Sequential,
    functional_call,
)
from minigrad.optim import Adam

torch = pytest.importorskip("torch", reason="the comparison with PyTorch needs torch")
torch.set_num_threads(1)  # on arrays this small, threads spend their time waiting for each other
nn = torch.nn.functional

random = np.random.default_rng(3)
B, T, S, H, D_K, D_V = 2, 3, 5, 7, 11, 13


def x(*shape):
    return random.standard_normal(shape)


def agree(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        one = one.data if isinstance(one, Tensor) else one
        other = other.detach().numpy()
        assert one.dtype == other.dtype == np.float64
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12, strict=True)


def leaves(*arrays):
    return (
        [Tensor(a, requires_grad=True) for a in arrays],
        [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in arrays],
    )


def same(f, other, *arrays):
    """Check that two functions have the same value, and the same gradient of every input."""
    ours, theirs = leaves(*arrays)
    y, result = f(*ours), other(*theirs)
    g = x(*y.shape)
    agree([y], [result])
    agree(gradients(y, ours, g), torch.autograd.grad(result, theirs, torch.tensor(g)))


# ---------------------------------------------------------------- attention

MASKS = {
    "none": None,
    "causal": causal_mask(T),
    "padding": np.broadcast_to(padding_mask([2, 5], S)[:, None], (B, 1, T, S)),
    "(B, H, T, S)": random.random((B, H, T, S)) < 0.7,
    "a row that sees nothing": np.array([[True] * S, [False] * S, [True] * S]),
}


attends = pytest.mark.parametrize("attend", [attention, fused_attention])


@attends
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_attention_has_the_value_and_the_gradients_of_pytorchs(mask, attend):
    keys = S if mask is None else mask.shape[-1]
    blocked = None if mask is None else torch.tensor(mask)
    for scale in (None, 0.7):
        options = {"scale": scale}
        same(
            lambda q, k, v, o=options: attend(q, k, v, mask=mask, **o),
            lambda q, k, v, o=options: nn.scaled_dot_product_attention(
                q, k, v, attn_mask=blocked, **o
            ),
            *(x(B, H, T, D_K), x(B, H, keys, D_K), x(B, H, keys, D_V)),
        )


@attends
def test_a_bias_is_pytorchs_mask_of_numbers(attend):
    for shape in ((B, H, T, S), (H, T, S), (T, S), (B, 1, 1, S), (S,)):
        same(
            lambda q, k, v, bias: attend(q, k, v, score_bias=bias),
            lambda q, k, v, bias: nn.scaled_dot_product_attention(
                q, k, v, attn_mask=bias.expand(B, H, T, S)
            ),
            *(x(B, H, T, D_K), x(B, H, S, D_K), x(B, H, S, D_V), x(*shape)),
        )


@pytest.mark.parametrize("mask", [None, causal_mask(T)], ids=["no mask", "causal"])
def test_the_second_derivative_of_attention_is_pytorchs(mask):
    """The gradient's squared norm, differentiated: a penalty on gradients, as one trains with."""
    arrays, g = [x(B, T, D_K), x(B, T, D_K), x(B, T, D_V), np.array(0.3)], x(B, T, D_V)

    def softmax_attention(q, k, v, scale):
        scores = q @ k.mT * scale
        if mask is not None:
            scores = scores.masked_fill(~torch.tensor(mask), -torch.inf)
        return torch.softmax(scores, -1) @ v

    ours, theirs = leaves(*arrays)
    first = gradients(attention(*ours[:3], mask=mask, scale=ours[3]), ours, g, create_graph=True)
    others = torch.autograd.grad(
        softmax_attention(*theirs), theirs, torch.tensor(g), create_graph=True
    )
    agree(first, others)
    agree(
        gradients(sum((d * d).sum() for d in first), ours),
        torch.autograd.grad(sum((d * d).sum() for d in others), theirs),
    )


# ---------------------------------------------------------------- layers


def randomised(layer):
    """Draw every parameter of our layer: no 0 and no 1 may hide a mistake."""
    for parameter in layer.parameters():
        parameter.data = 0.4 * x(*parameter.shape)
    return layer


def loaded(other, layer, pieces):
    """Return PyTorch's layer in float64, with our weights."""
    state = to_theirs(layer.state_dict(), pieces)
    other = other.double()
    other.load_state_dict({name: torch.tensor(value) for name, value in state.items()})
    return other


def copied(layer, other):
    """Return PyTorch's layer, of Linear and norms, in float64 and with our weights."""
    pairs = zip(layer.named_parameters(), other.double().parameters(), strict=True)
    for (ours, p), theirs in pairs:
        theirs.data = torch.tensor(p.data.T if ours.endswith("weight") else p.data)
    return other


def same_layer(layer, other, pieces, y, result, inputs, others):
    """Check the same output, and the same gradient of every input and of every parameter."""
    agree([y], [result])
    g = x(*y.shape)
    y.backward(g)
    result.backward(torch.tensor(g))
    ours = to_theirs({name: p.grad for name, p in layer.named_parameters()}, pieces)
    theirs = {name: p.grad for name, p in other.named_parameters()}
    assert ours.keys() == theirs.keys()
    for name, gradient in theirs.items():
        agree([ours[name]], [gradient])
    agree([t.grad for t in inputs], [t.grad for t in others])


LAYERS = {  # ours, and PyTorch's
    "Linear": (lambda: Linear(D_K, D_V, rng=random), lambda: torch.nn.Linear(D_K, D_V)),
    "LayerNorm": (lambda: LayerNorm(D_K), lambda: torch.nn.LayerNorm(D_K)),
    "LayerNorm with another eps": (
        lambda: LayerNorm(D_K, eps=0.1),
        lambda: torch.nn.LayerNorm(D_K, eps=0.1),
    ),
    "RMSNorm": (lambda: RMSNorm(D_K), lambda: torch.nn.RMSNorm(D_K, eps=1e-5)),
    "RMSNorm with another": (lambda: RMSNorm(D_K, eps=0.1), lambda: torch.nn.RMSNorm(D_K, eps=0.1)),
}


@pytest.mark.parametrize(("make", "make_other"), LAYERS.values(), ids=LAYERS)
def test_a_layer_is_pytorchs_of_that_name(make, make_other):
    for batch in ((), (T,), (B, T)):
        layer = randomised(make())
        other = copied(layer, make_other())
        (a,), (b,) = leaves(x(*batch, D_K))
        y, result = layer(a), other(b)
        g = x(*y.shape)
        y.backward(g)
        result.backward(torch.tensor(g))
        agree([y, a.grad], [result, b.grad])
        for (ours, p), theirs in zip(layer.named_parameters(), other.parameters(), strict=True):
            agree([p.grad.T if ours == "weight" else p.grad], [theirs.grad])


@pytest.mark.parametrize("tied", [False, True], ids=["head", "tied head"])
def test_an_embedding_with_a_padding_token_is_pytorchs_also_beside_a_tied_head(tied):
    """(PyTorch's vector of padding is the row, so with a tied head they agree for one step.)"""
    tokens = random.integers(0, 7, (B, S))
    tokens[:, -1] = 3
    ours = Embedding(7, D_K, padding_idx=3, rng=random)
    theirs = torch.nn.Embedding(7, D_K, padding_idx=3).double()
    theirs.weight.data = torch.tensor(ours.weight.data)
    head, other = leaves(x(7, D_K))
    for _ in range(1 if tied else 3):
        y = np.tanh(ours(tokens)) @ (ours.weight if tied else head[0]).mT
        result = torch.tanh(theirs(torch.tensor(tokens))) @ (theirs.weight if tied else other[0]).mT
        y.backward(np.ones(y.shape))
        result.backward(torch.ones(result.shape))
        agree([y, ours.weight.grad], [result, theirs.weight.grad])
        assert ours.weight.grad[3].any() == tied
        ours.weight.data = ours.weight.data - 0.1 * ours.weight.grad
        theirs.weight.data -= 0.1 * theirs.weight.grad
    assert not ours(tokens).data[:, -1].any() and ours.weight.data[3].any() == tied


def test_a_gradient_through_a_step_is_that_of_pytorchs_functional_call():
    """Of a network whose layers share a weight."""
    ours = Sequential(Linear(D_K, D_K, rng=random), np.tanh, Linear(D_K, D_K, rng=random))
    layers = torch.nn.Linear(D_K, D_K), torch.nn.Tanh(), torch.nn.Linear(D_K, D_K)
    theirs = copied(ours, torch.nn.Sequential(*layers))
    ours.layers[2].weight, theirs[2].weight = ours.layers[0].weight, theirs[0].weight

    def through(model, slopes, call, a):
        start = dict(model.named_parameters())
        found = slopes((model(a) ** 2).mean(), [*start.values()], create_graph=True)
        moved = {n: p - 0.3 * g for (n, p), g in zip(start.items(), found, strict=True)}
        loss = (call(model, moved, a) ** 2).mean()
        return [loss, *slopes(loss, [*start.values()])]

    a = x(B, D_K)
    found = through(ours, gradients, functional_call, a)
    expected = through(theirs, torch.autograd.grad, torch.func.functional_call, torch.tensor(a))
    agree([g.T if g.ndim == 2 else g for g in found], expected)


def two_play(generator, discriminator, adam, batches):
    """Train both for a step a batch, each against the other, in the words of both libraries."""
    first, second = adam(generator.parameters(), 0.02), adam(discriminator.parameters(), 0.02)
    frozen = list(discriminator.parameters())[:2]
    for z, real in batches:
        for p in discriminator.parameters():
            p.requires_grad = True
        second.zero_grad()
        fake = discriminator(generator(z).detach())
        (((discriminator(real) - 1) ** 2).mean() + (fake**2).mean()).backward()
        second.step()
        for p in frozen:
            p.requires_grad = False
        first.zero_grad()
        ((discriminator(generator(z)) - 1) ** 2).mean().backward()
        first.step()


def test_a_gan_whose_discriminator_is_frozen_in_part_and_unfrozen_is_pytorchs():
    ours, theirs = [], []
    for a, b, c in ((2, 5, 3), (3, 7, 1)):
        ours.append(Sequential(Linear(a, b, rng=random), np.tanh, Linear(b, c, rng=random)))
        layers = torch.nn.Linear(a, b), torch.nn.Tanh(), torch.nn.Linear(b, c)
        theirs.append(copied(ours[-1], torch.nn.Sequential(*layers)))
    batches = [(x(11, 2), x(11, 3) + 1) for _ in range(30)]
    before = [p.data for p in ours[1].parameters()]
    two_play(*ours, Adam, [map(Tensor, pair) for pair in batches])
    two_play(*theirs, torch.optim.Adam, [map(torch.tensor, pair) for pair in batches])
    for layer, other in zip(ours, theirs, strict=True):
        parameters = zip(layer.parameters(), other.parameters(), strict=True)
        agree(*zip(*[(p.data.T if p.ndim == 2 else p, t) for p, t in parameters], strict=True))
    assert all((p.data != a).any() for p, a in zip(ours[1].parameters(), before, strict=True))


# ---------------------------------------------------------------- multi-head attention

D_MODEL, D_FF = 14, 17  # H · 2

# torch's layer gives NaN where a query may look nowhere, so here each may look at key 0.
SEEING = (random.random((B, T, S)) < 0.7) | (np.arange(S) == 0)
SEEING_HEADS = (random.random((B, H, T, S)) < 0.7) | (np.arange(S) == 0)
PADDING = padding_mask([2, 5], S)
PER_HEAD = x(B, H, T, S)


def blocked(mask):
    """Return torch's mask: who may NOT look, (B · H, T, S) where ours is (B, T, S)."""
    mask = np.repeat(mask[:, None], H, axis=1) if mask.ndim == 3 else mask
    return torch.tensor(~mask.reshape(-1, T, S) if mask.ndim == 4 else ~mask)


QUERIES = {  # ours, and PyTorch's of the same meaning
    "no mask": ({}, {}),
    "mask (T, S)": ({"mask": causal_mask(T, S)}, {"attn_mask": torch.tensor(~causal_mask(T, S))}),
    "mask (B, T, S)": ({"mask": SEEING}, {"attn_mask": blocked(SEEING)}),
    "mask (B, H, T, S)": ({"mask": SEEING_HEADS}, {"attn_mask": blocked(SEEING_HEADS)}),
    "padding": ({"mask": PADDING}, {"key_padding_mask": torch.tensor(~PADDING[:, 0])}),
    "padding and a mask": (
        {"mask": PADDING & causal_mask(T, S)},
        {
            "key_padding_mask": torch.tensor(~PADDING[:, 0]),
            "attn_mask": torch.tensor(~causal_mask(T, S)),
        },
    ),
    "bias (T, S)": ({"score_bias": PER_HEAD[0, 0]}, {"attn_mask": torch.tensor(PER_HEAD[0, 0])}),
    "bias (B, H, T, S)": (
        {"score_bias": PER_HEAD},
        {"attn_mask": torch.tensor(PER_HEAD.reshape(B * H, T, S))},
    ),
    "bias and padding": (
        {"score_bias": PER_HEAD, "mask": PADDING},
        {
            "attn_mask": torch.tensor(PER_HEAD.reshape(B * H, T, S)),
            # (as numbers too: PyTorch wants both masks of one kind)
            "key_padding_mask": torch.tensor(np.where(PADDING[:, 0], 0, -np.inf)),
        },
    ),
}


@attends
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("asked", "of_torch"), QUERIES.values(), ids=QUERIES)
def test_multi_head_attention_has_pytorchs_value_weights_and_gradient_of_every_parameter(
    asked, of_torch, bias, attend
):
    averaged = bias  # (each of both once)
    layer = randomised(MultiHeadAttention(D_MODEL, H, bias=bias, attend=attend, rng=random))
    other = torch.nn.MultiheadAttention(D_MODEL, H, bias=bias, batch_first=True)
    other = loaded(other, layer, mapping.multi_head_layout())
    ours, theirs = leaves(x(B, T, D_MODEL), x(B, S, D_MODEL), x(B, S, D_MODEL))
    y = layer(*ours, **asked)
    result, weights = other(*theirs, **of_torch, average_attn_weights=averaged)
    shown = layer.weights(*ours[:2], **asked)
    agree([shown.mean(axis=1) if averaged else shown], [weights])
    same_layer(layer, other, mapping.multi_head_layout(), y, result, ours, theirs)


# ---------------------------------------------------------------- Transformer


def decoder_layer_layout(ours="", theirs=""):
    heads = mapping.multi_head_layout(f"{ours}attention.", f"{theirs}self_attn.")
    cross = mapping.multi_head_layout(f"{ours}cross.", f"{theirs}multihead_attn.")
    names = mapping.PYTORCH | {"norm_cross": "norm2", "norm_feed_forward": "norm3"}
    return heads + cross + mapping._layers(names, ours, theirs)


def transformer_layout(num_encoder, num_decoder):
    pieces = mapping._layers({f"{x}.final_norm": f"{x}.norm" for x in ("encoder", "decoder")})
    for i in range(num_encoder):
        pieces += mapping.encoder_layer_layout(f"encoder.blocks.{i}.", f"encoder.layers.{i}.")
    for i in range(num_decoder):
        pieces += decoder_layer_layout(f"decoder.blocks.{i}.", f"decoder.layers.{i}.")
    return pieces


ACTIVATIONS = {"relu": relu, "gelu": gelu}
activations = pytest.mark.parametrize("activation", ACTIVATIONS)
norms_first = pytest.mark.parametrize("norm_first", [False, True], ids=["post-LN", "pre-LN"])


def not_(mask):
    return torch.tensor(~mask)


class Both(Module):
    """An encoder and a decoder, each with the last norm that PyTorch's nn.Transformer has."""

    def __init__(self, **options):
        self.encoder = Encoder(2, D_MODEL, H, D_FF, rng=random, **options)
        self.decoder = Decoder(3, D_MODEL, H, D_FF, rng=random, **options)
        self.encoder.final_norm, self.decoder.final_norm = LayerNorm(D_MODEL), LayerNorm(D_MODEL)


@activations
@norms_first
@attends
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_an_encoder_and_a_decoder_are_pytorchs_transformer(attend, norm_first, activation):
    model = randomised(
        Both(activation=ACTIVATIONS[activation], norm_first=norm_first, attend=attend)
    )
    pieces = transformer_layout(2, 3)
    other = torch.nn.Transformer(
        D_MODEL, H, 2, 3, D_FF, 0.0, activation, batch_first=True, norm_first=norm_first
    )
    other = loaded(other, model, pieces)
    ours, theirs = leaves(x(B, S, D_MODEL), x(B, T, D_MODEL))
    memory = model.encoder(ours[0], mask=PADDING)
    y = model.decoder(ours[1], memory, memory_mask=PADDING)
    padding = not_(PADDING[:, 0])
    result = other(
        *theirs,
        tgt_mask=not_(causal_mask(T)),
        src_key_padding_mask=padding,
        memory_key_padding_mask=padding,
    )
    same_layer(model, other, pieces, y, result, ours, theirs)
