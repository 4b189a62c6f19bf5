"""The tables of the three FlatBuffers formats: ``.pte`` (ET12), ``.ptd`` (FT01), Vulkan (VK00).

Fields stand in slot order; trailing fields that nothing here reads are left out.
"""

from __future__ import annotations

from nybble.formats.tables import (
    BOOL,
    BYTES,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    STRING,
    UINT32,
    UINT64,
    Many,
    One,
    Scalar,
    Union,
    Vector,
    table,
)

__all__ = ["FLAT_TENSOR", "PROGRAM", "VK_GRAPH"]

_NULL = table("Null")
_INT = table("Int", value=INT64)
_BOOL = table("Bool", value=BOOL)
_DOUBLE = table("Double", value=FLOAT64)
_STRING = table("String", value=STRING)
_INT_LIST = table("IntList", items=Vector(INT64))
_DOUBLE_LIST = table("DoubleList", items=Vector(FLOAT64))
_BOOL_LIST = table("BoolList", items=Vector(BOOL))
_DATA_SEGMENT = table("DataSegment", offset=UINT64, size=UINT64)

# .pte

_TENSOR = table(
    "Tensor",
    scalar_type=INT8,
    storage_offset=INT32,
    sizes=Vector(INT32),
    dim_order=BYTES,
    requires_grad=BOOL,
    data_buffer_idx=UINT32,
    allocation_info=One(
        table(
            "AllocationDetails",
            memory_id=UINT32,
            memory_offset_low=UINT32,
            memory_offset_high=UINT32,
        )
    ),
    layout=INT8,
    shape_dynamism=INT8,
    extra_tensor_info=One(
        table(
            "ExtraTensorInfo",
            mutable_data_segments_idx=UINT64,
            fully_qualified_name=STRING,
            location=INT8,
        )
    ),
)
_VALUE = table(
    "EValue",
    value=Union(
        (
            _NULL,
            _INT,
            _BOOL,
            _DOUBLE,
            _TENSOR,
            _STRING,
            _INT_LIST,
            _DOUBLE_LIST,
            _BOOL_LIST,
            table("TensorList", items=Vector(INT32)),
            table("OptionalTensorList", items=Vector(INT32)),
        )
    ),
)
_INSTRUCTION = table(
    "Instruction",
    arguments=Union(
        (
            table("KernelCall", op_index=INT32, args=Vector(INT32)),
            table("DelegateCall", delegate_index=INT32, args=Vector(INT32)),
            table("MoveCall", move_from=INT32, move_to=INT32),
            table("JumpFalseCall", cond_value_index=INT32, destination_instruction=INT32),
            table("FreeCall", value_index=INT32),
        )
    ),
)
_CHAIN = table(
    "Chain", inputs=Vector(INT32), outputs=Vector(INT32), instructions=Many(_INSTRUCTION)
)
_DELEGATE = table(
    "BackendDelegate",
    id=STRING,
    processed=One(table("BackendDelegateDataReference", location=INT8, index=UINT32)),
    compile_specs=Many(table("CompileSpec", key=STRING, value=BYTES)),
)
_EXECUTION_PLAN = table(
    "ExecutionPlan",
    name=STRING,
    container_meta_type=One(table("ContainerMetadata")),
    values=Many(_VALUE),
    inputs=Vector(INT32),
    outputs=Vector(INT32),
    chains=Many(_CHAIN),
    operators=Many(table("Operator", name=STRING, overload=STRING)),
    delegates=Many(_DELEGATE),
)
_SUBSEGMENT_OFFSETS = table("SubsegmentOffsets", segment_index=UINT32, offsets=Vector(UINT64))
PROGRAM = table(
    "Program",
    version=UINT32,
    execution_plan=Many(_EXECUTION_PLAN),
    constant_buffer=Many(table("Buffer", storage=BYTES)),
    backend_delegate_data=Many(table("BackendDelegateInlineData", data=BYTES)),
    segments=Many(_DATA_SEGMENT),
    constant_segment=One(_SUBSEGMENT_OFFSETS),
    mutable_data_segments=Many(_SUBSEGMENT_OFFSETS),
    named_data=Many(table("NamedData", key=STRING, segment_index=UINT32)),
)

# .ptd

FLAT_TENSOR = table(
    "FlatTensor",
    version=UINT32,
    segments=Many(_DATA_SEGMENT),
    named_data=Many(
        table(
            "NamedData",
            key=STRING,
            segment_index=UINT32,
            tensor_layout=One(
                table("TensorLayout", scalar_type=INT8, sizes=Vector(INT32), dim_order=BYTES)
            ),
        )
    ),
)

# Vulkan delegate

_VK_TENSOR = table(
    "VkTensor",
    datatype=INT8,
    dims=Vector(UINT32),
    constant_id=INT32,
    mem_obj_id=INT32,
    storage_type=Scalar("B", default=255),
    memory_layout=Scalar("B", default=255),
    staging_datatype=Scalar("b", default=127),
)
_VK_BYTES = table("VkBytes", offset=UINT64, length=UINT64, named_key=STRING)
_VK_VALUE = table(
    "VkValue",
    value=Union(
        (
            _NULL,
            _INT,
            _DOUBLE,
            _BOOL,
            _VK_TENSOR,
            _INT_LIST,
            _DOUBLE_LIST,
            _BOOL_LIST,
            table("ValueList", items=Vector(INT32)),
            _STRING,
            table("SymInt", value=INT32),
        )
    ),
)
VK_GRAPH = table(
    "VkGraph",
    version=STRING,
    chain=Many(table("OperatorCall", node_id=UINT32, name=STRING, args=Vector(INT32))),
    values=Many(_VK_VALUE),
    input_ids=Vector(UINT32),
    output_ids=Vector(UINT32),
    constants=Many(_VK_BYTES),
)
