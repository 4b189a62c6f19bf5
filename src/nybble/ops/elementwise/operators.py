"""Elementwise functions of float32 and int32 tensors."""

from nybble.ops.elementwise import binary, clamp, unary

__all__ = ["binary", "clamp", "unary"]
