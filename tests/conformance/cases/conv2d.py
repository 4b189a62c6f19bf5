"""Conformance cases of the float convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from nybble.testing import Case

__all__ = ["CASES"]

_RNG = np.random.default_rng(26)
_ONE, _ZERO = (1, 1), (0, 0)


def _floats(*shape: int) -> Any:
    return _RNG.normal(0, 1, shape).astype(np.float32)


def _conv(
    shape: tuple[int, ...],
    oc: int,
    kernel: tuple[int, ...],
    label: str = "",
    *,
    groups: int = 1,
    bias: bool = True,
    transposed: bool = False,
    operator: str = "aten.convolution.default",
    **more: Any,
) -> Case:
    ic = shape[1]
    weight = (ic, oc // groups) if transposed else (oc, ic // groups)
    arguments: dict[str, Any] = {
        "x": _floats(*shape),
        "weight": _floats(*weight, *kernel),
        "bias": _floats(oc) if bias else None,
        "stride": _ONE,
        "padding": _ZERO,
        "dilation": _ONE,
        "transposed": transposed,
        "output_padding": _ZERO,
        "groups": groups,
    }
    return Case(operator, {**arguments, **more}, ("weight", "bias"), label)


def _both(
    shape: tuple[int, ...], oc: int, kernel: tuple[int, ...], label: str = "", **more: Any
) -> list[Case]:
    bounds: dict[str, Any] = {"output_min": -0.5, "output_max": 1.5}
    clamp: dict[str, Any] = {"operator": "et_vk.conv_with_clamp.default", **bounds}
    return [
        _conv(shape, oc, kernel, label, **more),
        _conv(shape, oc, kernel, label, **more, **clamp),
    ]


_CLAMP: dict[str, Any] = {"operator": "et_vk.conv_with_clamp.default"}

CASES = [
    *_both((1, 3, 7, 9), 5, (3, 3)),
    *_both((2, 3, 7, 9), 5, (3, 3), "padded", padding=(1, 2), stride=(2, 1)),
    *_both((2, 3, 11, 9), 7, (3, 2), "dilated", padding=(2, 1), dilation=(2, 3)),
    *_both((1, 3, 7, 9), 5, (1, 1), "pointwise", bias=False),
    *_both((2, 19, 5, 7), 29, (1, 1), "pointwise-wide"),
    *_both((2, 20, 6, 6), 29, (1, 1), "pointwise-quads"),
    *_both((1, 4, 2, 2), 3, (1, 1), "pointwise-quads-narrow", bias=False),
    *_both((1, 17, 9, 8), 67, (3, 3), "wide", padding=(1, 1), stride=(2, 2)),
    *_both((1, 5, 9, 11), 19, (3, 2), "wide-dilated", padding=(2, 1), dilation=(2, 3)),
    *_both((2, 5, 3, 37), 18, (2, 3), "wide-odd", padding=(1, 0), bias=False),
    *_both((2, 6, 7, 5), 9, (3, 3), "groups", groups=3, padding=(1, 1)),
    *_both((1, 4, 7, 5), 20, (3, 1), "groups-deep", groups=2),
    *_both((2, 5, 7, 5), 5, (3, 3), "depthwise", groups=5, padding=(1, 1)),
    *_both((2, 3, 7, 5), 6, (3, 3), "depthwise-twice", groups=3),
    *_both((1, 1, 1, 1), 1, (1, 1), "one"),
    *_both((0, 3, 5, 5), 4, (3, 3), "none"),
    *_both((2, 3, 11), 5, (3,), "sequence", padding=(1,), stride=(2,), dilation=(1,),
           output_padding=(0,)),
    *_both((1, 6, 11), 6, (3,), "sequence-groups", groups=6, padding=(2,), stride=(1,),
           dilation=(2,), output_padding=(0,)),
    *_both((1, 3, 5, 7), 4, (3, 3), "up", transposed=True, stride=(2, 2), padding=(1, 1)),
    *_both((2, 3, 5, 7), 5, (2, 3), "up-odd", transposed=True, stride=(3, 2),
           output_padding=(2, 1)),
    *_both((1, 6, 4, 5), 10, (3, 3), "up-groups", transposed=True, groups=2, stride=(2, 2)),
    *_both((1, 3, 4, 5), 3, (3, 3), "up-depthwise", transposed=True, groups=3, bias=False,
           dilation=(2, 2), output_padding=(1, 0)),
    *_both((2, 3, 7), 5, (4,), "up-sequence", transposed=True, stride=(2,), padding=(1,),
           dilation=(1,), output_padding=(1,)),
    _conv((1, 3, 5, 5), 4, (3, 3), "relu", **_CLAMP, output_min=0, output_max=1.797e308),
    _conv((1, 3, 5, 5), 4, (3, 3), "open", **_CLAMP, output_min=None, output_max=None),
    _conv((1, 20, 5, 5), 20, (3, 3), "relu", **_CLAMP, output_min=0, output_max=None),
]  # fmt: skip
