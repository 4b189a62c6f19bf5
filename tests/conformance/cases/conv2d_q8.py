"""Conformance cases of the int8 convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from nybble.testing import Case

__all__ = ["CASES"]

_RNG = np.random.default_rng(8)
_PREFIX = "et_vk.q8ta_conv2d"


def _codes(*shape: int) -> Any:
    return _RNG.integers(-128, 128, shape, dtype=np.int8)


def _pair(value: Any) -> tuple[int, int]:
    return value if isinstance(value, tuple) else (value, value)


def _stage(oc: int, products: int, **changes: Any) -> dict[str, Any]:
    """The arguments that weights do not shape; scales spread the codes over the int8 range."""
    padding = -oc % 4
    scale_out = float(np.float32(0.013 * max(1, products) ** 0.5))
    stage = {
        "scale_in": 0.011,
        "zero_point_in": int(_RNG.integers(-128, 128)),
        "weight_sums": np.zeros(oc + padding, np.int32),
        "weight_scales": np.pad(
            _RNG.uniform(0.002, 0.01, oc).astype(np.float32), (0, padding), constant_values=9
        ),
        "scale_out": scale_out,
        "zero_point_out": int(_RNG.integers(-128, 128)),
        "bias": np.pad(_RNG.normal(0, 10 * scale_out, oc).astype(np.float32), (0, padding)),
        "activation": "none",
    }
    return stage | changes


def _case(
    kind: str,
    shape: tuple[int, int, int, int],
    oc: int,
    kernel: Any,
    *,
    groups: int = 1,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    extra_columns: int | None = None,
    label: str = "",
    **changes: Any,
) -> Case:
    kernel = _pair(kernel)
    depth = shape[1] // groups
    columns = kernel[0] * kernel[1] * depth
    extra = -columns % 4 if extra_columns is None else extra_columns
    weight = _codes(*kernel, oc) if kind == "_dw" else _codes(oc, columns + extra)
    arguments = {
        "x": _codes(*shape),
        "weight": weight,
        "kernel": kernel,
        "stride": _pair(stride),
        "padding": _pair(padding),
        "dilation": _pair(dilation),
        "groups": groups,
        **_stage(oc, columns, **changes),
    }
    text = "x".join(map(str, (*shape, oc, *kernel)))
    return Case(
        f"{_PREFIX}{kind}.default",
        arguments,
        ("weight", "weight_sums", "weight_scales", "bias"),
        f"{kind.strip('_') or 'plain'}-{text}{'-' + label if label else ''}",
    )


def _transposed(*args: Any, output_padding: Any = 0, **changes: Any) -> Case:
    return _case("_transposed", *args, output_padding=_pair(output_padding), **changes)


_EXTREME_SCALES: dict[str, Any] = {"scale_in": 1e9, "scale_out": 1e-9}
_VANISHING_SCALES: dict[str, Any] = {"scale_in": 1e-9, "scale_out": 1e9}


def _ties() -> list[Case]:
    """Values on a tie and one ulp beside it: weight 1, scales that make ``x / 2``."""
    x = np.arange(-128, 128, dtype=np.int16).astype(np.int8).reshape(1, 1, 16, 16)
    half = np.float32(0.5)
    scales = np.array([half, np.nextafter(half, np.float32(0)), np.nextafter(half, np.float32(1)),
                       -half], np.float32)  # fmt: skip
    cases = []
    for label, bias in (("tie", None), ("tie-bias", np.full(4, 0.5, np.float32))):
        arguments = {
            **_stage(4, 1, scale_in=1.0, scale_out=1.0, zero_point_in=0, bias=bias),
            "x": x, "weight": np.array([[1, 0, 0, 0]] * 4, np.int8), "weight_scales": scales,
            "kernel": (1, 1), "stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1,
        }  # fmt: skip
        constants = ("weight", "weight_scales")
        cases.append(Case(f"{_PREFIX}_pw.default", arguments, constants, label))
    return cases


def _special_floats() -> list[Case]:
    """NaN and infinite biases and scales: NaN gives the zero point, infinities saturate."""
    values = np.array([np.nan, np.inf, -np.inf, 1e38], np.float32)
    return [
        _case("_pw", (1, 4, 3, 5), 4, 1, bias=values, label="special-bias"),
        _case("_pw", (1, 4, 3, 5), 4, 1, bias=values, activation="relu", label="special-relu"),
        _case("_pw", (1, 4, 3, 5), 4, 1, weight_scales=values, label="special-scales"),
        _case("", (1, 4, 3, 5), 4, 3, padding=1, weight_scales=-values, label="special-negative"),
    ]


POINTWISE = [
    _case("_pw", (1, 1, 1, 1), 1, 1),
    _case("_pw", (1, 4, 1, 1), 4, 1),
    _case("_pw", (1, 3, 5, 7), 5, 1),
    _case("_pw", (2, 11, 3, 5), 7, 1, activation="relu"),
    _case("_pw", (1, 16, 5, 7), 32, 1),
    _case("_pw", (1, 32, 7, 11), 16, 1, zero_point_in=127, activation="relu"),
    _case("_pw", (3, 29, 5, 11), 37, 1, zero_point_in=-128, bias=None),
    _case("_pw", (1, 64, 11, 11), 64, 1),
    _case("_pw", (2, 36, 9, 9), 68, 1, code_min=-7, code_max=99),
    _case("_pw", (1, 128, 3, 3), 132, 1, zero_point_out=-128),
    _case("_pw", (1, 260, 3, 1), 5, 1, zero_point_out=127),
    _case("_pw", (1, 1030, 1, 2), 8, 1, zero_point_in=-128),
    _case("_pw", (1, 1056, 7, 3), 8, 1, zero_point_in=127),
    _case("_pw", (1, 1037, 3, 3), 9, 1, zero_point_in=-128),
    _case("_pw", (1, 384, 14, 14), 8, 1),
    _case("_pw", (1, 48, 37, 29), 20, 1),
    _case("_pw", (1, 12, 5, 7), 8, 1, groups=4, label="grouped"),
    _case("_pw", (1, 8, 5, 7), 8, 1, stride=2, label="strided"),
    _case("_pw", (1, 8, 5, 7), 8, 1, padding=(1, 2), label="padded"),
    _case("_pw", (1, 8, 3, 5), 8, 1, **_EXTREME_SCALES, label="saturating"),
    _case("_pw", (1, 8, 3, 5), 8, 1, **_VANISHING_SCALES, label="vanishing"),
    _case("_pw", (0, 8, 3, 5), 8, 1, label="no-image"),
]
PLAIN = [
    _case(
        "",
        (1, 4, 3, 3),
        4,
        3,
        weight_scales=np.full(4, 1e-40, np.float32),
        scale_in=2.0**100,
        scale_out=2.0**-31,
        bias=None,
        label="subnormal-scales",
    ),
    _case("", (1, 1, 3, 3), 1, 3),
    _case("", (1, 3, 11, 7), 5, 3, padding=1),
    _case("", (2, 3, 11, 13), 8, 3, stride=2, padding=1, activation="relu"),
    _case("", (1, 8, 7, 5), 12, (3, 5), padding=(1, 2), zero_point_in=127),
    _case("", (1, 16, 7, 7), 16, 3, padding=1, bias=None),
    _case("", (1, 32, 5, 11), 36, 3, padding=1, zero_point_in=-128, activation="relu"),
    _case("", (2, 7, 11, 5), 11, (5, 2), stride=(3, 2), padding=(2, 1), dilation=(2, 1)),
    _case("", (1, 5, 9, 9), 3, 3, dilation=3, padding=4, extra_columns=5),
    _case("", (1, 4, 3, 3), 4, 7, padding=3, code_min=-100, code_max=50),
    _case("", (1, 8, 7, 7), 8, 2, stride=5, padding=1, dilation=2),
    _case("", (1, 37, 29, 5), 4, 1, stride=2),
    _case("", (1, 128, 4, 5), 8, 3, padding=1, zero_point_in=-128),
    _case("", (1, 120, 4, 5), 5, 3, padding=1, zero_point_in=127),
    _case("", (1, 16, 3, 3), 4, (9, 7), padding=(4, 3), zero_point_in=-128),
    _case("", (1, 8, 7, 7), 16, 3, groups=2, padding=1),
    _case("", (1, 6, 7, 5), 8, 3, groups=2, padding=1),
    _case("", (1, 15, 5, 7), 10, 3, groups=5, padding=2, activation="relu"),
    _case("", (1, 14, 5, 5), 14, 3, groups=7, stride=2, padding=1),
    _case("", (2, 3, 5, 5), 9, 3, groups=3, padding=1),
    _case("", (1, 8, 5, 3), 6, 3, groups=2, padding=1, bias=None),
    _case("", (0, 8, 5, 3), 6, 3, label="no-image"),
    _case("", (1, 8, 5, 5), 8, 3, **_EXTREME_SCALES, label="saturating"),
]
DEPTHWISE = [
    _case("_dw", (1, c, h, w), c, kernel, groups=c, **changes)
    for c, h, w, kernel, changes in (
        (1, 1, 1, 1, {}),
        (4, 7, 5, 3, {"padding": 1}),
        (8, 11, 13, 3, {"padding": 1, "activation": "relu"}),
        (12, 11, 7, 3, {"stride": 2, "padding": 1, "zero_point_in": -128}),
        (16, 7, 7, 5, {"padding": 2, "zero_point_in": 127, "bias": None}),
        (5, 7, 11, (3, 5), {"padding": (0, 2), "stride": (1, 3)}),
        (32, 5, 29, 3, {"dilation": 2, "padding": 2, "code_min": -9, "code_max": 77}),
        (7, 9, 9, (2, 4), {"dilation": (3, 1), "padding": (1, 0), "stride": (2, 1)}),
        (68, 5, 6, 5, {"padding": 2}),
        (12, 5, 6, 7, {"padding": 3}),
        (4, 37, 8, 3, {"padding": 1, "stride": 2}),
        (8, 5, 5, 3, {**_EXTREME_SCALES, "label": "saturating"}),
    )
] + [_case("_dw", (3, 8, 5, 7), 8, 3, groups=8, padding=1, label="batch")]
TRANSPOSED = [
    _transposed((1, 1, 1, 1), 1, 1),
    _transposed((1, 8, 5, 7), 8, 2, stride=2),
    _transposed((2, 7, 5, 3), 5, 3, stride=2, padding=1, output_padding=1),
    _transposed((1, 8, 3, 5), 12, 4, stride=2, padding=1, activation="relu"),
    _transposed((1, 3, 4, 4), 4, (3, 5), stride=(3, 1), padding=(2, 0), output_padding=(2, 0)),
    _transposed((1, 4, 5, 5), 4, 3, stride=2, dilation=3, padding=2, output_padding=(1, 2)),
    _transposed((1, 8, 3, 3), 16, 3, groups=2, stride=2, padding=1, zero_point_in=127),
    _transposed((1, 6, 3, 5), 9, 3, groups=3, stride=2, bias=None, zero_point_in=-128),
    _transposed((1, 8, 3, 3), 8, 1, stride=3, label="gaps"),
]
# As many results as the kernels for large products ask for, and little to sum.
LARGE = [
    _case(kind, (1, ic, h, 128), oc, 1, padding=padding, label="large")
    for kind, padding in (("_pw", 0), ("", 1))
    for ic in (3, 16)
    for h, oc in ((128, 33), (256, 65))
]
CASES = [*POINTWISE, *PLAIN, *DEPTHWISE, *TRANSPOSED, *LARGE, *_ties(), *_special_floats()]
