"""Elementwise functions of float32 and int32 tensors."""

from nybble.ops.elementwise import binary, clamp, quotients, scalars, unary

__all__ = ["binary", "clamp", "quotients", "scalars", "unary"]
