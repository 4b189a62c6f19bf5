"""Conformance cases of the poolings."""

from __future__ import annotations

from typing import Any

import numpy as np

from nybble.testing import Case

__all__ = ["CASES"]

_RNG = np.random.default_rng(23)


def _floats(*shape: int) -> Any:
    return _RNG.normal(0, 1, shape).astype(np.float32)


def _avg(x: Any, kernel: Any, label: str = "", **more: Any) -> Case:
    return Case("aten.avg_pool2d.default", {"x": x, "kernel_size": kernel, **more}, id=label)


def _max(x: Any, kernel: Any, label: str = "", **more: Any) -> Case:
    arguments = {"x": x, "kernel_size": kernel, **more}
    return Case("aten.max_pool2d_with_indices.default", arguments, id=label)


def _ties() -> Any:
    return _RNG.integers(0, 3, (2, 3, 7, 5)).astype(np.float32)


def _specials() -> Any:
    x = _floats(1, 2, 7, 7)
    x[0, 0, 2, 3] = x[0, 0, 2, 4] = float("nan")
    x[0, 1, 1:4, 1:4] = float("-inf")
    x[0, 1, 6, 6] = float("inf")
    return x


_PADDED: dict[str, Any] = {"stride": (2, 2), "padding": (1, 1)}

CASES = [
    _avg(_floats(2, 3, 7, 5), (2, 2)),
    _avg(_floats(2, 3, 7, 5), (3, 2), stride=(1, 2)),
    _avg(_floats(2, 3, 7, 5), (3, 3), "padded", **_PADDED),
    _avg(_floats(2, 3, 7, 5), (3, 3), "unpadded", count_include_pad=False, **_PADDED),
    _avg(_floats(1, 3, 8, 6), (3, 3), "ceil", ceil_mode=True, **_PADDED),
    _avg(_floats(1, 3, 8, 6), (3, 3), "ceil-unpadded", ceil_mode=True, count_include_pad=False,
         **_PADDED),
    _avg(_floats(1, 3, 8, 7), (2, 2), "ceil-far", ceil_mode=True, stride=(3, 3)),
    _avg(_floats(1, 3, 8, 6), (3, 3), "divisor", divisor_override=5, **_PADDED),
    _avg(_floats(3, 7, 7), (7, 7), "global"),
    _avg(_floats(1, 1, 1, 1), (1, 1), "one"),
    _avg(_floats(0, 3, 5, 5), (2, 2), "none"),
    _avg(_floats(1, 2, 5, 5), (2,), "short-lists", stride=(), padding=(0,)),
    _avg(_specials(), (3, 3), "special"),
    _max(_floats(2, 3, 7, 5), (2, 2)),
    _max(_floats(2, 3, 7, 5), (3, 2), stride=(1, 2)),
    _max(_floats(2, 3, 7, 5), (3, 3), "padded", **_PADDED),
    _max(_floats(2, 3, 9, 8), (3, 2), "dilated", dilation=(2, 3), padding=(1, 1), stride=(1, 1)),
    _max(_floats(1, 3, 8, 6), (3, 3), "ceil", ceil_mode=True, **_PADDED),
    _max(_floats(1, 3, 8, 7), (2, 2), "ceil-far", ceil_mode=True, stride=(3, 3)),
    _max(_ties(), (3, 3), "ties", stride=(1, 1), padding=(1, 1)),
    _max(_specials(), (3, 3), "special", stride=(1, 1), padding=(1, 1)),
    _max(_floats(3, 7, 7), (7, 7), "global"),
    _max(_floats(1, 1, 1, 1), (1, 1), "one"),
    _max(_floats(0, 3, 5, 5), (2, 2), "none"),
    _max(_floats(1, 2, 5, 5), (2,), "short-lists", stride=(), padding=(0,), dilation=(1,)),
]  # fmt: skip
