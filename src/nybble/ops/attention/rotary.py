"""Rotary position embeddings in the three arrangements that programs hold."""

import numpy as np

from nybble.contract import Array, Float32, Kernel, op, rule, u32

__all__ = ["rotary", "rotary_halves", "rotary_interleaved"]


def _rotated(x: Array, cos: Array, sin: Array) -> Array:
    """Pairs of neighbours rotated; ``cos`` and ``sin`` broadcast to [..., D / 2]."""
    wide = x.astype(np.float64)
    a, b = wide[..., 0::2], wide[..., 1::2]
    out = np.empty_like(wide)
    with np.errstate(all="ignore"):
        out[..., 0::2] = a * cos - b * sin
        out[..., 1::2] = a * sin + b * cos
        return out.astype(np.float32)


def _pair_kernel(*, halves: bool, start: str, pairs: str) -> Kernel:
    return Kernel(
        "rotary.wgsl",
        grid=("cdiv(items, THREADS)",),
        params={
            "items": u32(f"b * s * (hq + hk) * ({pairs})"),
            "query_items": u32(f"b * s * hq * ({pairs})"),
            "query_heads": u32("hq"),
            "key_heads": u32("hk"),
            "steps": u32("s"),
            "start": u32(start),
            "depth": u32("d"),
            "pairs": u32(pairs),
        },
        constants={"THREADS": 64, "HALVES": halves, "INTERLEAVED": False},
    )


_OUT = {"out_q": Float32[Array, "b s hq d"], "out_k": Float32[Array, "b s hk d"]}


@op(
    "et_vk.apply_rotary_emb.default",
    out=_OUT,
    rules=[rule("d == 2 * half", "the angles must be those of half the head's size")],
    kernels=[_pair_kernel(halves=False, start="0", pairs="half")],
    operations="3 * (numel(xq) + numel(xk))",
)
def rotary(
    xq: Float32[Array, "b s hq d"],
    xk: Float32[Array, "b s hk d"],
    cos: Float32[Array, "s half"],
    sin: Float32[Array, "s half"],
) -> tuple[Array, Array]:
    """Queries and keys with neighbours (2i, 2i + 1) rotated by the angle of their position.

    (a, b) becomes (a cos - b sin, a sin + b cos).
    """
    turn = cos.astype(np.float64)[:, None], sin.astype(np.float64)[:, None]
    return _rotated(xq, *turn), _rotated(xk, *turn)


@op(
    "et_vk.apply_rotary_emb_hf.default",
    out=_OUT,
    rules=[
        rule("r % 2 == 0 and 2 <= r <= d", "the angles must be even in number, at most a head's"),
        rule("start_pos >= 0 and start_pos + s <= most",
             "the positions must lie within the table of angles"),
    ],
    kernels=[_pair_kernel(halves=True, start="start_pos", pairs="r // 2")],
    operations="3 * (numel(xq) + numel(xk))",
)  # fmt: skip
def rotary_halves(
    xq: Float32[Array, "b s hq d"],
    xk: Float32[Array, "b s hk d"],
    cos: Float32[Array, "most r"],
    sin: Float32[Array, "most r"],
    start_pos: int,
) -> tuple[Array, Array]:
    """Queries and keys with element i and i + r/2 of a head rotated together.

    Position ``start_pos + s`` gives the row of the tables; elements from r on pass through.
    """
    rows = slice(start_pos, start_pos + xq.shape[1])
    c, s = (t[rows].astype(np.float64)[:, None] for t in (cos, sin))
    return _rotated_halves(xq, c, s), _rotated_halves(xk, c, s)


def _rotated_halves(x: Array, cos: Array, sin: Array) -> Array:
    wide = x.astype(np.float64)
    width = cos.shape[-1]
    half = width // 2
    a, b = wide[..., :half], wide[..., half:width]
    out = wide.copy()
    with np.errstate(all="ignore"):
        out[..., :half] = a * cos[..., :half] - b * sin[..., :half]
        out[..., half:width] = b * cos[..., half:] + a * sin[..., half:]
        return out.astype(np.float32)


@op(
    "et_vk.apply_rotary_emb_interleaved.default",
    out=Float32[Array, "*batch n c"],
    rules=[
        rule("c % 2 == 0", "the last axis must hold pairs"),
        rule("numel(freqs) == n * c", "there must be an angle for each pair of a row"),
    ],
    kernels=[
        Kernel(
            "rotary.wgsl",
            grid=("cdiv(items, THREADS)",),
            params={
                "items": u32("count // 2"),
                "steps": u32("n"),
                "start": u32("0"),
                "depth": u32("c"),
                "pairs": u32("c // 2"),
            },
            constants={"THREADS": 64, "HALVES": False, "INTERLEAVED": True},
        )
    ],
    operations="3 * count",
)
def rotary_interleaved(x: Float32[Array, "*batch n c"], freqs: Float32[Array, "..."]) -> Array:
    """Rows with neighbours (2i, 2i + 1) rotated; ``freqs`` holds (cos, sin) of each in turn."""
    angles = freqs.astype(np.float64).reshape(x.shape[-2], x.shape[-1] // 2, 2)
    return _rotated(x, angles[..., 0], angles[..., 1])
