"""float32 matrix products: linear layers, addmm, mm, bmm."""

import numpy as np

from nybble.contract import Array, Float32, Kernel, Param, f32, op, rule, u32

__all__ = ["addmm", "bmm", "linear", "mm"]


_ADDEND = {
    "alpha": f32("alpha"),
    "beta": f32("beta"),
    "addend_row": u32("addend[1] if len(addend) == 2 and addend[0] == m else 0"),
    "addend_column": u32("0 if len(addend) == 0 or addend[-1] == 1 else 1"),
}


def _kernels(
    *, rows: str, batch: str = "1", weight_rows: bool, addend: bool = False
) -> list[Kernel]:
    """Kernels of ``out[b, m, n] = sum_k x[b, m, k] * weight[b, k, n]``, bias or addend added.

    Args:
        rows: expression for m.
        batch: expression for the number of matrices.
        weight_rows: the weight lies as [n, k] and not as [k, n].
        addend: a broadcast ``addend`` is added, with factors.
    """
    params = {"m": u32(rows), "n": u32("n"), "k": u32("k"), "matrices": u32(batch)}
    params |= _ADDEND if addend else {}
    layout: dict[str, int | float | bool | str] = {
        "WEIGHT_ROWS": weight_rows,
        "WIDTH": 1,
        "ROWS": f"max(1, min(4, {rows}))",
    }
    direct = Kernel(
        "matrix_direct.wgsl",
        grid=(f"cdiv(cdiv({rows}, ROWS) * n * {batch}, THREADS)",),
        params=params,
        constants={**layout, "THREADS": 64},
    )
    tiled = Kernel(
        "matrix_tiled.wgsl",
        grid=(f"cdiv(n, 64) * cdiv({rows}, 64) * {batch}",),
        params=params,
        constants=layout,
        when=f"not software and {rows} > 8 and n > 8",
    )
    if not weight_rows:
        return [tiled, direct]
    vector, direct_quads = _row_kernels(rows, params, layout, direct.grid)
    return [vector, tiled, direct_quads, direct]


def _row_kernels(
    rows: str,
    params: dict[str, Param],
    layout: dict[str, int | float | bool | str],
    grid: tuple[str, ...],
) -> tuple[Kernel, Kernel]:
    """Kernels that read vectors of four along rows of the weight: a few rows of x, and any."""
    quads = {"x": 4, "weight": 4}
    vector = Kernel(
        "matrix_vector.wgsl",
        grid=(f"n * ({rows})",),
        params=params,
        constants={"THREADS": 64},
        vectors=quads,
        when=f"not software and {rows} <= 4 and k >= 256 and k % 4 == 0",
    )
    direct = Kernel(
        "matrix_direct.wgsl",
        grid=grid,
        params=params,
        constants={**layout, "THREADS": 64, "WIDTH": 4},
        vectors=quads,
        when="k % 4 == 0",
    )
    return vector, direct


def _product(x: Array, weight: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(np.matmul(x.astype(np.float64), weight.astype(np.float64)))


@op(
    "aten.linear.default",
    out=Float32[Array, "*batch n"],
    out_variants=["aten.linear.out"],
    kernels=_kernels(rows="numel(batch)", weight_rows=True),
    operations="2 * count * k",
)
def linear(
    x: Float32[Array, "*batch k"],
    weight: Float32[Array, "n k"],
    bias: Float32[Array, "n"] | None = None,
) -> Array:
    """x times the transposed weight, plus the bias, over the last axis of x."""
    result = _product(x, weight.T)
    return (result if bias is None else result + bias).astype(np.float32)


@op(
    "aten.addmm.default",
    out=Float32[Array, "m n"],
    out_variants=["aten.addmm.out"],
    rules=[
        rule(
            "len(addend) <= 2"
            " and (len(addend) == 0 or addend[-1] in (1, n))"
            " and (len(addend) < 2 or addend[0] in (1, m))",
            "the addend must broadcast to the product",
        )
    ],
    kernels=_kernels(rows="m", weight_rows=False, addend=True),
    operations="2 * count * k",
)
def addmm(
    addend: Float32[Array, "..."],
    x: Float32[Array, "m k"],
    weight: Float32[Array, "k n"],
    beta: float = 1.0,
    alpha: float = 1.0,
) -> Array:
    """beta * addend + alpha * (x @ weight); the addend broadcasts, and is not read for beta 0."""
    result = alpha * _product(x, weight)
    with np.errstate(all="ignore"):
        return (result if beta == 0 else result + beta * addend).astype(np.float32)


@op(
    "aten.mm.default",
    out=Float32[Array, "m n"],
    out_variants=["aten.mm.out"],
    kernels=_kernels(rows="m", weight_rows=False),
    operations="2 * count * k",
)
def mm(x: Float32[Array, "m k"], weight: Float32[Array, "k n"]) -> Array:
    """Matrix product."""
    return _product(x, weight).astype(np.float32)


@op(
    "aten.bmm.default",
    out=Float32[Array, "b m n"],
    out_variants=["aten.bmm.out"],
    kernels=_kernels(rows="m", batch="b", weight_rows=False),
    operations="2 * count * k",
)
def bmm(x: Float32[Array, "b m k"], weight: Float32[Array, "b k n"]) -> Array:
    """Matrix products of a batch."""
    return _product(x, weight).astype(np.float32)
