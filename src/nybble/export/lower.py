"""From a captured graph to the bytes of a ``.pte`` file, through the stock partitioners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.backends.webgpu.partitioner import WebGPUPartitioner
from executorch.exir import to_edge_transform_and_lower

from nybble.errors import NybbleError
from nybble.export.checks import first_line
from nybble.export.quiet import quiet

__all__ = ["PARTITIONERS", "LoweredProgram", "lower", "lower_methods"]

PARTITIONERS = {"vulkan": VulkanPartitioner, "webgpu": WebGPUPartitioner}


@dataclass(frozen=True)
class LoweredProgram:
    """A serialized program and the external constant files (name -> bytes) that it refers to."""

    program: bytes
    external: Mapping[str, bytes]


def lower(
    graph: torch.nn.Module,
    inputs: tuple[torch.Tensor, ...],
    partitioners: Sequence[Any],
    dynamic_shapes: Any = None,
) -> LoweredProgram:
    """A program whose one method, "forward", is ``graph``.

    ``partitioners`` are asked in turn what to delegate; the rest stays kernel calls beside the
    delegates. Raises NybbleError if the exporter fails.
    """
    exported = torch.export.export(graph, inputs, dynamic_shapes=dynamic_shapes)
    return lower_methods({"forward": exported}, partitioners)


def lower_methods(
    methods: Mapping[str, torch.export.ExportedProgram], partitioners: Sequence[Any]
) -> LoweredProgram:
    """A program of several methods; see :func:`lower`."""
    by_method = {name: list(partitioners) for name in methods}
    try:
        with quiet():
            edge = to_edge_transform_and_lower(dict(methods), partitioner=by_method)
            finished = edge.to_executorch()
            program = bytes(finished.buffer)
            files = finished._tensor_data  # noqa: SLF001  (the public way writes them to a folder)
            external = {name: bytes(data) for name, data in files.items()}
            return LoweredProgram(program, external)
    except Exception as error:  # the exporter itself raises bare Exception
        raise NybbleError(
            f"The executorch exporter failed on this module: {first_line(error)}"
        ) from error
