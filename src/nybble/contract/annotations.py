"""The annotations in which an operator's signature declares its tensors.

``Int8[Array, "n ic h w"]`` reads: an int8 tensor of rank 4 whose axes bind the names n, ic, h, w.
A name binds once per call; a second occurrence must agree. The axis language is jaxtyping's:
``*batch`` takes any number of axes (once a tensor), an integer is a fixed size, ``...`` is any
shape.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from .dtypes import COMPUTED

__all__ = [
    "AnyTensor", "Array", "Bool", "Float32", "Int8", "Int32", "Real", "TensorAnnotation", "UInt8",
]  # fmt: skip

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class TensorAnnotation:
    """Allowed element types and axes of one tensor argument or result."""

    dtypes: tuple[str, ...]
    axes: str
    optional: bool = False

    def __or__(self, other: object) -> TensorAnnotation:
        if other is not None:
            return NotImplemented
        return replace(self, optional=True)

    def __str__(self) -> str:
        axes = self.axes if self.axes == "..." else f"[{', '.join(self.axes.split())}]"
        return f"{' or '.join(self.dtypes)} {axes}" + (" or None" if self.optional else "")


if TYPE_CHECKING:
    from typing import Annotated as AnyTensor
    from typing import Annotated as Bool
    from typing import Annotated as Float32
    from typing import Annotated as Int8
    from typing import Annotated as Int32
    from typing import Annotated as Real
    from typing import Annotated as UInt8
else:

    class _Factory:
        def __init__(self, *dtypes: str) -> None:
            self.dtypes = dtypes

        def __getitem__(self, item: tuple[object, str]) -> TensorAnnotation:
            return TensorAnnotation(self.dtypes, " ".join(item[1].split()))

    Float32 = _Factory("float32")
    Int8 = _Factory("int8")
    Int32 = _Factory("int32")
    Bool = _Factory("bool")
    UInt8 = _Factory("uint8")
    Real = _Factory("float32", "int32")
    AnyTensor = _Factory(*COMPUTED)
