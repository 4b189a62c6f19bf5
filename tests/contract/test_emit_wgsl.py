"""The emitted header against files in tests/golden; NYBBLE_UPDATE_GOLDEN=1 writes them anew."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import nybble.ops  # noqa: F401  (declares the operators)
from nybble.contract import (
    DTYPES,
    REGISTRY,
    Array,
    Float32,
    Int8,
    Kernel,
    TensorType,
    bind,
    f32,
    i32,
    u32,
)
from nybble.contract.emit_wgsl import bound_tensors, constants_of, emit_wgsl

GOLDEN = Path(__file__).parents[1] / "golden"


def t(dtype: str, *shape: int) -> TensorType:
    """A tensor's type."""
    return TensorType(DTYPES[dtype], shape)


CONVOLUTION: dict[str, Any] = {
    "x": t("int8", 1, 6, 5, 7), "scale_in": 0.5, "zero_point_in": -3,
    "weight_sums": t("int32", 4), "weight_scales": t("float32", 4),
    "scale_out": 0.25, "zero_point_out": 4, "bias": t("float32", 4),
    "kernel": (3, 3), "stride": (2, 1), "padding": (1, 0), "dilation": (1, 1),
    "groups": 2, "activation": "none",
}  # fmt: skip
REPRESENTATIVES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "attention": (
        "et_vk.sdpa.default", "attention.wgsl",
        {"q": t("float32", 1, 2, 3, 8), "k": t("float32", 1, 2, 5, 8),
         "v": t("float32", 1, 2, 5, 8), "mask": t("float32", 3, 5)},
    ),
    "conv2d": (
        "aten.convolution.default", "conv2d_direct.wgsl",
        {"x": t("float32", 1, 2, 5, 5), "weight": t("float32", 3, 2, 3, 3),
         "bias": t("float32", 3), "stride": (1, 1), "padding": (1, 1), "dilation": (1, 1),
         "transposed": False, "output_padding": (0, 0), "groups": 1},
    ),
    "conv2d_q8": (
        "et_vk.q8ta_conv2d.default", "direct.wgsl",
        {**CONVOLUTION, "weight": t("int8", 4, 28)},
    ),
    "elementwise": ("aten.relu.default", "clamp.wgsl", {"x": t("float32", 3, 5)}),
    "elementwise_q8": (
        "et_vk.q8ta_add.default", "add.wgsl",
        {"a": t("int8", 1, 3, 2, 2), "b": t("int8", 1, 3, 2, 2), "scale_a": 0.5,
         "zero_point_a": 1, "scale_b": 0.25, "zero_point_b": -1, "scale_out": 1.0,
         "zero_point_out": 0, "alpha": 1},
    ),
    "fill": ("aten.full.default", "fill.wgsl", {"size": (2, 3), "value": 2.5}),
    "image": (
        "aten.upsample_bilinear2d.vec", "upsample.wgsl",
        {"x": t("float32", 1, 2, 3, 5), "output_size": (7, 9)},
    ),
    "index": (
        "aten.embedding.default", "take.wgsl",
        {"weight": t("float32", 7, 5), "index": t("int32", 2, 3)},
    ),
    "join": (
        "nybble.concat.default", "concat.wgsl",
        {"x_0": t("float32", 2, 3), "x_1": t("float32", 2, 1), "dim": 1},
    ),
    "linear": (
        "aten.linear.default", "matrix_direct.wgsl",
        {"x": t("float32", 2, 5), "weight": t("float32", 3, 5), "bias": None},
    ),
    "linear_q8": (
        "et_vk.q8ta_linear.default", "flat.wgsl",
        {"x": t("int8", 3, 8), "scale_in": 0.5, "zero_point_in": 0, "weight": t("int8", 4, 8),
         "weight_sums": t("int32", 4), "weight_scales": t("float32", 4), "scale_out": 0.5,
         "zero_point_out": 0, "bias": None, "activation": "relu"},
    ),
    "logic": (
        "aten.where.self", "map_broadcast.wgsl",
        {"condition": t("bool", 2, 1), "x": t("float32", 3), "other": t("float32", 2, 3)},
    ),
    "norm": (
        "aten.native_layer_norm.default", "normalize.wgsl",
        {"x": t("float32", 2, 8), "normalized_shape": (8,), "weight": t("float32", 8)},
    ),
    "pool": (
        "aten.max_pool2d_with_indices.default", "max_pool2d.wgsl",
        {"x": t("float32", 1, 2, 6, 6), "kernel_size": (2, 2), "stride": (2, 2), "padding": (0, 0),
         "dilation": (1, 1), "ceil_mode": False},
    ),
    "quantize": (
        "quantized_decomposed.quantize_per_tensor.default", "quantize_flat.wgsl",
        {"x": t("float32", 7), "scale": 0.1, "zero_point": 3, "quant_min": -128,
         "quant_max": 127},
    ),
    "reduce": (
        "aten.mean.dim", "reduce_thread.wgsl",
        {"x": t("float32", 2, 3, 4), "dim": (1,), "keepdim": False},
    ),
    "relayout": (
        "nybble.relayout.default", "channels4_from_row_major.wgsl", {"x": t("int8", 1, 3, 4, 4)}
    ),
    "shape": (
        "aten.permute_copy.default", "gather_words.wgsl",
        {"x": t("float32", 2, 3, 4), "dims": (2, 0, 1)},
    ),
    "softmax": ("aten._softmax.default", "softmax.wgsl", {"x": t("float32", 2, 5), "dim": 1}),
}  # fmt: skip


def shader(operator_name: str, file: str, arguments: dict[str, Any]) -> tuple[str, Kernel]:
    """The whole WGSL of an operator's first kernel with that file."""
    operator = REGISTRY[operator_name]
    call = bind(operator, arguments)
    kernel = next(k for k in operator.kernels if isinstance(k, Kernel) and k.shader == file)
    return emit_wgsl(kernel, call, constants_of(kernel, dict(call.names))), kernel


def header(text: str) -> str:
    """The lines that come from the contract: up to the constants, the body left out."""
    lines = text.splitlines()
    end = next(i for i, line in enumerate(lines) if line.startswith("fn linear_group"))
    end = lines.index("}", end) + 1
    while end < len(lines) and lines[end].startswith("const "):
        end += 1
    return "\n".join(lines[:end]) + "\n"


@pytest.mark.parametrize("family", REPRESENTATIVES)
def test_header_is_the_golden_one(family: str) -> None:
    """Bindings, uniform record and constants of each family's representative stay as they are."""
    text, _ = shader(*REPRESENTATIVES[family])
    path = GOLDEN / f"{family}.wgsl"
    if os.environ.get("NYBBLE_UPDATE_GOLDEN") == "1":
        path.write_text(header(text))
    assert path.read_text() == header(text)


def test_golden_files_are_of_families_that_exist() -> None:
    """No golden file is left over: each belongs to a representative, and that to its family."""
    assert sorted(REPRESENTATIVES) == sorted(path.stem for path in GOLDEN.glob("*.wgsl"))
    assert {f: REGISTRY[name].family for f, (name, _, _) in REPRESENTATIVES.items()} == {
        family: family for family in REPRESENTATIVES
    }


@pytest.fixture
def sample(declare: Any) -> Any:
    """An operator with an optional tensor, declared with one kernel."""

    def made(kernel: Kernel, x: Any = None) -> Any:
        def reference(x: IMAGE, bias: BIAS | None, alpha: float) -> Any:
            raise NotImplementedError

        operator = declare(reference, out=IMAGE, kernels=[kernel])
        return bind(operator, {"x": x or t("int8", 1, 5, 1, 1), "alpha": 2.0, "bias": None})

    return made


IMAGE = Int8[Array, "n c h w"]
BIAS = Float32[Array, "c"]


@pytest.fixture
def body(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """``body(text)`` makes the text the shader of the sample's family."""
    from nybble.contract import emit_wgsl as module

    def written(text: str) -> Kernel:
        (tmp_path / "sample").mkdir(exist_ok=True)
        (tmp_path / "sample" / "sample.wgsl").write_text(text)
        return Kernel(
            "sample.wgsl",
            grid=("1",),
            params={"alpha": f32("alpha"), "shift": i32("-c"), "size": u32("n")},
            constants={"WIDE": "c > 4", "COUNT": 4, "LEAST": -2, "HALF": 0.5, "NAME": "'none'"},
        )

    monkeypatch.setattr(module, "OPS_FOLDER", tmp_path)
    module._environment.cache_clear()
    yield written
    module._environment.cache_clear()


def test_header_states_the_contract(sample: Any, body: Any) -> None:
    """Bindings in order, the record with its padding, constants by type, texts left to the body."""
    kernel = body("// {$ NAME $} {$ absent $} {$ 'bias' in present $} {$ packed_dot $}\n")
    call = sample(kernel)
    expected = [
        "// test.sample.default: sample.wgsl",
        "@group(0) @binding(0) var<storage, read> x: array<u32>;",
        "@group(0) @binding(1) var<storage, read_write> out: array<u32>;",
        "struct Params {",
        "  zero: u32,",
        "  grid_width: u32,",
        "  alpha: f32,",
        "  shift: i32,",
        "  size: u32,",
        "  padding_0: u32,",
        "  padding_1: u32,",
        "  padding_2: u32,",
        "};",
        "@group(0) @binding(2) var<uniform> params: Params;",
        "fn linear_group(group: vec3<u32>) -> u32 {",
        "  return group.x + group.y * params.grid_width;",
        "}",
        "const WIDE = true;",
        "const COUNT = 4u;",
        "const LEAST = -2i;",
        "const HALF = 0.5f;",
        "// none ['bias'] False False",
    ]
    constants = constants_of(kernel, dict(call.names))
    assert expected == emit_wgsl(kernel, call, constants, packed_dot=False).splitlines()


def test_misspelt_template_name_is_an_error(sample: Any, body: Any) -> None:
    """A body that reads an undeclared constant fails when the plan is made, not in the driver."""
    import jinja2

    kernel = body("const A = {$ COUTN $};\n")
    call = sample(kernel)
    with pytest.raises(jinja2.UndefinedError, match="COUTN"):
        emit_wgsl(kernel, call, constants_of(kernel, dict(call.names)))


def test_absent_and_unused_tensors_are_not_bound() -> None:
    """Only tensors that are there and that the body reads take one of the device's bindings."""
    arguments = {**CONVOLUTION, "weight": t("int8", 4, 28)}
    operator = REGISTRY["et_vk.q8ta_conv2d.default"]
    kernel = next(k for k in operator.kernels if isinstance(k, Kernel) and k.unused)
    names = [b.name for b in bound_tensors(kernel, bind(operator, arguments))]
    assert ["x", "weight", "weight_scales", "bias", "out"] == names
    without = bind(operator, {**arguments, "bias": None})
    assert ["x", "weight", "weight_scales", "out"] == [
        b.name for b in bound_tensors(kernel, without)
    ]
