"""Static post-training quantization to int8: observe a module on batches, then fix the scales."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from nybble.errors import NybbleError
from nybble.export.checks import first_line
from nybble.export.quiet import quiet

__all__ = ["capture", "quantize_int8"]

Batch = tuple[torch.Tensor, ...]


def capture(
    module: torch.nn.Module, example_inputs: Batch, dynamic_shapes: Any = None
) -> torch.fx.GraphModule:
    """Trace ``module`` on ``example_inputs`` into a graph of ATen calls.

    Raises NybbleError if torch.export cannot.
    """
    try:
        with quiet():
            exported = torch.export.export(module, example_inputs, dynamic_shapes=dynamic_shapes)
    except Exception as error:  # whatever the module's own code raises
        raise NybbleError(
            f"torch.export cannot capture {type(module).__name__}: {first_line(error)}"
        ) from error
    return exported.module()


def quantize_int8(
    graph: torch.fx.GraphModule,
    calibration: Iterable[Batch],
    *,
    keep_float: Sequence[str] = (),
    activation_range: tuple[int, int] = (-128, 127),
    after_batch: Callable[[int], None] = lambda count: None,
) -> torch.fx.GraphModule:
    """Quantize a captured graph: int8 activations per tensor, int8 weights per output channel.

    Every batch of ``calibration`` is run once to observe activations. Nodes named in
    ``keep_float`` stay float32. ``after_batch`` gets the count of batches done, after each.
    """
    low, high = activation_range
    config = get_symmetric_quantization_config(is_per_channel=True, act_qmin=low, act_qmax=high)
    excluded = frozenset(keep_float)
    quantizer = XNNPACKQuantizer().set_global(config)
    quantizer.set_filter_function(lambda node: node.name not in excluded)
    with quiet():
        prepared = prepare_pt2e(graph, quantizer)
    with torch.no_grad():
        for count, batch in enumerate(calibration, start=1):
            prepared(*batch)
            after_batch(count)
    with quiet():
        return convert_pt2e(prepared)
