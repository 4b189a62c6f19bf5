"""What an operator is, stated once; everything else is derived from it."""

from .annotations import (
    AnyTensor,
    Array,
    Bool,
    Float32,
    Int8,
    Int32,
    Real,
    TensorAnnotation,
    UInt8,
)
from .binding import BoundCall, TensorType, bind, bind_serialized
from .dtypes import BOOL, COMPUTED, DTYPES, FLOAT32, INT8, INT32, DType, dtype_of
from .expansion import EXPANSIONS, Emit, Expansion, expansion
from .expressions import Expression
from .kernel import Alias, AnyKernel, Composite, Kernel, Param, f32, i32, u32
from .layouts import CHANNELS4, ROW_MAJOR, Layout, constant_layout
from .operator import REGISTRY, Argument, Operator, Output, Rule, op, rule

__all__ = [
    "BOOL",
    "CHANNELS4",
    "COMPUTED",
    "DTYPES",
    "EXPANSIONS",
    "FLOAT32",
    "INT8",
    "INT32",
    "REGISTRY",
    "ROW_MAJOR",
    "Alias",
    "AnyKernel",
    "AnyTensor",
    "Argument",
    "Array",
    "Bool",
    "BoundCall",
    "Composite",
    "DType",
    "Emit",
    "Expansion",
    "Expression",
    "Float32",
    "Int8",
    "Int32",
    "Kernel",
    "Layout",
    "Operator",
    "Output",
    "Param",
    "Real",
    "Rule",
    "TensorAnnotation",
    "TensorType",
    "UInt8",
    "bind",
    "bind_serialized",
    "constant_layout",
    "dtype_of",
    "expansion",
    "f32",
    "i32",
    "op",
    "rule",
    "u32",
]  # fmt: skip
