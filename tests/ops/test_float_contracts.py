"""What the float and shape operators refuse, and the index arithmetic under their kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nybble.contract import REGISTRY, Expression
from nybble.contract.strides import (
    broadcast_axes,
    broadcast_shape,
    expanded_axes,
    flipped_axes,
    flipped_offset,
    gathered_axes,
    kept_axes,
    permuted_axes,
    reduced_axes,
    repeated_axes,
    sliced_axes,
    unfolded_axes,
)
from nybble.errors import ContractError
from nybble.testing import run_expected


def _zeros(*shape: int, dtype: Any = np.float32) -> Any:
    return np.zeros(shape, dtype)


CONV: dict[str, Any] = {
    "x": _zeros(1, 6, 5, 5),
    "weight": _zeros(4, 6, 3, 3),
    "bias": None,
    "stride": (1, 1),
    "padding": (0, 0),
    "dilation": (1, 1),
    "transposed": False,
    "output_padding": (0, 0),
    "groups": 1,
}
X = _zeros(2, 3, 5, 7)
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("aten.convolution.default", {**CONV, "groups": 4}, "the groups must divide"),
    ("aten.convolution.default", {**CONV, "groups": 2}, "must have the input's channels"),
    ("aten.convolution.default", {**CONV, "stride": (0, 1)}, "strides must be positive"),
    ("aten.convolution.default", {**CONV, "padding": (-1, 0)}, "must not be negative"),
    ("aten.convolution.default", {**CONV, "bias": _zeros(5)}, "one value an output channel"),
    ("aten.convolution.default", {**CONV, "weight": _zeros(4, 6, 9, 3)}, "input is too small"),
    ("aten.convolution.default", {**CONV, "x": _zeros(6, 5, 5)}, "do not fit|both have rank"),
    ("aten.linear.default", {"x": _zeros(2, 3), "weight": _zeros(4, 5)}, "k=5, but k is 3"),
    ("aten.add.Tensor", {"x": X, "other": _zeros(2)}, "do not broadcast"),
    ("aten.add.Tensor", {"x": X, "other": _zeros(7, dtype=np.int32)}, "one element type"),
    (
        "aten.add.Tensor",
        {"x": _zeros(2, dtype=np.int32), "other": _zeros(2, dtype=np.int32), "alpha": 0.5},
        "alpha of int32",
    ),
    ("aten.clamp.default", {"x": _zeros(2, dtype=np.int32), "low": 0.5}, "must be an int32"),
    ("aten.gelu.default", {"x": X, "approximate": "erf"}, "'none' or 'tanh'"),
    ("aten.mean.dim", {"x": X, "dim": (4,)}, "must be one of the tensor's"),
    ("aten.amax.default", {"x": _zeros(0, 3), "dim": (1,)}, "extreme of no elements"),
    ("aten.view_copy.default", {"x": X, "size": (11, -1)}, "does not hold the 210 elements"),
    ("aten.view_copy.default", {"x": X, "size": (-1, -1)}, "not several"),
    ("aten.view_copy.default", {"x": X, "size": (0, -1)}, "do not fit"),
    ("aten.permute_copy.default", {"x": X, "dims": (0, 1, 2, 2)}, "does not order the axes"),
    ("aten.permute_copy.default", {"x": X, "dims": (0, 1, 2)}, "does not order the axes"),
    ("aten.permute_copy.default", {"x": X, "dims": (0, 1, 2, 4)}, "do not fit"),
    ("aten.expand_copy.default", {"x": X, "size": (2, 3, 5, 8)}, "do not fit"),
    ("aten.select_copy.int", {"x": X, "dim": 1, "index": 3}, "must lie on the axis"),
    ("aten.slice_copy.Tensor", {"x": X, "dim": 1, "step": 0}, "step must be positive"),
    ("aten.unsqueeze_copy.default", {"x": X, "dim": 6}, "lie within the result"),
    ("aten.avg_pool2d.default", {"x": X, "kernel_size": (9, 9)}, "the window must fit"),
    (
        "aten.avg_pool2d.default",
        {"x": X, "kernel_size": (2, 2), "divisor_override": 0},
        "must not be 0",
    ),
    ("aten.native_layer_norm.default", {"x": X, "normalized_shape": (5,)}, "that of the last axes"),
    (
        "aten.native_layer_norm.default",
        {"x": X, "normalized_shape": (7,), "weight": _zeros(5)},
        "weight must have the normalized shape",
    ),
    ("aten._softmax.default", {"x": X, "dim": 4}, "do not fit"),
    (
        "et_vk.sdpa.default",
        {"q": X, "k": X, "v": X, "mask": _zeros(5, 4)},
        "mask must broadcast to the scores",
    ),
    (
        "update_cache.default",
        {"value": _zeros(1, 2, 1, 3), "cache": _zeros(1, 4, 1, 3), "start_pos": 3},
        "positions must lie in the cache",
    ),
    (
        "aten.gather.default",
        {"x": X, "dim": 1, "index": _zeros(2, 3, 6, 7, dtype=np.int32)},
        "do not fit",
    ),
    ("aten.eq.Tensor", {"x": X, "other": _zeros(7, dtype=np.int32)}, "one element type"),
    (
        "aten.where.self",
        {"condition": _zeros(2, dtype=np.bool_), "x": X, "other": X},
        "do not broadcast",
    ),
    ("aten.argmax.default", {"x": _zeros(0, 3), "dim": 1}, "extreme of no elements"),
    ("aten.flip.default", {"x": X, "dims": (4,)}, "must be one of the tensor's"),
    ("aten.repeat.default", {"x": X, "repeats": (2,)}, "a count for each"),
    ("aten.constant_pad_nd.default", {"x": X, "pad": (1,)}, "two counts for each"),
    ("aten.constant_pad_nd.default", {"x": X, "pad": (-4, -4)}, "cuts off more than there is"),
    ("aten.constant_pad_nd.default", {"x": X, "pad": (-8, 9)}, "cuts off more than there is"),
    (
        "aten.constant_pad_nd.default",
        {"x": _zeros(3, dtype=np.int8), "pad": (1, 1), "value": 128},
        "the tensor can hold",
    ),
    (
        "aten.constant_pad_nd.default",
        {"x": _zeros(3, dtype=np.uint8), "pad": (1, 1), "value": -1},
        "the tensor can hold",
    ),
    ("aten.full.default", {"size": (2,), "value": 0.5, "out_dtype": "int32"}, "filled with an int"),
    ("aten.arange.start_step", {"start": 3, "end": 1, "step": 1}, "must lead from start to end"),
    ("aten.upsample_nearest2d.vec", {"x": X}, "either the size or the factors"),
    ("aten.div.Tensor_mode", {"x": X, "other": X, "mode": "ceil"}, "'floor' or 'trunc'"),
    (
        "aten.max_pool2d_with_indices.default",
        {"x": X, "kernel_size": (2, 2), "padding": (2, 2)},
        "at most half",
    ),
]


@pytest.mark.parametrize(
    ("operator", "arguments", "message"),
    REFUSED,
    ids=[f"{name.split('.')[1]}-{i}" for i, (name, _, _) in enumerate(REFUSED)],
)
def test_call_is_refused(operator: str, arguments: dict[str, Any], message: str) -> None:
    """A call outside the contract raises ContractError with the operator's name and the reason."""
    with pytest.raises(ContractError, match=message) as caught:
        run_expected(operator, arguments)
    assert str(caught.value).startswith(operator)


def _walk(axes: tuple[tuple[int, ...], ...], operand: int) -> list[int]:
    """The offsets that a kernel would read, in the order of its results."""
    offsets = np.zeros(1, np.int64)
    for size, *strides in axes:
        offsets = np.add.outer(np.arange(size) * strides[operand], offsets).reshape(-1)
    return offsets.tolist()


def _offsets(*shape: int) -> Any:
    return np.arange(int(np.prod(shape))).reshape(shape)


@pytest.mark.parametrize(
    ("shape", "other"),
    [((2, 3, 4), (3, 1)), ((1,), (5, 1, 2)), ((2, 1, 3, 1), (4, 1, 5)), ((), ()), ((0, 2), (2,))],
)
def test_broadcast_axes_reach_every_element(shape: Any, other: Any) -> None:
    """Walking the axes gives the offsets that numpy's broadcasting gives."""
    expected = np.broadcast_arrays(_offsets(*shape), _offsets(*other))
    axes = broadcast_axes(shape, other)
    assert expected[0].shape == broadcast_shape(shape, other)
    assert expected[0].reshape(-1).tolist() == _walk(axes, 0)
    assert expected[1].reshape(-1).tolist() == _walk(axes, 1)


def test_equal_shapes_merge_to_one_axis() -> None:
    """Axes that both operands walk without a gap become one."""
    assert ((24, 1, 1),) == broadcast_axes((2, 3, 4), (2, 3, 4))


@pytest.mark.parametrize("dims", [(0, 2, 3, 1), (3, 2, 1, 0), (0, 1, 2, 3), (1, 0, 3, 2)])
def test_permuted_axes_reach_every_element(dims: tuple[int, ...]) -> None:
    """Walking the axes gives the permuted offsets."""
    expected = _offsets(2, 3, 1, 5).transpose(dims).reshape(-1).tolist()
    assert expected == _walk(permuted_axes((2, 3, 1, 5), dims), 0)


def test_expanded_and_sliced_axes_reach_every_element() -> None:
    """Walking the axes gives the offsets of numpy's views."""
    spread = np.broadcast_to(_offsets(3, 1), (2, 3, 4)).reshape(-1).tolist()
    assert spread == _walk(expanded_axes((3, 1), (2, 3, 4)), 0)
    part = _offsets(3, 11, 2)[:, 0:11:3].reshape(-1).tolist()
    assert part == _walk(sliced_axes((3, 11, 2), 1, 3, (3, 4, 2)), 0)


def test_flipped_repeated_and_unfolded_axes_reach_every_element() -> None:
    """Walking the axes gives the offsets of numpy's flip, tile and windows."""
    start = flipped_offset((2, 3, 5), (0, -1))
    flipped = [start + offset for offset in _walk(flipped_axes((2, 3, 5), (0, -1)), 0)]
    assert _offsets(2, 3, 5)[::-1, :, ::-1].reshape(-1).tolist() == flipped
    tiled = np.tile(_offsets(3, 2), (2, 1, 3)).reshape(-1).tolist()
    assert tiled == _walk(repeated_axes((3, 2), (2, 1, 3)), 0)
    windows = np.lib.stride_tricks.sliding_window_view(_offsets(2, 7, 3), 3, axis=1)[:, ::2]
    assert windows.reshape(-1).tolist() == _walk(unfolded_axes((2, 7, 3), 1, 3, 2), 0)


def test_gathered_axes_skip_the_indexed_axis() -> None:
    """Walking the axes gives each index's own place, with 0 along the axis that it replaces."""
    expected = (np.indices((2, 5, 3)) * np.array([12, 0, 1])[:, None, None, None]).sum(0)
    assert expected.reshape(-1).tolist() == _walk(gathered_axes((2, 3, 4), 1, (2, 5, 3)), 0)


@pytest.mark.parametrize("dims", [(1,), (0, 2), (-1, 1), (), (0, 1, 2, 3)])
def test_kept_and_reduced_axes_partition_the_elements(dims: tuple[int, ...]) -> None:
    """Kept offsets plus reduced offsets are all elements, each once."""
    shape = (2, 3, 4, 5)
    kept = _walk(kept_axes(shape, dims), 0)
    along = _walk(reduced_axes(shape, dims), 0)
    assert list(range(120)) == sorted(a + b for a in kept for b in along)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [((7, 2, 2, 0, 1, False), 3), ((7, 2, 2, 0, 1, True), 4), ((8, 2, 3, 0, 1, True), 3),
     ((7, 2, 3, 0, 1, True), 3), ((6, 2, 4, 0, 1, True), 2), ((5, 1, 7, 0, 1, True), 1),
     ((6, 3, 2, 1, 1, True), 4)],
)  # fmt: skip
def test_pool_extent(arguments: tuple[Any, ...], expected: int) -> None:
    """A window in ceil mode counts only if it begins inside the input or its left padding."""
    assert expected == Expression(f"pool_out{arguments}").evaluate({})


def test_out_variants_are_the_same_operator() -> None:
    """A portable kernel call's name leads to the declaration of the functional form."""
    for name, variant in [
        ("aten.mean.dim", "aten.mean.out"),
        ("aten.sum.dim_IntList", "aten.sum.IntList_out"),
        ("aten.add.Tensor", "aten.add.out"),
        ("aten.view_copy.default", "aten.view_copy.out"),
    ]:
        assert REGISTRY[name] is REGISTRY[variant]
