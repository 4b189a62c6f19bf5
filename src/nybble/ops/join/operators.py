"""Tensors joined along an axis, cut into pieces, padded."""

from nybble.ops.join import concat, pad, synonyms

__all__ = ["concat", "pad", "synonyms"]
