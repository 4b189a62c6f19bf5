"""Each check of the readers, met by a file that is wrong in just that way."""

from __future__ import annotations

import hashlib
import re
import struct
import time
from typing import TYPE_CHECKING, Any

import pytest

from nybble.errors import ProgramFormatError
from nybble.formats import DelegateTensor, read_program

if TYPE_CHECKING:
    from tests.formats.conftest import Files, Shared

FLOATS = struct.pack("<4f", 1.0, 2.0, 3.0, 4.0)
SHA256 = hashlib.sha256(FLOATS).hexdigest()
BY_NAME = 2**64 - 1


def refused(data: bytes, message: str, *external: bytes) -> None:
    """Reading must fail with a :class:`ProgramFormatError` that contains the message."""
    with pytest.raises(ProgramFormatError, match=re.escape(message)):
        read_program(data, external)


TENSOR = {"scalar_type": 6, "sizes": [2, 2], "dim_order": [0, 1]}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"scalar_type": 99}, "value 0: element type 99 is unknown, expected one of 0 (uint8)"),
        ({"sizes": [2, -1]}, "dimension 1 has size -1, expected 0 to 2147483647"),
        ({"sizes": [2**31 - 1] * 2}, "takes more than the 1099511627776 bytes"),
        ({"sizes": [0, 2**31 - 1, 2**31 - 1]}, "takes more than the 1099511627776 bytes"),
        ({"sizes": [1] * 9}, "the tensor has 9 dimensions, expected at most 8"),
        ({"dim_order": [0, 0]}, "the dimension order is [0, 0], expected each of 0 to 1 once"),
        ({"dim_order": [0]}, "the dimension order is [0], expected"),
        ({"dim_order": [1, 2]}, "the dimension order is [1, 2], expected"),
        ({"storage_offset": 4}, "the storage offset is 4, expected 0"),
        ({"shape_dynamism": 3}, "shape dynamism 3 is unknown"),
        ({"extra_tensor_info": {"location": 2}}, "data location 2 is unknown"),
        ({"extra_tensor_info": {"location": 1}}, "the data is external, but the tensor has no"),
        (
            {"extra_tensor_info": {"location": 1, "fully_qualified_name": "w"}},
            "constant 'w' is neither in the program nor in the external data given. Pass the .ptd",
        ),
        ({"data_buffer_idx": 2}, "its data is entry 2 of the constant segment, which has 2 ent"),
        (
            {"data_buffer_idx": 1, "sizes": [2, 3]},
            "its 24 bytes lie at bytes 4 to 28 of the constant segment, which has 20 bytes",
        ),
        (
            {
                "data_buffer_idx": 1,
                "shape_dynamism": 2,
                "sizes": [2**31 - 1, 2**31 - 1],
            },
            "takes more than the 1099511627776 bytes",
        ),
        (
            {"data_buffer_idx": 1, "allocation_info": {}},
            "its initial data is in mutable data segment 0, but the program has 0 of them",
        ),
    ],
)
def test_a_bad_tensor_is_refused(files: Files, fields: dict[str, Any], message: str) -> None:
    """Each field of a Tensor table is checked."""
    segment = {"segment_index": 0, "offsets": [0, 4]}
    data = files.value(
        "Tensor", {**TENSOR, **fields}, constant_segment=segment, segment_bytes=[b"4444" + FLOATS]
    )
    refused(data, message)


def test_a_missing_constant_buffer_is_refused(files: Files) -> None:
    """A tensor of an old file may name only a constant buffer that exists and is long enough."""
    tensor = {**TENSOR, "data_buffer_idx": 1}
    refused(
        files.value("Tensor", tensor, constant_buffer=[{}]),
        "its data is constant buffer 1, but the program has 1 constant buffers",
    )
    refused(
        files.value("Tensor", tensor, constant_buffer=[{}, {"storage": b"short"}]),
        "its 16 bytes lie at bytes 0 to 16 of constant buffer 1, which has 5 bytes",
    )


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        ("KernelCall", {"op_index": 1}, "item 0 is 1, but there are 1 operators"),
        ("KernelCall", {"op_index": -1}, "item 0 is -1, but there are 1 operators"),
        ("KernelCall", {"args": [0, 2]}, "arguments: item 1 is 2, but there are 2 values"),
        ("DelegateCall", {"delegate_index": 0}, "item 0 is 0, but there are 0 delegates"),
        ("MoveCall", {"move_from": -1}, "item 0 is -1, but there are 2 values"),
        ("MoveCall", {"move_to": 2}, "item 0 is 2, but there are 2 values"),
        ("JumpFalseCall", {"cond_value_index": 2}, "item 0 is 2, but there are 2 values"),
        ("JumpFalseCall", {"destination_instruction": 2}, "is 2, but there are 2 places to jump"),
        ("JumpFalseCall", {"destination_instruction": -1}, "is -1, but there are 2 places"),
        ("FreeCall", {"value_index": 9}, "item 0 is 9, but there are 2 values"),
    ],
)
def test_a_bad_instruction_is_refused(
    files: Files, kind: str, fields: dict[str, Any], message: str
) -> None:
    """Each id of each instruction is checked; the error names the instruction."""
    refused(files.instruction(kind, **fields), message)
    refused(files.instruction(kind, **fields), "the program, method 'forward', instruction 0")


INT: dict[str, Any] = {"value": ("Int", {})}
NULL: dict[str, Any] = {"value": ("Null", {})}


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"values": [INT], "inputs": [1]}, "inputs: item 0 is 1, but there are 1 values"),
        ({"values": [INT], "outputs": [-1]}, "outputs: item 0 is -1, but there are 1 values"),
        ({"values": [{}]}, "value 0: it is of unknown kind 0, expected one of 1 (Null), 2 (Int)"),
        ({"chains": []}, "there is no chain of instructions"),
        ({"chains": [{"instructions": [{}]}]}, "instruction 0: it is of unknown kind 0"),
        ({"values": [{"value": ("IntList", {"items": [2**40]})}]}, "item 0 is 1099511627776"),
        ({"values": [{"value": ("IntList", {"items": [0]})}]}, "is of kind IndexList, expected an"),
        ({"values": [NULL, {"value": ("IntList", {"items": [0]})}]}, "is of kind NoneType, exp"),
        ({"values": [{"value": ("TensorList", {"items": [-1]})}]}, "item 0 is -1, but there are 1"),
        ({"values": [INT, {"value": ("TensorList", {"items": [0]})}]}, "of kind int, expected a t"),
        ({"values": [{"value": ("OptionalTensorList", {"items": [-2]})}]}, "item 0 is -2, but"),
        ({"values": [{"value": ("String", {"value": b"\xff\xfe"})}]}, "is not UTF-8 text"),
        ({"delegates": [{"processed": {}}]}, "delegate 0: the delegate names no backend"),
        ({"delegates": [{"id": "X"}]}, "delegate 0 ('X'): it refers to no data"),
        ({"delegates": [{"id": "X", "processed": {}}]}, "inline blob 0, but the program has 0"),
        ({"delegates": [{"id": "X", "processed": {"location": 1, "index": 3}}]}, "in segment 3"),
        ({"delegates": [{"id": "X", "processed": {"location": 2}}]}, "data location 2 is unknown"),
        ({"name": b"\x80"}, "field name of table ExecutionPlan"),
    ],
)
def test_a_bad_method_is_refused(files: Files, plan: dict[str, Any], message: str) -> None:
    """Ids, kinds and references of a method are checked."""
    refused(files.program(plan), message)


def test_methods_are_named_once_and_there_is_one(files: Files) -> None:
    """A program without a method, or with two of one name, is refused."""
    plan = {"name": "forward", "chains": [{}]}
    refused(files.pte({}), "there is no method, expected at least one")
    refused(files.pte({"execution_plan": [plan, plan]}), "there are two methods named 'forward'")


@pytest.mark.parametrize(
    ("root", "message"),
    [
        ({"segments": [{"offset": 0, "size": 17}]}, "segment 0: its 17 bytes lie at bytes 0 to 17"),
        ({"segments": [{"offset": 2**64 - 1, "size": 1}]}, "segment 0: its 1 bytes lie at bytes"),
        ({"segments": [{"size": 9}, {"offset": 7, "size": 9}]}, "segments overlap"),
        ({"named_data": [{"key": "w", "segment_index": 1}]}, "constant 'w': its data is in segme"),
        ({"named_data": [{"key": "w"}, {"key": "w"}]}, "constant 'w' is already given by the pro"),
        ({"constant_segment": {"segment_index": 1, "offsets": [0]}}, "the constant segment: its"),
        ({"mutable_data_segments": [{"segment_index": 1, "offsets": [0]}]}, "mutable data segment"),
    ],
)
def test_a_bad_segment_is_refused(files: Files, root: dict[str, Any], message: str) -> None:
    """Segments lie in the file, do not overlap, and are referred to by valid indices."""
    refused(files.value("Int", {}, segment_bytes=[FLOATS], **root), message)


VK_TENSOR = {"datatype": 5, "dims": [2, 2], "constant_id": -1}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"datatype": 8}, "value 0: element type 8 is unknown"),
        ({"datatype": 127}, "value 0: element type 127 is unknown"),
        ({"staging_datatype": 9}, "staging: element type 9 is unknown"),
        ({"dims": [2**32 - 1]}, "dimension 0 has size 4294967295, expected 0 to 2147483647"),
        ({"dims": [2**20, 2**20]}, "takes more than the 1099511627776 bytes"),
        ({"dims": [1] * 9}, "the tensor has 9 dimensions"),
        ({"constant_id": 6}, "constant: item 0 is 6, but there are 6 constants"),
        ({"constant_id": 0}, "its 99 bytes lie at bytes 0 to 99 of the delegate's constant data"),
        ({"constant_id": 1}, "its 8 bytes lie at bytes 9 to 17 of the delegate's constant data"),
        ({"constant_id": 2}, "constant 2 is stored by name, but its name is empty"),
        ({"constant_id": 3}, "constant 'w' is neither in the program nor in the external data"),
        ({"constant_id": 4}, "its 16 bytes lie at bytes 0 to 16 of constant 4, which has 8 bytes"),
        ({"constant_id": 5}, "its 17 bytes lie at bytes 0 to 17 of constant '" + SHA256),
    ],
)
def test_a_bad_delegate_tensor_is_refused(
    files: Files, fields: dict[str, Any], message: str
) -> None:
    """Type, sizes and constant of a delegate's tensor are checked."""
    constants = [
        {"offset": 0, "length": 99},
        {"offset": 9, "length": 8},
        {"offset": BY_NAME, "length": 16},
        {"offset": BY_NAME, "length": 16, "named_key": "w"},
        {"offset": 8, "length": 8},
        {"offset": BY_NAME, "length": 17, "named_key": SHA256},
    ]
    rows = [{"value": ("VkTensor", {**VK_TENSOR, **fields})}]
    blob = files.blob({"values": rows, "constants": constants}, FLOATS)
    named = [{"key": SHA256, "segment_index": 1}]
    refused(files.delegated(blob, [FLOATS], named_data=named), message)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        ({"values": [INT], "input_ids": [1]}, "inputs: item 0 is 1, but there are 1 values"),
        ({"values": [INT], "output_ids": [2**32 - 1]}, "outputs: item 0 is 4294967295"),
        ({"values": [{}]}, "value 0: it is of unknown kind 0, expected one of 1 (Null), 2 (Int)"),
        ({"chain": [{"args": []}]}, "call 0: the operator has no name"),
        ({"chain": [{"name": "aten.neg", "args": [0]}]}, "call 0 ('aten.neg'), arguments: item 0"),
        ({"values": [{"value": ("ValueList", {"items": [1]})}]}, "value 0: item 0 is 1, but"),
        ({"values": [{"value": ("ValueList", {"items": [0]})}]}, "item 0 is itself a list"),
    ],
)
def test_a_bad_graph_is_refused(files: Files, graph: dict[str, Any], message: str) -> None:
    """Ids and kinds of a delegate's graph are checked."""
    refused(files.delegated(files.blob(graph)), message)


def test_a_flipped_bit_of_a_real_weight_is_found(files: Files) -> None:
    """One changed bit anywhere in a named constant is refused: its name is its digest."""
    data = bytearray(files.real()["pointwise.pte"])
    graph = read_program(bytes(data)).methods[0].delegates[0].graph
    assert graph is not None
    tensors = [value for value in graph.values if isinstance(value, DelegateTensor)]
    contents = [bytes(value.data or b"") for value in tensors if value.constant_key]
    assert contents
    for content in contents:
        at = data.index(content)
        data[at + len(content) // 2] ^= 0x10
        refused(bytes(data), "has SHA-256")
        data[at + len(content) // 2] ^= 0x10


def test_missing_external_files_are_asked_for(files: Files) -> None:
    """A program whose constants are in .ptd files says so when they are not given."""
    refused(files.real()["external_constants.pte"], "Pass the .ptd files that were exported with")


def test_an_external_constant_of_another_shape_is_refused(files: Files) -> None:
    """A .ptd entry that says it has another shape than the program's tensor is refused."""
    extra = {"location": 1, "fully_qualified_name": "w"}
    data = files.value("Tensor", {**TENSOR, "extra_tensor_info": extra})
    layout = {"scalar_type": 6, "sizes": [4], "dim_order": [0]}
    external = files.ptd([{"key": "w", "segment_index": 0, "tensor_layout": layout}], [FLOATS])
    refused(data, "external data file 0 holds float32 of shape [4]", external)


def test_two_files_may_not_give_one_name(files: Files) -> None:
    """A name that is no digest may be given by one file only."""
    external = files.ptd([{"key": "w", "segment_index": 0}], [FLOATS])
    refused(
        files.value("Int", {}),
        "external data file 1: constant 'w' is already given by external data file 0",
        external,
        external,
    )


def test_a_long_name_is_cut_in_messages(files: Files) -> None:
    """A name of a megabyte from the file does not become a message of a megabyte."""
    named = [{"key": "w" * 2**20, "segment_index": 9}]
    with pytest.raises(ProgramFormatError) as caught:
        read_program(files.value("Int", {}, named_data=named))
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("length", [1_000, 100_000])
def test_shared_tables_cannot_multiply_the_work(
    files: Files, shared: type[Shared], length: int
) -> None:
    """A small file whose many values all point at one long list is refused, and soon."""
    items = shared("items", [0.0] * length)
    values = [{"value": ("DoubleList", {"items": items})}] * 20_000
    data = files.program({"values": values})
    start = time.monotonic()
    refused(data, "is one table or list too many for a buffer of")
    assert time.monotonic() - start < 10


def test_shared_rows_cannot_multiply_the_work(files: Files, shared: type[Shared]) -> None:
    """Sharing that nests (lists of lists of one table) is refused before it grows."""
    instruction = shared("instruction", {"arguments": ("FreeCall", {})})
    chain = shared("chain", {"instructions": shared("rows", [instruction] * 3_000)})
    plan = shared(
        "plan",
        {"name": "f", "values": [NULL], "chains": shared("chains", [chain] * 3_000)},
    )
    data = files.pte({"execution_plan": [plan] * 3_000})
    assert len(data) < 100_000
    refused(data, "is one table or list too many")


def test_a_count_beyond_the_buffer_allocates_nothing(files: Files) -> None:
    """A list that declares four thousand million items is refused by its count alone."""
    data = bytearray(files.value("DoubleList", {"items": [0.25]}))
    struct.pack_into("<I", data, data.index(struct.pack("<d", 0.25)) - 4, 2**32 - 1)
    refused(bytes(data), "a list of 4294967295 items of 8 bytes, lies at bytes")


@pytest.mark.parametrize(
    ("directory", "message"),
    [
        (struct.pack("<HHH", 2, 8, 4), "has a directory of 2 and a body of 8 bytes"),
        (struct.pack("<HHH", 6, 2, 4), "has a directory of 6 and a body of 2 bytes"),
        (struct.pack("<HHH", 2**16 - 1, 8, 4), "the field directory of table Null"),
        (struct.pack("<HHH", 6, 2**16 - 1, 4), "table Null at byte"),
    ],
)
def test_a_bad_field_directory_is_refused(files: Files, directory: bytes, message: str) -> None:
    """Size of a table and of its directory are checked against the buffer."""
    data = bytearray(files.value("Null", {}))
    # The last table of the file is the Null: a directory of four bytes, then its back offset.
    assert struct.pack("<HHi", 4, 4, 4) == bytes(data[-8:])
    data[-8:] = directory + struct.pack("<i", 6)
    struct.pack_into("<Q", data, 16, len(data))
    patched = bytes(data)
    at = len(data) - 10
    # The union's offset field leads to where the Null's back offset was; move it by two.
    for place in range(at - 64, at):
        if struct.unpack_from("<I", patched, place)[0] == at + 6 - 2 - place:
            struct.pack_into("<I", data, place, at + 6 - place)
    refused(bytes(data), message)


def test_a_field_outside_its_table_is_refused(files: Files) -> None:
    """A field's place must lie within the table that has it."""
    data = bytearray(files.value("Int", {"value": 77}))
    at = data.index(struct.pack("<q", 77)) - 4
    directory = at - struct.unpack_from("<i", data, at)[0]
    struct.pack_into("<H", data, directory + 4, 5)
    refused(bytes(data), "field value of table Int")
    refused(bytes(data), "lies 5 bytes into its table, expected 4 to 4")
