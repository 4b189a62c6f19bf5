"""Arrays of the command line: files read, inputs drawn, results written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nybble.cli.arrays import check_output_path, read_inputs, write_outputs
from nybble.errors import NybbleError
from nybble.graph import TensorSpec
from nybble.random_inputs import random_inputs

X = TensorSpec("x", "float32", (2, 3))
Y = TensorSpec("y", "int8", (4,))
ARRAY_X = np.arange(6, dtype=np.float32).reshape(2, 3)
ARRAY_Y = np.array([-128, 0, 1, 127], dtype=np.int8)


def test_several_npy_files_are_inputs_in_order(tmp_path: Path) -> None:
    """The first file is the first input, bytes and types as they were written."""
    np.save(tmp_path / "a.npy", ARRAY_X)
    np.save(tmp_path / "b.npy", ARRAY_Y)
    x, y = read_inputs([tmp_path / "a.npy", tmp_path / "b.npy"], (X, Y))
    np.testing.assert_array_equal(ARRAY_X, x, strict=True)
    np.testing.assert_array_equal(ARRAY_Y, y, strict=True)


@pytest.mark.parametrize("names", [("x", "y"), ("input_0", "input_1"), ("arr_0", "arr_1")])
def test_an_npz_file_gives_inputs_by_name(tmp_path: Path, names: tuple[str, str]) -> None:
    """An archive's order does not count, its names do; what is not asked for is left alone."""
    arrays = {"other": np.zeros(9), names[1]: ARRAY_Y, names[0]: ARRAY_X}
    np.savez(tmp_path / "inputs.npz", **arrays)  # type: ignore[arg-type]  # numpy's stub
    x, y = read_inputs([tmp_path / "inputs.npz"], (X, Y))
    np.testing.assert_array_equal(ARRAY_X, x, strict=True)
    np.testing.assert_array_equal(ARRAY_Y, y, strict=True)


def test_an_npz_file_without_an_input_says_what_it_holds(tmp_path: Path) -> None:
    """The error names the input that is missing and the arrays that are there."""
    np.savez(tmp_path / "inputs.npz", image=ARRAY_X)
    with pytest.raises(NybbleError, match=r"holds image, .* input 0 \(x: float32\[2, 3\]\)"):
        read_inputs([tmp_path / "inputs.npz"], (X,))


def test_a_wrong_number_of_files_names_the_inputs(tmp_path: Path) -> None:
    """One file for two inputs is refused, and the inputs are listed with their shapes."""
    np.save(tmp_path / "a.npy", ARRAY_X)
    with pytest.raises(NybbleError, match=r"x: float32\[2, 3\], y: int8\[4\], and 1 files"):
        read_inputs([tmp_path / "a.npy"], (X, Y))


def test_an_npz_file_beside_others_is_refused(tmp_path: Path) -> None:
    """It would not be clear which input the other files are."""
    np.savez(tmp_path / "inputs.npz", x=ARRAY_X)
    with pytest.raises(NybbleError, match="one .npz with all inputs"):
        read_inputs([tmp_path / "inputs.npz", tmp_path / "a.npy"], (X, Y))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"text", b"\x93NUMPY\x01\x00"])
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_a_file_that_is_no_array_is_refused(tmp_path: Path, content: bytes, suffix: str) -> None:
    """Empty, cut short, or of another kind: each is an error that names the file."""
    path = tmp_path / f"wrong{suffix}"
    path.write_bytes(content)
    with pytest.raises(NybbleError, match="wrong"):
        read_inputs([path], (X,))


def test_pickled_objects_are_never_loaded(tmp_path: Path) -> None:
    """An array of objects could run code when read: it is refused."""
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(NybbleError, match="without pickle"):
        read_inputs([tmp_path / "objects.npy"], (X,))


def test_a_header_that_is_no_python_literal_is_refused(tmp_path: Path) -> None:
    """numpy tokenizes a damaged header, and raises the tokenizer's own error."""
    path = tmp_path / "header.npy"
    np.save(path, np.zeros((3, 5), np.float32))
    path.write_bytes(path.read_bytes().replace(b"(3, 5)", b"((3,5)"))
    with pytest.raises(NybbleError, match="header"):
        read_inputs([path], (X,))


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_an_absent_file_is_said_to_be_absent(tmp_path: Path, suffix: str) -> None:
    """A missing input is told from a damaged one."""
    with pytest.raises(NybbleError, match=f"none{suffix} does not exist"):
        read_inputs([tmp_path / f"none{suffix}"], (X,))


def test_an_archive_named_npy_is_told_from_an_array(tmp_path: Path) -> None:
    """numpy would open it silently as an archive."""
    np.savez(tmp_path / "inputs.npz", x=ARRAY_X)
    (tmp_path / "inputs.npz").rename(tmp_path / "inputs.npy")
    with pytest.raises(NybbleError, match="name it .npz"):
        read_inputs([tmp_path / "inputs.npy"], (X,))


def test_an_array_named_npz_is_told_from_an_archive(tmp_path: Path) -> None:
    """The other way round it is an array that has no names."""
    np.save(tmp_path / "x.npy", ARRAY_X)
    (tmp_path / "x.npy").rename(tmp_path / "x.npz")
    with pytest.raises(NybbleError, match="name it .npy"):
        read_inputs([tmp_path / "x.npz"], (X,))


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    """A byte flipped inside a compressed array is found by its checksum."""
    path = tmp_path / "x.npz"
    np.savez_compressed(path, x=ARRAY_X)
    data = bytearray(path.read_bytes())
    data[data.index(b"x.npy") + 40] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(NybbleError, match="is not an .npz file"):
        read_inputs([path], (X,))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint8", "int32", "int64", "bool"])
def test_random_inputs_have_the_declared_type_and_repeat_with_their_seed(dtype: str) -> None:
    """Equal seeds give equal arrays, others give others."""
    spec = TensorSpec("x", dtype, (64, 3))
    (first,), (again,), (other,) = (random_inputs((spec,), seed) for seed in (7, 7, 8))
    assert (dtype, (64, 3)) == (first.dtype.name, first.shape)
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_random_bytes_reach_both_ends_of_their_range() -> None:
    """int8 inputs are drawn from all 256 codes."""
    (array,) = random_inputs((TensorSpec("x", "int8", (100_000,)),), 0)
    assert (-128, 127) == (array.min(), array.max())


def test_one_output_is_one_file(tmp_path: Path) -> None:
    """One result is written under the name that was asked for."""
    path = tmp_path / "y.npy"
    assert (path,) == write_outputs(path, (ARRAY_X,), (X,))
    np.testing.assert_array_equal(ARRAY_X, np.load(path), strict=True)


def test_several_outputs_are_numbered_files(tmp_path: Path) -> None:
    """Two results asked for as y.npy become y_0.npy and y_1.npy."""
    paths = write_outputs(tmp_path / "y.npy", (ARRAY_X, ARRAY_Y), (X, Y))
    assert (tmp_path / "y_0.npy", tmp_path / "y_1.npy") == paths
    np.testing.assert_array_equal(ARRAY_Y, np.load(paths[1]), strict=True)


def test_an_npz_holds_the_outputs_under_their_names(tmp_path: Path) -> None:
    """An archive is written whole, and can be read as inputs again."""
    path = tmp_path / "y.npz"
    assert (path,) == write_outputs(path, (ARRAY_X, ARRAY_Y), (X, Y))
    x, y = read_inputs([path], (X, Y))
    np.testing.assert_array_equal(ARRAY_X, x, strict=True)
    np.testing.assert_array_equal(ARRAY_Y, y, strict=True)


@pytest.mark.parametrize(
    ("name", "message"),
    [("y.txt", "ends in .txt"), ("y", "ends in nothing"), ("absent/y.npy", "does not exist")],
)
def test_an_output_that_cannot_be_written_is_refused_first(
    tmp_path: Path, name: str, message: str
) -> None:
    """A wrong suffix or folder is known before the program runs."""
    with pytest.raises(NybbleError, match=message):
        check_output_path(tmp_path / name)


def test_an_output_that_is_a_folder_is_an_error_that_names_it(tmp_path: Path) -> None:
    """What the system refuses is passed on as a sentence."""
    (tmp_path / "y.npy").mkdir()
    with pytest.raises(NybbleError, match="y.npy cannot be written"):
        write_outputs(tmp_path / "y.npy", (ARRAY_X,), (X,))
