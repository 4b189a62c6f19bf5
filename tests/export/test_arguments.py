"""Wrong arguments of ``nybble.export.export`` are refused before any long work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import nybble.export
from nybble.errors import NybbleError
from nybble.export import checks

pytestmark = pytest.mark.export

EXAMPLE = torch.zeros(1, 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quantize": "int2"}, "quantize='int2' is not supported by export: use one of None, 'int"),
        ({"quantize": "int4", "group_size": 0}, "group_size=0 is not a number of weights"),
        ({"quantize": "int4", "group_size": 2.0}, "group_size=2.0 is not a number of weights"),
        ({"quantize": "int8-dynamic", "group_size": True}, "group_size=True is not a number"),
        (
            {"quantize": "int4", "calibration": [EXAMPLE]},
            'calibration is only used with quantize="int8"',
        ),
        ({"partitioner": "xnnpack"}, "partitioner='xnnpack' is not supported"),
        ({"quantize": "int8"}, 'quantize="int8" needs calibration'),
        ({"calibration": [EXAMPLE]}, 'calibration is only used with quantize="int8"'),
        ({"quantize": "int8", "calibration": 5}, "calibration: expected batches .* received int"),
        ({"quantize": "int8", "calibration": []}, "The calibration is empty"),
        ({"quantize": ["int4"]}, r"quantize=\['int4'\] is not supported by export"),
        (
            {"quantize": "int8", "calibration": [EXAMPLE, (EXAMPLE, EXAMPLE)]},
            "Calibration batch 1 has 2 tensors, but the module takes 1",
        ),
        (
            {"quantize": "int8", "calibration": [torch.zeros(64, 4)]},
            r"Input 0 of calibration batch 0 has shape \(64, 4\), but the example input has \(1, 4",
        ),
        (
            {"quantize": "int8", "calibration": [EXAMPLE.double()]},
            "has dtype torch.float64, but the example input has torch.float32",
        ),
        ({"quantize": "int8", "calibration": [[1.0]]}, "is of type float, but a torch.Tensor"),
    ],
)
def test_a_wrong_argument_is_named(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    """Each wrong argument raises NybbleError saying what was received and what is expected."""
    module = torch.nn.Linear(4, 4).eval()
    with pytest.raises(NybbleError, match=message):
        nybble.export.export(module, EXAMPLE, tmp_path / "m.pte", progress=False, **options)

    assert not (tmp_path / "m.pte").exists()


def test_a_path_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """A missing folder, and a folder in the file's place, are refused before the export."""
    module = torch.nn.Linear(4, 4).eval()
    with pytest.raises(NybbleError, match="the folder .* does not exist"):
        nybble.export.export(module, EXAMPLE, tmp_path / "no" / "m.pte", progress=False)
    with pytest.raises(NybbleError, match="is a folder"):
        nybble.export.export(module, EXAMPLE, tmp_path, progress=False)


@pytest.mark.parametrize(
    ("module", "received"),
    [
        (lambda x: x, "function"),
        (torch.nn.Linear, "the class Linear.*make an instance"),
        ("model.pt", "str"),
        (None, "NoneType"),
    ],
)
def test_what_is_no_module_is_refused(tmp_path: Path, module: Any, received: str) -> None:
    """A function, a class, a path: each is named, before the exporter starts."""
    with pytest.raises(
        NybbleError, match=f"module: expected a torch.nn.Module, received {received}"
    ):
        nybble.export.export(module, EXAMPLE, tmp_path / "m.pte", progress=False)


@pytest.mark.parametrize("path", [None, 5])
def test_what_is_no_path_is_refused(path: Any) -> None:
    """A missing name of the file is no traceback of pathlib's."""
    with pytest.raises(NybbleError, match="path: expected a path, received"):
        nybble.export.export(torch.nn.Linear(4, 4).eval(), EXAMPLE, path, progress=False)


_INSTALL = (
    "needs no_such_package and no_such_other, which are not installed: "
    r'pip install "nybble\[export\]"'
)


def test_a_missing_package_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the extra's packages the error names them and the pip command."""
    monkeypatch.setattr(checks, "_PACKAGES", ("torch", "no_such_package", "no_such_other"))
    module = torch.nn.Linear(4, 4).eval()
    with pytest.raises(NybbleError, match=_INSTALL):
        nybble.export.export(module, EXAMPLE, tmp_path / "m.pte", progress=False)

    monkeypatch.setattr(checks, "_PACKAGES", ("torch", "no_such_package"))
    with pytest.raises(NybbleError, match="needs no_such_package, which is not installed: "):
        nybble.export.export(module, EXAMPLE, tmp_path / "m.pte", progress=False)


def test_a_module_that_cannot_be_captured_says_why(tmp_path: Path) -> None:
    """An exception from the module's own code becomes NybbleError with its first line."""

    class Fails(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.linear(x, torch.zeros(3, 5))

    with pytest.raises(NybbleError, match="torch.export cannot capture Fails: "):
        nybble.export.export(Fails().eval(), EXAMPLE, tmp_path / "m.pte", progress=False)
