"""WGSL's built-in functions of values."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .context import Context, Value
from .opcodes import Capability, Math, Op
from .operators import splat
from .types import BOOL, F32, I32, U32, Type, scalar_of, vector

__all__ = ["BUILTINS", "bitcast"]

Build = Callable[[Context, list[Value]], Value]
_BYTE_SHIFTS = (0, 8, 16, 24)
_SUBGROUP = 3


def _alike(c: Context, values: list[Value]) -> list[Value]:
    """The values, all of one type: literals take the others' component type, scalars spread."""
    typed = [v.type for v in values if v.type.kind != "abstract"]
    if not typed:
        concrete = [c.concrete(v) for v in values]
        wide = F32 if any(v.type is F32 for v in concrete) else I32
        return [c.convert(v, wide) for v in values]
    wanted = next((t for t in typed if t.kind == "vector"), typed[0])
    fitted = [c.convert(v, scalar_of(wanted)) if v.type.kind == "abstract" else v for v in values]
    for given in fitted:
        if given.type is not wanted:
            raise c.error(f"expected {wanted}, received {given.type}")
    return fitted


def _chosen(c: Context, name: str, table: Mapping[Type, Math | None], type_: Type) -> Math:
    found = table.get(scalar_of(type_)) if type_.kind in ("scalar", "vector") else None
    if found is None:
        raise c.error(f"{name} does not apply to {type_}")
    return found


def _by_type(name: str, table: Mapping[Type, Math | None]) -> Build:
    def build(c: Context, values: list[Value]) -> Value:
        values = _alike(c, values)
        function = _chosen(c, name, table, values[0].type)
        return c.math(function, values[0].type, *map(c.id, values))

    return build


def _of_floats(name: str, function: Math) -> Build:
    def build(c: Context, values: list[Value]) -> Value:
        values = [c.convert(v, F32) if v.type.kind == "abstract" else v for v in values]
        return _by_type(name, {F32: function})(c, values)

    return build


_MIN: Mapping[Type, Math | None] = {F32: Math.F_MIN, I32: Math.S_MIN, U32: Math.U_MIN}
_MAX: Mapping[Type, Math | None] = {F32: Math.F_MAX, I32: Math.S_MAX, U32: Math.U_MAX}


def _clamp(c: Context, values: list[Value]) -> Value:
    """SPIR-V's own clamps mean nothing where low > high; these are min(max(x, low), high)."""
    given, low, high = _alike(c, values)
    raised = _by_type("clamp", _MAX)(c, [given, low])
    return _by_type("clamp", _MIN)(c, [raised, high])


def _absolute(c: Context, values: list[Value]) -> Value:
    operand = c.concrete(values[0])
    if scalar_of(operand.type) is U32:
        return operand
    return _by_type("abs", {F32: Math.F_ABS, I32: Math.S_ABS})(c, [operand])


def _select(c: Context, values: list[Value]) -> Value:
    condition = values[2]
    otherwise, chosen = _alike(c, values[:2])
    if otherwise.type.kind == "vector":
        condition = splat(c, condition, vector(otherwise.type.count, BOOL))
        fits = condition.type is vector(otherwise.type.count, BOOL)
    else:
        fits = condition.type is BOOL and otherwise.type.kind == "scalar"
    if not fits:
        raise c.error(f"select by {condition.type} does not apply to {otherwise.type}")
    return c.emit(Op.SELECT, otherwise.type, c.id(condition), c.id(chosen), c.id(otherwise))


def _reduction(name: str, op: Op) -> Build:
    def build(c: Context, values: list[Value]) -> Value:
        (operand,) = values
        if operand.type is BOOL:
            return operand
        if operand.type.kind != "vector" or operand.type.element is not BOOL:
            raise c.error(f"{name} does not apply to {operand.type}")
        return c.emit(op, BOOL, c.id(operand))

    return build


def _dot(c: Context, values: list[Value]) -> Value:
    left, right = _alike(c, values)
    if left.type.kind != "vector" or left.type.element is not F32:
        raise c.error(f"dot does not apply to {left.type}")
    return c.emit(Op.DOT, F32, c.id(left), c.id(right))


def _transpose(c: Context, values: list[Value]) -> Value:
    (operand,) = values
    type_ = operand.type
    if type_.kind != "matrix" or type_.element is None or type_.element.count != type_.count:
        raise c.error(f"transpose of {type_}: only square matrices are supported")
    return c.emit(Op.TRANSPOSE, type_, c.id(operand))


def _packed_dot(op: Op, result: Type) -> Build:
    def build(c: Context, values: list[Value]) -> Value:
        left, right = (c.convert(v, U32) for v in values)
        c.assembler.capabilities |= {
            Capability.DOT_PRODUCT, Capability.DOT_PRODUCT_INPUT_4X8_BIT_PACKED,
        }  # fmt: skip
        return c.emit(op, result, c.id(left), c.id(right), 0)

    return build


def _pack(scalar: Type) -> Build:
    def build(c: Context, values: list[Value]) -> Value:
        words = c.convert(values[0], vector(4, scalar))
        if scalar is I32:
            words = c.emit(Op.BITCAST, vector(4, U32), c.id(words))
        wide = words.type
        low = c.emit(Op.BITWISE_AND, wide, c.id(words), c.assembler.number(wide, 0xFF))
        shifts = c.assembler.composite(wide, [c.u32(shift) for shift in _BYTE_SHIFTS])
        placed = c.emit(Op.SHIFT_LEFT_LOGICAL, wide, low.id, shifts)
        lanes = [c.emit(Op.COMPOSITE_EXTRACT, U32, placed.id, i) for i in range(4)]
        result = lanes[0]
        for lane in lanes[1:]:
            result = c.emit(Op.BITWISE_OR, U32, result.id, lane.id)
        return result

    return build


def _unpack(scalar: Type) -> Build:
    def build(c: Context, values: list[Value]) -> Value:
        word = c.convert(values[0], U32)
        op = Op.BIT_FIELD_U_EXTRACT
        if scalar is I32:
            op = Op.BIT_FIELD_S_EXTRACT
            word = c.emit(Op.BITCAST, I32, c.id(word))
        lanes = [
            c.emit(op, scalar, c.id(word), c.u32(shift), c.u32(8)).id for shift in _BYTE_SHIFTS
        ]
        return c.emit(Op.COMPOSITE_CONSTRUCT, vector(4, scalar), *lanes)

    return build


def _extract_bits(c: Context, values: list[Value]) -> Value:
    word = c.concrete(values[0])
    offset, count = (c.convert(v, U32) for v in values[1:])
    scalar = scalar_of(word.type)
    if scalar not in (I32, U32) or word.type.kind not in ("scalar", "vector"):
        raise c.error(f"extractBits does not apply to {word.type}")
    op = Op.BIT_FIELD_S_EXTRACT if scalar is I32 else Op.BIT_FIELD_U_EXTRACT
    return c.emit(op, word.type, c.id(word), c.id(offset), c.id(count))


def _of_bits(name: str, op: Op) -> Build:
    def build(c: Context, values: list[Value]) -> Value:
        operand = c.concrete(values[0])
        if scalar_of(operand.type) not in (I32, U32):
            raise c.error(f"{name} does not apply to {operand.type}")
        return c.emit(op, operand.type, c.id(operand))

    return build


def _pack_halves(c: Context, values: list[Value]) -> Value:
    return c.math(Math.PACK_HALF_2X16, U32, c.id(c.convert(values[0], vector(2, F32))))


def _unpack_halves(c: Context, values: list[Value]) -> Value:
    return c.math(Math.UNPACK_HALF_2X16, vector(2, F32), c.id(c.convert(values[0], U32)))


def _across_subgroup(name: str, table: Mapping[Type, Op]) -> Build:
    """A reduction over the invocations of a subgroup."""

    def build(c: Context, values: list[Value]) -> Value:
        operand = c.concrete(values[0])
        op = table.get(scalar_of(operand.type))
        if op is None:
            raise c.error(f"{name} does not apply to {operand.type}")
        c.assembler.capabilities |= {
            Capability.GROUP_NON_UNIFORM, Capability.GROUP_NON_UNIFORM_ARITHMETIC,
        }  # fmt: skip
        return c.emit(op, operand.type, c.u32(_SUBGROUP), 0, c.id(operand))

    return build


def _shuffle(op: Op) -> Build:
    def build(c: Context, values: list[Value]) -> Value:
        operand, lane = c.concrete(values[0]), c.convert(values[1], U32)
        c.assembler.capabilities |= {
            Capability.GROUP_NON_UNIFORM, Capability.GROUP_NON_UNIFORM_SHUFFLE,
        }  # fmt: skip
        return c.emit(op, operand.type, c.u32(_SUBGROUP), c.id(operand), c.id(lane))

    return build


def bitcast(c: Context, wanted: Type, operand: Value) -> Value:
    """The same bits as another type."""
    operand = c.concrete(operand)
    scalars = (scalar_of(wanted), scalar_of(operand.type))
    kinds = ("scalar", "vector", "matrix_unit")
    if (
        operand.type.extent != wanted.extent
        or wanted.kind not in kinds
        or not {F32, I32, U32}.issuperset(scalars)
    ):
        raise c.error(f"{operand.type} cannot be taken for {wanted}")
    if operand.type is wanted:
        return operand
    return c.emit(Op.BITCAST, wanted, c.id(operand))


_FLOAT_FUNCTIONS = {
    "round": Math.ROUND_EVEN, "trunc": Math.TRUNC, "floor": Math.FLOOR, "ceil": Math.CEIL,
    "fract": Math.FRACT, "sqrt": Math.SQRT, "inverseSqrt": Math.INVERSE_SQRT, "sin": Math.SIN,
    "cos": Math.COS, "tanh": Math.TANH, "exp": Math.EXP, "exp2": Math.EXP2, "log": Math.LOG,
    "log2": Math.LOG2,
}  # fmt: skip
_SUBGROUP_SUM = {
    F32: Op.GROUP_NON_UNIFORM_F_ADD, I32: Op.GROUP_NON_UNIFORM_I_ADD,
    U32: Op.GROUP_NON_UNIFORM_I_ADD,
}  # fmt: skip
_SUBGROUP_MIN = {
    F32: Op.GROUP_NON_UNIFORM_F_MIN, I32: Op.GROUP_NON_UNIFORM_S_MIN,
    U32: Op.GROUP_NON_UNIFORM_U_MIN,
}  # fmt: skip
_SUBGROUP_MAX = {
    F32: Op.GROUP_NON_UNIFORM_F_MAX, I32: Op.GROUP_NON_UNIFORM_S_MAX,
    U32: Op.GROUP_NON_UNIFORM_U_MAX,
}  # fmt: skip

BUILTINS: dict[str, tuple[int, Build]] = {
    **{name: (1, _of_floats(name, function)) for name, function in _FLOAT_FUNCTIONS.items()},
    "fma": (3, _of_floats("fma", Math.FMA)),
    "pow": (2, _of_floats("pow", Math.POW)),
    "min": (2, _by_type("min", _MIN)),
    "max": (2, _by_type("max", _MAX)),
    "clamp": (3, _clamp),
    "abs": (1, _absolute),
    "sign": (1, _by_type("sign", {F32: Math.F_SIGN, I32: Math.S_SIGN})),
    "select": (3, _select),
    "any": (1, _reduction("any", Op.ANY)),
    "all": (1, _reduction("all", Op.ALL)),
    "dot": (2, _dot),
    "transpose": (1, _transpose),
    "dot4I8Packed": (2, _packed_dot(Op.S_DOT, I32)),
    "dot4U8Packed": (2, _packed_dot(Op.U_DOT, U32)),
    "pack4xI8": (1, _pack(I32)),
    "pack4xU8": (1, _pack(U32)),
    "unpack4xI8": (1, _unpack(I32)),
    "unpack4xU8": (1, _unpack(U32)),
    "pack2x16float": (1, _pack_halves),
    "unpack2x16float": (1, _unpack_halves),
    "extractBits": (3, _extract_bits),
    "countOneBits": (1, _of_bits("countOneBits", Op.BIT_COUNT)),
    "reverseBits": (1, _of_bits("reverseBits", Op.BIT_REVERSE)),
    "firstLeadingBit": (
        1, _by_type("firstLeadingBit", {I32: Math.FIND_S_MSB, U32: Math.FIND_U_MSB}),
    ),
    "firstTrailingBit": (
        1, _by_type("firstTrailingBit", {I32: Math.FIND_I_LSB, U32: Math.FIND_I_LSB}),
    ),
    "subgroupAdd": (1, _across_subgroup("subgroupAdd", _SUBGROUP_SUM)),
    "subgroupMin": (1, _across_subgroup("subgroupMin", _SUBGROUP_MIN)),
    "subgroupMax": (1, _across_subgroup("subgroupMax", _SUBGROUP_MAX)),
    "subgroupShuffle": (2, _shuffle(Op.GROUP_NON_UNIFORM_SHUFFLE)),
    "subgroupShuffleXor": (2, _shuffle(Op.GROUP_NON_UNIFORM_SHUFFLE_XOR)),
}  # fmt: skip
"""How many values a function takes, and what makes its instructions."""
