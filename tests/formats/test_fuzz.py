"""Damaged files, by the thousand: they read, or raise ProgramFormatError, soon.

``NYBBLE_FUZZ_EXAMPLES=200000`` makes a longer run with fresh randomness.
"""

from __future__ import annotations

import hashlib
import math
import os
import struct
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nybble.errors import ProgramFormatError
from nybble.formats import (
    DelegateCall,
    DelegateGraph,
    DelegateTensor,
    FileTensor,
    FileTensorList,
    IndexList,
    JumpFalseCall,
    ProgramFile,
    ValueList,
    read_program,
)

if TYPE_CHECKING:
    from tests.formats.conftest import Files

ASKED = os.environ.get("NYBBLE_FUZZ_EXAMPLES")
FLOATS = struct.pack("<4f", 1.0, 2.0, 3.0, 4.0)
SHA256 = hashlib.sha256(FLOATS).hexdigest()

#: (kind of damage, place as a fraction of the file, number, size)
Damage: TypeAlias = tuple[str, float, int, int]

fuzzed = settings(
    max_examples=int(ASKED or 2000),
    derandomize=ASKED is None,
    database=None,
    # A case takes about a millisecond; a hang, or work that grows, takes far more than this.
    deadline=timedelta(seconds=3),
    suppress_health_check=[HealthCheck.too_slow],
)
numbers = st.one_of(
    st.sampled_from(
        [0, 1, 2, 3, 4, 8, 127, 128, 255, 2**15, 2**31 - 1, 2**31, 2**32 - 4, 2**32 - 1]
    ),
    st.integers(0, 300),
    st.integers(0, 2**32 - 1),
)
damages = st.lists(
    st.tuples(
        st.sampled_from(
            ["byte", "word", "word", "aligned word", "cut", "remove", "insert", "splice"]
        ),
        st.floats(0, 1),
        numbers,
        st.integers(1, 40),
    ),
    min_size=1,
    max_size=4,
)


def damaged(data: bytes, other: bytes, damage: Damage) -> bytes:
    """``data`` after one piece of damage."""
    kind, fraction, number, size = damage
    at = int(fraction * len(data))
    if kind == "cut":
        return data[:at]
    if kind == "remove":
        return data[:at] + data[at + size :]
    if kind == "insert":
        return data[:at] + bytes([number % 256]) * size + data[at:]
    if kind == "splice":
        source = number % max(len(other), 1)
        return data[:at] + other[source : source + size] + data[at + size :]
    if kind == "byte":
        return data[:at] + bytes([number % 256]) + data[at + 1 :]
    at -= at % 4 if kind == "aligned word" else 0
    return data[:at] + struct.pack("<I", number) + data[at + 4 :]


def item_bytes(dtype: str) -> float:
    """Bytes of one element, from numpy where it knows the type."""
    special = {"bfloat16": 2, "qint32": 4, "bits16": 2, "quint4x2": 0.5, "quint2x4": 0.25}
    if dtype.startswith(("float8", "qint8", "quint8")):
        return 1
    return special[dtype] if dtype in special else np.dtype(dtype).itemsize


def check_tensor(value: FileTensor | DelegateTensor) -> None:
    """Stored content has exactly the bytes of the shape."""
    assert all(0 <= size < 2**31 for size in value.shape)
    if value.data is not None:
        assert math.ceil(math.prod(value.shape) * item_bytes(value.dtype)) == len(value.data)
    if isinstance(value, FileTensor):
        assert list(range(len(value.shape))) == sorted(value.dim_order)
        assert (value.kind in ("planned", "bound")) == (value.data is None)


def check_graph(graph: DelegateGraph) -> None:
    """Every id in a delegate's graph leads to a value."""
    ids = [*graph.inputs, *graph.outputs]
    ids += [arg for call in graph.calls for arg in call.args]
    ids += [item for value in graph.values if isinstance(value, ValueList) for item in value.items]
    assert all(0 <= identifier < len(graph.values) for identifier in ids)
    for value in graph.values:
        if isinstance(value, DelegateTensor):
            check_tensor(value)


def check_program(program: ProgramFile) -> None:
    """What was accepted keeps the promises of the types."""
    assert program.methods
    for method in program.methods:
        ids: list[Any] = [*method.inputs, *method.outputs]
        for call in method.instructions:
            ids += getattr(call, "args", ())
            names = ("source", "condition", "value")
            ids += [getattr(call, name) for name in names if hasattr(call, name)]
            if isinstance(call, DelegateCall):
                assert 0 <= call.delegate < len(method.delegates)
            if isinstance(call, JumpFalseCall):
                assert 0 <= call.target <= len(method.instructions)
        for value in method.values:
            if isinstance(value, FileTensor):
                check_tensor(value)
            elif isinstance(value, IndexList | FileTensorList):
                ids += [item for item in value.items if item is not None]
        assert all(0 <= identifier < len(method.values) for identifier in ids)
        for delegate in method.delegates:
            if delegate.graph is not None:
                check_graph(delegate.graph)


_TENSOR = {"scalar_type": 6, "sizes": [2, 2], "dim_order": [1, 0]}
_EXTERNAL = {"location": 1, "fully_qualified_name": "w"}
_VALUES: list[tuple[str, dict[str, Any]]] = [
    ("Null", {}),
    ("Int", {"value": 5}),
    ("Bool", {"value": True}),
    ("Double", {"value": 0.5}),
    ("String", {"value": "mean"}),
    ("Tensor", {**_TENSOR, "allocation_info": {"memory_id": 1}, "shape_dynamism": 1}),
    ("Tensor", {**_TENSOR, "data_buffer_idx": 1}),
    ("Tensor", {**_TENSOR, "data_buffer_idx": 1, "allocation_info": {"memory_id": 1}}),
    ("Tensor", {**_TENSOR, "extra_tensor_info": _EXTERNAL}),
    ("IntList", {"items": [1, 1]}),
    ("DoubleList", {"items": [0.5, 1.5]}),
    ("BoolList", {"items": [True]}),
    ("TensorList", {"items": [5, 6]}),
    ("OptionalTensorList", {"items": [-1, 6]}),
]
_GRAPH_VALUES: list[tuple[str, dict[str, Any]]] = [
    ("VkTensor", {"datatype": 5, "dims": [2, 2], "constant_id": -1}),
    ("VkTensor", {"datatype": 5, "dims": [2, 2], "constant_id": 0}),
    ("VkTensor", {"datatype": 5, "dims": [3], "constant_id": 1}),
    ("ValueList", {"items": [0, 1]}),
    ("SymInt", {"value": 3}),
    ("IntList", {"items": [1, 2]}),
    ("String", {"value": "relu"}),
]
_INSTRUCTIONS: list[tuple[str, dict[str, Any]]] = [
    ("KernelCall", {"op_index": 0, "args": [5, 9]}),
    ("DelegateCall", {"delegate_index": 0, "args": [5, 5]}),
    ("MoveCall", {"move_from": 5, "move_to": 5}),
    ("JumpFalseCall", {"cond_value_index": 2, "destination_instruction": 5}),
    ("FreeCall", {"value_index": 5}),
]


def everything(files: Files) -> bytes:
    """One program with every kind of value, instruction, storage and delegate."""
    blob = files.blob(
        {
            "values": [{"value": value} for value in _GRAPH_VALUES],
            "chain": [{"name": "aten.cat.default", "args": [3, 0]}],
            "constants": [
                {"offset": 2**64 - 1, "length": 16, "named_key": SHA256},
                {"offset": 4, "length": 12},
            ],
            "input_ids": [0],
            "output_ids": [0],
        },
        FLOATS,
    )
    vulkan = {"id": "VulkanBackend", "compile_specs": [{"key": "force_fp16", "value": b"\1"}]}
    plan = {
        "values": [{"value": value} for value in _VALUES],
        "inputs": [5],
        "outputs": [5],
        "operators": [{"name": "aten::sum", "overload": "IntList_out"}],
        "chains": [{"instructions": [{"arguments": call} for call in _INSTRUCTIONS]}],
        "delegates": [
            {**vulkan, "processed": {"location": 1, "index": 0}},
            {**vulkan, "processed": {"location": 0, "index": 0}},
        ],
    }
    return files.program(
        plan,
        [blob, FLOATS, FLOATS],
        backend_delegate_data=[{"data": blob}],
        constant_segment={"segment_index": 1, "offsets": [0, 0]},
        mutable_data_segments=[{"segment_index": 2, "offsets": [0, 0]}],
        named_data=[{"key": SHA256, "segment_index": 2}],
    )


@pytest.fixture(scope="module")
def corpus(files: Files) -> list[tuple[bytes, list[bytes]]]:
    """Whole files to damage, each with its external data."""
    external = files.ptd([{"key": "w", "segment_index": 0}], [FLOATS])
    real = files.real()
    cases = [
        (data, files.external() if name.startswith("external") else [])
        for name, data in real.items()
        if len(data) < 20_000
    ]
    return [(everything(files), [external])] * max(len(cases) // 2, 1) + cases


def test_the_undamaged_corpus_reads(corpus: list[tuple[bytes, list[bytes]]]) -> None:
    """The files to damage are whole to begin with, so damage is what the fuzz test meets."""
    for data, external in corpus:
        check_program(read_program(data, external))


@fuzzed
@given(which=st.integers(0, 10**6), other=st.integers(0, 10**6), pieces=damages)
def test_a_damaged_program_reads_or_is_refused(
    corpus: list[tuple[bytes, list[bytes]]], which: int, other: int, pieces: list[Damage]
) -> None:
    """A damaged .pte raises nothing but ProgramFormatError; what is accepted is consistent."""
    data, external = corpus[which % len(corpus)]
    for piece in pieces:
        data = damaged(data, corpus[other % len(corpus)][0], piece)
    try:
        program = read_program(data, external)
    except ProgramFormatError:
        return
    check_program(program)


@settings(fuzzed, max_examples=int(ASKED or 1500))
@given(pieces=damages)
def test_damaged_external_data_reads_or_is_refused(
    files: Files, corpus: list[tuple[bytes, list[bytes]]], pieces: list[Damage]
) -> None:
    """A damaged .ptd raises nothing but ProgramFormatError."""
    layout = {"scalar_type": 6, "sizes": [2, 2], "dim_order": [1, 0]}
    named = [{"key": "w", "segment_index": 0, "tensor_layout": layout}]
    external = files.ptd(named, [FLOATS])
    for piece in pieces:
        external = damaged(external, corpus[0][0], piece)
    try:
        program = read_program(corpus[0][0], [external])
    except ProgramFormatError:
        return
    check_program(program)


@settings(fuzzed, max_examples=int(ASKED or 1500))
@given(pieces=damages)
def test_a_damaged_delegate_reads_or_is_refused(files: Files, pieces: list[Damage]) -> None:
    """A damaged blob in an undamaged program raises nothing but ProgramFormatError."""
    values = [
        {"value": ("VkTensor", {"datatype": 5, "dims": [2, 2], "constant_id": 0})},
        {"value": ("ValueList", {"items": [0]})},
        {"value": ("DoubleList", {"items": [0.5]})},
    ]
    blob = files.blob(
        {
            "values": values,
            "constants": [{"offset": 0, "length": 16}],
            "chain": [{"name": "aten.neg.default", "args": [0, 0]}],
            "input_ids": [0],
        },
        FLOATS,
    )
    for piece in pieces:
        blob = damaged(blob, blob, piece)
    try:
        program = read_program(files.delegated(blob))
    except ProgramFormatError:
        return
    check_program(program)
