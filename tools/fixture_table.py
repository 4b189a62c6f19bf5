"""List what each fixture contains, read by executorch's own deserializers, as a Markdown table."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from executorch.backends.vulkan.serialization.vulkan_graph_serialize import (
    extract_vk_flatbuffer,
    flatbuffer_to_vk_graph,
)
from executorch.exir._serialize._program import deserialize_pte_binary

__all__ = ["describe_program", "write_table"]

HEADING = """# Fixtures

Programs exported by the stock `executorch` 1.5.1 wheel, written by `tools/make_fixtures.py`.
`NAME.npz` holds `input_0..` and `output_0..`, the answers of the (quantized) eager model on the
CPU. The eager model convolves in float32, so its codes may differ by one where the exact sum lies
beside a rounding tie. In `*_refused` the exporter folds the activations' quantization away, and the
answers are those of the model without it. `two_methods` has `embed_input_0` and `embed_output_0`
too; `NAME.KEY.ptd` holds constants kept outside the program. In `dq8ca_*` the eager model quantizes
its inputs as torchao does, with float32 scales. `q4_cached_attention` keeps its rows from call to
call: `next_input_0`, `next_input_1` and `next_output_0` are a second call after the first.
*Contents* lists the instructions of each method: a delegate with its operators in braces
(prepacking left out), or a kernel call.

| program | bytes | contents |
|---|---|---|
"""


def _delegate_text(program: Any, delegate: Any) -> str:
    if delegate.id != "VulkanBackend":
        return f"{delegate.id} delegate"
    blob = bytes(program.backend_delegate_data[delegate.processed.index].data)
    graph = flatbuffer_to_vk_graph(extract_vk_flatbuffer(blob))
    counts = Counter(call.name for call in graph.chain if call.name != "et_vk.prepack.default")
    listed = (f"{name} x{n}" if n > 1 else name for name, n in counts.items())
    return "{" + ", ".join(f"`{item}`" for item in listed) + "}"


def _instruction_text(program: Any, plan: Any, instruction: Any) -> str:
    arguments = instruction.instr_args
    if hasattr(arguments, "delegate_index"):
        return _delegate_text(program, plan.delegates[arguments.delegate_index])
    if hasattr(arguments, "op_index"):
        operator = plan.operators[arguments.op_index]
        return f"kernel `{operator.name}.{operator.overload}`"
    return type(arguments).__name__


def describe_program(data: bytes) -> str:
    """One line of Markdown: every method, its delegates and the kernel calls between them."""
    program = deserialize_pte_binary(data).program
    methods = []
    for plan in program.execution_plan:
        steps = [_instruction_text(program, plan, step) for step in plan.chains[0].instructions]
        methods.append(f"{plan.name}: " + "; ".join(steps))
    return "<br>".join(methods)


def write_table(directory: Path) -> None:
    """Write ``README.md`` beside the fixtures of ``directory``."""
    rows = []
    for path in sorted(directory.glob("*.pte")):
        text = describe_program(path.read_bytes())
        rows.append(f"| {path.stem} | {path.stat().st_size} | {text} |")
        print(f"{path.stem}: {text}")
    (directory / "README.md").write_text(HEADING + "\n".join(rows) + "\n")
