"""Every row of the table of gradients against finite differences of the references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nybble.contract import REGISTRY, Array
from nybble.devices import HostDevice
from nybble.graph import GraphBuilder, Value
from nybble.graph.gradients import GRADIENTS, NO_GRADIENT
from nybble.plan import make_plan
from nybble.testing import run_expected
from nybble.training.differentiate import differentiate, load_gradients

from .cases import CASES, GradientCase

STEP = 0.01
STRAIGHT_THROUGH = {
    "et_vk.q4gsw_requant.default",
    "et_vk.linear_dq8ca_q4gsw.default",
    "torchao.choose_qparams_affine.default",
}
"""Rows that pass a gradient through a rounding: by definition not the slope of the reference."""

load_gradients()


def gradients_of(case: GradientCase, weights: list[Array]) -> dict[str, Array]:
    """The gradients that nybble's graph gives of the weighted sum of a call's results."""
    b = GraphBuilder()
    given: dict[str, Any] = {}
    fed: list[Array] = []
    for name, item in case.arguments.items():
        if isinstance(item, np.ndarray):
            given[name] = b.input(name, item.dtype.name, item.shape)
            fed.append(item)
        else:
            given[name] = item
    results = b.call(case.operator, **given)
    results = results if isinstance(results, tuple) else (results,)
    seeds = {results[i]: b.constant(w) for i, w in zip(case.results, weights, strict=True)}
    wrt = [v for n, v in given.items() if isinstance(v, Value) and n not in case.fixed]
    found = differentiate(b, seeds, wrt)
    graph = b.finish({value.name: found[value] for value in wrt})
    host = HostDevice()
    outputs = host.prepare(make_plan(graph, host.capabilities)).run(fed)
    return dict(zip((value.name for value in wrt), outputs, strict=True))


def weighted_sum(case: GradientCase, arguments: dict[str, Any], weights: list[Array]) -> float:
    """The function that is differentiated, in double from the reference's float32 results."""
    results = run_expected(case.operator, arguments)
    return sum(
        float((results[i].astype(np.float64) * w).sum())
        for i, w in zip(case.results, weights, strict=True)
    )


def difference(case: GradientCase, name: str, index: Any, weights: list[Array]) -> float:
    """A central difference of fourth order."""
    total = 0.0
    for steps, factor in ((1, 8 / 12), (-1, -8 / 12), (2, -1 / 12), (-2, 1 / 12)):
        changed = case.arguments[name].copy()
        changed[index] += np.float32(steps * STEP)
        total += factor * weighted_sum(case, {**case.arguments, name: changed}, weights)
    return total / STEP


@pytest.mark.parametrize("case", CASES, ids=[f"{i}-{c.name}" for i, c in enumerate(CASES)])
def test_gradient_equals_finite_differences(case: GradientCase) -> None:
    """A row gives the slope of the reference, for every element of every argument."""
    rng = np.random.default_rng(5)
    results = run_expected(case.operator, case.arguments)
    weights = [rng.standard_normal(results[i].shape).astype(np.float32) for i in case.results]
    for name, found in gradients_of(case, weights).items():
        expected = np.zeros(found.shape)
        for index in np.ndindex(found.shape):
            expected[index] = difference(case, name, index, weights)
        np.testing.assert_allclose(
            found, expected, rtol=2e-3, atol=2e-4 * max(1, np.abs(expected).max()), err_msg=name
        )


def test_every_row_has_a_case() -> None:
    """No row of the table is untested."""
    covered = {REGISTRY[case.operator].name for case in CASES}
    assert STRAIGHT_THROUGH == {n for n in GRADIENTS if n in REGISTRY} - covered


def test_no_operator_has_a_row_and_an_excuse() -> None:
    """An operator either has a gradient or says why not."""
    assert set() == set(GRADIENTS) & set(NO_GRADIENT)


def test_codes_get_the_gradient_of_the_weight_they_stand_for() -> None:
    """The straight-through estimator: d_out^T x for codes, passed through a re-quantization."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal((3, 8)).astype(np.float32)
    scales = np.full((2, 5), 0.5, np.float32)
    b = GraphBuilder()
    latent = b.input("latent", "float32", (5, 8))
    codes = b.call("et_vk.q4gsw_requant.default", latent=latent, scales=scales, group_size=4)
    y = b.call(
        "et_vk.linear_q4gsw.default", x=x, weight=codes, scales=scales, group_size=4, bias=None
    )
    d_out = rng.standard_normal((3, 5)).astype(np.float32)
    found = differentiate(b, {y: b.constant(d_out)}, [latent])
    host = HostDevice()
    graph = b.finish([found[latent]])
    latents = rng.standard_normal((5, 8)).astype(np.float32)
    (actual,) = host.prepare(make_plan(graph, host.capabilities)).run([latents])
    np.testing.assert_allclose(d_out.T @ x, actual, rtol=1e-5)


def test_quantized_inputs_are_passed_through() -> None:
    """A layer that quantizes its input gives it the gradient of one that does not."""
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 256, (5, 4)).astype(np.uint8)
    scales = np.full((2, 5), 0.5, np.float32)
    b = GraphBuilder()
    x = b.input("x", "float32", (3, 8))
    parameters = b.call(
        "torchao.choose_qparams_affine.default",
        x=x, mapping="ASYMMETRIC", block_size=(1, 8), target_dtype=None, code_min=-128,
        code_max=127, eps=None, scale_dtype=None, zero_point_dtype=None, keepdim=False,
    )  # fmt: skip
    y = b.call(
        "et_vk.linear_dq8ca_q4gsw.default",
        x=x, input_scales=parameters[0], input_zero_points=parameters[1], weight=codes,
        weight_sums=np.zeros((2, 8), np.int32), scales=scales, group_size=4, bias=None,
    )  # fmt: skip
    found = differentiate(b, {y: b.constant(np.ones((3, 5), np.float32))}, [x])
    host = HostDevice()
    graph = b.finish([found[x]])
    inputs = rng.standard_normal((3, 8)).astype(np.float32)
    (actual,) = host.prepare(make_plan(graph, host.capabilities)).run([inputs])
    steps = np.stack([codes & 15, codes >> 4], -1).reshape(5, 8).astype(np.float32) - 8
    np.testing.assert_allclose(np.ones((3, 5)) @ (steps * 0.5), actual, rtol=1e-5)
