"""Scaled dot-product attention, plain and over caches of keys and values."""

from typing import Any

import numpy as np

from nybble.contract import Array, Float32, Kernel, Param, f32, op, rule, u32

__all__ = ["custom_sdpa", "sdpa", "sdpa_with_kv_cache", "update_cache"]


def _attended(
    q: Array, k: Array, v: Array, bias: Any, scale: float, hidden: Array | None = None
) -> Array:
    """Attention of [..., S, D] queries to [..., L, D] keys in double.

    Minus infinity in ``bias`` hides a key, unless its score is NaN or infinite; ``hidden`` always.
    """
    with np.errstate(all="ignore"):
        scores = np.matmul(q.astype(np.float64), np.swapaxes(k, -1, -2).astype(np.float64))
        scores = scores * scale + bias
        if hidden is not None:
            scores = np.where(hidden, -np.inf, scores)
        weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
        weights /= weights.sum(-1, keepdims=True)
        return np.asarray(np.matmul(weights, v.astype(np.float64)), np.float32)


def _mask_params() -> dict[str, Param]:
    """Strides of a broadcast mask, 0 where it repeats."""

    def stride(axis: int, product: str) -> Param:
        repeats = f"mask is None or len(mask) < {axis} or mask[-{axis}] == 1"
        return u32(f"0 if {repeats} else {product}")

    return {
        "mask_key": stride(1, "1"),
        "mask_query": stride(2, "mask[-1]"),
        "mask_head": stride(3, "mask[-1] * mask[-2]"),
        "mask_batch": stride(4, "mask[-1] * mask[-2] * mask[-3]"),
    }


def _kernel(
    params: dict[str, Param], *, cached: bool, appended: bool = False, causal: str = "False"
) -> Kernel:
    """The one shader; ``params`` holds the sizes of its caller."""
    items = "cdiv(s, ROWS) * h * b"
    return Kernel(
        "attention.wgsl",
        grid=(items,),
        params={
            **params,
            **_mask_params(),
            "batches": u32("b"),
            "heads": u32("h"),
            "queries": u32("s"),
            "stride": u32(f"64 * {items}"),
            "scale": f32("factor"),
        },
        constants={
            "ROWS": "max(1, min(4, s))",
            "PARTS": "cdiv(w, 64)",
            "CACHED": cached,
            "APPENDED": appended,
            "CAUSAL": causal,
        },
        # Each thread holds 4 * PARTS sums.
        when="w <= 1024",
        in_place={"new_k_cache": "k_cache", "new_v_cache": "v_cache"} if appended else {},
    )


_FACTOR = "scale if scale is not None else d ** -0.5 if d > 0 else 1.0"


def _mask_rule(*sizes: str) -> Any:
    fits = " and ".join(
        f"(len(mask) < {axis} or mask[-{axis}] in (1, {size}))"
        for axis, size in enumerate(reversed(sizes), 1)
    )
    return rule(
        f"mask is None or (len(mask) <= 4 and {fits})", "the mask must broadcast to the scores"
    )


@op(
    "et_vk.sdpa.default",
    out=Float32[Array, "b h s w"],
    derived={"factor": _FACTOR},
    rules=[_mask_rule("b", "h", "s", "l")],
    kernels=[
        _kernel(
            {
                "kv_heads": u32("h"),
                "capacity": u32("l"),
                "length": u32("l"),
                "start": u32("0"),
                "depth": u32("d"),
                "width": u32("w"),
            },
            cached=False,
        )
    ],
    operations="2 * b * h * s * l * (d + w)",
)
def sdpa(
    q: Float32[Array, "b h s d"],
    k: Float32[Array, "b h l d"],
    v: Float32[Array, "b h l w"],
    mask: Float32[Array, "..."] | None = None,
    scale: float | None = None,
) -> Array:
    """softmax(q k^T * scale + mask) v; the scale is 1/sqrt(d) unless given.

    The mask broadcasts to [b, h, s, l]. A query that minus infinity hides from every key gives NaN.
    """
    factor = q.shape[-1] ** -0.5 if scale is None else scale
    return _attended(q, k, v, 0.0 if mask is None else mask, factor)


_CACHE_RULES = [
    rule("kv_heads >= 1 and h % kv_heads == 0", "the key heads must divide the query heads"),
    rule("start_pos >= 0 and start_pos + s <= m", "the positions must lie within the cache"),
    rule("dropout == 0", "dropout is not applied in inference: it must be 0"),
    rule("mask is None or not causal", "a mask and causal attention exclude one another"),
    _mask_rule("b", "h", "s", "m"),
]
_CACHE_DERIVED = {"factor": _FACTOR, "length": "m if mask is not None else start_pos + s", "w": "d"}
_CACHE_PARAMS = {
    "kv_heads": u32("kv_heads"),
    "capacity": u32("m"),
    "length": u32("length"),
    "start": u32("start_pos"),
    "depth": u32("d"),
    "width": u32("d"),
}


def _over_cache(
    q: Array, k_cache: Array, v_cache: Array, start: int, mask: Array | None, *,
    causal: bool, scale: float | None,
) -> Array:  # fmt: skip
    """Attention of [b, s, h, d] queries to a cache of [b, m, heads, d], arranged as ``q``."""
    steps, heads = q.shape[1], q.shape[2]
    length = start + steps if mask is None else k_cache.shape[1]
    repeat = heads // k_cache.shape[2]
    k, v = (
        np.repeat(c[:, :length].transpose(0, 2, 1, 3), repeat, axis=1) for c in (k_cache, v_cache)
    )
    bias: Any = 0.0 if mask is None else mask
    hidden = np.arange(length) > start + np.arange(steps)[:, None] if causal else None
    factor = q.shape[-1] ** -0.5 if scale is None else scale
    out = _attended(q.transpose(0, 2, 1, 3), k, v, bias, factor, hidden)
    return np.ascontiguousarray(out.transpose(0, 2, 1, 3))


def _appended(rows: Array, cache: Array, start: int) -> Array:
    result = cache.copy()
    result[:, start : start + rows.shape[1]] = rows
    return result


@op(
    "update_cache.default",
    out={"out": Float32[Array, "1"], "new_cache": Float32[Array, "b m h d"]},
    rules=[rule("start_pos >= 0 and start_pos + s <= m", "the positions must lie in the cache")],
    kernels=[
        Kernel(
            "update_cache.wgsl",
            grid=("max(1, cdiv(elements, THREADS))",),
            params={
                "elements": u32("numel(value)"),
                "rows": u32("max(1, s * h * d)"),
                "capacity": u32("m * h * d"),
                "start": u32("start_pos * h * d"),
            },
            constants={"THREADS": 64},
            in_place={"new_cache": "cache"},
        )
    ],
    mutates={"new_cache": "cache"},
    operations="0",
    exact=True,
)
def update_cache(
    value: Float32[Array, "b s h d"], cache: Float32[Array, "b m h d"], start_pos: int
) -> tuple[Array, Array]:
    """The cache with rows ``start_pos``.. replaced by ``value``, in place.

    The result that a program stores is one zero, which says nothing.
    """
    return np.zeros(1, np.float32), _appended(value, cache, start_pos)


@op(
    "custom_sdpa.default",
    out=Float32[Array, "b s h d"],
    derived=_CACHE_DERIVED,
    rules=_CACHE_RULES,
    kernels=[_kernel(_CACHE_PARAMS, cached=True, causal="causal")],
    operations="4 * b * h * s * length * d",
)
def custom_sdpa(
    q: Float32[Array, "b s h d"],
    k_cache: Float32[Array, "b m kv_heads d"],
    v_cache: Float32[Array, "b m kv_heads d"],
    start_pos: int,
    mask: Float32[Array, "..."] | None = None,
    dropout: float = 0.0,
    causal: bool = False,
    scale: float | None = None,
) -> Array:
    """Attention to the first ``start_pos + s`` rows of a cache, to all of them under a mask.

    Causal: query s sees the keys up to ``start_pos + s``, whatever the others hold; all values are
    multiplied, so that NaN and infinities of hidden ones give NaN, as in PyTorch. Heads of queries
    share those of keys in groups of h / kv_heads. The mask broadcasts to [b, h, s, m]; the scale is
    1/sqrt(d) unless given.
    """
    return _over_cache(q, k_cache, v_cache, start_pos, mask, causal=causal, scale=scale)


@op(
    "sdpa_with_kv_cache.default",
    out={
        "out": Float32[Array, "b s h d"],
        "new_k_cache": Float32[Array, "b m kv_heads d"],
        "new_v_cache": Float32[Array, "b m kv_heads d"],
    },
    derived=_CACHE_DERIVED,
    rules=_CACHE_RULES,
    kernels=[_kernel(_CACHE_PARAMS, cached=True, appended=True, causal="causal")],
    mutates={"new_k_cache": "k_cache", "new_v_cache": "v_cache"},
    operations="4 * b * h * s * length * d",
)
def sdpa_with_kv_cache(
    q: Float32[Array, "b s h d"],
    k: Float32[Array, "b s kv_heads d"],
    v: Float32[Array, "b s kv_heads d"],
    k_cache: Float32[Array, "b m kv_heads d"],
    v_cache: Float32[Array, "b m kv_heads d"],
    start_pos: int,
    seq_len: None = None,
    mask: Float32[Array, "..."] | None = None,
    dropout: float = 0.0,
    causal: bool = False,
    scale: float | None = None,
) -> tuple[Array, Array, Array]:
    """The caches with k and v in their rows ``start_pos``.., then attention as custom_sdpa's.

    The stored sequence length is not read: exporters write 1 whatever it is.
    """
    k_new, v_new = _appended(k, k_cache, start_pos), _appended(v, v_cache, start_pos)
    out = _over_cache(q, k_new, v_new, start_pos, mask, causal=causal, scale=scale)
    return out, k_new, v_new
