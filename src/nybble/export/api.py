"""The one public function: capture, quantize, lower, write, and say what became of each layer."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from nybble.errors import NybbleError
from nybble.export.checks import (
    as_batch,
    check_choice,
    check_extra,
    check_group_size,
    check_module,
    check_path,
    checked_batches,
)
from nybble.export.file_calls import FileCall, calls_in_file
from nybble.export.matching import match_layers
from nybble.export.quiet import quiet
from nybble.export.report import ExportReport, ExportWarning, Form, nothing_quantized
from nybble.export.stages import Stages

if TYPE_CHECKING:
    import torch

__all__ = ["export"]


def export(  # noqa: PLR0913  (the options of one export, by keyword)
    module: torch.nn.Module,
    example_inputs: Any,
    path: str | os.PathLike[str],
    *,
    quantize: Literal["int8", "int4", "int8-dynamic"] | None = None,
    calibration: Iterable[Any] | None = None,
    group_size: int | None = 32,
    dynamic_shapes: Any = None,
    partitioner: Literal["vulkan", "webgpu"] = "vulkan",
    progress: bool = True,
) -> ExportReport:
    """Write ``module`` as a program that nybble, or ExecuTorch with Vulkan or WebGPU, can run.

    Args:
        module: the module; it is exported in evaluation mode and left as it was.
        example_inputs: a tensor, or a tuple of tensors, with the program's shapes and dtypes.
        path: the ``.pte`` file to write.
        quantize: "int8" for static post-training quantization (int8 activations per tensor,
            int8 weights per output channel); "int4" for 4-bit weights in linear and embedding
            layers, the rest in float32; "int8-dynamic" for those weights and int8 inputs of
            linear layers, with a scale and a zero point for each row, found at run time; None for
            float32.
        calibration: with "int8", batches like ``example_inputs`` of typical data; each is run
            once.
        group_size: with "int4" and "int8-dynamic", how many input features (columns of an
            embedding) of a row share a scale; None for one scale a row.
        dynamic_shapes: as for ``torch.export.export``.
        partitioner: the stock partitioner to use.
        progress: show the stages on standard error.

    Returns:
        What each layer became, the operators outside VulkanBackend, and the quantized module.

    Raises:
        NybbleError: an argument is wrong, a package of nybble[export] is missing, the module
            cannot be captured or lowered, or ``path`` cannot be written.

    Warns:
        ExportWarning: says that nothing was quantized, and why; names each layer whose quantized
            form was given up, operators left outside VulkanBackend, what nybble cannot run, and a
            module found in training mode.
    """
    check_choice("quantize", quantize, (None, "int8", "int4", "int8-dynamic"))
    check_choice("partitioner", partitioner, ("vulkan", "webgpu"))
    check_group_size(group_size)
    if quantize != "int8" and calibration is not None:
        raise NybbleError('calibration is only used with quantize="int8": give both or neither.')
    if quantize == "int8" and calibration is None:
        raise NybbleError(
            'quantize="int8" needs calibration: an iterable of batches of typical inputs.'
        )
    target = check_path(path)
    check_extra()
    check_module(module)
    inputs = as_batch(example_inputs, "example_inputs")
    batches = None
    if calibration is not None:
        batches = checked_batches(calibration, inputs, static=dynamic_shapes is None)
    form: Form = quantize or "float32"
    request = _Request(
        module, inputs, target, form, group_size, batches, dynamic_shapes, partitioner
    )
    with _evaluation_mode(module):
        report = _export(request, Stages(shown=progress))
    for sentence in report.warnings:
        warnings.warn(sentence, ExportWarning, stacklevel=2)
    return report


@dataclass(frozen=True)
class _Request:
    """The checked arguments of one export."""

    module: torch.nn.Module
    inputs: tuple[torch.Tensor, ...]
    target: Path
    form: Form
    group_size: int | None
    batches: Iterator[tuple[torch.Tensor, ...]] | None
    dynamic_shapes: Any
    partitioner: str


def _export(request: _Request, stages: Stages) -> ExportReport:
    with stages.stage("load the exporter"), quiet():
        from nybble.export.layers import find_layers
        from nybble.export.lower import PARTITIONERS, lower

    partitioner = PARTITIONERS[request.partitioner]
    graph, kept_float = _quantized(request, stages)
    with stages.stage(f"lower through {partitioner.__name__}"):
        lowered = lower(graph, request.inputs, [partitioner({})], request.dynamic_shapes)
    with stages.stage(f"write and inspect {request.target.name}"):
        calls = calls_in_file(lowered.program)
        _check_delegated(calls, partitioner.__name__)
        _write(request.target, lowered.program)
        layers = match_layers(find_layers(graph, request.form, kept_float), calls)
    outside = tuple(call.name for call in calls if call.outside)
    given_up = dict.fromkeys(layer.warning for layer in layers if layer.given_up)
    return ExportReport(
        path=request.target,
        size=len(lowered.program),
        layers=layers,
        outside=outside,
        warnings=(
            *nothing_quantized(request.module, request.form, layers),
            *given_up,
            *_outside_warnings(calls, partitioner.__name__),
            *_load_warnings(request.target),
        ),
        seconds=stages.seconds,
        reference=graph,
    )


def _quantized(request: _Request, stages: Stages) -> tuple[torch.fx.GraphModule, Mapping[str, str]]:
    """The captured module in the form asked for, and why layers of it were kept in float32."""
    from nybble.export.attention import use_fused_attention
    from nybble.export.four_bit_calls import prepare_four_bit_calls
    from nybble.export.layers import layers_kept_float
    from nybble.export.quantize import capture, quantize_int8
    from nybble.export.quantize_int4 import modules_kept_float, quantize_int4

    module, kept_float = request.module, {}
    if request.form in {"int4", "int8-dynamic"}:
        with stages.stage(f"quantize to {request.form}"):
            kept_float = modules_kept_float(module, request.group_size)
            dynamic = request.form == "int8-dynamic"
            module = quantize_int4(
                module, request.group_size, dynamic=dynamic, keep_float=kept_float
            )
    with stages.stage("capture the module"):
        graph = capture(module, request.inputs, request.dynamic_shapes)
        use_fused_attention(graph)
        prepare_four_bit_calls(graph)
    if request.batches is not None:
        kept_float = layers_kept_float(graph)
        with stages.stage("calibrate") as show:
            graph = quantize_int8(
                graph,
                request.batches,
                keep_float=tuple(kept_float),
                after_batch=lambda count: show(f"calibrate, batch {count}"),
            )
    return graph, kept_float


def _check_delegated(calls: Sequence[FileCall], partitioner: str) -> None:
    """Raise NybbleError where nothing is delegated: no runtime of such files could load it."""
    if calls and all(call.outside for call in calls):
        raise NybbleError(
            f"{partitioner} accepted no operator of this module ({_listed(calls)}), so the program "
            "would have nothing to run on a GPU; it was not written."
        )


def _listed(calls: Sequence[FileCall]) -> str:
    return ", ".join(
        name if count == 1 else f"{name} ({count} calls)"
        for name, count in Counter(call.name for call in calls if call.outside).items()
    )


def _outside_warnings(calls: Sequence[FileCall], partitioner: str) -> list[str]:
    if not any(call.outside for call in calls):
        return []
    sentence = (
        f"{partitioner} left these operators outside VulkanBackend: {_listed(calls)}. nybble runs "
        "those that it has on the device, or else on the host."
    )
    return [sentence]


def _load_warnings(path: Path) -> list[str]:
    """What nybble itself says of the file, where it cannot run it on any device."""
    from nybble import load

    try:
        load(path, device="host").close()
    except NybbleError as error:
        return [f"nybble itself cannot run the program, on the host neither: {error}"]
    return []


def _write(target: Path, data: bytes) -> None:
    try:
        target.write_bytes(data)
    except OSError as error:
        raise NybbleError(f"{target} cannot be written: {error.strerror}.") from error


@contextmanager
def _evaluation_mode(module: torch.nn.Module) -> Iterator[None]:
    """Put every submodule in evaluation mode, and back afterwards; warn if that changes one."""
    modes = [(part, part.training) for part in module.modules()]
    if any(training for _, training in modes):
        warnings.warn(
            f"{type(module).__name__} is in training mode: it is exported as after eval().",
            ExportWarning,
            stacklevel=4,
        )
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training
