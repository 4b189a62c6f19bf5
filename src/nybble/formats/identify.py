"""Says what a file that is not the expected one looks like, from its first bytes."""

from __future__ import annotations

__all__ = ["looks_like"]

# First match wins: (offset, bytes there, what such a file is).
_SIGNATURES: tuple[tuple[int, bytes, str], ...] = (
    (4, b"ET12", "an ExecuTorch program (.pte)"),
    (4, b"ET", "an ExecuTorch program of another format version"),
    (4, b"FT01", "an ExecuTorch external data file (.ptd)"),
    (4, b"BP", "an ExecuTorch bundled program (.bpte)"),
    (4, b"VK00", "a Vulkan graph without its program"),
    (4, b"VH00", "a Vulkan delegate without its program"),
    (4, b"TFL3", "a TensorFlow Lite model"),
    (0, b"PK\x03\x04", "a zip archive, as torch.save and torch.export.save write"),
    (0, b"\x80\x02", "a Python pickle, as old versions of torch.save write"),
    (0, b"\x1f\x8b", "a gzip archive"),
    (0, b"GGUF", "a GGUF model"),
    (0, b"version https://git-lfs", "a Git LFS pointer; fetch the real file with `git lfs pull`"),
    (0, b"<!DOCTYPE", "a web page"),
    (0, b"<html", "a web page"),
    (4, b"\0\0\0\0{", "a safetensors file"),
)
_TEXT_CONTROLS = b"\t\n\r"


def looks_like(data: memoryview) -> str:
    """A noun phrase for the kind of file whose bytes these are."""
    head = bytes(data[:64])
    if not head:
        return "an empty file"
    if not any(head):
        return "zeros only"
    for offset, signature, kind in _SIGNATURES:
        if head.startswith(signature, offset):
            return kind
    if all(byte >= 0x20 or byte in _TEXT_CONTROLS for byte in head):
        return f"a text file that begins {head[:24].decode('utf-8', 'replace')!r}"
    return f"a file that begins with the bytes {head[:8].hex(' ')}"
