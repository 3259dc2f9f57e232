"""attention: the layers of "Attention Is All You Need", and what became of them.

Built on minigrad's public names alone. The names below are in the order a reader meets them.

    11    scaled_dot_product   attention, and the way back through it
    11.1  masks                what True means in a mask
    11.2  additive             what came before the product
    12    fused                attention in blocks, without T² numbers
    13    multi_head           several heads, and what is split among them
    14    positions            three places to put the order in
    15.1  blocks               what stands around attention
    15.2  transformer          encoder, decoder, and the paper's model of both
    15.3  models               GPT-2 and Llama
    15.4  generation           one token after the other
    16    scaling              what √d_k does to gradients; the folder `laboratory` measures more

Five files are tools, which are used and not read:

    encoders  models that read a text to both sides: `bert`, and a `Classifier` on it
    cache     keys and values that are not computed again: `KVCache`
    mapping   other people's weights under our names, and ours under theirs
    figures   one palette for all pictures, and how a figure is saved
    maps      pictures of attention weights
"""

# ruff: noqa: I001, RUF022 (the order is the lesson's, not the alphabet's)
from attention.scaled_dot_product import attention, attention_backward, attention_weights, qk_norm
from attention.masks import causal_mask, mean_over_positions, padding_mask, window_mask
from attention.additive import additive_attention
from attention.fused import fused_attention
from attention.multi_head import MultiHeadAttention, merge_heads, multi_head_attention, split_heads
from attention.cache import KVCache
from attention.positions import (
    LearnedPositions,
    RelativeBias,
    SinusoidalPositions,
    alibi,
    rotary,
    sinusoidal,
)
from attention.blocks import Block, FeedForward, GatedFeedForward
from attention.transformer import Decoder, Encoder, Transformer
from attention.models import GPT, gpt2, llama
from attention.generation import generate, stream, translate
from attention.encoders import Classifier, TextEncoder, bert

__all__ = [
    "attention",
    "attention_weights",
    "attention_backward",
    "qk_norm",
    "causal_mask",
    "padding_mask",
    "window_mask",
    "mean_over_positions",
    "additive_attention",
    "fused_attention",
    "multi_head_attention",
    "MultiHeadAttention",
    "merge_heads",
    "split_heads",
    "KVCache",
    "LearnedPositions",
    "RelativeBias",
    "SinusoidalPositions",
    "alibi",
    "rotary",
    "sinusoidal",
    "Block",
    "FeedForward",
    "GatedFeedForward",
    "Decoder",
    "Encoder",
    "Transformer",
    "GPT",
    "gpt2",
    "llama",
    "stream",
    "generate",
    "translate",
    "Classifier",
    "TextEncoder",
    "bert",
]
