from __future__ import annotations

from typing import Any

import pytest

from nybble.contract import AnyTensor, Array, Bool, Float32, Int8, Int32, Real, TensorAnnotation


def annotation(factory: Any, axes: str) -> TensorAnnotation:
    """What an annotation is at run time; type checkers see ``Annotated``."""
    made = factory[Array, axes]
    assert isinstance(made, TensorAnnotation)
    return made


@pytest.mark.parametrize(
    ("factory", "dtypes"),
    [
        (Float32, "float32"),
        (Int8, "int8"),
        (Int32, "int32"),
        (Bool, "bool"),
        (Real, "float32 or int32"),
        (AnyTensor, "float32 or int32 or int8 or uint8 or bool"),
    ],
)
def test_annotation_reads_as_its_declaration(factory: Any, dtypes: str) -> None:
    """An annotation prints its element types and axes, as errors and documentation show them."""
    assert f"{dtypes} [n, 3, w]" == str(annotation(factory, "n  3 w"))
    assert f"{dtypes} ..." == str(annotation(factory, "..."))
    assert f"{dtypes} []" == str(annotation(factory, ""))


def test_none_makes_it_optional() -> None:
    """``| None`` marks a tensor that may be absent, and leaves the original alone."""
    plain = annotation(Float32, "n")
    assert (plain | None).optional
    assert not plain.optional
    assert "float32 [n] or None" == str(plain | None)


def test_union_of_tensors_is_refused() -> None:
    """Two annotations do not join: an argument has one set of axes."""
    with pytest.raises(TypeError, match="unsupported operand"):
        annotation(Float32, "n") | annotation(Int8, "n")
