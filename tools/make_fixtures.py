"""Write ``tests/fixtures``: programs exported by the stock wheel, with inputs and eager outputs.

Run ``python tools/make_fixtures.py`` (needs nybble[export]); ``--only NAME`` makes one of them.
Each ``NAME.npz`` holds ``input_0..`` and ``output_0..``: what the quantized eager model answers,
or, for ``*_refused``, that model without its activations' quantization (the exporter folds it).
"""

from __future__ import annotations

import argparse
import copy
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.backends.vulkan.quantizer.vulkan_quantizer import (
    VulkanQuantizer,
    get_symmetric_quantization_config,
)
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from fixture_networks import (
    AddBroadcast,
    FloatCnn,
    FloatReductions,
    Interrupted,
    InvertedResidual,
    LinearHead,
    ReluBetween,
    ResidualAdd,
    SmallCnn,
)
from fixture_table import write_table
from nybble.export.lower import LoweredProgram, lower, lower_methods
from nybble.export.quantize import capture, quantize_int8
from nybble.export.quantize_int4 import quantize_int4
from transformer_networks import CachedAttention, Perceptron, RotaryTransformer, Transformer

FIXTURES = Path(__file__).resolve().parent.parent / "tests" / "fixtures"
Tensors = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Fixture:
    """A program and, for each method, the inputs and the eager outputs."""

    lowered: LoweredProgram
    inputs: Tensors
    outputs: Tensors
    extra: Mapping[str, torch.Tensor]


def _random(*shape: int) -> torch.Tensor:
    return torch.randn(shape)


def _settled(module: nn.Module) -> nn.Module:
    """Give batch norms statistics and weights that are not the identity, then freeze."""
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm2d):
            nn.init.uniform_(layer.weight, 0.5, 1.5)
            nn.init.normal_(layer.bias, std=0.2)
            layer.running_mean.normal_(std=0.2)
            layer.running_var.uniform_(0.5, 1.5)
    return module.eval()


def _tuple(outputs: torch.Tensor | Tensors) -> Tensors:
    return outputs if isinstance(outputs, tuple) else (outputs,)


def _without_activation_codes(graph: torch.fx.GraphModule, inputs: Tensors) -> Tensors:
    graph = copy.deepcopy(graph)
    for node in graph.graph.nodes:
        if node.target is torch.ops.quantized_decomposed.dequantize_per_tensor.default:
            node.replace_all_uses_with(node.args[0].args[0])
    graph.recompile()
    with torch.no_grad():
        return _tuple(graph(*inputs))


def _finish(graph: nn.Module, inputs: Tensors, partitioners: list[object]) -> Fixture:
    with torch.no_grad():
        outputs = _tuple(graph(*inputs))
    return Fixture(lower(graph, inputs, partitioners), inputs, outputs, {})


def _int8(
    make: Callable[[], nn.Module],
    *shapes: tuple[int, ...],
    options: dict[str, object] | None = None,
    channels_last: bool = False,
    activation_range: tuple[int, int] = (-128, 127),
    folded: bool = False,
) -> Fixture:
    module = _settled(make())
    inputs = tuple(_random(*shape) for shape in shapes)
    if channels_last:
        inputs = tuple(x.to(memory_format=torch.channels_last) for x in inputs)
    batches = [tuple(torch.randn_like(x) for x in inputs) for _ in range(4)]
    graph = capture(module, inputs)
    graph = quantize_int8(graph, batches, activation_range=activation_range)
    fixture = _finish(graph, inputs, [VulkanPartitioner(options or {})])
    return replace(fixture, outputs=_without_activation_codes(graph, inputs)) if folded else fixture


def _int4(
    make: Callable[[], nn.Module],
    *inputs: torch.Tensor | tuple[int, ...],
    group_size: int | None = 32,
    dynamic: bool = False,
) -> Fixture:
    module = quantize_int4(make().eval(), group_size, dynamic=dynamic, keep_float={})
    tensors = tuple(x if isinstance(x, torch.Tensor) else _random(*x) for x in inputs)
    return _finish(capture(module, tensors), tensors, [VulkanPartitioner({})])


def _int4_by_channel(make: Callable[[], nn.Module], *shape: int) -> Fixture:
    """The weight-only PT2E quantization, which the exporter turns into linear_qcs4w."""
    inputs = (_random(*shape),)
    quantizer = VulkanQuantizer().set_global(get_symmetric_quantization_config(weight_bits=4))
    prepared = prepare_pt2e(capture(make().eval(), inputs), quantizer)
    prepared(*inputs)
    return _finish(convert_pt2e(prepared), inputs, [VulkanPartitioner({})])


def _tokens(count: int, *shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return (torch.arange(int(np.prod(shape))) * 7 % count).reshape(shape).to(dtype)


def _cached_attention() -> Fixture:
    """Two rows, then two more: ``next_input_i`` and ``next_output_0`` are the second call's."""
    module = quantize_int4(CachedAttention(32, 4, 2, 16).eval(), 32, keep_float={})
    inputs = (_random(1, 2, 32), torch.tensor([0]))
    graph = capture(module, inputs)
    # Lowered before it is run: a run writes into the buffers, which the program starts from.
    lowered = lower(graph, inputs, [VulkanPartitioner({})])
    following = (_random(1, 2, 32), torch.tensor([2]))
    with torch.no_grad():
        outputs = _tuple(graph(*inputs))
        extra = {"next_output_0": graph(*following)}
    extra |= {f"next_input_{i}": tensor for i, tensor in enumerate(following)}
    return Fixture(lowered, inputs, outputs, extra)


def _float(
    make: Callable[[], nn.Module],
    *shapes: tuple[int, ...],
    partitioners: list[object] | None = None,
) -> Fixture:
    inputs = tuple(_random(*shape) for shape in shapes)
    chosen = [VulkanPartitioner({})] if partitioners is None else partitioners
    return _finish(_settled(make()), inputs, chosen)


def _two_methods() -> Fixture:
    """Methods ``forward`` (int8 CNN) and ``embed`` (float linear) in one program."""
    image, vector = _random(1, 3, 12, 12), _random(2, 8)
    forward = quantize_int8(
        capture(SmallCnn(adaptive=False).eval(), (image,)),
        [(torch.randn_like(image),) for _ in range(4)],
    )
    embed = nn.Linear(8, 5).eval()
    methods = {
        "forward": torch.export.export(forward, (image,)),
        "embed": torch.export.export(embed, (vector,)),
    }
    lowered = lower_methods(methods, [VulkanPartitioner({})])
    with torch.no_grad():
        extra = {"embed_input_0": vector, "embed_output_0": embed(vector)}
        return Fixture(lowered, (image,), _tuple(forward(image)), extra)


def _conv(*args: Any, **kwargs: Any) -> Callable[[], nn.Module]:
    return partial(nn.Conv2d, *args, **kwargs)


def _conv_relu(*args: Any, **kwargs: Any) -> Callable[[], nn.Module]:
    return lambda: nn.Sequential(nn.Conv2d(*args, **kwargs), nn.ReLU())


FIXTURE_MAKERS: dict[str, Callable[[], Fixture]] = {
    "pointwise": partial(_int8, _conv(8, 16, 1), (1, 8, 12, 12)),
    "pointwise_odd": partial(_int8, _conv(3, 5, 1), (1, 3, 7, 9)),
    "pointwise_batch2": partial(_int8, _conv(6, 7, 1, bias=False), (2, 6, 5, 3)),
    "conv_odd": partial(_int8, _conv(3, 5, 3, padding=1), (1, 3, 7, 9)),
    "conv_odd_batch2": partial(_int8, _conv(3, 5, (3, 2), padding=(1, 0)), (2, 3, 7, 9)),
    "conv3x3_relu": partial(_int8, _conv_relu(4, 8, 3, padding=1), (1, 4, 10, 11)),
    "conv_stride2": partial(_int8, _conv_relu(3, 8, 3, stride=2, padding=1), (1, 3, 13, 11)),
    "conv_dilated": partial(_int8, _conv(5, 6, 3, padding=2, dilation=2), (1, 5, 9, 8)),
    "conv_grouped": partial(_int8, _conv(6, 8, 3, padding=1, groups=2), (1, 6, 8, 7)),
    "conv_grouped_refused": partial(
        _int8, _conv(6, 6, 3, padding=1, groups=3), (1, 6, 8, 7), folded=True
    ),
    "conv_one_channel": partial(_int8, _conv(1, 3, 2), (1, 1, 3, 2)),
    "depthwise": partial(_int8, _conv(8, 8, 3, padding=1, groups=8), (1, 8, 9, 10)),
    "depthwise_stride2": partial(
        _int8, _conv_relu(12, 12, (3, 5), stride=2, padding=(1, 2), groups=12), (2, 12, 9, 10)
    ),
    "transposed": partial(
        _int8,
        lambda: nn.ConvTranspose2d(4, 8, 3, stride=2, padding=1, output_padding=1),
        (1, 4, 5, 6),
    ),
    "transposed_grouped": partial(
        _int8, lambda: nn.ConvTranspose2d(6, 8, (2, 3), stride=(2, 1), groups=2), (1, 6, 4, 5)
    ),
    "transposed_dilated_refused": partial(
        _int8, lambda: nn.ConvTranspose2d(4, 4, 3, dilation=2), (1, 4, 5, 6), folded=True
    ),
    "linear_chain_batch1": partial(_int8, lambda: LinearHead((16, 28, 10)), (1, 16)),
    "linear_chain_batch4": partial(_int8, lambda: LinearHead((16, 28, 10)), (4, 16)),
    "linear_rank3": partial(_int8, lambda: LinearHead((12, 20, 6)), (2, 3, 12)),
    "linear_k_refused": partial(_int8, lambda: LinearHead((10, 15, 4)), (3, 10), folded=True),
    "residual_add": partial(_int8, lambda: ResidualAdd(5, relu=False), (1, 5, 6, 7)),
    "residual_add_relu": partial(_int8, lambda: ResidualAdd(8, relu=True), (1, 8, 6, 7)),
    "relu_between": partial(_int8, lambda: ReluBetween(6), (1, 6, 5, 7)),
    "add_broadcast": partial(_int8, AddBroadcast, (1, 4, 5, 5), (1, 4, 1, 1)),
    "inverted_residual": partial(_int8, lambda: InvertedResidual(8, 3), (1, 8, 10, 10)),
    "small_cnn": partial(_int8, lambda: SmallCnn(adaptive=False), (1, 3, 12, 12)),
    "small_cnn_adaptive": partial(_int8, lambda: SmallCnn(adaptive=True), (1, 3, 12, 12)),
    "narrow_range": partial(
        _int8, lambda: ResidualAdd(4, relu=False), (1, 4, 5, 6), activation_range=(-100, 90)
    ),
    "channels_last": partial(
        _int8, lambda: SmallCnn(adaptive=False), (1, 3, 12, 12), channels_last=True
    ),
    "external_constants": partial(
        _int8,
        lambda: SmallCnn(adaptive=False),
        (1, 3, 12, 12),
        options={"external_constants_max_data_bytes": 4096},
    ),
    "int8_two_delegates": partial(_int8, lambda: Interrupted(torch.floor), (1, 4, 6, 6)),
    "float_cnn": partial(_float, FloatCnn, (1, 3, 18, 17)),
    "float_cnn_batch2": partial(_float, FloatCnn, (2, 3, 18, 17)),
    "float_reductions": partial(_float, FloatReductions, (2, 3, 4, 5), (3, 1, 5)),
    "float_two_delegates": partial(_float, lambda: Interrupted(torch.floor), (1, 4, 6, 6)),
    "q4_linear": partial(_int4, lambda: nn.Linear(64, 12), (3, 64)),
    "q4_linear_batch1": partial(_int4, lambda: nn.Linear(64, 20, bias=False), (1, 64)),
    "q4_linear_group4": partial(_int4, lambda: nn.Linear(12, 20), (5, 12), group_size=4),
    "q4_linear_group3": partial(_int4, lambda: nn.Linear(12, 8), (2, 12), group_size=3),
    "q4_linear_group12": partial(_int4, lambda: nn.Linear(36, 12), (3, 36), group_size=12),
    "q4_linear_by_row": partial(_int4, lambda: nn.Linear(44, 8), (7, 44), group_size=None),
    "q4_linear_rank3": partial(_int4, lambda: nn.Linear(64, 12), (2, 3, 64)),
    "q4_mlp": partial(_int4, lambda: Perceptron(64, 32, 10), (1, 64)),
    "q4_mlp_batch8": partial(_int4, lambda: Perceptron(64, 32, 10), (8, 64)),
    "q4_embedding": partial(_int4, lambda: nn.Embedding(50, 64), _tokens(50, 2, 5)),
    "q4_embedding_int32": partial(
        _int4, lambda: nn.Embedding(11, 32), _tokens(11, 7, dtype=torch.int32), group_size=8
    ),
    "q4_transformer": partial(_int4, lambda: Transformer(40, 32, 2, 8), _tokens(40, 1, 8)),
    "q4_transformer_batch3": partial(_int4, lambda: Transformer(40, 32, 2, 8), _tokens(40, 3, 8)),
    "q4_rotary_transformer": partial(
        _int4, lambda: RotaryTransformer(40, 32, 2, 8), _tokens(40, 2, 8)
    ),
    "q4_cached_attention": _cached_attention,
    "dq8ca_linear": partial(_int4, lambda: nn.Linear(64, 12), (4, 64), dynamic=True),
    "dq8ca_linear_batch1": partial(
        _int4, lambda: nn.Linear(64, 8, bias=False), (1, 64), dynamic=True
    ),
    "dq8ca_linear_rank3": partial(
        _int4, lambda: nn.Linear(24, 12), (2, 3, 24), group_size=8, dynamic=True
    ),
    "dq8ca_mlp": partial(_int4, lambda: Perceptron(64, 32, 10), (3, 64), dynamic=True),
    "qcs4w_linear": partial(_int4_by_channel, lambda: nn.Linear(20, 7), 3, 20),
    "qcs4w_linear_k10": partial(_int4_by_channel, lambda: nn.Linear(10, 5, bias=False), 2, 10),
    "two_methods": _two_methods,
    "not_delegated": partial(_float, lambda: LinearHead((4, 6, 3)), (2, 4), partitioners=[]),
    "xnnpack": partial(
        _float, lambda: LinearHead((4, 6, 3)), (2, 4), partitioners=[XnnpackPartitioner()]
    ),
}


def write_fixture(name: str, directory: Path) -> None:
    """Make fixture ``name`` (seeded by its name) and write its files into ``directory``."""
    torch.manual_seed(zlib.crc32(name.encode()))
    fixture = FIXTURE_MAKERS[name]()
    (directory / f"{name}.pte").write_bytes(fixture.lowered.program)
    for key, data in fixture.lowered.external.items():
        (directory / f"{name}.{key}.ptd").write_bytes(data)
    arrays: dict[str, Any] = {}
    for kind, tensors in (("input", fixture.inputs), ("output", fixture.outputs)):
        arrays |= {f"{kind}_{i}": tensor.numpy() for i, tensor in enumerate(tensors)}
    arrays |= {key: tensor.numpy() for key, tensor in fixture.extra.items()}
    np.savez_compressed(directory / f"{name}.npz", **arrays)


def main() -> None:
    """Write the fixtures named on the command line, or all of them, and the table of operators."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=sorted(FIXTURE_MAKERS), metavar="NAME")
    parser.add_argument("--directory", type=Path, default=FIXTURES)
    arguments = parser.parse_args()
    arguments.directory.mkdir(parents=True, exist_ok=True)
    for name in arguments.only or FIXTURE_MAKERS:
        write_fixture(name, arguments.directory)
        print(f"{name}: {(arguments.directory / f'{name}.pte').stat().st_size} bytes", flush=True)
    write_table(arguments.directory)


if __name__ == "__main__":
    main()
