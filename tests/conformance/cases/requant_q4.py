"""Conformance cases of re-quantization to 4-bit codes, and of the choice of int8 parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from nybble.testing import Case

__all__ = ["CASES"]

_RNG = np.random.default_rng(5)
_INFINITY = np.float32(np.inf)


def _floats(*shape: int) -> Any:
    return _RNG.normal(0, 1, shape).astype(np.float32)


def _scales(*shape: int) -> Any:
    return _RNG.uniform(0.01, 0.2, shape).astype(np.float32)


def _beside(values: Any) -> Any:
    """The values with every third moved one ulp down and every third one ulp up."""
    flat = values.astype(np.float32).reshape(-1)
    down, up = np.nextafter(flat, -_INFINITY), np.nextafter(flat, _INFINITY)
    place = np.arange(flat.size) % 3
    return np.where(place == 0, flat, np.where(place == 1, down, up)).reshape(values.shape)


def _requant(latent: Any, scales: Any, group: int, label: str = "") -> Case:
    arguments = {"latent": latent, "scales": scales, "group_size": group}
    return Case("et_vk.q4gsw_requant.default", arguments, (), label)


def _requant_random(n: int, k: int, group: int, spread: float = 0.4) -> Case:
    return _requant(_floats(n, k) * np.float32(spread), _scales(-(-k // group), n + n % 2), group)


def _requant_ties(n: int, k: int, group: int, scale: float, label: str) -> Case:
    """Half steps of many scales, and one ulp to each side of them."""
    spread = np.float32(scale) * _RNG.uniform(1, 2, (-(-k // group), n)).astype(np.float32)
    signs = _RNG.choice(np.array([-1, 1], np.float32), spread.shape)
    scales = (spread * signs).astype(np.float32)
    each = np.repeat(scales, group, axis=0)[:k].T
    halves = (_RNG.integers(-10, 10, (n, k)) + 0.5).astype(np.float32)
    return _requant(_beside(halves * each), scales, group, label)


_TINY = np.float32(2.0**-126)
_SPECIAL_LATENTS = np.array(
    [
        np.nan, _INFINITY, -_INFINITY, 0.0, -0.0, 3.4e38, -3.4e38, 1e-40, -1e-40, _TINY, 1e-30,
        0.5, -0.5, 1.5, -7.5, 7.5, -8.5, 6.5, 100.0, -100.0,
    ],
    np.float32,
)  # fmt: skip
_SPECIAL_SCALES = np.array(
    [
        1.0,
        0.0,
        -0.0,
        np.nan,
        _INFINITY,
        -1.0,
        1e-40,
        _TINY,
        1e-30,
        1e30,
        3.4e38,
        2.0**-65,
        2.0**65,
    ],
    np.float32,
)


def _requants() -> list[Case]:
    special = np.repeat(_SPECIAL_LATENTS[None], _SPECIAL_SCALES.size, axis=0)
    return [
        _requant_random(8, 32, 32),
        _requant_random(12, 64, 16),
        _requant_random(29, 37, 5),
        _requant_random(37, 64, 64),
        _requant_random(70, 44, 4),
        _requant_random(1, 1, 1),
        _requant_random(3, 7, 32),
        _requant_random(13, 11, 6),
        _requant_random(12, 40, 10),
        _requant_random(0, 8, 4),
        _requant_random(5, 0, 4),
        _requant(_floats(12, 32), np.zeros((1, 12), np.float32), 32, "zero-scale"),
        _requant(special, _SPECIAL_SCALES[None], 20, "special"),
        _requant(special[:, :19], _SPECIAL_SCALES[None], 19, "special-odd"),
        _requant_ties(24, 64, 32, 0.037, "ties"),
        _requant_ties(24, 64, 8, 1e-36, "ties-tiny"),
        _requant_ties(24, 64, 8, 1e36, "ties-huge"),
        _requant_ties(11, 37, 5, 1.0, "ties-odd"),
        _requant_ties(16, 128, 128, 2.0**-64, "ties-border"),
        _requant(
            _beside(np.full((8, 64), 0.5) * 3.0), np.full((1, 8), 3.0, np.float32), 64, "half"
        ),
    ]


def _choose(x: Any, code_min: int = -128, code_max: int = 127, label: str = "") -> Case:
    block = (1,) * (x.ndim - 1) + (x.shape[-1],)
    arguments = {
        "x": x, "mapping": "ASYMMETRIC", "block_size": block, "target_dtype": None,
        "code_min": code_min, "code_max": code_max, "eps": None, "scale_dtype": None,
        "zero_point_dtype": None, "keepdim": False,
    }  # fmt: skip
    return Case("torchao.choose_qparams_affine.default", arguments, (), label)


def _chooses() -> list[Case]:
    magnitudes = (10.0 ** _RNG.uniform(-38, 37, (97, 1))).astype(np.float32)
    special = _floats(6, 5)
    special[0, 1], special[1, 2], special[2, 3], special[3] = np.nan, _INFINITY, -_INFINITY, 1e-40
    special[4] = [3.4e38, -3.4e38, 0, 1, 2]
    small = (_floats(37, 11) * np.float32(1e-5)).astype(np.float32)
    return [
        _choose(_floats(1, 4, 64)),
        _choose(_floats(205, 37)),
        _choose(_floats(3, 700), label="long"),
        _choose(np.abs(_floats(5, 29)), label="positive"),
        _choose(-np.abs(_floats(5, 29)), label="negative"),
        _choose(np.zeros((5, 8), np.float32), label="zero"),
        _choose(_floats(97, 5) * magnitudes, label="magnitudes"),
        _choose(small, label="small"),
        _choose(np.abs(small), label="small-positive"),
        _choose(-np.abs(small), label="small-negative"),
        _choose(special, label="special"),
        _choose(_floats(7, 11), -8, 7, "narrow"),
        _choose(_floats(7, 11), 0, 127, "unsigned"),
        _choose(_floats(1)),
        _choose(_floats(0, 5)),
    ]


CASES = [*_requants(), *_chooses()]
