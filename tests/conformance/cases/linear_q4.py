"""Conformance cases of 4-bit weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from nybble.testing import Case

__all__ = ["CASES"]

_RNG = np.random.default_rng(4)
_INFINITY = np.float32(np.inf)


def _floats(*shape: int) -> Any:
    return _RNG.normal(0, 1, shape).astype(np.float32)


def _bytes(*shape: int) -> Any:
    return _RNG.integers(0, 256, shape, dtype=np.uint8)


def _scales(*shape: int) -> Any:
    return _RNG.uniform(0.01, 0.2, shape).astype(np.float32)


def _label(**facts: object) -> str:
    return "-".join(f"{key}{value}" for key, value in facts.items())


def _linear(
    rows: tuple[int, ...],
    n: int,
    k: int,
    group: int,
    *,
    bias: bool = False,
    extra_bytes: int = 0,
    extra_scales: int = 0,
    extra_groups: int = 0,
    produced: bool = False,
) -> Case:
    """``produced``: the weight is a value of the graph, not a constant."""
    arguments = {
        "x": _floats(*rows, k),
        "weight": _bytes(n, -(-k // 2) + extra_bytes),
        "scales": _scales(-(-k // group) + extra_groups, n + extra_scales),
        "group_size": group,
        "bias": _floats(n + extra_scales) if bias else None,
    }
    constants = () if produced else ("weight", "scales", "bias")
    return Case(
        "et_vk.linear_q4gsw.default", arguments, constants,
        _label(g=group, bias=bias, produced=produced),
    )  # fmt: skip


def _linears() -> list[Case]:
    return [
        _linear((1,), 8, 32, 32),
        _linear((1,), 1, 1, 1),
        _linear((), 5, 7, 3),
        _linear((1,), 64, 2048, 32, bias=True),
        _linear((1,), 520, 96, 32),
        _linear((2,), 20, 64, 16, bias=True),
        _linear((3,), 12, 40, 8),
        _linear((4,), 36, 264, 24, bias=True, extra_groups=1),
        _linear((5,), 12, 40, 4),
        _linear((2, 3), 11, 37, 5, bias=True),
        _linear((1,), 29, 37, 32),
        _linear((1,), 12, 68, 32),
        _linear((3,), 7, 12, 64, extra_bytes=2),
        _linear((1,), 6, 12, 4, extra_bytes=2, extra_scales=2, bias=True),
        _linear((2,), 8, 20, 6),
        _linear((67,), 72, 128, 32, bias=True),
        _linear((67,), 71, 37, 5, bias=True, extra_scales=1),
        _linear((17,), 68, 52, 4),
        _linear((17,), 68, 52, 10),
        _linear((17,), 3, 128, 128),
        _linear((5,), 20, 36, 12, produced=True),
        _linear((37,), 11, 29, 8, produced=True, bias=True),
        # Whole large tiles of the matrix units, and broken ones.
        _linear((1028,), 1024, 36, 12, bias=True),
        _linear((1031,), 1019, 37, 5),
        _linear((0,), 4, 8, 8),
        _linear((3,), 4, 0, 8, bias=True),
        _linear((3,), 0, 8, 8),
        _linear((1,), 520, 2304, 128, bias=True),
        # One row of so many outputs that its workgroups are smaller.
        _linear((1,), 8196, 1056, 32),
        _linear((), 1092, 992, 32, produced=True),
        *_special_linears(),
        *_one_row_linears(),
    ]


def _one_row_linears() -> list[Case]:
    """Inputs that are hard to make integers of, of a slice one unit, and several."""
    return [
        case
        for hard in (_uneven_linears, _tiny_linears, _bounded_linears)
        for n, k in ((1024, 1024), (512, 2560))
        for case in hard(_linear((1,), n, k, 32))
    ]


def _uneven_linears(case: Case) -> list[Case]:
    """One input whose codes stand for 0, and which is by far the largest; an infinity; a NaN."""
    weight = case.arguments["weight"].copy()
    zero = weight.copy()
    zero[:, 64] = 8 * 17
    cases = []
    for label, large, codes in (
        ("large", np.float32(1e7), zero),
        ("huge", np.float32(3e38), zero),
        ("infinite", _INFINITY, weight),
        ("nan", np.float32(np.nan), weight),
    ):
        x = np.zeros_like(case.arguments["x"])
        x[0, 129:160] = case.arguments["x"][0, 129:160]
        x[0, 128] = large
        arguments = {**case.arguments, "x": x, "weight": codes}
        cases.append(Case(case.operator, arguments, ("weight",), label))
    return cases


def _tiny_linears(case: Case) -> list[Case]:
    """Inputs or scales so small that a product of powers of two alone would be subnormal."""
    small = np.float32(1e-32)
    return [
        Case(
            case.operator,
            {**case.arguments, name: case.arguments[name] * small},
            ("weight",),
            f"tiny-{name}",
        )
        for name in ("x", "scales")
    ]


def _bounded_linears(case: Case) -> list[Case]:
    """Inputs on both sides of what integers serve, by less than a sum of floats keeps; one tiny.

    A unit for which integers and float32 both stand up is counted twice; for neither, never.
    """
    units = case.arguments["x"].shape[-1] // 32
    beside = np.zeros((units, 8, 4), np.float32)
    beside[:, 0, 0] = _RNG.integers(1 << 20, 1 << 21, units)
    beside[:, 1:, 0] = 65536 + _RNG.choice([-0.3, -0.1, -0.05, 0.05, 0.06, 0.1], (units, 7))
    lone = np.zeros_like(case.arguments["x"])
    lone[0, 70] = 1.2345 * 2.0**-117
    given = {"bounds": beside.reshape(1, -1) * np.float32(2.0**-20), "lone-tiny": lone}
    return [
        Case(case.operator, {**case.arguments, "x": x}, ("weight",), label)
        for label, x in given.items()
    ]


def _special_linears() -> list[Case]:
    """Non-finite inputs, and every code against every place of a block."""
    special = _linear((3,), 8, 32, 32)
    x = special.arguments["x"].copy()
    x[0, 3], x[1, 7], x[1, 9], x[2, 30] = np.nan, _INFINITY, -_INFINITY, _INFINITY
    weight = special.arguments["weight"].copy()
    weight[weight & 15 == 8] += 1
    every = np.array([[(n + b) % 16 * 17 for b in range(16)] for n in range(16)], np.uint8)
    unit = np.eye(32, dtype=np.float32)
    ones = np.ones((1, 16), np.float32)
    name = "et_vk.linear_q4gsw.default"
    return [
        Case(name, {**special.arguments, "x": x, "weight": weight}, ("weight",), "special"),
        Case(
            name,
            {"x": unit, "weight": every, "scales": ones, "group_size": 32},
            ("weight",),
            "unit",
        ),
    ]


def _dynamic(
    rows: tuple[int, ...], n: int, k: int, group: int, *, scale: float = 0.02, ties: bool = False
) -> Case:
    count = int(np.prod(rows))
    scales = _RNG.uniform(0.5 * scale, 2 * scale, rows).astype(np.float32)
    x = (_floats(*rows, k) * np.float32(60 * scale)).astype(np.float32)
    if ties:
        steps = (_RNG.integers(-130, 130, (*rows, k)) + 0.5).astype(np.float32)
        x = _beside(steps * scales[..., None])
    arguments = {
        "x": x,
        "input_scales": scales,
        "input_zero_points": _RNG.choice(np.array([-128, -7, 0, 5, 127], np.int8), count).reshape(
            rows
        ),
        "weight": _bytes(n, -(-k // 2)),
        "weight_sums": np.zeros((-(-k // group), n + -n % 8), np.int32),
        "scales": _scales(-(-k // group), n),
        "group_size": group,
        "bias": _floats(n),
    }
    return Case(
        "et_vk.linear_dq8ca_q4gsw.default", arguments, ("weight", "weight_sums", "scales", "bias"),
        _label(g=group, s=scale, ties=ties),
    )  # fmt: skip


def _beside(values: Any) -> Any:
    """The values with every third moved one ulp down and every third one ulp up."""
    flat = values.astype(np.float32).reshape(-1)
    down, up = np.nextafter(flat, -_INFINITY), np.nextafter(flat, _INFINITY)
    place = np.arange(flat.size) % 3
    return np.where(place == 0, flat, np.where(place == 1, down, up)).reshape(values.shape)


def _dynamics() -> list[Case]:
    special = _dynamic((3,), 8, 32, 32)
    x = special.arguments["x"].copy()
    x[0, :4] = [np.nan, _INFINITY, -_INFINITY, 1e-40]
    scales = np.array([0.02, 0.0, _INFINITY], np.float32)
    odd = Case(special.operator, {**special.arguments, "x": x}, special.constants, "special-inputs")
    zero = Case(
        special.operator,
        {
            **special.arguments,
            "input_scales": np.where(scales == _INFINITY, np.float32(1e-30), scales),
        },
        special.constants,
        "special-scales",
    )
    return [
        _dynamic((1,), 16, 256, 32),
        _dynamic((1, 4), 8, 64, 32),
        _dynamic((7,), 11, 37, 8),
        _dynamic((67,), 36, 48, 16),
        _dynamic((18,), 13, 29, 6),
        _dynamic((5,), 8, 64, 32, scale=1e9),
        _dynamic((5,), 8, 64, 32, scale=1e-9),
        _revealing(0.0123),
        _revealing(1e-25),
        _revealing(1e25),
        odd,
        zero,
    ]


def _revealing(scale: float) -> Case:
    """Ties of the inputs' rounding; each output is one code, so a wrong one shows."""
    case = _dynamic((8,), 32, 32, 32, scale=scale, ties=True)
    codes = np.full((32, 32), 8, np.uint8) + np.eye(32, dtype=np.uint8)
    weight = codes[:, 0::2] | (codes[:, 1::2] << 4)
    arguments = {**case.arguments, "weight": weight, "scales": np.ones((1, 32), np.float32)}
    return Case(case.operator, {**arguments, "bias": None}, case.constants, f"ties-{scale}")


def _channelwise(rows: tuple[int, ...], n: int, k: int, *, produced: bool = False) -> Case:
    arguments = {"x": _floats(*rows, k), "weight": _bytes(n, -(-k // 2)), "scales": _scales(n)}
    return Case(
        "et_vk.linear_qcs4w.default", arguments, () if produced else ("weight", "scales"),
        _label(produced=produced),
    )  # fmt: skip


def _backward(
    rows: tuple[int, ...],
    n: int,
    k: int,
    group: int,
    *,
    extra_bytes: int = 0,
    produced: bool = False,
) -> Case:
    arguments = {
        "d_out": _floats(*rows, n),
        "weight": _bytes(n, -(-k // 2) + extra_bytes),
        "scales": _scales(-(-k // group), n + n % 3),
        "group_size": group,
    }
    return Case(
        "et_vk.linear_q4gsw_backward.default", arguments, () if produced else ("weight",),
        _label(g=group, produced=produced),
    )  # fmt: skip


def _outer(rows: tuple[int, ...], n: int, k: int) -> Case:
    return Case("et_vk.linear_dW.default", {"d_out": _floats(*rows, n), "x": _floats(*rows, k)})


def _embedding(
    v: int,
    row_bytes: int,
    group: int,
    shape: tuple[int, ...],
    *,
    linear: bool,
    produced: bool = False,
) -> Case:
    arguments = {
        "weight": _bytes(v, row_bytes),
        "scales": _scales(v, -(-2 * row_bytes // group)),
        "group_size": group,
        "indices": _RNG.integers(-2, v + 2, shape, dtype=np.int32),
        "is_linear_weight": linear,
    }
    return Case(
        "et_vk.embedding_q4gsw.default", arguments, () if produced else ("weight", "scales"),
        _label(linear=linear, produced=produced),
    )  # fmt: skip


def _relayout(*shape: int) -> Case:
    return Case("nybble.relayout.default", {"x": _bytes(*shape)}, (), "w4x8")


def _large_products() -> list[Case]:
    """Products large enough for three dispatches on the matrix units."""
    linear = _linear((2, 16), 2048, 1024, 32, bias=True)
    x = linear.arguments["x"].copy()
    x[0, 3, 5], x[1, 7, 100] = np.nan, _INFINITY
    return [
        linear,
        Case(linear.operator, {**linear.arguments, "x": x}, linear.constants, "large-special"),
        _linear((70,), 1028, 1088, 96),
        _linear((130,), 516, 1024, 2048),
        _dynamic((33,), 2048, 1024, 32),
        _dynamic((33,), 2048, 1024, 64, ties=True),
        _channelwise((32,), 2048, 1024),
    ]


def _holed(case: Case, name: str) -> Case:
    """The case with infinities and a NaN in three rows of an argument."""
    values = case.arguments[name].copy()
    flat = values.reshape(-1, values.shape[-1])
    flat[0, 0], flat[3, 5], flat[3, 7], flat[-1, -1] = _INFINITY, -_INFINITY, _INFINITY, np.nan
    return Case(case.operator, {**case.arguments, name: values}, case.constants, f"holed-{name}")


CASES = [
    _holed(_linear((67,), 72, 128, 32), "x"),
    _holed(_linear((67,), 71, 37, 5), "x"),
    _holed(_backward((67,), 36, 128, 32), "d_out"),
    _holed(_outer((67,), 71, 37), "d_out"),
    _holed(_outer((35,), 68, 72), "x"),
    *_large_products(),
    *_linears(),
    *_dynamics(),
    _channelwise((1,), 1028, 1024),
    _channelwise((1,), 520, 2304),
    _channelwise((1,), 12, 64),
    _channelwise((2, 3), 11, 37),
    _channelwise((21,), 36, 60),
    _channelwise((1024,), 1024, 36),
    _channelwise((1025,), 1025, 19),
    _channelwise((5,), 7, 12, produced=True),
    _backward((1,), 8, 32, 32),
    _backward((3,), 520, 36, 32),
    _backward((2, 5), 20, 64, 16),
    _backward((7,), 11, 37, 5),
    _backward((67,), 36, 128, 32),
    _backward((67,), 71, 72, 6),
    _backward((5,), 9, 12, 4, extra_bytes=2),
    _backward((1,), 1, 2, 1),
    _backward((18,), 12, 40, 8, produced=True),
    _backward((3,), 12, 40, 8),
    _backward((16,), 24, 36, 6),
    _backward((1028,), 36, 1024, 32),
    _backward((1031,), 37, 1020, 6),
    _backward((0,), 4, 8, 8),
    _outer((5,), 7, 11),
    _outer((2, 37), 68, 72),
    _outer((1,), 4, 4),
    _outer((67,), 71, 37),
    _outer((35,), 1028, 1024),
    _outer((35,), 1031, 1019),
    _outer((3,), 0, 4),
    _outer((0,), 3, 5),
    _embedding(37, 16, 32, (2, 7), linear=True),
    _embedding(37, 16, 32, (2, 7), linear=False),
    _embedding(11, 7, 5, (3,), linear=True),
    _embedding(11, 3, 6, (), linear=False, produced=True),
    _embedding(5, 4, 8, (0,), linear=True),
    _relayout(8, 2),
    _relayout(29, 7),
    _relayout(64, 32),
    _relayout(3, 1),
    _relayout(0, 4),
]  # fmt: skip
