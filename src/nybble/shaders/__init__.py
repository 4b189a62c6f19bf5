"""WGSL to SPIR-V: what lets one kernel text serve WebGPU and Vulkan.

The text is read, typed and assembled in one pass (:mod:`.expressions`, :mod:`.statements`,
:mod:`.module`); nothing outside Python is needed, when a wheel is built or when a program runs.
What differs from WGSL, because a kernel here never depends on it: workgroup memory does not begin
as zeros, integers divided by zero give any value, indices into variables are not clamped (those
into buffers are, by the device's ``robustBufferAccess``).
"""

from __future__ import annotations

from functools import lru_cache

from .module import Module, uses_matrix_units
from .tokens import ShaderError

__all__ = ["ShaderError", "spirv", "uses_matrix_units"]


@lru_cache(maxsize=1024)
def spirv(source: str) -> bytes:
    """A compute shader in SPIR-V, for Vulkan 1.1 or newer; its entry point is called ``main``.

    Bindings, the uniform record's offsets and the workgroup's size are those of the WGSL. Packed
    dot products, subgroup functions and matrix units need the device's features of these names.

    Args:
        source: one whole WGSL shader, as :func:`nybble.contract.emit_wgsl.emit_wgsl` makes it.

    Raises:
        ShaderError: something is outside the subset of WGSL that kernels use, or wrongly typed;
            the message has the line.
    """
    return Module(source).compile()
