"""What callers pass: converted where it means the same, refused where it does not."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nybble
from nybble.contract import DTYPES, Array
from nybble.devices import devices
from nybble.graph import TensorSpec
from nybble.interchange import from_caller, to_caller

FIXTURES = Path(__file__).parent / "fixtures"
DEVICES = [
    pytest.param(info.name, marks=() if info.name == "host" else pytest.mark.device)
    for info in devices()
    if not info.name.startswith("dawn")
]


@pytest.fixture(scope="module", params=DEVICES)
def program(request: pytest.FixtureRequest) -> Any:
    """A float32 [1, 3, 12, 12] -> int8 -> float32 program on each device."""
    with nybble.load(FIXTURES / "small_cnn.pte", device=request.param) as loaded:
        yield loaded


@pytest.fixture(scope="module")
def answer() -> tuple[Array, Array]:
    """An input, and the eager model's output for it."""
    stored = np.load(FIXTURES / "small_cnn.npz")
    return stored["input_0"], stored["output_0"]


def read_only(x: Array) -> Array:
    """The array, locked."""
    x = x.copy()
    x.flags.writeable = False
    return x


@pytest.mark.parametrize(
    "given",
    [
        lambda x: np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2),
        np.asfortranarray,
        lambda x: np.repeat(x, 2, axis=3)[..., ::2],
        lambda x: np.ascontiguousarray(x[..., ::-1])[..., ::-1],
        read_only,
        lambda x: x.astype(">f4"),
        lambda x: (
            np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(x.shape)
        ),
    ],
    ids=["channels-last", "fortran", "strided", "reversed", "read-only", "big-endian", "unaligned"],
)
def test_other_memory_layouts_mean_the_same(
    program: nybble.Program, answer: tuple[Array, Array], given: Any
) -> None:
    """Arrays are converted by their logical order, never reinterpreted."""
    x, expected = answer
    passed = given(x)
    np.testing.assert_array_equal(expected, program(passed))
    np.testing.assert_array_equal(x, passed)


CONVERT = "convert it first, for example with .astype('float32') or .to(torch.float32)"
ALONE = "the program was exported for this shape alone"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((), "forward: received 0 inputs, expected 1 (input_0: float32[1, 3, 12, 12])"),
        (
            (np.zeros(3), np.zeros(3)),
            "forward: received 2 inputs, expected 1 (input_0: float32[1, 3, 12, 12])",
        ),
        (
            (np.zeros((3, 12, 12), np.float32),),
            f"input_0: wrong rank: expected [1, 3, 12, 12], received [3, 12, 12]; {ALONE}",
        ),
        (
            (np.zeros((1, 12, 12, 3), np.float32),),
            f"input_0: wrong shape: expected [1, 3, 12, 12], received [1, 12, 12, 3]; {ALONE}",
        ),
        (
            (np.zeros((1, 3, 12, 12)),),
            f"input_0: expected float32, received float64; {CONVERT}",
        ),
        (
            (np.zeros((1, 3, 12, 12), np.int8),),
            f"input_0: expected float32, received int8; {CONVERT}",
        ),
        (
            (np.zeros((1, 3, 12, 12), object),),
            f"input_0: expected float32, received object; {CONVERT}",
        ),
        (([[0.0]],), "input_0: expected an array of float32[1, 3, 12, 12], received list"),
        ((None,), "input_0: expected an array of float32[1, 3, 12, 12], received NoneType"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_wrong_input_is_refused_in_words(
    program: nybble.Program, given: tuple[Any, ...], message: str
) -> None:
    """Count, rank, shape and element type: what was expected, what came, what to do."""
    with pytest.raises(nybble.ContractError) as caught:
        program(*given)
    assert message == str(caught.value)


def test_result_is_the_callers_own(program: nybble.Program, answer: tuple[Array, Array]) -> None:
    """Results are fresh, writable arrays: changing one changes no later result."""
    x, expected = answer
    first = program(x)
    first[...] = 7
    np.testing.assert_array_equal(expected, program(x))


@pytest.mark.parametrize(
    "device", ["host", *(pytest.param(n, marks=pytest.mark.device) for n in ("webgpu", "vulkan"))]
)
def test_returned_input_and_constant_are_copies(sketch: Any, device: str) -> None:
    """A program that returns its input, or a constant, gives arrays of the caller's own."""
    from nybble.devices import open_device
    from nybble.program import Method

    x = sketch.input("float32", 5)
    constant = np.arange(3, dtype=np.float32)
    constant.flags.writeable = False
    same = sketch.call("aten.clone.default", x=x)
    fixed = sketch.call("et_vk.prepack.default", x=sketch.constant(constant))
    opened = open_device(device)
    method = Method(opened, sketch.graph(same, fixed, same), "host", opened.new_states())
    given = np.arange(5, dtype=np.float32)
    one, two, three = method(given)
    for result, expected in ((one, given), (two, constant), (three, given)):
        np.testing.assert_array_equal(expected, result)
        assert result.flags.writeable
        assert not np.shares_memory(result, expected)
    assert not np.shares_memory(one, three)


INTEGERS = TensorSpec("input_0", "int64", (3,))


def test_int64_is_narrowed_where_it_fits() -> None:
    """Programs compute int64 in int32; the ends of int32 still pass."""
    given = np.array([-(2**31), 0, 2**31 - 1])
    narrowed = from_caller(given, INTEGERS, DTYPES["int32"])
    assert np.dtype("int32") == narrowed.dtype
    np.testing.assert_array_equal(given, narrowed)
    widened = to_caller([narrowed], [INTEGERS], [given])
    np.testing.assert_array_equal(given, widened, strict=True)


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 2**62])
def test_int64_beyond_int32_is_refused(value: int) -> None:
    """An integer that would wrap is named, not wrapped."""
    with pytest.raises(nybble.ContractError) as caught:
        from_caller(np.array([0, value, 0]), INTEGERS, DTYPES["int32"])
    assert "input_0: holds integers beyond int32, in which the program computes" == str(
        caught.value
    )


def test_float64_is_rounded_without_a_warning() -> None:
    """Programs compute float64 in float32; what exceeds it is infinite."""
    spec = TensorSpec("x", "float64", (2,))
    narrowed = from_caller(np.array([0.1, 1e300]), spec, DTYPES["float32"])
    np.testing.assert_array_equal(np.array([0.1, np.inf], np.float32), narrowed, strict=True)


def test_scalars_stay_scalars() -> None:
    """A tensor of rank 0 keeps its rank."""
    spec = TensorSpec("x", "float32", ())
    narrowed = from_caller(np.float32(2), spec, DTYPES["float32"])
    assert () == narrowed.shape
    assert () == to_caller([narrowed], [spec], [np.float32(2)]).shape


def test_one_result_comes_as_itself_several_as_a_tuple() -> None:
    """The number of outputs decides what a call returns."""
    spec = TensorSpec("x", "float32", (1,))
    one = np.zeros(1, np.float32)
    assert isinstance(to_caller([one], [spec], [one]), np.ndarray)
    assert isinstance(to_caller([one, one], [spec, spec], [one]), tuple)
    assert () == to_caller([], [], [one])


@pytest.mark.export
class TestTorch:
    """torch tensors in, torch tensors out."""

    def test_tensor_in_tensor_out(
        self, program: nybble.Program, answer: tuple[Array, Array]
    ) -> None:
        """Plain, channels-last, strided and gradient-tracking tensors all mean the same."""
        import torch

        x, expected = answer
        plain = torch.from_numpy(x.copy())
        for given in (
            plain,
            plain.to(memory_format=torch.channels_last),
            plain.repeat_interleave(2, dim=3)[..., ::2],
            plain.clone().requires_grad_(),
            torch.nn.Parameter(plain.clone()),
            plain.clone().requires_grad_() * 1.0,
        ):
            result = program(given)
            assert type(result) is torch.Tensor
            assert not result.requires_grad
            np.testing.assert_array_equal(expected, result.numpy())

    def test_result_is_writable(self, program: nybble.Program, answer: tuple[Array, Array]) -> None:
        """A result may be changed in place, as torch's own may."""
        import torch

        x, expected = answer
        result = program(torch.from_numpy(x.copy()))
        result += 1
        np.testing.assert_array_equal(expected + 1, result.numpy())

    def test_types_without_numpy_are_refused(self, program: nybble.Program) -> None:
        """bfloat16, sparse and meta tensors are refused in words."""
        import torch

        shape = (1, 3, 12, 12)
        for given in (
            torch.zeros(shape, dtype=torch.bfloat16),
            torch.zeros(shape).to_sparse(),
            torch.zeros(shape, device="meta"),
            torch.zeros(shape, dtype=torch.complex64).conj(),
        ):
            with pytest.raises(nybble.ContractError, match="input_0: "):
                program(given)


@pytest.mark.skipif(not Path("/dev/null").is_char_device(), reason="no such device here")
def test_a_device_is_not_read_as_a_program() -> None:
    """Some devices never end: none is read, and the error names it."""
    with pytest.raises(nybble.NybbleError, match="the device '/dev/null'"):
        nybble.load("/dev/null", device="host")


def test_calls_from_several_threads_do_not_mix(program: Any) -> None:
    """Each caller gets the answer to its own input: calls of one method wait for each other."""
    rng = np.random.default_rng(4)
    inputs = [rng.normal(size=(1, 3, 12, 12)).astype(np.float32) for _ in range(8)]
    expected = [program(x) for x in inputs] * 10
    with ThreadPoolExecutor(8) as pool:
        received = list(pool.map(program, inputs * 10))
    assert [True] * 80 == [np.array_equal(e, r) for e, r in zip(expected, received, strict=True)]


@pytest.mark.parametrize("kind", [bytearray, lambda data: memoryview(bytearray(data))])
def test_a_buffer_that_changes_after_loading_changes_nothing(kind: Any, answer: Any) -> None:
    """A program keeps no view of memory that its caller may write."""
    x, y = answer
    data = kind((FIXTURES / "small_cnn.pte").read_bytes())
    with nybble.load(data, device="host") as loaded:
        data[:] = bytes(len(data))
        np.testing.assert_array_equal(y, loaded(x))


@pytest.mark.parametrize("repeats", [0, -1])
def test_a_profile_needs_a_run(program: Any, answer: Any, repeats: int) -> None:
    """There is no median of no runs."""
    with pytest.raises(nybble.ContractError, match="repeats"):
        program.profile(answer[0], repeats=repeats)


@pytest.mark.parametrize("name", [None, 3])
def test_a_device_is_named_by_a_string(name: Any) -> None:
    """Anything else is an error that lists the devices."""
    with pytest.raises(nybble.DeviceError, match=f"unknown device {name}.*host"):
        nybble.load(FIXTURES / "small_cnn.pte", device=name)
