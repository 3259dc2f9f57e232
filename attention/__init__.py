"""attention: the layers of "Attention Is All You Need", built on minigrad's public names."""

from attention.masks import causal_mask, padding_mask
from attention.multi_head import MultiHeadAttention, merge_heads, split_heads
from attention.scaled_dot_product import attention, attention_weights

__all__ = [
    "MultiHeadAttention",
    "attention",
    "attention_weights",
    "causal_mask",
    "merge_heads",
    "padding_mask",
    "split_heads",
]
