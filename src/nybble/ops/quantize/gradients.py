"""Quantization is not differentiated."""

from __future__ import annotations

from nybble.graph.gradients import no_gradient

__all__: list[str] = []

no_gradient(
    "quantized_decomposed.quantize_per_tensor.default",
    "quantized_decomposed.quantize_per_channel.default",
    because="activations are rounded to codes there; train layers behind it, or a float program",
)
