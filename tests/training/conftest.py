"""Small 4-bit programs made in Python, on any device."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from nybble.contract import Array
from nybble.devices import open_device
from nybble.graph import Graph, GraphBuilder, Value
from nybble.program import Method, Program

MakeProgram = Callable[..., Program]


def quantized(weight: Array, group: int) -> tuple[Array, Array]:
    """Codes, two a byte, and scales ``[parts, n]`` of a float weight ``[n, k]``, k even."""
    n, k = weight.shape
    parts = -(-k // group)
    padded = np.zeros((n, parts * group), np.float32)
    padded[:, :k] = weight
    scales = np.abs(padded.reshape(n, parts, group)).max(-1).T / 7
    codes = np.rint(padded / np.repeat(scales.T, group, 1)).clip(-8, 7).astype(np.int8)[:, :k] + 8
    packed = codes[:, 0::2].astype(np.uint8) | (codes[:, 1::2].astype(np.uint8) << 4)
    return packed, scales.astype(np.float32)


def linear(b: GraphBuilder, x: Value, n: int, group: int, rng: np.random.Generator) -> Value:
    """A 4-bit layer with made-up weights and bias."""
    k = x.shape[-1]
    weight = rng.standard_normal((n, k)).astype(np.float32) / np.sqrt(np.float32(k))
    codes, scales = quantized(weight, group)
    bias = (0.1 * rng.standard_normal(n)).astype(np.float32)
    value: Value = b.call(
        "et_vk.linear_q4gsw.default", x=x, weight=codes, scales=scales, group_size=group, bias=bias
    )
    return value


def mlp(batch: int = 8, sizes: Sequence[int] = (16, 24, 12), group: int = 8) -> Graph:
    """A perceptron of 4-bit layers with relu between."""
    b = GraphBuilder("forward")
    rng = np.random.default_rng(3)
    value = b.input("input_0", "float32", (batch, sizes[0]))
    for number, size in enumerate(sizes[1:]):
        if number:
            value = b.call("aten.relu.default", x=value)
        value = linear(b, value, size, group, rng)
    return b.finish([value])


def program_of(graph: Graph, device: str = "host", data: bytes = b"made in python") -> Program:
    """A program of one method."""
    opened = open_device(device)
    states = opened.new_states()
    return Program(opened, [Method(opened, graph, "error", states)], states, data)


@pytest.fixture
def make_program() -> MakeProgram:
    """Makes a program of a graph."""
    return program_of
