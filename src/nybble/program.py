"""What users hold: load a program, call it, verify it, profile it."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Literal, TypeAlias

import nybble.ops  # noqa: F401  (declares the operators)
from nybble import formats
from nybble.arguments import is_integer
from nybble.contract import Array
from nybble.devices import Device, Executable, States, open_device, second_choice
from nybble.errors import ContractError, DeviceError, NybbleError, UnsupportedProgramError
from nybble.graph import Graph, TensorSpec, format_graph
from nybble.graph.build import build_graph
from nybble.graph.symbols import Specialization
from nybble.interchange import from_caller, to_caller
from nybble.passes import run_passes
from nybble.plan import Plan, make_plan
from nybble.plan.choose import why_on_host
from nybble.profile import Profile, profile_method
from nybble.program_state import ProgramState
from nybble.source import Source, named, read_all, read_source
from nybble.verify import VerifyReport, verify_method
from nybble.words import counted

__all__ = ["Method", "Program", "load"]

OnUnsupported: TypeAlias = Literal["host", "error"]


def load(
    source: Source,
    *,
    device: str = "auto",
    on_unsupported: OnUnsupported = "host",
    external: Sequence[Source] = (),
) -> Program:
    """Load a ``.pte`` program and make it ready on a device.

    Args:
        source: path, bytes, or a binary file object.
        device: ``auto`` (the best GPU through Vulkan, else the best WebGPU adapter, else the
            host), ``vulkan``, ``vulkan:1``, ``webgpu``, ``webgpu:1``, ``dawn`` (where wgpudawn is
            installed), ``host``.
        on_unsupported: what to do with calls that the device cannot take: ``host`` runs their
            numpy reference and says so once in a warning, ``error`` refuses.
        external: ``.ptd`` files that hold constants of the program.

    Raises:
        ProgramFormatError: the bytes are no well-formed program.
        UnsupportedProgramError: something in the program cannot be run; ``calls`` lists all.
        DeviceError: there is no such device, or it refused.
        OSError: the file cannot be read.
    """
    if on_unsupported not in ("host", "error"):
        raise ContractError(
            f"on_unsupported: expected 'host' or 'error', received {on_unsupported!r}"
        )
    data, constants = read_source(source), read_all(external)
    with named(source):
        file = formats.read_program(data, constants)
        builders = [partial(build_graph, method) for method in file.methods]
        graphs = [build() for build in builders]
    for sentence in file.warnings:
        warnings.warn(sentence, stacklevel=2)
    opened = open_device(device)
    while True:
        states, methods = opened.new_states(), list[Method]()
        try:
            for build, graph in zip(builders, graphs, strict=True):
                methods.append(Method(opened, graph, on_unsupported, states, build))
            return Program(opened, methods, states, data)
        except DeviceError as error:
            other = second_choice(device, opened, error)
            if other is None:
                raise
            warnings.warn(f"{error}. Running on {other.info.name} instead", stacklevel=2)
            Program(opened, methods, states).close()
            opened = other


class Program(Mapping[str, "Method"]):
    """A loaded program: methods by name. Calling it calls ``forward``, or its only method."""

    def __init__(
        self,
        device: Device,
        methods: Sequence[Method],
        states: States,
        data: bytes | bytearray | memoryview = b"",
    ) -> None:
        self.device = device.info
        self.data = data
        self.state = ProgramState(states)
        self._methods = {method.name: method for method in methods}

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods, in the file's order."""
        return tuple(self._methods)

    def method(self, name: str | None = None) -> Method:
        """The method called ``name``; None for ``forward``, or the program's only one."""
        if name is None and len(self._methods) == 1:
            return next(iter(self._methods.values()))
        return self["forward" if name is None else name]

    def __getitem__(self, name: str) -> Method:
        if name not in self:
            raise ContractError(
                f"the program has no method {name!r}; it has {', '.join(self._methods)}"
            )
        return self._methods[name]

    def __contains__(self, name: object) -> bool:
        return name in self.methods

    def get(self, name: str, default: Any = None) -> Any:
        """The method called ``name``, ``default`` where there is none."""
        return self._methods.get(name, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._methods)

    def __len__(self) -> int:
        return len(self._methods)

    def __call__(self, *inputs: Any) -> Any:
        """Run the default method; see :meth:`Method.__call__`."""
        return self.method()(*inputs)

    def verify(self, *inputs: Any) -> VerifyReport:
        """Verify the default method; see :meth:`Method.verify`."""
        return self.method().verify(*inputs)

    def profile(self, *inputs: Any, repeats: int = 5) -> Profile:
        """Profile the default method; see :meth:`Method.profile`."""
        return self.method().profile(*inputs, repeats=repeats)

    def __str__(self) -> str:
        return "\n\n".join(str(method) for method in self._methods.values())

    def __repr__(self) -> str:
        return f"<Program {', '.join(self._methods)} on {self.device}>"

    def close(self) -> None:
        """Free what the device holds; the program cannot be called again."""
        for method in self._methods.values():
            method.close()
        self.state.close()

    def __enter__(self) -> Program:  # noqa: PYI034 (Self needs Python 3.11)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Method:
    """One entry point of a program, planned for its device."""

    def __init__(
        self,
        device: Device,
        graph: Graph,
        on_unsupported: OnUnsupported,
        states: States,
        build: Callable[[Specialization], Graph] | None = None,
    ) -> None:
        self.device = device
        self.inputs: tuple[TensorSpec, ...] = graph.input_specs
        """Name, element type and shape of each input."""
        self._states = states
        self._build = build
        # Inputs and intermediate values lie in buffers that every call of the method uses.
        self._lock = threading.RLock()
        self.source = graph
        self.graph, self.plan = self._planned(graph)
        self._tell_host_calls(on_unsupported)
        self._closed = False
        # None where a plan for other inputs could not be prepared; the next call plans again.
        self._executable: Executable | None = device.prepare(self.plan, states)
        self._key: Any = None

    def _planned(self, source: Graph) -> tuple[Graph, Plan]:
        graph = run_passes(source)
        layouts = self._states.layouts()
        return graph, make_plan(graph, self.device.capabilities, state_layouts=layouts)

    def _specialize(self, arrays: Sequence[Array]) -> None:
        """Plan for what the inputs say, if the method depends on it and they say something new."""
        if self._build is None or not self.source.is_dynamic:
            return
        specialization = Specialization.of(arrays, self.source.symbols)
        if specialization.key == self._key:
            return
        self._check_open()
        try:
            source = self._build(specialization)
        except UnsupportedProgramError as error:
            # Built before for other inputs: it is these that do not fit.
            raise ContractError(
                f"{self.name}: these inputs do not fit: {'; '.join(error.calls)}"
            ) from error
        graph, plan = self._planned(source)
        # Whatever fails from here on, the next call plans again.
        self._key = None
        if self._executable is None or not self._executable.adopt(plan):
            self._drop_executable()
            self._executable = self.device.prepare(plan, self._states)
        self.source, self.graph, self.plan = source, graph, plan
        self._key = specialization.key

    @property
    def name(self) -> str:
        """The method's name in the file."""
        return self.graph.name

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Name, element type and shape of each output."""
        return self.graph.output_specs

    def __call__(self, *inputs: Any) -> Any:
        """Run the method. Calls from several threads wait for each other.

        Args:
            inputs: numpy arrays, torch tensors or anything with DLPack, as :attr:`inputs` says.

        Returns:
            One output as itself, several as a tuple, of the same kind as the inputs.

        Raises:
            ContractError: wrong count, type or shape of the inputs.
            DeviceError: the device failed; :class:`DeviceLostError` when it went away.
        """
        with self._lock:
            arrays = self.arrays(inputs)
            results = self.executable.run(arrays)
            return to_caller(results, self.outputs, inputs)

    def arrays(self, inputs: Sequence[Any]) -> list[Array]:
        """Inputs checked and converted to the graph's types; the method is planned for them."""
        arrays = self.converted(inputs)
        self._specialize(arrays)
        return arrays

    def converted(self, inputs: Sequence[Any]) -> list[Array]:
        """Inputs checked and converted to the graph's types."""
        if len(inputs) != len(self.inputs):
            listed = "; ".join(map(str, self.inputs)) or "none"
            raise ContractError(
                f"{self.name}: received {counted(len(inputs), 'input')}, "
                f"expected {len(self.inputs)} ({listed})"
            )
        return [
            from_caller(value, spec, target.dtype)
            for value, spec, target in zip(inputs, self.inputs, self.graph.inputs, strict=True)
        ]

    @property
    def executable(self) -> Executable:
        """The plan on the device."""
        self._check_open()
        if self._executable is None:
            raise NybbleError(
                f"method '{self.name}' has no plan that fits the device; call it anew"
            )
        return self._executable

    def verify(self, *inputs: Any) -> VerifyReport:
        """Run every call on the device and on the host reference, and compare.

        Integer results must be equal; float results within the element type's tolerance.
        """
        with self._lock:
            arrays = self.arrays(inputs)
            return verify_method(self.device, self.source, self.graph, arrays)

    def profile(self, *inputs: Any, repeats: int = 5) -> Profile:
        """Time of each dispatch beside the bytes and operations it had to move.

        The method runs many times; the program's state is put back afterwards.

        Raises:
            ContractError: wrong inputs, or fewer than one of ``repeats``.
        """
        if not is_integer(repeats, least=1):
            raise ContractError(f"repeats: expected at least 1 run, received {repeats!r}")
        with self._lock:
            arrays = self.arrays(inputs)
            before = {name: self._states.read(name) for name in self._states.names()}
            try:
                return profile_method(self.device, self.executable, arrays, repeats)
            finally:
                for name, content in before.items():
                    self._states.write(name, content)

    def __str__(self) -> str:
        return format_graph(self.graph)

    def __repr__(self) -> str:
        given, made = (", ".join(map(str, specs)) for specs in (self.inputs, self.outputs))
        return f"<Method {self.name}({given}) -> {made} on {self.device.info.name}>"

    def close(self) -> None:
        """Free what the device holds for this method."""
        with self._lock:
            self._closed, self._key = True, None
            self._drop_executable()

    def _check_open(self) -> None:
        if self._closed:
            raise NybbleError(f"method '{self.name}' is closed; load the program again")

    def _drop_executable(self) -> None:
        if self._executable is not None:
            self._executable.close()
            self._executable = None

    def _tell_host_calls(self, on_unsupported: OnUnsupported) -> None:
        if not self.device.capabilities.kernels or not self.plan.host_calls:
            return
        reasons = []
        moved = 0
        for step in self.plan.host_calls:
            call = self.plan.calls[step.call]
            reasons.append(
                f"{call.operator.name} ({call.origin}): "
                f"{why_on_host(call, self.device.capabilities)}"
            )
            moved += sum(p.nbytes for p in (*step.reads.values(), *step.writes))
        listed = "\n".join(f"  - {reason}" for reason in reasons)
        if on_unsupported == "error":
            raise UnsupportedProgramError(
                f"method '{self.name}': {self.device.info.name} cannot take {len(reasons)} of "
                f"{counted(len(self.plan.calls), 'call')}:\n{listed}\n"
                "Load with on_unsupported='host' to run those on the host",
                reasons,
            )
        total = counted(len(self.plan.calls), "call")
        warnings.warn(
            f"method '{self.name}': {len(reasons)} of {total} "
            f"{'runs' if len(reasons) == 1 else 'run'} on the host, which copies {moved:,} bytes "
            f"a run between it and {self.device.info.name}:\n{listed}",
            stacklevel=4,
        )
