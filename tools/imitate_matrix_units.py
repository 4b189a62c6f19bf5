"""Rewrites a kernel for matrix units into one without them, to run it on any adapter.

Each thread of a subgroup holds eight elements of a result matrix; a left or right matrix is the
place that it is loaded from, read when it is multiplied. Meant for the form in which our kernels
are written, and refuses any other. Loops have no constant bound, so that none is unrolled.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["imitated"]

_LOAD = re.compile(
    r"subgroupMatrixLoad<subgroup_matrix_(left|right|result)<(\w+), (\d+), (\d+)>>\(\s*"
    r"&(\w+), (.*), (true|false), (\d+u)\)"
)
_NAMED = re.compile(rf"let (\w+) = {_LOAD.pattern};")
_PRODUCT = re.compile(r"subgroupMatrixMultiplyAccumulate\(\s*(\w+), (\w+), ")
_STORE = re.compile(r"subgroupMatrixStore\(&(\w+), (.*), (s\d_\d), false, (\d+u)\);")
_SCALED = re.compile(
    r"(s\d_\d) = s\d_\d\s*\+ subgroup_matrix_result<f32, 16, 16>\((\w+)\) \* cx \* (\w+);"
)
_THREADS = re.compile(
    r",\s*@builtin\(subgroup_id\) part: u32, @builtin\(subgroup_invocation_id\) thread: u32\) \{"
)
_WORDS = {"vec4<u32>": 4, "vec2<u32>": 2, "u32": 1, "f32": 1}
_RESULTS = {"i8": "i32", "bf16": "f32"}
_EACH = range(8)
"""A thread's elements of a result matrix: half a row. Indices are constants: some compilers make
a choice among all elements of any other."""
_ELEMENTWISE = f"""
fn times(a: array<i32, 8>, factor: i32) -> array<i32, 8> {{
  return array<i32, 8>({", ".join(f"a[{e}] * factor" for e in _EACH)});
}}
fn scaled(
  sum: array<f32, 8>, a: array<i32, 8>, x: array<f32, 8>, w: array<f32, 8>
) -> array<f32, 8> {{
  return array<f32, 8>({", ".join(f"sum[{e}] + f32(a[{e}]) * x[{e}] * w[{e}]" for e in _EACH)});
}}
"""


@dataclass(frozen=True)
class _Matrix:
    """A left or right matrix: where it lies, what of, and whether by columns."""

    use: str
    array: str
    element: str
    depth: int
    by_column: bool


def _matrix(found: re.Match[str]) -> _Matrix:
    depth = int(found[4] if found[2] == "left" else found[5])
    return _Matrix(found[2], found[6], found[3], depth, found[8] == "true")


class _Text:
    def __init__(self, source: str) -> None:
        self.source = source
        self.functions: dict[str, str] = {}
        self.arrays = dict(re.findall(r"var<workgroup> (\w+): array<([\w<>]+), \d+>;", source))
        self.matrices = {found[1]: _matrix(found) for found in _NAMED.finditer(source)}

    def word(self, array: str) -> str:
        """A function that reads a word of a workgroup array."""
        width = _WORDS[self.arrays[array]]
        place = f"{array}[at / {width}u][at % {width}u]" if width > 1 else f"{array}[at]"
        name = f"word_of_{array}"
        self.functions[name] = f"fn {name}(at: u32) -> u32 {{ return bitcast<u32>({place}); }}"
        return name

    def element(self, matrix: _Matrix) -> str:
        """A function that reads the element of a matrix at a row (or column) and a depth."""
        width, word = _WORDS[self.arrays[matrix.array]], self.word(matrix.array)
        per = {"i8": 4, "bf16": 2}[matrix.element]
        lines = matrix.by_column == (matrix.use == "right")
        major, minor = ("line", "k") if lines else ("k", "line")
        at = f"(place.x + {major} * place.y) * {width * per}u + {minor}"
        value = {
            "i8": f"extractBits(bitcast<i32>({word}(at / 4u)), at % 4u * 8u, 8u)",
            "bf16": f"bitcast<f32>(({word}(at / 2u) >> (at % 2u * 16u)) << 16u)",
        }[matrix.element]
        name = f"{matrix.use}_{matrix.element}_of_{matrix.array}_{str(matrix.by_column).lower()}"
        self.functions[name] = (
            f"fn {name}(place: vec2<u32>, line: u32, k: u32) -> {_RESULTS[matrix.element]} "
            f"{{ let at = {at}; return {value}; }}"
        )
        return name

    def product(self, left: _Matrix, right: _Matrix) -> str:
        """A function that multiplies two matrices and adds a third."""
        result = _RESULTS[left.element]
        a, b = self.element(left), self.element(right)
        name = f"product_{a}_{b}"
        adds = "\n".join(f"    r[{e}] += each * {b}(b, first + {e}u, k);" for e in _EACH)
        self.functions[name] = f"""
fn {name}(a: vec2<u32>, b: vec2<u32>, sum: array<{result}, 8>, thread: u32) -> array<{result}, 8> {{
  var r = sum;
  let first = thread % 2u * 8u;
  for (var k = 0u; k < {left.depth}u + params.zero; k++) {{
    let each = {a}(a, thread / 2u, k);
{adds}
  }}
  return r;
}}"""
        return name

    def loaded(self, array: str, by_column: str) -> str:
        """A function that reads a result matrix."""
        first, step = ("thread % 2u * 8u * place.y + thread / 2u", "place.y")
        if by_column == "false":
            first, step = ("thread / 2u * place.y + thread % 2u * 8u", "1u")
        name = f"loaded_{array}_{by_column}"
        elements = ", ".join(f"{array}[first + {e}u * {step}]" for e in _EACH)
        self.functions[name] = f"""
fn {name}(place: vec2<u32>, thread: u32) -> array<f32, 8> {{
  let first = place.x + {first};
  return array<f32, 8>({elements});
}}"""
        return name

    def stored(self, array: str, element: str) -> str:
        """A function that writes a result matrix, row by row."""
        width = _WORDS[self.arrays[array]]
        name = f"stored_{array}"
        words = [f"bitcast<u32>(s[{e}])" for e in _EACH]
        stores = "\n".join(
            f"  {array}[first + {at}u] = vec{width}<u32>("
            f"{', '.join(words[at * width : (at + 1) * width])});"
            for at in range(8 // width)
        )
        self.functions[name] = f"""
fn {name}(place: vec2<u32>, s: array<{element}, 8>, thread: u32) {{
  let first = place.x + thread / 2u * place.y + thread % 2u * {8 // width}u;
{stores}
}}"""
        return name

    def load(self, found: re.Match[str]) -> str:
        """The expression in place of a load."""
        place = f"vec2<u32>({found[6]}, {found[8]})"
        if found[1] != "result":
            return place
        return f"{self.loaded(found[5], found[7])}({place}, thread)"

    def multiply(self, found: re.Match[str]) -> str:
        """The beginning of a call in place of a product's; :func:`imitated` ends it."""
        name = self.product(self.matrices[found[1]], self.matrices[found[2]])
        return f"with_thread {name}({found[1]}, {found[2]}, "

    def store(self, found: re.Match[str]) -> str:
        """The statement in place of a store."""
        element = "f32" if "subgroup_matrix_result<f32" in self.source else "i32"
        name = self.stored(found[1], element)
        return f"{name}(vec2<u32>({found[2]}, {found[4]}), {found[3]}, thread);"


def imitated(source: str) -> str:
    """The shader with loops in the place of matrix units."""
    text = _Text(source)
    result = _LOAD.sub(text.load, source)
    result = _PRODUCT.sub(text.multiply, result)
    # The products' calls end in ");": there the thread goes.
    result = re.sub(r"with_thread ([^;]*)\);", r"\1, thread);", result)
    result = _STORE.sub(text.store, result)
    result = _SCALED.sub(r"\1 = scaled(\1, \2, cx, \3);", result)
    result = re.sub(r"(high\d) \* 256", r"times(\1, 256)", result)
    zero = r"subgroup_matrix_result<(\w+), 16, 16>\(\)"
    result = re.sub(rf"var (s\d_\d) = {zero};", r"var \1: array<\2, 8>;", result)
    result = re.sub(zero, r"array<\1, 8>()", result)
    result = _THREADS.sub(") {\n  let part = lane / 32u;\n  let thread = lane % 32u;", result)
    result = re.sub(r"enable chromium_\w+;\n", "", result)
    helpers = "\n".join([_ELEMENTWISE, *text.functions.values()])
    result = result.replace("@compute", f"{helpers}\n\n@compute", 1)
    left_over = re.findall(r".*subgroup_?[mM]atrix.*", re.sub(r"//.*", "", result))
    if left_over:
        raise ValueError(f"no imitation is known of {left_over[0].strip()}")
    return result
