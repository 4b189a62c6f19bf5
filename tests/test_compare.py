"""Devices beside each other in one process: what ``nybble.compare`` finds, and what it leaves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nybble
from nybble import comparison, shaders
from nybble.compare_report import CallComparison, CallRun, CompareReport, Difference
from nybble.contract import Composite
from nybble.devices import open_device
from nybble.doctor import driver_remedy
from nybble.plan import Capabilities, choose
from nybble.testing import relative_errors

FIXTURES = Path(__file__).parent / "fixtures"
BOTH = ("webgpu:0", "vulkan:0")
PROGRAMS = (
    "small_cnn", "inverted_residual", "float_cnn", "q4_cached_attention", "q4_rotary_transformer",
    "dq8ca_mlp", "qcs4w_linear",
)  # fmt: skip


def stored_inputs(name: str) -> list[Any]:
    """The inputs that a fixture was exported with."""
    stored = np.load(FIXTURES / f"{name}.npz")
    return [stored[key] for key in sorted(stored.files) if key.startswith("input_")]


def compare(name: str, *devices: str) -> CompareReport:
    """A fixture's ``forward`` on devices, with its own inputs."""
    return nybble.compare(
        FIXTURES / f"{name}.pte", *stored_inputs(name), devices=devices, method="forward"
    )


@pytest.fixture
def change_shaders(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Replaces text in the shaders of a Vulkan device that is opened for this test alone."""

    def change(old: str, new: str) -> None:
        spirv = shaders.spirv

        def changed(source: str) -> bytes:
            return spirv(source.replace(old, new))

        monkeypatch.setitem(open_device.__globals__, "_OPENED_VULKAN", {})
        monkeypatch.setattr(shaders, "spirv", changed)

    return change


@pytest.mark.device
@pytest.mark.parametrize("name", PROGRAMS)
def test_webgpu_and_vulkan_agree(name: str) -> None:
    """Every call agrees, each is timed on both, and exact programs are equal end to end."""
    report = compare(name, *BOTH)
    assert report, report.summary
    assert BOTH == report.devices
    assert report.first_problem is None
    assert f"all {len(report.calls)} calls agree" in report.summary
    assert all([BOTH[0], BOTH[1]] == [run.device for run in call.runs] for call in report.calls)
    ran = [run for call in report.calls for run in call.runs if run.kernel != "view"]
    assert ran
    assert all(run.seconds for run in ran)
    assert all(total and total > 0 for total in report.seconds)
    if all(call.exact for call in report.calls):
        assert all(0.0 == d.error for _, found in report.whole for d in found)


@pytest.mark.device
def test_one_wrong_code_names_its_call_and_no_other(
    change_shaders: Callable[[str, str], None],
) -> None:
    """A wrong kernel is found where it is: later calls get the right inputs and agree."""
    change_shaders(
        "params.zero_point_out, params.code_min", "params.zero_point_out + 1, params.code_min"
    )
    report = compare("relu_between", *BOTH)
    assert not report
    wrong = [call for call in report.calls if call.problem]
    assert wrong
    assert wrong[0] is report.first_problem
    assert all("int8" in call.shapes.split("->")[1] for call in wrong)
    assert len(wrong) < len(report.calls)
    first = wrong[0]
    assert f"the first is {first.operator} ({first.origin})" in report.summary
    assert "vulkan:0 against webgpu:0: " in report.summary
    assert "worst error 1" in report.summary


@pytest.mark.device
@pytest.mark.parametrize(("factor", "agrees"), [("1.0001", False), ("1.000002", True)])
def test_float_results_may_differ_within_their_tolerance(
    change_shaders: Callable[[str, str], None], factor: str, *, agrees: bool
) -> None:
    """An error of 1e-4 is a difference, of 2e-6 none; both are told in numbers, for that call."""
    change_shaders("return 0.5 * v", f"return {factor} * 0.5 * v")
    report = compare("q4_transformer", *BOTH)
    found = [
        call.runs[1].difference for call in report.calls if call.operator.startswith("aten.gelu")
    ]
    assert found
    for difference in found:
        assert difference is not None
        assert 0 < difference.error < 1e-3
        assert 2e-5 == difference.allowed
        assert agrees == (difference.problem is None)
    assert agrees == bool(report)
    others = [call for call in report.calls if not call.operator.startswith("aten.gelu")]
    assert not any(call.problem for call in others)
    assert "differ by at most" in report.summary if agrees else "calls differ" in report.summary


@pytest.mark.device
def test_states_of_loaded_programs_are_left_alone() -> None:
    """Programs on both devices keep what their caches hold, and their next answers are equal."""
    inputs = stored_inputs("q4_cached_attention")
    programs = [nybble.load(FIXTURES / "q4_cached_attention.pte", device=name) for name in BOTH]
    before = []
    for program in programs:
        program(*inputs)
        before.append({name: program.state[name] for name in program.state})
    report = compare("q4_cached_attention", *BOTH)
    assert report, report.summary
    names = {name for name, _ in report.whole}
    for program, kept in zip(programs, before, strict=True):
        assert kept
        assert {f"state {name}" for name in kept} < names
        for name, content in kept.items():
            assert np.any(content)
            np.testing.assert_array_equal(content, program.state[name])
    one, other = (program(*inputs) for program in programs)
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    for program in programs:
        program.close()


@pytest.mark.device
def test_a_state_that_differs_is_found(change_shaders: Callable[[str, str], None]) -> None:
    """What a method leaves in its states is compared as its outputs are."""
    change_shaders("= v[at];", "= v[at] + 1.0;")
    report = compare("q4_cached_attention", *BOTH)
    assert not report
    assert "sdpa_with_kv_cache" in report.summary
    errors = {name: found[0].error for name, found in report.whole}
    states = {name for name in errors if name.startswith("state ")}
    assert 2 == len(states)
    assert 1 == sum(errors[name] > 0 for name in states)
    assert 0 == errors["output_0"]


@pytest.mark.device
@pytest.mark.filterwarnings("ignore:.*calls? runs? on the host")
def test_calls_that_a_device_does_not_cover_are_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one device has no kernel the reference runs, which table and summary say."""
    viable = choose.viable_kernels
    vulkan = open_device("vulkan:0").capabilities

    def fewer(call: Any, device: Capabilities) -> Any:
        missing = device is vulkan and call.operator.name == "et_vk.q8ta_conv2d.default"
        return [] if missing else viable(call, device)

    monkeypatch.setattr(choose, "viable_kernels", fewer)
    report = compare("small_cnn", *BOTH)
    assert report, report.summary
    kernels = [[run.kernel for run in c.runs] for c in report.calls if "conv2d" in c.operator]
    assert [["rows_float 2/2", "host"]] * len(kernels) == kernels
    assert f"{len(kernels)} calls have no kernel on vulkan:0 and ran on the host" in report.summary
    assert "rows_float 2/2 | host" in str(report)


@pytest.mark.device
def test_a_call_that_one_device_runs_as_several_is_one_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A composite is compared, named and timed as the call whose place it takes."""
    viable = choose.viable_kernels
    vulkan = open_device("vulkan:0").capabilities

    def expand(emit: Callable[..., Any], x: Any) -> Any:
        again = emit("aten.neg.default", x=emit("aten.neg.default", x=x))
        return emit("aten.hardtanh.default", x=again, min_val=0.0, max_val=bound)

    def composite(call: Any, device: Capabilities) -> Any:
        taken = device is vulkan and call.operator.name == "aten.relu.default"
        return [Composite("in three", expand)] if taken else viable(call, device)

    monkeypatch.setattr(choose, "viable_kernels", composite)
    bound = 1e30
    report = compare("dq8ca_mlp", *BOTH)
    assert report, report.summary
    (call,) = (call for call in report.calls if call.operator == "aten.relu.default")
    assert ["clamp 1/2", "in three"] == [run.kernel for run in call.runs]
    assert all(run.seconds for run in call.runs)
    bound = 1e-3
    report = compare("dq8ca_mlp", *BOTH)
    assert report.first_problem is not None
    assert "aten.relu.default" == report.first_problem.operator


@pytest.mark.device
def test_the_host_is_a_device_like_others() -> None:
    """Three devices are compared with the first; the host's calls are not told as missing."""
    report = compare("small_cnn", "host", *BOTH)
    assert report, report.summary
    assert ("host", *BOTH) == report.devices
    assert "forward on host, webgpu:0 and vulkan:0: all " in report.summary
    assert "ran on the host" not in report.summary
    assert all(3 == len(call.runs) for call in report.calls)
    assert all(2 == len(found) for _, found in report.whole)
    assert {"host"} == {call.runs[0].kernel for call in report.calls}


@pytest.mark.device
def test_no_time_is_told_that_was_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device without timestamps has no seconds, and the table leaves its column empty."""
    monkeypatch.setattr(open_device("vulkan:0"), "has_timestamps", False)
    report = compare("small_cnn", *BOTH)
    assert report.seconds[0] is not None
    assert report.seconds[1] is None
    assert {None} == {call.runs[1].seconds for call in report.calls}
    assert str(report)


def test_random_inputs_come_from_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without inputs they are drawn, the same for the same seed, and fit the method."""
    drawn: list[Any] = []
    monkeypatch.setattr(comparison, "compare_graph", lambda _, __, inputs: drawn.append(inputs[0]))
    monkeypatch.setattr(comparison, "_open_all", lambda _: [])
    for seed in (1, 1, 2):
        nybble.compare(FIXTURES / "float_cnn.pte", seed=seed)
    assert stored_inputs("float_cnn")[0].shape == drawn[0].shape
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])


@pytest.mark.parametrize(
    ("devices", "sentence"),
    [
        (("host",), "expected at least two to compare"),
        ((), "expected at least two to compare"),
        ("host", "expected at least two to compare"),
        (("host", "host"), "'host' and 'host' are the same device, host; name two different"),
        (("host", "null"), "'null' computes nothing"),
    ],
)
def test_devices_that_cannot_be_compared_are_refused(devices: Any, sentence: str) -> None:
    """Fewer than two, one twice, or one that computes nothing: the sentence says which."""
    with pytest.raises(nybble.ContractError, match=sentence):
        nybble.compare(FIXTURES / "small_cnn.pte", devices=devices)


@pytest.mark.device
def test_one_device_by_two_names_is_refused() -> None:
    """The best adapter and the first one are the same where there is only one."""
    with pytest.raises(nybble.ContractError, match="are the same device, vulkan:0"):
        nybble.compare(FIXTURES / "small_cnn.pte", devices=("vulkan", "vulkan:0"))


@pytest.mark.parametrize("name", ["webgpu:77", "vulkan:77"])
def test_a_missing_device_is_named_with_its_remedy(name: str) -> None:
    """The error says which device is missing, which there are, and how to get a driver."""
    with pytest.raises(nybble.DeviceError) as caught:
        nybble.compare(FIXTURES / "small_cnn.pte", devices=("host", name))
    assert f"device '{name}' was not found" in str(caught.value)
    assert "nybble doctor" in str(caught.value)
    assert driver_remedy() in str(caught.value)


def test_an_unknown_device_is_told_without_a_driver() -> None:
    """A misspelt name needs no driver."""
    with pytest.raises(nybble.DeviceError, match="unknown device 'vulcan'") as caught:
        nybble.compare(FIXTURES / "small_cnn.pte", devices=("host", "vulcan"))
    assert "driver" not in str(caught.value)


def report_of(*problems: str | None, whole: str | None = None) -> CompareReport:
    """A report of one exact call for each of ``problems``, and one output."""
    calls = tuple(
        CallComparison(
            "aten.neg.default", f"node {i}", "float32[2] -> float32[2]", True,
            (
                CallRun("a", "unary", 1e-6, None),
                CallRun("b", "unary", 2e-6, Difference(float(bool(p)), 0.0, p)),
            ),
        )
        for i, p in enumerate(problems)
    )  # fmt: skip
    outputs = (("output_0", (Difference(float(bool(whole)), 0.0, whole),)),)
    return CompareReport("forward", ("a", "b"), calls, outputs, (1e-6, 2e-6))


def test_a_report_is_true_when_everything_agrees() -> None:
    """A call that differs makes it false, and so does the whole without any call."""
    assert report_of(None, None)
    one = report_of(None, "2 of 8 differ")
    assert not one
    assert one.calls[1] is one.first_problem
    assert (
        "forward on a and b: 1 of 2 calls differs; the first is aten.neg.default (node 1) "
        "float32[2] -> float32[2]: b against a: 2 of 8 differ"
    ) == one.summary
    whole = report_of(None, whole="3 of 4 differ")
    assert not whole
    assert whole.first_problem is None
    assert whole.summary.endswith(
        "every call agrees, and the whole does not: output_0 on b against a: 3 of 4 differ"
    )


def test_errors_are_relative_to_the_element_or_the_root_mean_square() -> None:
    """The larger of both is the scale; what is no number must be the same."""
    expected = np.array([3.0, -4.0, 0.0, np.nan, np.inf, 1.0], np.float32)
    actual = np.array([3.0, -4.4, 0.1, np.nan, -np.inf, np.nan], np.float32)
    scale = np.sqrt((9 + 16 + 0 + 1) / 4)
    np.testing.assert_allclose(
        [0, 0.1, 0.1 / scale, 0, np.inf, np.inf], relative_errors(expected, actual), rtol=1e-6
    )
    zeros = np.zeros(2, np.float32)
    np.testing.assert_array_equal(
        [0, np.inf], relative_errors(zeros, np.array([0, 1e-9], np.float32))
    )
    assert 0.5 == relative_errors(np.array(2, np.float32), np.array(1, np.float32))


def test_reports_show_themselves_in_one_line() -> None:
    """At a prompt a report and a profile are a sentence, not a page of their fields."""
    compared = compare("dq8ca_linear", "host", "webgpu:0")
    with nybble.load(FIXTURES / "dq8ca_linear.pte", device="webgpu:0") as program:
        profile = program.profile(*stored_inputs("dq8ca_linear"))

    assert f"<CompareReport: {compared.summary}>" == repr(compared)
    assert f"<Profile of {profile.summary}>" == repr(profile)
    assert "whole call" in profile.summary
