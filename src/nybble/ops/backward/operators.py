"""Gradients that deserve a kernel of their own; the rest are made of forward operators."""

from nybble.ops.backward import placement, rows, unary

__all__ = ["placement", "rows", "unary"]
