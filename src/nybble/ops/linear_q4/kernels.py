"""The kernels of products with 4-bit weights, in order of preference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nybble.contract import Kernel, Layout, f32, u32

from .layout import W_4X8
from .tiles import DECODE_ROWS, ROWS, Tile, tiled_kernels

__all__ = [
    "BACKWARD", "CHOOSE_QPARAMS", "OUTER", "REQUANT", "Product", "embedding_kernels",
    "product_kernels",
]  # fmt: skip

_DECODE_THREADS = 256


@dataclass(frozen=True)
class Product:
    """How an operator spells its product.

    Args:
        group: the group size, an expression.
        layout: the layout of its weight.
        quantized: inputs are quantized on the way.
        unused: arguments that no kernel reads.
    """

    group: str = "group_size"
    layout: Layout = W_4X8
    quantized: bool = False
    unused: frozenset[str] = frozenset()


_FORWARD_TILE = Tile(64, 64, 8, 4, 32)
_GRADIENT_TILE = Tile(64, 64, 8, 4, 16)


def _width(group: str) -> str:
    """Columns of a group, an expression; a single group has all, in whole blocks."""
    return f"({group} if {group} < k else round_up(max(k, 1), 4))"


def _aligned(group: str) -> str:
    """Whether every block of four columns lies in one group, an expression."""
    return f"{_width(group)} % 4 == 0"


def product_kernels(product: Product) -> list[Kernel]:
    """Kernels of ``out[m, n] = sum_k x[m, k] * (code[n, k] - 8) * scale[k // group, n]``."""
    return [
        kernel
        for wide in (True, False)
        for kernel in (
            _strips(product, wide, software=True),
            *(_one_row_kernels(product) if wide and not product.quantized else []),
            _strips(product, wide, software=False),
            *_forward_tiles(product, wide),
        )
    ]


def _vectors(wide: bool, weight: int) -> dict[str, int]:
    return {"weight": weight, **({"x": 4, "scales": 4, "out": 4} if wide else {})}


def _product_params(product: Product, wide: bool) -> dict[str, Any]:
    return {
        "rows": u32(ROWS),
        "n": u32("n"),
        "k": u32("k"),
        "quads": u32("cdiv(k, 4)"),
        "down": u32("cdiv(n, 8)"),
        "scale_row": u32("scale_count // 4" if wide else "scale_count"),
        "group": u32(_width(product.group)),
    }


def _product_constants(product: Product, wide: bool) -> dict[str, Any]:
    return {
        "ALIGNED": _aligned(product.group),
        "WIDE": wide,
        "QUANTIZED": product.quantized,
        "SURE": 0.499,
    }


_WIDE = "k % 4 == 0 and n % 4 == 0 and scale_count % 4 == 0"


def _unit(product: Product, most: int, when: str = "True") -> str:
    """Blocks of one group that a thread reads at once: a power of two, at most ``most``."""
    choices = [
        f"{unit} if {when} and {_width(product.group)} % {4 * unit} == 0 else"
        for unit in (8, 4, 2)
        if unit <= most
    ]
    return " ".join([*choices, "1"])


def _strips(product: Product, wide: bool, *, software: bool) -> Kernel:
    """Few rows, or a processor whose threads share no quick memory: no tiles."""
    whole = _WIDE if wide else "True"
    if software:
        unit = _unit(product, 2, "ROWS == 1")
    else:
        unit = _unit(product, 1 if product.quantized else 8 if wide else 2)
    # Each row's quantization is code of its own, which compilers take long over.
    rows = 2 if product.quantized else 8 if software else 4
    columns = "4 if cdiv(k, 4 * UNIT) >= 48 else 8 if cdiv(k, 4 * UNIT) >= 24 else 16"
    return Kernel(
        "product.wgsl",
        grid=("tiles * cdiv(rows, ROWS)",),
        params={
            **_product_params(product, wide),
            "units": u32("cdiv(cdiv(k, 4), UNIT)"),
            "tiles": u32("cdiv(cdiv(n, 8), COLUMNS)"),
        },
        constants={
            **_product_constants(product, wide),
            "ROWS": f"max(1, min({rows}, {ROWS}))",
            "UNIT": unit,
            "FULL": "cdiv(k, 4) % UNIT == 0",
            "THREADS": 16 if software else _DECODE_THREADS,
            "COLUMNS": 16 if software else columns,
        },
        layouts={"weight": product.layout},
        vectors=_vectors(wide, 4),
        unused=product.unused,
        when=f"software and {whole}" if software else f"{ROWS} <= {DECODE_ROWS} and {whole}",
    )


def _one_row(product: Product) -> dict[str, Any]:
    """What the kernels share that make integers of one row."""
    return {
        "params": {**_product_params(product, wide=True), "units": u32("k // 32")},
        "layouts": {"weight": product.layout},
        "vectors": _vectors(wide=True, weight=4),
        "unused": product.unused,
    }


def _one_row_constants(product: Product) -> dict[str, Any]:
    units = f"{_width(product.group)} // 32"
    return {**_product_constants(product, wide=True), "FULL": True, "GROUP_UNITS": units}


def _fits_one_row(product: Product) -> str:
    """Integers are worth it where there are many weights."""
    width = _width(product.group)
    return f"{ROWS} == 1 and k % 32 == 0 and {width} % 32 == 0 and n * k >= 1048576 and {_WIDE}"


def _one_row_kernels(product: Product) -> list[Kernel]:
    """One row by packed integer dot products, first those whose subgroups share the integers."""
    return [_piped(product), _shuffles(product), _dots(product)]


def _by_subgroups(product: Product, shader: str, when: str, **constants: Any) -> Kernel:
    return Kernel(
        shader,
        grid=("cdiv(cdiv(n, 8), 8)",),
        constants={**_one_row_constants(product), **constants},
        when=f"{when} and {_fits_one_row(product)} and subgroups and max_threads >= THREADS "
        "and max_workgroup_bytes >= 32 * THREADS",
        **_one_row(product),
    )


def _piped(product: Product) -> Kernel:
    """For slices of several units, each asked for while the one before is multiplied."""
    return _by_subgroups(
        product,
        "product_piped.wgsl",
        # Of a slice more than one unit, and at most 32: a word has a bit for each.
        "4 * THREADS < k <= 128 * THREADS",
        # Of 512 threads a processor takes one workgroup; where there are more, two of 256.
        THREADS="512 if n <= 8192 else 256",
    )


def _shuffles(product: Product) -> Kernel:
    """For slices of one unit, or many workgroups."""
    return _by_subgroups(
        product,
        "product_shuffle.wgsl",
        "True",
        # Of more threads each has too few registers; fewer ask for too little at a time, but
        # where there are several workgroups a processor, two of them do.
        THREADS="(512 if n <= 16384 else 256) if k >= 2048 else 256 if k >= 1024 else 128",
    )


def _dots(product: Product) -> Kernel:
    """One row by packed integer dot products, its integers shared within workgroups."""
    memory = "16 * max(9 * CHUNK, 2 * THREADS) + 32 * CHUNK"
    return Kernel(
        "product_dot.wgsl",
        grid=("cdiv(cdiv(n, 8), COLUMNS)",),
        constants={
            **_one_row_constants(product),
            "THREADS": 512,
            "CHUNK": "256 if k > 4096 else 128 if k >= 3072 else 64",
            "COLUMNS": 8,
        },
        when=f"{_fits_one_row(product)} and max_threads >= THREADS "
        f"and max_workgroup_bytes >= {memory}",
        **_one_row(product),
    )


def _forward_tiles(product: Product, wide: bool) -> list[Kernel]:
    return tiled_kernels(
        _FORWARD_TILE,
        "forward",
        (ROWS, "n", "k"),
        params=_product_params(product, wide),
        constants={**_product_constants(product, wide), "FULL": "k % DEPTH == 0"},
        layouts={"weight": product.layout},
        vectors=_vectors(wide, 2),
        unused=product.unused,
        when=_WIDE if wide else "True",
        on_matrix_units=not product.quantized,
    )


_SIZES = {"rows": u32(ROWS), "n": u32("n"), "k": u32("k")}


def _backward_kernels(wide: bool) -> list[Kernel]:
    whole = "n % 4 == 0 and k % 4 == 0 and scale_count % 4 == 0" if wide else "True"
    vectors = {"d_out": 4, "scales": 4, "out": 4} if wide else {}
    params = {
        **_SIZES,
        "quads": u32("cdiv(k, 4)"),
        "down": u32("cdiv(n, 8)"),
        "scale_row": u32("scale_count // 4" if wide else "scale_count"),
        "group": u32(_width("group_size")),
        "parts": u32("parts"),
    }
    constants: dict[str, Any] = {"ALIGNED": _aligned("group_size"), "WIDE": wide}

    def strips(when: str, threads: int, columns: int, rows: str) -> Kernel:
        return Kernel(
            "backward.wgsl",
            grid=(f"tiles * cdiv({ROWS}, ROWS)",),
            params={**params, "tiles": u32("cdiv(cdiv(k, 4), COLUMNS)")},
            constants={**constants, "THREADS": threads, "COLUMNS": columns, "ROWS": rows},
            layouts={"weight": W_4X8},
            vectors={"weight": 4, **vectors},
            when=f"{when} and {whole}",
        )

    tiled = tiled_kernels(
        _GRADIENT_TILE,
        "backward",
        (ROWS, "k", "n"),
        params=params,
        constants=constants,
        layouts={"weight": W_4X8},
        vectors={"weight": 2, **vectors},
        when=whole,
    )
    return [
        strips("software", 16, 16, f"max(1, min(8, {ROWS}))"),
        strips(f"{ROWS} <= {DECODE_ROWS}", 256, 8, f"max(1, min(4, {ROWS}))"),
        *tiled,
    ]


def _outer_kernels(wide: bool) -> list[Kernel]:
    whole = "n % 4 == 0 and k % 4 == 0" if wide else "True"
    vectors = {"d_out": 4, "x": 4, "out": 4} if wide else {}
    return [
        Kernel(
            "outer.wgsl",
            grid=("cdiv(cdiv(k, 4) * cdiv(n, 8), THREADS)",),
            params=_SIZES,
            constants={"WIDE": wide, "THREADS": 64},
            vectors=vectors,
            when=f"software and {whole}",
        ),
        *tiled_kernels(
            _GRADIENT_TILE,
            "outer",
            ("n", "k", ROWS),
            params=_SIZES,
            constants={"WIDE": wide},
            layouts={},
            vectors=vectors,
            when=whole,
        ),
    ]


def _requant_blocks(wide: bool) -> Kernel:
    return Kernel(
        "requant_w4x8.wgsl",
        grid=("tiles * cdiv(cdiv(n, 8), THREADS // ACROSS)",),
        params={
            "n": u32("n"),
            "k": u32("k"),
            "quads": u32("cdiv(k, 4)"),
            "down": u32("cdiv(n, 8)"),
            "scale_row": u32("scale_count // 4" if wide else "scale_count"),
            "tiles": u32("cdiv(cdiv(k, 4), ACROSS)"),
            "group": u32(_width("group_size")),
            "kept": u32("round_up(k, 2)"),
        },
        constants={
            "ALIGNED": _aligned("group_size"),
            "WIDE": wide,
            "SURE": 0.4999,
            "THREADS": 128,
            "ACROSS": 16,
        },
        layouts={"out": W_4X8},
        vectors={"out": 4, **({"latent": 4, "scales": 4} if wide else {})},
        when="k % 4 == 0 and scale_count % 4 == 0" if wide else "True",
    )


_REQUANT_FLAT = Kernel(
    "requant_flat.wgsl",
    grid=("cdiv(words, THREADS)",),
    params={
        "words": u32("cdiv(count, 4)"),
        "bytes": u32("count"),
        "k": u32("k"),
        "group": u32("group_size"),
        "scale_row": u32("scale_count"),
    },
    constants={"THREADS": 64, "SURE": 0.4999},
)

BACKWARD = [kernel for wide in (True, False) for kernel in _backward_kernels(wide)]
OUTER = [kernel for wide in (True, False) for kernel in _outer_kernels(wide)]
REQUANT = [_requant_blocks(True), _requant_blocks(False), _REQUANT_FLAT]
CHOOSE_QPARAMS = [
    Kernel(
        "choose_qparams.wgsl",
        grid=("words",),
        params={
            "rows": u32(ROWS),
            "words": u32(f"cdiv({ROWS}, 4)"),
            "k": u32("k"),
            "code_min": f32("code_min"),
            "code_max": f32("code_max"),
        },
        constants={"THREADS": 256},
    )
]


def embedding_kernels(layout: Layout, when: str) -> list[Kernel]:
    """The kernel of a table in ``layout``."""
    return [
        Kernel(
            "embedding.wgsl",
            grid=("cdiv(items, THREADS)",),
            params={
                "items": u32("cdiv(e, 4) * numel(positions)"),
                "quads": u32("cdiv(e, 4)"),
                "down": u32("cdiv(v, 8)"),
                "columns": u32("e"),
                "tokens": u32("v"),
                "group": u32("group_size"),
                "groups": u32("groups"),
            },
            constants={"THREADS": 64},
            layouts={"weight": layout},
            when=when,
        )
    ]
