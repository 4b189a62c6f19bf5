"""Every fixture on the host and on every adapter, against the eager model's answers."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nybble
from nybble.contract import Array
from nybble.devices import devices
from nybble.plan.place import COPY
from nybble.testing import compare

FIXTURES = Path(__file__).parent / "fixtures"
REFUSED = {
    "not_delegated": "is not delegated to any backend; nybble runs programs delegated to Vulkan",
    "xnnpack": "is delegated to XnnpackBackend; nybble runs programs delegated to VulkanBackend",
}
"""Fixtures that cannot be run, and what their refusal says."""
PROGRAMS = sorted(p.stem for p in FIXTURES.glob("*.pte") if p.stem not in REFUSED)
DEVICES = [
    pytest.param(info.name, marks=() if info.name == "host" else pytest.mark.device)
    for info in devices()
]


def load(name: str, device: str, **options: Any) -> nybble.Program:
    """A fixture with its external constants."""
    external = sorted(FIXTURES.glob(f"{name}.*.ptd"))
    return nybble.load(FIXTURES / f"{name}.pte", device=device, external=external, **options)


def answers(name: str, method: str = "forward") -> tuple[list[Array], list[Array]]:
    """The inputs of a fixture's method, and the eager model's outputs for them."""
    stored = np.load(FIXTURES / f"{name}.npz")
    prefix = "" if method == "forward" else f"{method}_"
    inputs = [stored[k] for k in sorted(stored.files) if k.startswith(f"{prefix}input_")]
    return inputs, [stored[k] for k in sorted(stored.files) if k.startswith(f"{prefix}output_")]


def is_int8(method: nybble.Method) -> bool:
    """Whether activations between the method's calls are int8 codes."""
    return any(call.operator.name.startswith("et_vk.q8ta_") for call in method.source.calls)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_outputs_are_the_eager_models(name: str, device: str) -> None:
    """int8 programs equal the quantized eager model bit for bit, float ones within tolerance."""
    with load(name, device) as program:
        for method in program.values():
            inputs, expected = answers(name, method.name)
            got = method(*inputs)
            outputs = got if isinstance(got, tuple) else (got,)
            assert len(expected) == len(outputs)
            for one, other in zip(expected, outputs, strict=True):
                assert None is compare(one, other, exact=is_int8(method))


def test_most_fixtures_are_int8() -> None:
    """The rule that decides which outputs must be exact does find the int8 programs."""
    exact = [n for n in PROGRAMS if any(map(is_int8, load(n, "null").values()))]
    assert len(exact) >= 20
    assert {"small_cnn", "inverted_residual", "transposed", "linear_chain_batch1"} <= set(exact)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_verify_agrees(name: str, device: str) -> None:
    """Every call of every fixture agrees with its reference, and the whole with the source."""
    with load(name, device) as program:
        for method in program.values():
            report = method.verify(*answers(name, method.name)[0])
            assert report, report.summary
            calls = [call for call in method.plan.calls if call.operator.name != COPY]
            assert len(calls) == len(report.checks)
            assert None is report.first_problem


@pytest.mark.device
@pytest.mark.parametrize("device", ["webgpu", "vulkan"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_of_a_fixture_runs_on_the_host(name: str, device: str) -> None:
    """Every call of every fixture has a kernel: loading gives no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(name, device, on_unsupported="error").close()


@pytest.mark.parametrize("name", REFUSED)
def test_refusal_says_what_and_what_to_do(name: str) -> None:
    """A program that cannot be run is refused with each reason, before any device is opened."""
    with pytest.raises(nybble.UnsupportedProgramError) as caught:
        load(name, "no such device")
    assert REFUSED[name] in str(caught.value)
    assert caught.value.calls
    again = "nybble.export.export(module, example_inputs, path)" in str(caught.value)
    assert again == (name in ("not_delegated", "xnnpack"))


def test_every_fixture_is_tried() -> None:
    """A fixture is either run or refused: none is forgotten, none of the refused is gone."""
    assert set(REFUSED) <= {p.stem for p in FIXTURES.glob("*.pte")}
    assert len(PROGRAMS) > 25


@pytest.mark.parametrize(
    "source",
    [
        lambda path: path,
        str,
        lambda path: path.read_bytes(),
        lambda path: bytearray(path.read_bytes()),
        lambda path: memoryview(path.read_bytes()),
        lambda path: io.BytesIO(path.read_bytes()),
        lambda path: path.open("rb"),
    ],
    ids=["Path", "str", "bytes", "bytearray", "memoryview", "BytesIO", "file"],
)
def test_sources_of_a_program(source: Callable[[Path], Any]) -> None:
    """A path, bytes and a file object give the same program."""
    inputs, (expected,) = answers("conv_odd")
    program = nybble.load(source(FIXTURES / "conv_odd.pte"), device="host")
    np.testing.assert_array_equal(expected, program(*inputs))


@pytest.mark.parametrize("source", [None, 7, ["a.pte"]])
def test_other_sources_are_refused(source: Any) -> None:
    """What is neither path, bytes nor binary file is named by its type."""
    with pytest.raises(
        nybble.ContractError, match="expected a path, bytes or a binary file object"
    ):
        nybble.load(source, device="host")


def test_missing_file_is_an_os_error(tmp_path: Path) -> None:
    """A path that does not exist is Python's own error, which names it."""
    with pytest.raises(FileNotFoundError, match="missing.pte"):
        nybble.load(tmp_path / "missing.pte")


def test_external_constants_are_asked_for() -> None:
    """A program whose constants lie in .ptd files says so; with them it runs."""
    with pytest.raises(nybble.ProgramFormatError, match="Pass the .ptd files"):
        nybble.load(FIXTURES / "external_constants.pte", device="host")
    inputs, (expected,) = answers("external_constants")
    np.testing.assert_array_equal(expected, load("external_constants", "host")(*inputs))
    one_path = str(next(FIXTURES.glob("external_constants.*.ptd")))
    with pytest.raises(
        nybble.ContractError, match="expected a list of .ptd files, received one str"
    ):
        nybble.load(FIXTURES / "external_constants.pte", external=one_path)


def test_methods_are_found_by_name() -> None:
    """A program of several methods is a mapping; calling it calls forward."""
    program = load("two_methods", "host")
    assert ("embed", "forward") == program.methods == tuple(program)
    assert 2 == len(program)
    inputs, (expected,) = answers("two_methods", "embed")
    compare_problem = compare(expected, program["embed"](*inputs), exact=False)
    assert None is compare_problem
    inputs, (expected,) = answers("two_methods")
    np.testing.assert_array_equal(expected, program(*inputs))
    with pytest.raises(nybble.ContractError) as caught:
        program["backward"]
    assert "the program has no method 'backward'; it has embed, forward" == str(caught.value)


def test_program_describes_itself() -> None:
    """Inputs, outputs, printing and repr say what the program is and where it runs."""
    program = load("small_cnn", "host")
    method = program["forward"]
    assert ["input_0: float32[1, 3, 12, 12]"] == [str(spec) for spec in method.inputs]
    assert ["output_0"] == [spec.name for spec in method.outputs]
    assert str(program) == str(method)
    assert str(method).startswith("method forward(%input_0: float32[1, 3, 12, 12]) {\n")
    assert repr(program).startswith("<Program forward on host:")


def test_closed_program_says_so() -> None:
    """A closed program cannot be called; closing twice does nothing."""
    inputs, _ = answers("conv_odd")
    with load("conv_odd", "host") as program:
        program(*inputs)
    program.close()
    for call in (program, program.profile):
        with pytest.raises(
            nybble.NybbleError, match="method 'forward' is closed; load the program"
        ):
            call(*inputs)


def test_unknown_policy_is_refused() -> None:
    """on_unsupported takes two words."""
    with pytest.raises(nybble.ContractError, match="expected 'host' or 'error', received 'ignore'"):
        load("conv_odd", "host", on_unsupported="ignore")


@pytest.fixture
def without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """int8 convolutions and poolings have no kernel, as if they were new to nybble."""
    from nybble.plan import choose

    viable = choose.viable_kernels
    missing = ("et_vk.q8ta_conv2d.default", "aten.max_pool2d_with_indices.default")

    def fewer(call: Any, device: Any) -> Any:
        return [] if call.operator.name in missing else viable(call, device)

    monkeypatch.setattr(choose, "viable_kernels", fewer)


@pytest.mark.usefixtures("without_kernels")
def test_calls_without_kernel_are_told_once() -> None:
    """Loading warns once of all calls that run on the host, with the bytes that this copies."""
    with pytest.warns(UserWarning, match="calls? runs? on the host") as caught:
        program = load("small_cnn", "null")
    assert 1 == len(caught)
    text = str(caught[0].message)
    assert text.startswith("method 'forward': 3 of ")
    assert "bytes a run between it and null" in text
    assert 2 == text.count("  - et_vk.q8ta_conv2d.default (delegate 0, node ")
    assert 1 == text.count("  - aten.max_pool2d_with_indices.default (delegate 0, node ")
    assert __file__ == caught[0].filename
    assert 3 == len(program["forward"].plan.host_calls)


@pytest.mark.usefixtures("without_kernels")
def test_error_policy_lists_every_call() -> None:
    """on_unsupported='error' refuses, with every call that the device cannot take."""
    with pytest.raises(nybble.UnsupportedProgramError) as caught:
        load("small_cnn", "null", on_unsupported="error")
    assert 3 == len(caught.value.calls)
    assert "null cannot take 3 of " in str(caught.value)
    assert "Load with on_unsupported='host' to run those on the host" in str(caught.value)


@pytest.mark.device
@pytest.mark.usefixtures("without_kernels")
@pytest.mark.filterwarnings("ignore:.*calls? runs? on the host")
@pytest.mark.parametrize("device", ["webgpu", "vulkan"])
def test_calls_on_the_host_change_no_code(device: str) -> None:
    """A program that runs partly on the host gives the same codes, in every run."""
    inputs, (expected,) = answers("small_cnn")
    with load("small_cnn", device) as program:
        assert program["forward"].plan.host_calls
        for _ in range(3):
            np.testing.assert_array_equal(expected, program(*inputs))
        report = program.verify(*inputs)
        assert report, report.summary
        assert sum(check.on_host for check in report.checks) == 3


@pytest.mark.device
@pytest.mark.parametrize("device", ["webgpu", "vulkan"])
def test_verify_names_the_first_call_that_differs(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device that computes something else is told by call, place, shapes and worst error."""
    import dataclasses

    from nybble.contract import REGISTRY

    operator = REGISTRY["et_vk.q8ta_conv2d.default"]
    reference = operator.reference

    def one_more(*args: Any, **kwargs: Any) -> Any:
        return np.minimum(reference(*args, **kwargs), 126) + np.int8(1)

    wrong = dataclasses.replace(operator, reference=one_more)
    monkeypatch.setitem(REGISTRY, operator.name, wrong)
    inputs, _ = answers("conv_odd")
    with load("conv_odd", device) as program:
        report = program.verify(*inputs)
    assert not report
    first = report.first_problem
    assert first is not None
    assert "et_vk.q8ta_conv2d.default" == first.operator
    assert "of 3 calls differs: et_vk.q8ta_conv2d.default (delegate 0, node " in report.summary
    assert "worst error" in report.summary


@pytest.mark.parametrize("device", DEVICES)
def test_profile_has_a_row_for_each_step(device: str, tmp_path: Path) -> None:
    """Each step has a time, its bytes and operations; the trace is one event a step."""
    import json

    inputs, _ = answers("small_cnn")
    with load("small_cnn", device) as program:
        profile = program.profile(*inputs, repeats=2)
        assert len(program["forward"].plan.steps) == len(profile.rows)
    assert all(row.bytes_moved > 0 and row.seconds >= 0 for row in profile.rows)
    assert profile.call_seconds > 0
    assert len(profile.rows) == profile.table().row_count
    profile.save_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [row.label for row in profile.rows] == [e["name"] for e in events if e["ph"] == "X"]
