"""Damaged programs, loaded whole: nybble's errors and nothing else.

NYBBLE_FUZZ_EXAMPLES sets how many examples each test tries; the default takes seconds.
"""

from __future__ import annotations

import contextlib
import os
import struct
import tracemalloc
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nybble
from nybble import formats
from nybble.graph.build import build_graph
from nybble.passes import run_passes
from nybble.plan import Capabilities, make_plan

FIXTURES = Path(__file__).parent / "fixtures"
NAMES = (
    "small_cnn", "inverted_residual", "float_reductions", "float_cnn", "two_methods", "transposed",
    "linear_k_refused", "float_two_delegates", "channels_last", "linear_rank3",
)  # fmt: skip
FILES = {name: (FIXTURES / f"{name}.pte").read_bytes() for name in NAMES}
EXAMPLES = int(os.environ.get("NYBBLE_FUZZ_EXAMPLES", "250"))
BUDGET = 64 << 20
"""Bytes that loading a damaged file of 20 KB may take at most."""
ODD = (0, 1, 2, 3, 7, 127, 128, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1)
fuzz = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A fixture with bits flipped, words replaced, values copied from elsewhere, or its end cut."""
    data = bytearray(FILES[draw(st.sampled_from(NAMES))])
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data) - 9))
        kind = draw(st.sampled_from(["bit", "byte", "word", "long", "double", "copy", "cut"]))
        if kind == "bit":
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif kind == "byte":
            data[at] = draw(st.integers(0, 255))
        elif kind == "word":
            at -= at % 4
            data[at : at + 4] = struct.pack("<I", draw(st.sampled_from(ODD)))
        elif kind == "long":
            at -= at % 8
            data[at : at + 8] = struct.pack("<q", draw(st.sampled_from([-1, 2**31, 2**40, 2**62])))
        elif kind == "double":
            at -= at % 8
            value = draw(st.sampled_from([np.nan, np.inf, -np.inf, 0.0, -1.0, 1e-300, 1e300, 2.5]))
            data[at : at + 8] = struct.pack("<d", value)
        elif kind == "copy":
            source = draw(st.integers(0, len(data) - 9))
            data[at : at + 8] = data[source : source + 8]
        elif draw(st.booleans()):
            del data[at:]
            break
    return bytes(data) if len(data) > 9 else b"too short"


def load(data: bytes, device: str) -> nybble.Program | None:
    """The program, or None where nybble refuses it; whatever else is raised comes through."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            return nybble.load(data, device=device)
        except nybble.NybbleError:
            return None


@fuzz
@given(damaged())
def test_damaged_programs_are_refused_or_planned(data: bytes) -> None:
    """Loading for a device, planning and code generation included, raises only nybble's errors."""
    tracemalloc.start()
    try:
        load(data, "null")
        assert tracemalloc.get_traced_memory()[1] < BUDGET
    finally:
        tracemalloc.stop()


@fuzz
@given(damaged(), st.integers(0, 2**32 - 1))
def test_damaged_programs_run_or_are_refused(data: bytes, seed: int) -> None:
    """What the host still loads runs on any input, or refuses it with one of nybble's errors."""
    program = load(data, "host")
    if program is None:
        return
    rng = np.random.default_rng(seed)
    for method in program.values():
        sizes = [v.shape for call in method.plan.calls for v in call.outputs]
        inputs = [spec.shape for spec in method.inputs]
        if any(np.prod([float(s) for s in shape]) > 1 << 20 for shape in (*sizes, *inputs)):
            continue
        arrays = [rng.normal(size=s.shape).astype(s.dtype) for s in method.inputs]
        with np.errstate(all="ignore"), contextlib.suppress(nybble.NybbleError):
            method(*arrays)


ODD_VALUES = st.one_of(
    st.sampled_from([0, -1, 1, 2, 5, 255, 2**31, 2**40, -(2**62), 2**63 - 1]),
    st.sampled_from([0.0, -0.0, 0.5, -1.0, 1e-300, 1e300, np.nan, np.inf, -np.inf]),
    st.sampled_from([None, True, False, "", "relu", "tanh", "\0"]),
    st.lists(st.sampled_from([0, 1, -1, 2, 3, 2**31, 2**40]), max_size=5).map(tuple),
    st.lists(st.sampled_from([0.5, np.nan, np.inf]), max_size=3).map(tuple),
)
ODD_SHAPES = st.lists(st.sampled_from([0, 1, 2, 3, 8, 65537, 2**31 - 1]), max_size=6).map(tuple)
ODD_TYPES = st.sampled_from(["int8", "int32", "int64", "bool", "float16", "bfloat16", "uint16"])


@st.composite
def changed_methods(draw: st.DrawFn) -> formats.MethodFile:
    """A method that reads well and means nonsense: attributes, shapes, types and ids exchanged."""
    data = FILES[draw(st.sampled_from([n for n in NAMES if n != "two_methods"]))]
    method = formats.read_program(data, []).methods[0]
    delegates = list(method.delegates)
    number = draw(st.integers(0, len(delegates) - 1))
    graph = delegates[number].graph
    assert graph is not None
    values, calls = list(graph.values), list(graph.calls)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(values) - 1))
        value = values[at]
        if draw(st.integers(0, 3)) == 0:
            call = draw(st.integers(0, len(calls) - 1))
            args = list(calls[call].args)
            args[draw(st.integers(0, len(args) - 1))] = at
            calls[call] = replace(calls[call], args=tuple(args))
        elif not isinstance(value, formats.DelegateTensor):
            values[at] = draw(ODD_VALUES)
        elif value.data is None:
            odd_shape = draw(st.booleans())
            values[at] = (
                replace(value, shape=draw(ODD_SHAPES))
                if odd_shape
                else replace(value, dtype=draw(ODD_TYPES))
            )
    delegates[number] = replace(
        delegates[number], graph=replace(graph, values=tuple(values), calls=tuple(calls))
    )
    return replace(method, delegates=tuple(delegates))


@fuzz
@given(changed_methods())
def test_nonsense_is_refused_or_planned(method: formats.MethodFile) -> None:
    """A well-formed file that means nonsense: building, passes and planning refuse it in words."""
    tracemalloc.start()
    try:
        graph = run_passes(build_graph(method))
        for device in (Capabilities(), Capabilities(software=True), Capabilities(kernels=False)):
            make_plan(graph, device)
    except nybble.NybbleError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < BUDGET


@pytest.mark.parametrize("size", [2**31 - 1, 2**20, 65537])
def test_absurd_shapes_allocate_nothing(size: int) -> None:
    """Any one 32-bit number of a program turned absurd: refused or planned, in little memory."""
    data = FILES["linear_rank3"]
    for at in range(0, len(data) - 4, 4):
        if struct.unpack_from("<I", data, at)[0] not in (2, 3, 4, 6, 8, 10, 12, 16):
            continue
        changed = data[:at] + struct.pack("<I", size) + data[at + 4 :]
        tracemalloc.start()
        try:
            for device in ("null", "host"):
                load(changed, device)
            assert tracemalloc.get_traced_memory()[1] < BUDGET, at
        finally:
            tracemalloc.stop()
