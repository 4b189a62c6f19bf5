"""The operators: one folder per family that shares shaders, found by listing this folder."""

from importlib import import_module
from pathlib import Path

__all__: list[str] = []

for _family in sorted(Path(__file__).resolve().parent.iterdir()):
    if (_family / "operators.py").is_file():
        import_module(f"{__name__}.{_family.name}.operators")
