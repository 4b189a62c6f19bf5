"""The references of int8 convolutions, linear layers and elementwise operators."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import nybble.ops  # noqa: F401  (declares the operators)
from nybble.contract import REGISTRY, TensorType, bind, dtype_of
from nybble.errors import ContractError

PREFIX = "et_vk.q8ta_conv2d"


def call(name: str, arguments: dict[str, Any]) -> Any:
    """The reference's result for arguments by name."""
    operator = REGISTRY[name]
    internal = {a.name: arguments.get(a.name, a.default) for a in operator.arguments if a.internal}
    return operator.reference(*(arguments[a.name] for a in operator.serialized), **internal)


def bound(name: str, arguments: dict[str, Any]) -> Any:
    """The call as the contract binds it."""
    types = {key: _type(value) for key, value in arguments.items()}
    return bind(REGISTRY[name], types)


def _type(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    dtype = dtype_of(value)
    assert dtype is not None
    return TensorType(dtype, value.shape)


def convolution(seed: int, **changes: Any) -> dict[str, Any]:
    """Arguments of a small random convolution."""
    rng = np.random.default_rng(seed)
    geometry: dict[str, Any] = {
        "kernel": (3, 2), "stride": (2, 1), "padding": (1, 2), "dilation": (1, 2), "groups": 2,
    } | {k: v for k, v in changes.items() if k in ("kernel", "stride", "padding", "dilation",
                                                   "groups")}  # fmt: skip
    channels, outputs = changes.get("ic", 6), changes.get("oc", 4)
    columns = geometry["kernel"][0] * geometry["kernel"][1] * (channels // geometry["groups"])
    arguments = {
        "x": rng.integers(-128, 128, (2, channels, 5, 6), dtype=np.int8),
        "scale_in": 0.02, "zero_point_in": -7,
        "weight": rng.integers(-127, 128, (outputs, columns + -columns % 4), dtype=np.int8),
        "weight_sums": np.zeros(outputs, np.int32),
        "weight_scales": rng.uniform(0.001, 0.01, outputs).astype(np.float32),
        "scale_out": 0.05, "zero_point_out": 11,
        "bias": rng.normal(size=outputs).astype(np.float32),
        "activation": "none", **geometry,
    }  # fmt: skip
    return arguments | {k: v for k, v in changes.items() if k not in ("ic", "oc")}


def requantize(total: int, a: dict[str, Any], channel: int) -> int:
    """The output stage of one element, written out once more."""
    value = np.float32(total) * np.float32(a["scale_in"]) * a["weight_scales"][channel]
    if a["bias"] is not None:
        value = value + a["bias"][channel]
    if a["activation"] == "relu":
        value = max(value, np.float32(0))
    code = int(np.rint(value * np.float32(1 / float(np.float32(a["scale_out"])))))
    return max(-128, min(127, code + a["zero_point_out"]))


def taps(a: dict[str, Any], channel: int) -> Any:
    """Every (row tap, column tap, input channel, weight) of an output channel's filter."""
    depth = a["x"].shape[1] // a["groups"]
    group = channel // (a["weight"].shape[0] // a["groups"])
    sizes = (*map(range, a["kernel"]), range(depth))
    for i, j, c in itertools.product(*sizes):
        weight = a["weight"][channel, (i * a["kernel"][1] + j) * depth + c]
        yield i, j, group * depth + c, int(weight)


@pytest.mark.parametrize(
    "changes",
    [
        {}, {"groups": 1}, {"groups": 1, "stride": (1, 3), "dilation": (2, 1)},
        {"ic": 4, "groups": 4}, {"activation": "relu"}, {"bias": None, "zero_point_in": 127},
    ],
)  # fmt: skip
def test_convolution_equals_its_definition_in_loops(changes: dict[str, Any]) -> None:
    """Every output code equals the one summed tap by tap in Python integers."""
    a = convolution(1, **changes)
    result = call(f"{PREFIX}.default", a)
    n, oc, rows, columns = result.shape
    assert bound(f"{PREFIX}.default", a).outputs[0].shape == result.shape
    for image, channel, row, column in itertools.product(*map(range, (n, oc, rows, columns))):
        total = 0
        for i, j, c, weight in taps(a, channel):
            y = row * a["stride"][0] - a["padding"][0] + i * a["dilation"][0]
            x = column * a["stride"][1] - a["padding"][1] + j * a["dilation"][1]
            if 0 <= y < a["x"].shape[2] and 0 <= x < a["x"].shape[3]:
                total += (int(a["x"][image, c, y, x]) - a["zero_point_in"]) * weight
        assert requantize(total, a, channel) == result[image, channel, row, column]


@pytest.mark.parametrize(
    "changes",
    [
        {}, {"groups": 1, "output_padding": (1, 0)}, {"dilation": (2, 3), "stride": (3, 2)},
        {"stride": (3, 3), "kernel": (2, 2), "padding": (0, 1), "output_padding": (2, 1)},
    ],
)  # fmt: skip
def test_transposed_convolution_equals_its_definition_in_loops(changes: dict[str, Any]) -> None:
    """Every output code equals the sum of what each input pixel adds to it."""
    changes = {"output_padding": (0, 0)} | changes
    a = convolution(2, **changes)
    result = call(f"{PREFIX}_transposed.default", a)
    assert bound(f"{PREFIX}_transposed.default", a).outputs[0].shape == result.shape
    n, oc, rows, columns = result.shape
    totals = np.zeros(result.shape, np.int64)
    for image, channel in itertools.product(range(n), range(oc)):
        for i, j, c, weight in taps(a, channel):
            for y, x in itertools.product(range(a["x"].shape[2]), range(a["x"].shape[3])):
                row = y * a["stride"][0] - a["padding"][0] + i * a["dilation"][0]
                column = x * a["stride"][1] - a["padding"][1] + j * a["dilation"][1]
                if 0 <= row < rows and 0 <= column < columns:
                    shifted = int(a["x"][image, c, y, x]) - a["zero_point_in"]
                    totals[image, channel, row, column] += shifted * weight
    for index in np.ndindex(result.shape):
        assert requantize(int(totals[index]), a, index[1]) == result[index]


def test_depthwise_equals_the_grouped_convolution_of_the_same_filters() -> None:
    """A depthwise call equals the plain one with a group a channel."""
    a = convolution(3, ic=4, oc=4, groups=4, kernel=(3, 3))
    expected = call(f"{PREFIX}.default", a)
    filters = a["weight"][:, :9].T.reshape(3, 3, 4)
    assert np.array_equal(expected, call(f"{PREFIX}_dw.default", a | {"weight": filters}))


@pytest.mark.parametrize(
    ("kind", "changes", "sentence"),
    [
        ("", {"groups": 4}, "groups must divide channels"),
        ("", {"stride": (0, 1)}, "do not fit"),
        ("", {"dilation": (0, 1)}, "must be at least 1"),
        ("", {"kernel": (9, 1)}, "must not exceed the padded input"),
        ("", {"padding": (-1, 0)}, "must not be negative"),
        ("", {"stride": (1, 1, 1)}, "two entries"),
        ("", {"weight": np.zeros((4, 17), np.int8)}, "one column a tap"),
        ("", {"weight_scales": np.zeros(3, np.float32)}, "weight_scales needs one entry"),
        ("", {"bias": np.zeros(3, np.float32)}, "bias needs one entry"),
        ("", {"activation": "gelu"}, "has an unknown value"),
        ("", {"zero_point_in": 128}, "zero_point_in must be an int8 code"),
        ("", {"scale_out": 0.0}, "scale_out must lie between"),
        ("_transposed", {"output_padding": (2, 0)}, "smaller than the stride or the dilation"),
        ("_dw", {"weight": np.zeros((3, 2, 4), np.int8)}, "one filter an input channel"),
    ],
)
def test_calls_outside_the_contract_are_refused(
    kind: str, changes: dict[str, Any], sentence: str
) -> None:
    """A wrong attribute or size is a ContractError that names the condition."""
    a = convolution(4)
    if kind == "_transposed":
        a["output_padding"] = (0, 0)
    with pytest.raises(ContractError, match=sentence):
        bound(f"{PREFIX}{kind}.default", a | changes)


def test_filters_too_long_for_32_bits_are_refused() -> None:
    """65793 products fit an int32 at worst; one more is refused."""
    longest = 65793
    a: dict[str, Any] = {
        "scale_in": 1.0, "zero_point_in": 0, "weight_sums": np.zeros(1, np.int32),
        "weight_scales": np.ones(1, np.float32), "bias": None,
    }  # fmt: skip
    for k in (longest, longest + 1):
        x, weight = np.zeros((1, k), np.int8), np.zeros((1, k), np.int8)
        if k == longest:
            bound("et_vk.linear_q8ta_q8csw.default", a | {"x": x, "weight": weight})
        else:
            with pytest.raises(ContractError, match="overflows 32 bits"):
                bound("et_vk.linear_q8ta_q8csw.default", a | {"x": x, "weight": weight})


@pytest.mark.parametrize("shape", [(5,), (3, 5), (2, 3, 7), (0, 4)])
@pytest.mark.parametrize("activation", ["none", "relu"])
def test_linear_equals_its_definition_in_loops(shape: tuple[int, ...], activation: str) -> None:
    """Codes and float results equal sums taken product by product in Python integers."""
    rng = np.random.default_rng(5)
    depth = shape[-1]
    a: dict[str, Any] = {
        "x": rng.integers(-128, 128, shape, dtype=np.int8), "scale_in": 0.02,
        "zero_point_in": 9, "weight": rng.integers(-127, 128, (6, depth + 3), dtype=np.int8),
        "weight_sums": np.zeros(8, np.int32),
        "weight_scales": rng.uniform(0.001, 0.01, 8).astype(np.float32),
        "scale_out": 0.01, "zero_point_out": -5,
        "bias": rng.normal(size=8).astype(np.float32), "activation": activation,
    }  # fmt: skip
    codes = call("et_vk.q8ta_linear.default", a)
    assert np.array_equal(codes, call("et_vk.q8ta_linear_gemv.default", a))
    values = call("et_vk.linear_q8ta_q8csw.default", a)
    assert bound("et_vk.q8ta_linear.default", a).outputs[0].shape == codes.shape
    for index in np.ndindex(codes.shape):
        row, weight = a["x"][index[:-1]], a["weight"][index[-1]]
        total = sum((int(row[k]) - 9) * int(weight[k]) for k in range(depth))
        assert requantize(total, a, index[-1]) == codes[index]
        product = np.float32(total) * np.float32(0.02) * a["weight_scales"][index[-1]]
        assert product + a["bias"][index[-1]] == values[index]


def test_pixel_shuffle_moves_each_channel_to_its_phase() -> None:
    """With equal scales the result is the documented rearrangement of codes."""
    x = np.random.default_rng(6).integers(-128, 128, (2, 18, 2, 3), dtype=np.int8)
    a = {"x": x, "scale_in": 1.0, "zero_point_in": 0, "inverse_scale_out": 1.0,
         "zero_point_out": 0, "factor": 3}  # fmt: skip
    result = call("et_vk.q8ta_pixel_shuffle.default", a)
    assert result.shape == (2, 2, 6, 9)
    for n, c, h, w in np.ndindex(result.shape):
        assert x[n, c * 9 + h % 3 * 3 + w % 3, h // 3, w // 3] == result[n, c, h, w]
