"""Declaration errors are raised at import; what a declaration cannot check, lints do here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import nybble.ops  # noqa: F401  (declares the operators)
from nybble.contract import REGISTRY, Alias, Array, Float32, Kernel, Operator, op, rule, u32
from nybble.contract.emit_wgsl import AUTOMATIC_PARAMS, OPS_FOLDER

Vector = Float32[Array, "n"]
OPERATORS = sorted({o.name: o for o in REGISTRY.values()}.items())
RESERVED = frozenset(
    """NULL Self abstract active alignas alignof as asm asm_fragment async attribute auto await
    become cast catch class co_await co_return co_yield coherent column_major common compile
    compile_fragment concept const_cast consteval constexpr constinit crate debugger decltype
    delete demote demote_to_helper do dynamic_cast enum explicit export extends extern external
    fallthrough filter final finally friend from fxgroup get goto groupshared highp impl implements
    import inline instanceof interface layout lowp macro macro_rules match mediump meta mod module
    move mut mutable namespace new nil noexcept noinline nointerpolation non_coherent noncoherent
    noperspective null nullptr of operator package packoffset partial pass patch pixelfragment
    precise precision premerge priv protected pub public readonly ref regardless register
    reinterpret_cast require resource restrict self set shared sizeof smooth snorm static
    static_assert static_cast std subroutine super target template this thread_local throw trait
    try type typedef typeid typename typeof union unless unorm unsafe unsized use using varying
    virtual volatile wgsl where with writeonly yield
    alias break case const const_assert continue continuing default diagnostic discard else enable
    false fn for if let loop override requires return struct switch true var while
    i32 u32 f32 f16 bool vec2 vec3 vec4 array atomic ptr""".split()  # noqa: SIM905 (a list of 180 strings reads worse)
)


def kernels() -> Iterator[tuple[Operator, Kernel]]:
    """Every kernel that dispatches, with its operator."""
    for _, operator in OPERATORS:
        for kernel in operator.kernels:
            if isinstance(kernel, Kernel):
                yield operator, kernel


def source(operator: Operator, kernel: Kernel) -> str:
    """The shader's text with everything that it includes, and the texts that its templates take."""

    def read(path: Path) -> str:
        text = re.sub(r"//.*|\{#.*?#\}", "", path.read_text())
        pattern = r"\{% (?:include|from|import|extends) \"([^\"]+)\""
        # A name that a template composes, "family/tile_" ~ KIND, stands for every such file.
        named = [f for name in re.findall(pattern, text) for f in OPS_FOLDER.glob(f"{name}*")]
        return text + "".join(map(read, named))

    values = [str(value) for value in kernel.constants.values()]
    return " ".join([read(OPS_FOLDER / operator.family / kernel.shader), *values])


def names_of(pairs: Iterator[tuple[Operator, Kernel]]) -> list[Any]:
    """Test parameters with readable ids."""
    return [pytest.param(o, k, id=f"{o.name}-{k.shader}-{i}") for i, (o, k) in enumerate(pairs)]


def reads(text: str, name: str) -> bool:
    """Whether a shader reads a name, written out or composed as in ``size_{$ i $}``."""
    composed = set(re.findall(r"(\w+)_\{\$", text)) | set(re.findall(r"\"(\w+)\"", text))
    return (
        bool(re.search(rf"\b{re.escape(name)}\b", text)) or re.sub(r"_\d+$", "", name) in composed
    )


@pytest.mark.parametrize("family", sorted({o.family for o, _ in kernels()}))
def test_every_declared_field_is_read(family: str) -> None:
    """A params field or constant that nothing reads is a leftover, or a misspelt one.

    Kernels of a family may share one record, so a field counts as read where any of them reads it.
    """
    ours = [(o, k) for o, k in kernels() if o.family == family]
    text = " ".join(source(o, k) for o, k in ours)
    planned: set[str] = set()
    for _, kernel in ours:
        planned |= kernel.condition.names.union(*(e.names for e in kernel.groups))
        planned |= set().union(*(e.names for e in kernel.fixed.values()))
        planned |= set().union(*(p.value.names for p in kernel.params.values()))
    fields = {name for _, kernel in ours for name in kernel.params}
    constants = {name for _, kernel in ours for name in kernel.fixed}
    unread = [n for n in fields if not reads(text, n) or not re.search(r"\bparams\.", text)]
    unread += [n for n in constants if not reads(text, n) and n not in planned]
    assert [] == sorted(unread)


@pytest.mark.parametrize(("operator", "kernel"), names_of(kernels()))
def test_every_bound_tensor_is_used(operator: Operator, kernel: Kernel) -> None:
    """A tensor that the shader does not name takes a binding for nothing: it belongs in unused."""
    bound = [a.name for a in operator.arguments if a.is_tensor] + [o.name for o in operator.outputs]
    text = source(operator, kernel)
    unbound = {*kernel.unused, *kernel.in_place}
    assert [] == [n for n in bound if n not in unbound and not reads(text, n)]


@pytest.mark.parametrize(("operator", "kernel"), names_of(kernels()))
def test_no_name_is_reserved_in_wgsl(operator: Operator, kernel: Kernel) -> None:
    """Bindings, fields and constants become WGSL names, so none may be a word of WGSL."""
    bound = [a.name for a in operator.arguments if a.is_tensor] + [o.name for o in operator.outputs]
    names = [*bound, *kernel.params, *kernel.fixed, *AUTOMATIC_PARAMS]
    bad = [n for n in names if n in RESERVED or n.startswith("__") or not n.isidentifier()]
    assert [] == bad
    assert len(names) == len(set(names)), "one name for two things"


@pytest.mark.parametrize("name", [name for name, _ in OPERATORS])
def test_axes_of_optional_tensors_are_read_by_no_expression(name: str) -> None:
    """An axis that only an optional tensor binds is unknown in calls without it."""
    operator = REGISTRY[name]
    certain: set[str] = set()
    possible: set[str] = set()
    for argument in operator.arguments:
        if argument.is_tensor:
            axes = {token.lstrip("*") for token in argument.type.axes.split()}
            (possible if argument.optional else certain).update(axes)
    expressions = [*operator.derived.values(), *(r.condition for r in operator.rules)]
    for kernel in operator.kernels:
        expressions.append(kernel.condition)
        if isinstance(kernel, Kernel):
            expressions += [*kernel.groups, *kernel.fixed.values()]
            expressions += [param.value for param in kernel.params.values()]
    read: set[str] = set().union(*(e.names for e in expressions)) if expressions else set()
    assert set() == (possible - certain) & read - set(operator.derived)


@pytest.mark.parametrize("name", [name for name, _ in OPERATORS])
def test_operator_is_documented(name: str) -> None:
    """The documentation of an operator is its reference's docstring, so it must have one."""
    assert len(REGISTRY[name].documentation.split()) > 1


def declared(declare: Any, **options: Any) -> Operator:
    """A one-argument operator with what the test adds."""

    def reference(x: Vector, size: int = 1) -> Any:
        raise NotImplementedError

    operator: Operator = declare(reference, out=options.pop("out", Vector), **options)
    return operator


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"derived": {"m": "k + 1"}}, "derived axis m: expression 'k \\+ 1' reads k"),
        ({"rules": [rule("k > 1", "too small")]}, "rule: expression 'k > 1' reads k"),
        ({"operations": "2 * k"}, "operations: expression '2 \\* k' reads k"),
        ({"kernels": [Kernel("a.wgsl", grid=("k",))]}, "a.wgsl, grid: expression 'k' reads k"),
        (
            {"kernels": [Kernel("a.wgsl", grid=("n",), params={"p": u32("k")})]},
            "a.wgsl, parameter p: expression 'k' reads k",
        ),
        (
            {"kernels": [Kernel("a.wgsl", grid=("n",), constants={"A": "B", "B": 1})]},
            "a.wgsl, constant A: expression 'B' reads B",
        ),
        (
            {"kernels": [Kernel("a.wgsl", grid=("n",), when="fast")]},
            "a.wgsl, when: expression 'fast' reads fast",
        ),
        ({"kernels": [Kernel("a.wgsl", grid=("n",), vectors={"y": 4})]}, "y is no tensor of it"),
        (
            {"kernels": [Kernel("a.wgsl", grid=("n",), unused=frozenset({"bias"}))]},
            "bias is no tensor of it",
        ),
        ({"kernels": [Alias("y")]}, "y is no tensor of it"),
        ({"kernels": [Alias("x", when="k == 1")]}, "alias, when: expression 'k == 1' reads k"),
        ({"derived": {"n": "1"}}, "n is declared twice"),
        ({"derived": {"size": "1"}}, "size is declared twice"),
        ({"out": {"x": Vector}}, "x is declared twice"),
        ({"name": "aten.relu.default"}, "operator aten.relu.default is declared twice"),
        ({"out_variants": ["aten.relu.out"]}, "operator aten.relu.out is declared twice"),
    ],
)
def test_mistake_in_a_declaration_is_raised_at_import(
    declare: Any, options: dict[str, Any], message: str
) -> None:
    """A name that is unknown, or means two things, fails where the operator is declared."""
    with pytest.raises(ValueError, match=message):
        declared(declare, **options)


def test_axis_called_like_an_argument_is_refused(declare: Any) -> None:
    """Axes and arguments share one scope."""

    def reference(x: Vector, n: int) -> Any:
        raise NotImplementedError

    with pytest.raises(ValueError, match="n is declared twice"):
        declare(reference, out=Vector)


def test_union_of_types_is_refused(declare: Any) -> None:
    """An attribute has one type, beside None."""

    def reference(x: Vector, size: int | str) -> Any:
        raise NotImplementedError

    with pytest.raises(ValueError, match="argument size: a union of several types"):
        declare(reference, out=Vector)


def test_declaring_gives_the_operator_and_registers_it() -> None:
    """The decorated reference is the operator, found under its name and its out-variants."""
    operator = REGISTRY["aten.relu.default"]
    assert operator is REGISTRY["aten.relu.out"]
    assert "elementwise" == operator.family
    assert callable(op)
