"""Operators that are written in terms of others when a graph is built."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nybble.contract import EXPANSIONS, REGISTRY, Array, dtype_of
from nybble.devices import run_reference
from nybble.errors import ContractError
from nybble.graph import Call, Value, make_call


def _value(array: Array) -> Value:
    dtype = dtype_of(array)
    assert dtype is not None
    return Value("x", dtype, array.shape)


def _expand(name: str, *arguments: Any) -> tuple[list[Array], list[Call]]:
    """The results of an expansion's calls on the host, and the calls."""
    arrays: dict[Value, Array] = {}
    calls: list[Call] = []

    def known(item: Any) -> Any:
        if isinstance(item, np.ndarray):
            value = _value(item)
            arrays[value] = item
            return value
        listed = isinstance(item, list)
        return [known(i) for i in item] if listed else item

    def emit(operator: str, **named: Any) -> Any:
        call = make_call(REGISTRY[operator], named, lambda: "y", "test")
        calls.append(call)
        tensors = {n: arrays[v] for n, v in call.inputs.items()}
        arrays.update(zip(call.outputs, run_reference(call, tensors), strict=True))
        return call.outputs[0] if len(call.outputs) == 1 else call.outputs

    results = EXPANSIONS[name](emit, [known(a) for a in arguments])
    return [arrays[value] for value in results], calls


def _floats(*shape: int) -> Array:
    return np.random.default_rng(5).normal(0, 1, shape).astype(np.float32)


@pytest.mark.parametrize("count", [1, 2, 7, 8, 15, 50])
def test_cat_joins_any_number_of_tensors(count: int) -> None:
    """More tensors than a kernel binds are joined in groups, in order."""
    parts = [_floats(2, i % 3 + 1, 5) + i for i in range(count)]
    (result,), calls = _expand("aten.cat.default", parts, 1)
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), result)
    assert max(len(call.inputs) for call in calls) <= 7


def test_cat_passes_over_empty_tensors() -> None:
    """A tensor of shape [0] joins with any shape, as PyTorch has it."""
    part = _floats(2, 3)
    (result,), _ = _expand("aten.cat.default", [np.zeros(0, np.float32), part, part], -1)
    np.testing.assert_array_equal(np.concatenate([part, part], axis=-1), result)


def test_split_gives_every_piece() -> None:
    """The pieces are those of numpy's split, one of them empty."""
    x = _floats(2, 7, 3)
    results, _ = _expand("aten.split_with_sizes_copy.default", x, (1, 0, 4, 2), -2)
    expected = np.split(x, [1, 1, 5], axis=1)
    assert len(results) == 4
    for one, other in zip(expected, results, strict=True):
        np.testing.assert_array_equal(one, other)


def test_unbind_gives_every_part() -> None:
    """One result for each index of the axis, without the axis."""
    x = _floats(2, 3, 5)
    results, _ = _expand("aten.unbind_copy.int", x, -2)
    assert len(results) == 3
    for i, result in enumerate(results):
        np.testing.assert_array_equal(x[:, i], result)


@pytest.mark.parametrize("shape", [(8, 3, 5), (2, 12, 1, 2), (4, 1, 1)])
def test_pixel_shuffle_moves_channels_into_pixels(shape: tuple[int, ...]) -> None:
    """Each element lies where the definition puts it."""
    x = _floats(*shape)
    (result,), _ = _expand("aten.pixel_shuffle.default", x, 2)
    *lead, c, h, w = shape
    expected = np.zeros((*lead, c // 4, h * 2, w * 2), np.float32)
    for i in range(2):
        for j in range(2):
            expected[..., i::2, j::2] = x[..., i * 2 + j :: 4, :, :]
    np.testing.assert_array_equal(expected, result)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("places", [(3,), (2, 3), ()])
def test_index_takes_the_place_of_its_axis(axis: int, places: tuple[int, ...]) -> None:
    """Indices of any shape stand where the indexed axis stood; negative ones count back."""
    x = _floats(5, 5, 2)
    index = np.random.default_rng(1).integers(-5, 5, places).astype(np.int32)
    (result,), _ = _expand("aten.index.Tensor", x, [*[None] * axis, index])
    np.testing.assert_array_equal(np.take(x, index, axis=axis, mode="wrap"), result)


def test_copy_takes_shape_and_type_of_its_target() -> None:
    """The source is broadcast and converted."""
    target, source = np.zeros((2, 3), np.float32), np.array([1, 2, 3], np.int32)
    (result,), _ = _expand("aten.copy.default", target, source, False)
    np.testing.assert_array_equal(np.array([[1, 2, 3]] * 2, np.float32), result)


def test_max_pool_is_the_first_result_of_the_pool_with_indices() -> None:
    """Only the values are returned."""
    x = _floats(1, 2, 4, 6)
    (result,), _ = _expand("aten.max_pool2d.default", x, (2, 2), (2, 2), (0, 0), (1, 1), False)
    np.testing.assert_array_equal(x.reshape(1, 2, 2, 2, 3, 2).max((3, 5)), result)


@pytest.mark.parametrize("shape", [(3, 5), (5,), ()])
def test_transpose_swaps_the_axes_of_a_matrix(shape: tuple[int, ...]) -> None:
    """A vector or a scalar stays as it is."""
    x = _floats(*shape)
    (result,), _ = _expand("aten.t_copy.default", x)
    np.testing.assert_array_equal(x.T, result)
    (same,), _ = _expand("aten.alias_copy.default", x)
    np.testing.assert_array_equal(x, same)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("aten.cat.default", ([], 0), "there is no tensor to join"),
        ("aten.cat.default", ([_floats(2, 3), _floats(3, 4)], 0), "one shape but for the axis"),
        ("aten.cat.default", ([_floats(2)],), r"received 1 arguments, expected 2 \(tensors, dim\)"),
        ("aten.split_with_sizes_copy.default", (_floats(5), (1, 2), 0), "do not make up an axis"),
        ("aten.pixel_shuffle.default", (_floats(6, 2, 2), 2), "no multiple of 2 squared"),
        ("aten.pixel_shuffle.default", (_floats(2), 2), "do not fit"),
        ("aten.index.Tensor", (_floats(2, 2), [None, None]), "indexes 0 axes"),
        ("aten.t_copy.default", (_floats(2, 2, 2),), "no matrix"),
    ],
)
def test_what_does_not_fit_is_refused(name: str, arguments: tuple[Any, ...], message: str) -> None:
    """The error is a ContractError that names the operator and the reason."""
    with pytest.raises(ContractError, match=message):
        _expand(name, *arguments)


def test_out_variants_are_the_same_expansion() -> None:
    """A portable kernel call's name leads to the expansion of the functional form."""
    assert EXPANSIONS["aten.cat.default"] is EXPANSIONS["aten.cat.out"]
    assert not set(EXPANSIONS) & set(REGISTRY)
