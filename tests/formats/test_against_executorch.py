"""The same file, read by nybble and by ExecuTorch's own Python reader."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pytest

from nybble.formats import (
    DelegateCall,
    DelegateGraph,
    DelegateTensor,
    FileTensor,
    FileTensorList,
    IndexList,
    KernelCall,
    SymbolicInt,
    ValueList,
    read_program,
)

if TYPE_CHECKING:
    from tests.formats.conftest import Files

DTYPES = {
    "BYTE": "uint8", "CHAR": "int8", "INT": "int32", "LONG": "int64", "HALF": "float16",
    "FLOAT": "float32", "DOUBLE": "float64", "BOOL": "bool",
}  # fmt: skip


def same_plain_value(theirs: Any, ours: object) -> None:
    """A number, text or list of literals; ExecuTorch reads through JSON of ten digits."""
    (field,) = fields(theirs)
    stored = getattr(theirs, field.name)
    expected = tuple(stored) if isinstance(stored, list) else stored
    if type(theirs).__name__ in ("Double", "DoubleList"):
        expected = pytest.approx(expected, rel=1e-9)
    else:
        assert type(expected) is type(ours)
    assert expected == ours


def same_method_value(theirs: Any, ours: object) -> None:
    """A value of a method, as ExecuTorch's schema classes and as ours."""
    kind = type(theirs).__name__
    if kind == "Tensor":
        assert isinstance(ours, FileTensor)
        assert DTYPES[theirs.scalar_type.name] == ours.dtype
        assert (list(theirs.sizes), list(theirs.dim_order)) == (
            list(ours.shape),
            list(ours.dim_order),
        )
        assert (theirs.data_buffer_idx > 0) == (ours.data is not None)
        assert (theirs.allocation_info is not None) == (ours.kind in ("planned", "mutable"))
    elif kind in ("IntList", "TensorList", "OptionalTensorList"):
        assert isinstance(ours, IndexList | FileTensorList)
        assert list(theirs.items) == [-1 if item is None else item for item in ours.items]
    elif kind == "Null":
        assert ours is None
    else:
        same_plain_value(theirs, ours)


def same_instruction(theirs: Any, ours: object, operators: list[Any]) -> None:
    """An instruction, as ExecuTorch's schema classes and as ours."""
    if isinstance(ours, KernelCall):
        op = operators[theirs.op_index]
        assert f"{op.name.replace('::', '.')}.{op.overload}" == ours.op
        assert tuple(theirs.args) == ours.args
    elif isinstance(ours, DelegateCall):
        assert (theirs.delegate_index, tuple(theirs.args)) == (ours.delegate, ours.args)
    else:
        stored = [getattr(theirs, field.name) for field in fields(theirs)]
        assert stored == [getattr(ours, field.name) for field in fields(ours)]  # type: ignore[arg-type]


def same_delegate_value(theirs: Any, ours: object) -> None:
    """A value of a Vulkan graph, as the exporter's schema classes and as ours."""
    kind = type(theirs).__name__
    if kind == "VkTensor":
        assert isinstance(ours, DelegateTensor)
        assert (theirs.datatype.name.lower(), tuple(theirs.dims)) == (ours.dtype, ours.shape)
        assert theirs.mem_obj_id == ours.memory_object
        assert (theirs.constant_id >= 0) == (ours.data is not None)
        staging = theirs.staging_datatype.name.lower()
        assert (ours.dtype if staging == "unset" else staging) == ours.staging_dtype
    elif kind == "Null":
        assert ours is None
    elif kind == "ValueList":
        assert ValueList(tuple(theirs.items)) == ours
    elif kind == "SymInt":
        assert SymbolicInt(theirs.value) == ours
    else:
        same_plain_value(theirs, ours)


def same_graph(theirs: Any, ours: DelegateGraph) -> None:
    """A Vulkan graph, as the exporter's schema classes and as ours."""
    assert theirs.version == ours.version
    assert (tuple(theirs.input_ids), tuple(theirs.output_ids)) == (ours.inputs, ours.outputs)
    for their_call, call in zip(theirs.chain, ours.calls, strict=True):
        expected = (their_call.node_id, their_call.name, tuple(their_call.args))
        assert expected == (call.node_id, call.name, call.args)
    for their_value, value in zip(theirs.values, ours.values, strict=True):
        same_delegate_value(their_value.value, value)


@pytest.mark.export
def test_real_programs_read_as_executorch_reads_them(files: Files) -> None:
    """Values, instructions, delegates and constants of every fixture agree with ExecuTorch's."""
    program_reader = pytest.importorskip("executorch.exir._serialize._program")
    graph_reader = pytest.importorskip(
        "executorch.backends.vulkan.serialization.vulkan_graph_serialize"
    )
    for name, data in files.real().items():
        external = files.external() if name.startswith("external") else ()
        file = program_reader.deserialize_pte_binary(data)
        program = read_program(data, external)
        assert file.program.version == program.version
        for plan, method in zip(file.program.execution_plan, program.methods, strict=True):
            assert plan.name == method.name
            assert (tuple(plan.inputs), tuple(plan.outputs)) == (method.inputs, method.outputs)
            for their_value, value in zip(plan.values, method.values, strict=True):
                same_method_value(their_value.val, value)
            (chain,) = plan.chains
            for theirs, ours in zip(chain.instructions, method.instructions, strict=True):
                same_instruction(theirs.instr_args, ours, plan.operators)
            for their_delegate, delegate in zip(plan.delegates, method.delegates, strict=True):
                assert their_delegate.id == delegate.backend
                options = {spec.key: bytes(spec.value) for spec in their_delegate.compile_specs}
                assert options == dict(delegate.options)
                if delegate.graph is not None:
                    blob = file.program.backend_delegate_data[their_delegate.processed.index].data
                    flatbuffer = graph_reader.extract_vk_flatbuffer(blob)
                    same_graph(graph_reader.flatbuffer_to_vk_graph(flatbuffer), delegate.graph)
