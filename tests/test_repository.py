"""What a reviewer would otherwise have to look for in every change."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import nybble.ops  # noqa: F401  declares the operators
from nybble.contract import REGISTRY

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "tests", "tools", "bench", "docs", ".ci")
TEXT = {".py", ".md", ".toml", ".sh", ".wgsl", ".jinja", ".yml", ""}
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 40

# Written in parts, so that this file does not hold what it forbids.
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|farm|tmp|home/\w+|Users/\w+)/")
LOOK_AGAIN = re.compile("|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X:", "must ma" + "tch")))


def text_files() -> list[Path]:
    """Return every text file of the repository, generated and ignored ones left out."""
    inside = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))
    files = [path for path in (*ROOT.iterdir(), *inside) if path.is_file()]
    return sorted(
        path
        for path in files
        if path.suffix in TEXT and "__pycache__" not in path.parts and path.name != "LICENSE"
    )


def python_files(*folders: str) -> list[Path]:
    """Return the Python files below ``folders`` of the repository."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield every function and method that ``path`` defines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def lines_without_docstring(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count a function's lines from ``def`` to its end, its docstring left out."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function, clean=False) is not None:
        lines -= (first.end_lineno or first.lineno) - first.lineno + 1
    return lines


def places(pattern: re.Pattern[str], files: list[Path]) -> list[str]:
    """Return "file:line: text" for every line of ``files`` in which ``pattern`` is found."""
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in files
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if pattern.search(line)
    ]


def test_no_python_file_is_too_long_to_read_at_once() -> None:
    """Every Python file has fewer than 400 lines."""
    long = {
        str(path.relative_to(ROOT)): lines
        for path in python_files("src", "tests", "tools", "bench")
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) >= MAX_FILE_LINES
    }
    assert long == {}


def test_no_function_is_longer_than_a_screen() -> None:
    """Every function has fewer than 40 lines, its docstring not counted."""
    long = {
        f"{path.relative_to(ROOT)}:{function.name}": lines
        for path in python_files("src", "tests", "tools", "bench")
        for function in functions(path)
        if (lines := lines_without_docstring(function)) >= MAX_FUNCTION_LINES
    }
    assert long == {}


def test_devices_know_no_operator() -> None:
    """No file of ``devices/`` names an operator: devices know buffers, pipelines, dispatches."""
    parts = {part for name in REGISTRY for part in name.split(".")[:2]}
    # A single word such as add, copy or nybble may be meant in its own sense.
    names = {part for part in parts if "_" in part.strip("_")}
    assert names, "no operator is declared: this test would pass for nothing"
    pattern = re.compile(r"\baten\.|\b(?:" + "|".join(map(re.escape, sorted(names))) + r")\b")
    devices = python_files("src/nybble/devices")
    assert devices, "there is no device: this test would pass for nothing"
    assert places(pattern, devices) == []


def test_no_file_names_a_path_of_somebodys_machine() -> None:
    """No committed text holds a path that exists on one machine only."""
    assert places(MACHINE_PATH, text_files()) == []


def test_nothing_is_left_for_later_in_a_comment() -> None:
    """No source has a note to its own author, or asks a reader to keep two texts equal."""
    assert places(LOOK_AGAIN, python_files("src", "tests", "tools", "bench")) == []


def test_every_test_says_its_claim() -> None:
    """Every test function has a docstring."""
    silent = [
        f"{path.relative_to(ROOT)}:{function.name}"
        for path in python_files("tests")
        for function in functions(path)
        if function.name.startswith("test_") and ast.get_docstring(function) is None
    ]
    assert silent == []


def test_every_public_package_lists_its_names() -> None:
    """Every package that re-exports anything says what with ``__all__``."""
    open_ended = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "src").rglob("__init__.py")
        if re.search(
            r"^from ", path.read_text(encoding="utf-8").split("annotations\n", 1)[-1], re.MULTILINE
        )
        and "__all__" not in path.read_text(encoding="utf-8")
    ]
    assert open_ended == []


@pytest.mark.parametrize("target", ["demo", "test", "check", "bench", "fixtures", "clean"])
def test_the_makefile_has_the_targets_that_the_documents_name(target: str) -> None:
    """Each ``make`` command of the documents is a target."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    documents = "".join((ROOT / name).read_text() for name in ("README.md", "CONTRIBUTING.md"))
    assert f"make {target}" in documents
    assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_continuous_integration_runs_the_documented_command() -> None:
    """``.ci/run`` runs ``make test``, and may be executed."""
    script = ROOT / ".ci/run"
    assert "make test" in script.read_text(encoding="utf-8")
    assert script.stat().st_mode & 0o111


def test_the_readmes_links_into_the_repository_lead_somewhere() -> None:
    """Each relative link of the README is a file."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", readme, flags=re.DOTALL)
    links = re.findall(r"\]\((?!http)([^)#]+)\)", prose)
    assert links
    assert [] == [link for link in links if not (ROOT / link).exists()]


def test_the_tables_of_operators_are_those_of_the_declarations() -> None:
    """README and docs/operators.md list exactly the operators that are declared."""
    command = [sys.executable, str(ROOT / "tools/support_table.py"), "--check"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert 0 == ended.returncode, ended.stdout + ended.stderr
