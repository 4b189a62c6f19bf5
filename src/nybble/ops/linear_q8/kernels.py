"""The kernels of int8 linear layers, most specialized first."""

from __future__ import annotations

from typing import Any

from nybble.contract import CHANNELS4, Kernel, constant_layout, u32
from nybble.ops.output_stage import (
    FLOAT_CONSTANTS,
    FLUSHED,
    INPUT_PARAMS,
    STAGE_CONSTANTS,
    STAGE_PARAMS,
)
from nybble.ops.row_products import RowProduct, row_kernels
from nybble.ops.weight_words import quads_with_sums

__all__ = ["LINEAR_CODES", "LINEAR_FLOATS", "ROW_CODES"]

_QUADS = constant_layout(
    "matrix_quads",
    lambda weight, names: quads_with_sums(weight[:, None, : names["k"]], groups=1),
)
# Words of a rank-4 tensor hold channels or, as here, run across its rows.
_ROWS = "numel(x) // max(1, k)"
_PLAIN = "len(x) == 4"
_VECTORS = {"weight": 4, "weight_scales": 4, "bias": 4}
_UNUSED = frozenset({"weight_sums"})


def _rows(stage: dict[str, Any], constants: dict[str, Any]) -> Kernel:
    """Any rows of words: one thread makes four output features of one row."""
    codes = constants["QUANTIZED"]
    return Kernel(
        "rows.wgsl",
        grid=("cdiv(items, THREADS)",),
        params={
            "items": u32(f"{_ROWS} * cdiv(n, 4)"),
            "quads_out": u32("cdiv(n, 4)"),
            "words_in": u32("cdiv(k, 4)"),
            "features": u32("n"),
            **stage,
        },
        constants={"THREADS": 64, **constants},
        layouts={
            "x": CHANNELS4,
            "weight": _QUADS,
            "weight_scales": FLUSHED,
            **({"out": CHANNELS4} if codes else {}),
        },
        vectors=_VECTORS,
        unused=_UNUSED,
        when=f"not ({_PLAIN})",
    )


def _flat(stage: dict[str, Any], constants: dict[str, Any]) -> Kernel:
    """Row-major tensors: one thread makes four neighbours of the result, in one row or two."""
    return Kernel(
        "flat.wgsl",
        grid=("cdiv(quads, THREADS)",),
        params={
            "quads": u32("cdiv(count, 4)"),
            "count": u32("count"),
            "depth": u32("k"),
            "features": u32("n"),
            "last_word": u32("max(0, cdiv(numel(x), 4) - 1)"),
            **stage,
        },
        constants={"THREADS": 64, **constants},
        layouts={"weight": _QUADS, "weight_scales": FLUSHED},
        unused=_UNUSED,
    )


def _product(quantized: bool, many_rows: bool = True) -> RowProduct:
    return RowProduct(
        name="linear",
        matrix=lambda weight, names: weight[:, : names["k"]],
        rows=_ROWS,
        depth="k",
        features="n",
        when=f"not ({_PLAIN})",
        quantized=quantized,
        many_rows=many_rows,
    )


_CODES = [_rows(STAGE_PARAMS, STAGE_CONSTANTS), _flat(STAGE_PARAMS, STAGE_CONSTANTS)]
LINEAR_CODES = [*row_kernels(_product(quantized=True)), *_CODES]
ROW_CODES = [*row_kernels(_product(quantized=True, many_rows=False)), *_CODES]
LINEAR_FLOATS = [
    *row_kernels(_product(quantized=False)),
    _rows(INPUT_PARAMS, FLOAT_CONSTANTS),
    _flat(INPUT_PARAMS, FLOAT_CONSTANTS),
]
