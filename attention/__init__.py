"""attention: the layers of "Attention Is All You Need", built on minigrad's public names."""

from attention.additive import additive_attention
from attention.fused import fused_attention
from attention.masks import causal_mask, padding_mask, window_mask
from attention.multi_head import MultiHeadAttention, merge_heads, split_heads
from attention.scaled_dot_product import attention, attention_weights

__all__ = [
    "MultiHeadAttention",
    "additive_attention",
    "attention",
    "attention_weights",
    "causal_mask",
    "fused_attention",
    "merge_heads",
    "padding_mask",
    "split_heads",
    "window_mask",
]
