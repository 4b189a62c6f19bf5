"""What a well-formed program reads as."""

from __future__ import annotations

import hashlib
import math
import struct
from typing import TYPE_CHECKING

import pytest

from nybble.formats import (
    DelegateCall,
    DelegateNode,
    DelegateTensor,
    FileTensor,
    FileTensorList,
    FreeCall,
    IndexList,
    JumpFalseCall,
    KernelCall,
    MoveCall,
    SymbolicInt,
    ValueList,
    read_program,
)

if TYPE_CHECKING:
    from tests.formats.conftest import Files

FLOATS = struct.pack("<4f", 1.0, 2.0, 3.0, 4.0)
SHA256 = hashlib.sha256(FLOATS).hexdigest()
BY_NAME = 2**64 - 1


def tensor(**fields: object) -> dict[str, object]:
    """A two-by-two float32 Tensor table."""
    return {"scalar_type": 6, "sizes": [2, 2], "dim_order": [0, 1], **fields}


def test_every_real_program_reads(files: Files) -> None:
    """Every exported program in the fixtures reads without a warning, delegates included."""
    external = files.external()
    for name, data in files.real().items():
        program = read_program(data, external if name.startswith("external") else ())
        assert () == program.warnings, name
        for method in program.methods:
            for delegate in method.delegates:
                assert (delegate.backend == "VulkanBackend") == (delegate.graph is not None), name


def test_a_real_delegate_reads_to_its_calls_and_weights(files: Files) -> None:
    """A quantized pointwise convolution reads to three calls, with int8 weights by name."""
    method = read_program(files.real()["pointwise.pte"]).methods[0]
    assert "forward" == method.name
    assert (DelegateCall(0, (0, 1)),) == method.instructions
    graph = method.delegates[0].graph
    assert graph is not None
    assert [
        "quantized_decomposed.quantize_per_tensor.default",
        "et_vk.q8ta_conv2d_pw.default",
        "quantized_decomposed.dequantize_per_tensor.default",
    ] == [call.name for call in graph.calls]
    weight = graph.values[graph.calls[1].args[3]]
    assert isinstance(weight, DelegateTensor)
    assert weight.data is not None
    assert "int8" == weight.dtype
    assert math.prod(weight.shape) == len(weight.data)
    assert hashlib.sha256(weight.data).hexdigest() == weight.constant_key


def test_constants_are_views_of_the_file(files: Files) -> None:
    """Constants are not copied: writing to the file's buffer shows in the tensor."""
    row = ("VkTensor", {"datatype": 5, "dims": [4], "constant_id": 0})
    constants = [{"offset": 0, "length": 16}]
    data = bytearray(files.graph([row], constants=constants, inline=FLOATS))
    graph = read_program(data).methods[0].delegates[0].graph
    assert graph is not None
    value = graph.values[0]
    assert isinstance(value, DelegateTensor)
    assert value.data is not None
    data[data.index(FLOATS)] = 0x55
    assert 0x55 == value.data[0]


def test_every_kind_of_method_value_reads(files: Files) -> None:
    """Each kind of value of a method becomes its Python value; integer lists stay indices."""
    values = [
        ("Null", {}),
        ("Int", {"value": -(2**63)}),
        ("Bool", {"value": True}),
        ("Double", {"value": 0.5}),
        ("String", {"value": "grün"}),
        ("Tensor", tensor()),
        ("IntList", {"items": [1, 1]}),
        ("DoubleList", {"items": [1.0, math.inf]}),
        ("BoolList", {"items": [True, False]}),
        ("TensorList", {"items": [5]}),
        ("OptionalTensorList", {"items": [-1, 5, 0]}),
        ("Int", {}),
    ]
    plan = {"values": [{"value": value} for value in values], "inputs": [5], "outputs": [1, 5]}
    method = read_program(files.program(plan)).methods[0]
    expected_tensor = FileTensor("float32", (2, 2), (0, 1), "static", "bound", None, None)
    expected = (
        None,
        -(2**63),
        True,
        0.5,
        "grün",
        expected_tensor,
        IndexList((1, 1)),
        (1.0, math.inf),
        (True, False),
        FileTensorList((5,)),
        FileTensorList((None, 5, 0)),
        0,
    )
    assert expected == method.values
    assert ((5,), (1, 5)) == (method.inputs, method.outputs)


def test_every_kind_of_instruction_reads(files: Files) -> None:
    """Each kind of instruction becomes its value; a later chain's jumps count from its start."""
    plan = {
        "values": [{"value": ("Bool", {})}, {"value": ("Int", {})}],
        "operators": [{"name": "aten::sum", "overload": "IntList_out"}, {"name": "aten::neg"}],
        "delegates": [{"id": "Other", "processed": {"location": 0, "index": 0}}],
        "chains": [
            {
                "instructions": [
                    {"arguments": ("KernelCall", {"op_index": 0, "args": [0, 1]})},
                    {"arguments": ("KernelCall", {"op_index": 1, "args": []})},
                    {"arguments": ("DelegateCall", {"delegate_index": 0, "args": [1]})},
                ]
            },
            {
                "instructions": [
                    {"arguments": ("MoveCall", {"move_from": 0, "move_to": 1})},
                    {"arguments": ("FreeCall", {"value_index": 1})},
                    {
                        "arguments": (
                            "JumpFalseCall",
                            {"cond_value_index": 0, "destination_instruction": 3},
                        )
                    },
                ]
            },
        ],
    }
    data = files.program(plan, backend_delegate_data=[{"data": b"opaque"}])
    assert (
        KernelCall("aten.sum.IntList_out", (0, 1)),
        KernelCall("aten.neg.default", ()),
        DelegateCall(0, (1,)),
        MoveCall(0, 1),
        FreeCall(1),
        JumpFalseCall(0, 6),
    ) == read_program(data).methods[0].instructions


def test_every_kind_of_delegate_value_reads(files: Files) -> None:
    """Each kind of value of a delegate becomes its Python value; integer lists are literal."""
    values: list[tuple[str, dict[str, object]]] = [
        ("Null", {}),
        ("Int", {"value": -3}),
        ("Double", {"value": -0.5}),
        ("Bool", {"value": True}),
        ("VkTensor", {"datatype": 4, "dims": [2, 3], "constant_id": -1, "staging_datatype": 5}),
        ("IntList", {"items": [-1, 99]}),
        ("DoubleList", {"items": [0.5]}),
        ("BoolList", {"items": [True]}),
        ("ValueList", {"items": [4, 0]}),
        ("String", {"value": "relu"}),
        ("SymInt", {"value": 5}),
    ]
    calls = [{"node_id": 9, "name": "aten.add.Tensor", "args": [4, 4, 1, 4]}]
    data = files.graph(values, chain=calls, input_ids=[4], output_ids=[4, 10])
    graph = read_program(data).methods[0].delegates[0].graph
    assert graph is not None
    assert (
        None,
        -3,
        -0.5,
        True,
        DelegateTensor("float16", (2, 3), None, None, 0, "float32"),
        (-1, 99),
        (0.5,),
        (True,),
        ValueList((4, 0)),
        "relu",
        SymbolicInt(5),
    ) == graph.values
    assert (DelegateNode(9, "aten.add.Tensor", (4, 4, 1, 4)),) == graph.calls
    assert ("0", (4,), (4, 10)) == (graph.version, graph.inputs, graph.outputs)


def test_omitted_tensor_ids_default_to_zero(files: Files) -> None:
    """A delegate tensor that omits constant_id is constant 0, and its memory object is 0."""
    row = ("VkTensor", {"datatype": 5, "dims": [2, 2]})
    constants = [{"offset": 0, "length": 16}]
    graph = read_program(files.graph([row], constants=constants, inline=FLOATS)).methods[0]
    assert graph.delegates[0].graph is not None
    value = graph.delegates[0].graph.values[0]
    assert isinstance(value, DelegateTensor)
    assert FLOATS == bytes(value.data or b"")
    assert 0 == value.memory_object


def test_options_of_a_delegate_are_kept(files: Files) -> None:
    """Compile specs arrive as a mapping of bytes."""
    specs = [{"key": "force_fp16", "value": b"\1"}, {"key": "empty"}]
    delegate = {"id": "X", "processed": {}, "compile_specs": specs}
    data = files.program({"delegates": [delegate]}, backend_delegate_data=[{}])
    options = read_program(data).methods[0].delegates[0].options
    assert {"force_fp16": b"\1", "empty": b""} == dict(options)


@pytest.mark.parametrize(
    ("fields", "root", "kind"),
    [
        (
            {"data_buffer_idx": 1},
            {"constant_segment": {"segment_index": 0, "offsets": [0, 8]}},
            "constant",
        ),
        ({"data_buffer_idx": 1}, {"constant_buffer": [{}, {"storage": FLOATS}]}, "constant"),
        ({"allocation_info": {"memory_id": 1}}, {}, "planned"),
        ({}, {}, "bound"),
        (
            {
                "data_buffer_idx": 1,
                "allocation_info": {"memory_id": 1},
                "extra_tensor_info": {"mutable_data_segments_idx": 1},
            },
            {"mutable_data_segments": [{}, {"segment_index": 0, "offsets": [0, 8]}]},
            "mutable",
        ),
        (
            {"extra_tensor_info": {"location": 1, "fully_qualified_name": "w"}},
            {"named_data": [{"key": "w", "segment_index": 1}]},
            "external",
        ),
    ],
)
def test_the_bytes_of_a_tensor_are_found(
    files: Files, fields: dict[str, object], root: dict[str, object], kind: str
) -> None:
    """Each way to store a tensor gives its kind and, where it has content, exactly its bytes."""
    segments = [b"8 bytes." + FLOATS, FLOATS]
    program = read_program(files.value("Tensor", tensor(**fields), segment_bytes=segments, **root))
    value = program.methods[0].values[0]
    assert isinstance(value, FileTensor)
    assert kind == value.kind
    assert (None if kind in ("planned", "bound") else FLOATS) == value.data
    assert () == program.warnings


def test_external_files_supply_constants(files: Files) -> None:
    """A named constant of a tensor and one of a delegate are found in different .ptd files."""
    row = ("VkTensor", {"datatype": 5, "dims": [4], "constant_id": 0})
    constants = [{"offset": BY_NAME, "length": 16, "named_key": SHA256}]
    data = files.graph([row], constants=constants)
    layout = {"scalar_type": 6, "sizes": [4], "dim_order": [0]}
    other = files.ptd([{"key": "bias", "segment_index": 0, "tensor_layout": layout}], [b"abc"])
    wanted = files.ptd([{"key": SHA256, "segment_index": 1}], [b"first", FLOATS])
    graph = read_program(data, [other, wanted]).methods[0].delegates[0].graph
    assert graph is not None
    value = graph.values[0]
    assert isinstance(value, DelegateTensor)
    assert FLOATS == bytes(value.data or b"")
    assert SHA256 == value.constant_key


def test_a_longer_constant_is_cut_with_a_warning(files: Files) -> None:
    """A stored constant longer than its tensor gives its first bytes and one warning."""
    row = ("VkTensor", {"datatype": 5, "dims": [2], "constant_id": 0})
    constants = [{"offset": 0, "length": 16}]
    program = read_program(files.graph([row], constants=constants, inline=FLOATS))
    graph = program.methods[0].delegates[0].graph
    assert graph is not None
    value = graph.values[0]
    assert isinstance(value, DelegateTensor)
    assert FLOATS[:8] == bytes(value.data or b"")
    assert 1 == len(program.warnings)
    assert "has 16 bytes but the tensor takes 8" in program.warnings[0]


def test_delegates_that_share_a_blob_are_read_once(files: Files) -> None:
    """Two delegates that point at one segment share one graph."""
    delegate = {"id": "VulkanBackend", "processed": {"location": 1, "index": 0}}
    blob = files.blob({"values": [{"value": ("Int", {"value": 3})}]})
    method = read_program(files.program({"delegates": [delegate] * 2}, [blob])).methods[0]
    assert method.delegates[0].graph is not None
    assert method.delegates[0].graph is method.delegates[1].graph


def test_an_inline_blob_reads(files: Files) -> None:
    """A Vulkan delegate stored inline in the table reads like one in a segment."""
    delegate = {"id": "VulkanBackend", "processed": {"location": 0, "index": 0}}
    blob = files.blob({"values": [{"value": ("Int", {"value": 3})}]})
    data = files.program({"delegates": [delegate]}, backend_delegate_data=[{"data": blob}])
    graph = read_program(data).methods[0].delegates[0].graph
    assert graph is not None
    assert (3,) == graph.values


def test_a_file_without_extended_header_reads(files: Files) -> None:
    """An old program without the eh00 header and without segments reads."""
    data = bytearray(files.value("Int", {"value": 4}))
    data[8:12] = bytes(4)
    assert (4,) == read_program(data).methods[0].values


def test_an_unbounded_tensor_may_have_meaningless_sizes(files: Files) -> None:
    """Sizes of a tensor of unbounded shape may be as large as they like."""
    sizes = [2**31 - 1, 2**31 - 1]
    data = files.value("Tensor", tensor(sizes=sizes, shape_dynamism=2))
    value = read_program(data).methods[0].values[0]
    assert isinstance(value, FileTensor)
    assert ("unbounded", tuple(sizes)) == (value.dynamism, value.shape)


@pytest.mark.parametrize("convert", [bytes, bytearray, memoryview])
def test_any_buffer_reads(files: Files, convert: type) -> None:
    """Bytes, bytearrays and memoryviews read alike."""
    assert (4,) == read_program(convert(files.value("Int", {"value": 4}))).methods[0].values


def test_a_buffer_with_gaps_reads(files: Files) -> None:
    """A memoryview that is not contiguous reads like its bytes."""
    data = files.value("Int", {"value": 4})
    spread = bytes(byte for pair in zip(data, data, strict=True) for byte in pair)
    assert (4,) == read_program(memoryview(spread)[::2]).methods[0].values


def test_an_argument_that_is_no_buffer_is_a_type_error() -> None:
    """A path instead of bytes is the caller's mistake and says so."""
    with pytest.raises(TypeError, match=r"the program: expected the bytes of a file, received str"):
        read_program("model.pte")  # type: ignore[arg-type]
