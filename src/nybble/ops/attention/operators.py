"""Attention over float32 queries, keys and values, its caches, and rotary embeddings."""

from nybble.ops.attention import attention, rotary

__all__ = ["attention", "rotary"]
