"""What the compiler refuses: each error names the line and what stands there."""

from __future__ import annotations

import pytest

from nybble.errors import NybbleError
from nybble.shaders import ShaderError, spirv

from .conftest import HEADER, MAIN

MATRICES = """
  let left = subgroup_matrix_left<i8, 32, 16>();
  let right = subgroup_matrix_right<i8, 16, 16>();
  let sum = subgroup_matrix_result<i32, 16, 16>();
"""
STATEMENTS = {
    "let v = a + 1.5;": "expected u32, received a decimal literal",
    "let v = a + bitcast<i32>(b);": "+ does not apply to u32 and i32",
    "let v = a + bitcast<f32>(b);": "+ does not apply to u32 and f32",
    "let v = -a;": "- does not apply to u32",
    "let v = !a;": "! does not apply to u32",
    "let v = a << 1.0;": "<< does not apply to u32 and a decimal literal",
    "let v = a << 32u;": "a shift by 32 bits",
    "let v = 1u / 0u;": "division by zero",
    "let v = a && true;": "&& needs two bools, received u32 and bool",
    "let v: f32 = a;": "expected f32, received u32",
    "let v: u32 = -1;": "-1 does not fit u32",
    "let v = 3000000000;": "3000000000 does not fit i32",
    "let v = 1e39f;": "1e+39 does not fit f32",
    "let v = 1.0h;": "f16 literals are not supported",
    "let v = missing;": "'missing' is not known here",
    "let v = missing(a);": "'missing' is not known here",
    "let v = min(a);": "min takes 2 arguments, received 1",
    "let v = min(a, 1.0);": "expected u32, received a decimal literal",
    "let v = floor(a);": "floor does not apply to u32",
    "let v = sin(vec2<u32>(a, b));": "sin does not apply to vec2<u32>",
    "let v = select(a, b, a);": "select by u32 does not apply to u32",
    "let v = dot(a, b);": "dot does not apply to u32",
    "let v = any(a);": "any does not apply to u32",
    "let v = bitcast<vec2<u32>>(a);": "u32 cannot be taken for vec2<u32>",
    "let v = vec4<u32>(a, b);": "vec4<u32> takes 4 components, received 2",
    "let v = vec2<u32>(a, 1.0);": "expected u32, received a decimal literal",
    "let v = vec2<f64>(1.0);": "'f64' is no component type",
    "let v = vec2();": "vec2() needs a component type",
    "let v = Pair(a);": "Pair takes 2 values, received 1",
    "let v = Pair(a, b).third;": "Pair has no member 'third', only one, two",
    "let v = vec2<u32>(a, b).z;": "vec2<u32> has no component 'z'",
    "let v = a.x;": "u32 has no members",
    "let v = a[0];": "u32 cannot be indexed",
    "let v = x[1.0];": "array<u32> cannot be indexed by f32",
    "let v = vec2<u32>(a, b)[2];": "index 2 is outside vec2<u32>",
    "let v = x;": "a whole array<u32> cannot be read",
    "x[0] = a;": "this place is read only",
    "params.zero = a;": "this place is read only",
    "a = 1u;": "this is no place that can be written",
    "let a = 1u; let a = 2u;": "'a' is declared twice in one scope",
    "var v;": "variable 'v' has neither a type nor a value",
    "var<private> v: u32;": "belong outside functions",
    "var v = 0u; v <<= 1.5;": "<< does not apply",
    "var v = 1.5; v++;": "++ does not apply to f32",
    "let v = workgroupBarrier();": "'v' is given no value",
    "if (a) { }": "expected a condition, received u32",
    "switch a { default: { } }": "'switch' is not supported",
    "break;": "break outside a loop",
    "continue;": "continue outside a loop",
    "return;": "return without a value, expected u32",
    "return 1.5;": "expected u32, received a decimal literal",
    "let v = itself(a);": "'itself' calls itself",
    "a + b;": "this is no place that can be written",
    "let v = a": "expected ';'",
    "let v = (a;": "expected ')', found ';'",
    "var v: array<u32, a>;": "expected a constant size",
    "var v: texture_2d<f32>;": "'texture_2d' is no type that is known here",
    "let v = $;": "expected a name, found '$'",
    f"{MATRICES}let v = subgroupMatrixMultiplyAccumulate(left, right, sum);": "do not fit together",
    f"{MATRICES}let v = subgroupMatrixMultiplyAccumulate(right, left, sum);": "takes a left, a ",
    f"{MATRICES}let v = subgroup_matrix_result<i32, 16, 16>(1, 2);": "takes one value, received 2",
    f"{MATRICES}let v = subgroup_matrix_result<i32, 16, 16>(left);": "cannot be made of",
    f"{MATRICES}let v = subgroup_matrix_left<i8, 16, 16>(sum);": "cannot be made of",
    f"{MATRICES}let v = sum + left;": "+ does not apply to subgroup_matrix_result<i32, 16, 16>",
    f"{MATRICES}let v = sum / sum;": "/ does not apply to subgroup_matrix_result<i32, 16, 16>",
    f"{MATRICES}let v = sum * 1.5;": "received a decimal literal",
    f"{MATRICES}let v = 2 * sum;": "* does not apply to an integer literal and",
    f"{MATRICES}let v = left * left;": "* does not apply to subgroup_matrix_left<i8, 32, 16>",
    f"{MATRICES}let v = bitcast<f32>(sum);": "cannot be taken for f32",
    f"{MATRICES}let v = bitcast<subgroup_matrix_right<f32, 16, 16>>(sum);": "cannot be taken for",
    "let v = subgroupMatrixLoad(&x, 0u, false, 1u);": "needs the type of a matrix",
    "subgroupMatrixStore(&x, 0u, a, false, 1u);": "needs a writable array and a matrix",
    "let v = arrayLength(&params);": "needs the address of an array",
}  # fmt: skip
DECLARATIONS = {
    "enable f16;": "extension 'f16' is not supported",
    "override N: u32;": "'override' is not supported outside functions",
    "var<private> v: u32;": "variables of the address space 'private' are not supported",
    "const N = params.zero;": "expected a constant",
    "@group(0) @binding(3) var<storage, read> y: array<vec3<f32>>;": "buffers of vec3<f32>",
    "@group(0) @binding(3) var<storage, read> y: u32;": "buffer 'y' is u32, expected array<...>",
    "@group(0) @binding(3) var<uniform> y: vec4<u32>;": "a binding 'uniform, read' of vec4<u32>",
    "@vertex fn other() { }": "attributes vertex are not supported here",
    "fn other() -> u32": "function 'other' has no body",
    "fn other() -> u32 {": "expected '}', found the end of the shader",
}
RECURSIVE = "fn itself(a: u32) -> u32 { return itself(a); }"
HELPERS = f"struct Pair {{ one: u32, two: u32, }};\n{RECURSIVE}\n"


def _message(text: str) -> str:
    with pytest.raises(ShaderError) as caught:
        spirv(text)
    assert isinstance(caught.value, NybbleError)
    return str(caught.value)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_outside_the_subset_is_refused_by_line(statement: str) -> None:
    """A wrong type, an unknown name or a construct that is not compiled is named with its line."""
    inside = f"let b = 2u; let a = x[i];\n{statement}\nreturn 0u;"
    if statement.startswith("let a"):
        inside = f"{{\n{statement}\n}}\nreturn 0u;"
    message = _message(f"{HEADER}{HELPERS}fn result(i: u32) -> u32 {{ {inside} }}{MAIN}")

    assert STATEMENTS[statement] in message
    named = message.rsplit(", in '", 1)[1].removesuffix("'")
    assert named in [*map(str.strip, statement.split("\n")), RECURSIVE]


@pytest.mark.parametrize("declaration", DECLARATIONS)
def test_a_declaration_outside_the_subset_is_refused(declaration: str) -> None:
    """So are bindings, variables and attributes that no kernel has."""
    shader = f"{HEADER}fn result(i: u32) -> u32 {{ return x[i]; }}{MAIN}{declaration}"

    assert DECLARATIONS[declaration] in _message(shader)


def test_a_shader_without_an_entry_point_is_refused() -> None:
    """Text without a ``@compute`` function is no shader."""
    assert "no @compute function" in _message(HEADER)


def test_lines_are_counted_through_comments() -> None:
    """A comment of several lines does not shift the line that an error names."""
    message = _message("/* one\ntwo */ // three\nconst N = missing(1);\n")

    assert message.startswith("shader, line 3: 'missing' is not known here")
