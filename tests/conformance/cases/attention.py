"""Conformance cases of attention, its caches, and rotary embeddings."""

from __future__ import annotations

from typing import Any

import numpy as np

from nybble.testing import Case

__all__ = ["CASES"]

_RNG = np.random.default_rng(31)


def _floats(*shape: int) -> Any:
    return _RNG.normal(0, 1, shape).astype(np.float32)


def _sdpa(b: int, h: int, s: int, length: int, d: int, label: str = "", **more: Any) -> Case:
    arguments = {"q": _floats(b, h, s, d), "k": _floats(b, h, length, d)}
    width = more.pop("width", d)
    return Case(
        "et_vk.sdpa.default", {**arguments, "v": _floats(b, h, length, width), **more}, id=label
    )


def _hiding(*shape: int) -> Any:
    """A mask that hides about half of the keys, the first one never."""
    mask = np.where(_RNG.random(shape) < 0.5, np.float32(-np.inf), _floats(*shape))
    mask[..., 0] = 0
    return mask.astype(np.float32)


_LATE = np.full((3, 131), -np.inf, np.float32)
_LATE[:, 129] = 1
_ALL_HIDDEN = _hiding(3, 5)
_ALL_HIDDEN[1] = -np.inf
_LOWEST = np.full((3, 5), np.finfo(np.float32).min, np.float32)

CASES = [
    _sdpa(1, 1, 1, 1, 1),
    _sdpa(1, 2, 3, 5, 8),
    _sdpa(2, 3, 5, 67, 7),
    _sdpa(1, 1, 11, 131, 65, width=131),
    _sdpa(1, 2, 3, 5, 8, "scale", scale=0.7),
    _sdpa(2, 2, 3, 5, 7, "mask", mask=_hiding(2, 2, 3, 5)),
    _sdpa(2, 2, 3, 5, 7, "mask2", mask=_hiding(3, 5)),
    _sdpa(2, 2, 3, 5, 7, "mask_keys", mask=_hiding(2, 1, 1, 5)),
    _sdpa(2, 2, 3, 5, 7, "mask_late", mask=_hiding(1, 2, 3, 1)),
    _sdpa(1, 2, 3, 131, 7, "late", mask=_LATE),
    _sdpa(1, 2, 3, 5, 7, "all_hidden", mask=_ALL_HIDDEN),
    _sdpa(1, 2, 3, 5, 7, "lowest", mask=_LOWEST),
    _sdpa(1, 0, 3, 5, 7, "empty"),
    _sdpa(1, 2, 3, 0, 7, "no_keys"),
    _sdpa(1, 2, 3, 5, 8, "large", scale=300.0),
]


def _cached(b: int, s: int, h: int, kv: int, d: int, m: int, start: int, **more: Any) -> list[Case]:
    q, caches = (
        _floats(b, s, h, d),
        {"k_cache": _floats(b, m, kv, d), "v_cache": _floats(b, m, kv, d)},
    )
    both = {"q": q, **caches, "start_pos": start, "dropout": 0.0, **more}
    new = {"k": _floats(b, s, kv, d), "v": _floats(b, s, kv, d), "seq_len": 1}
    label = f"at{start}-{'causal' if more.get('causal') else 'open'}"
    return [
        Case("custom_sdpa.default", both, id=label),
        Case("sdpa_with_kv_cache.default", {**both, **new}, id=label),
    ]


def _with_bad_key(cases: list[Case], row: int, bad: float) -> list[Case]:
    """The same with ``bad`` in a row of the keys, new or cached; queries are positive there."""
    changed = []
    for case in cases:
        arguments = {**case.arguments, "q": np.abs(case.arguments["q"])}
        start = 0 if case.operator.startswith("custom") else arguments["start_pos"]
        name = "k" if start else "k_cache"
        arguments[name] = arguments[name].copy()
        arguments[name][:, row - start, :, 1] = bad
        changed.append(Case(case.operator, arguments, id=f"{case.id}-key-{bad}"))
    return changed


CASES += [
    *_cached(1, 1, 1, 1, 1, 1, 0, causal=True),
    *_cached(1, 3, 4, 2, 8, 11, 0, causal=True),
    *_cached(1, 1, 6, 2, 7, 11, 10, causal=True),
    *_cached(1, 5, 3, 3, 67, 71, 64, causal=True),
    *_cached(2, 3, 4, 1, 5, 7, 2, causal=True, scale=0.3),
    *(
        case
        for bad in (np.nan, np.inf, -np.inf)
        for case in _with_bad_key(_cached(1, 3, 2, 2, 4, 9, 2, causal=True), 4, bad)
    ),
    *_cached(1, 3, 2, 2, 4, 9, 2),
    *_cached(2, 3, 2, 2, 4, 9, 2, mask=_hiding(3, 9)),
    *(
        Case(
            "update_cache.default",
            {"value": _floats(b, s, h, d), "cache": _floats(b, m, h, d), "start_pos": start},
            id=f"at{start}",
        )
        for b, s, h, d, m, start in [
            (1, 1, 1, 1, 1, 0), (1, 3, 2, 5, 11, 0), (1, 3, 2, 5, 11, 8), (2, 2, 3, 7, 5, 1),
            (1, 0, 2, 3, 5, 4),
        ]
    ),
]  # fmt: skip


def _angles(*shape: int) -> dict[str, Any]:
    turn = _RNG.uniform(-3, 3, shape)
    return {"cos": np.cos(turn).astype(np.float32), "sin": np.sin(turn).astype(np.float32)}


CASES += [
    Case(
        "et_vk.apply_rotary_emb.default",
        {"xq": _floats(b, s, hq, d), "xk": _floats(b, s, hk, d), **_angles(s, d // 2)},
    )
    for b, s, hq, hk, d in [(1, 1, 1, 1, 2), (1, 5, 3, 1, 8), (2, 3, 2, 5, 6), (0, 3, 2, 5, 6)]
]
CASES += [
    Case(
        "et_vk.apply_rotary_emb_hf.default",
        {"xq": _floats(b, s, hq, d), "xk": _floats(b, s, hk, d), **_angles(most, r),
         "start_pos": start},
        id=f"at{start}",
    )
    for b, s, hq, hk, d, r, most, start in [
        (1, 1, 1, 1, 2, 2, 1, 0), (1, 5, 3, 1, 8, 8, 11, 0), (2, 3, 2, 5, 6, 6, 11, 8),
        (1, 3, 2, 1, 7, 4, 5, 1), (1, 3, 2, 1, 11, 2, 5, 2),
    ]
]  # fmt: skip
CASES += [
    Case("et_vk.apply_rotary_emb_interleaved.default", {"x": _floats(*shape), "freqs": freqs})
    for shape, freqs in [
        ((2, 5, 8), _floats(5, 8)),
        ((2, 3, 7, 6), _floats(7, 3, 2)),
        ((1, 2), _floats(1, 2)),
        ((0, 3, 4), _floats(3, 4)),
    ]
]
