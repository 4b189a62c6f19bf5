"""Float networks through the stock exporter, on the host, against the eager module."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nybble
from nybble.testing import compare

torch = pytest.importorskip("torch")
pytest.importorskip("executorch.backends.vulkan.partitioner.vulkan_partitioner")
pytest.importorskip("executorch.extension.llm.custom_ops.custom_ops")

pytestmark = [pytest.mark.export]
functional = torch.nn.functional


class _Network(torch.nn.Module):  # type: ignore[misc,name-defined]
    """Some layers and a function of them and of the inputs."""

    def __init__(self, function: Callable[..., Any], **layers: Any) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleDict(layers)
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(self.layers, *inputs)


def _norms(layers: Any, x: Any) -> Any:
    y = layers["batch"](x)
    y = layers["group"](y)
    y = layers["layer"](y)
    y = layers["rms"](y)
    return functional.softmax(y, 1), functional.log_softmax(y, -1)


def _moves(layers: Any, x: Any, places: Any) -> Any:
    a, b, c = torch.split(x, [1, 2, 1], 1)
    joined = torch.cat([c, a, b, a * 2, c, b, a, c, b], 1)
    stacked = torch.stack([torch.flip(joined, [1, 2]), joined.repeat(1, 1, 1)], 1)
    padded = functional.pad(stacked, (1, 2, 0, 1), value=1.5)
    words = layers["words"](places)
    picked = x[:, :, places[0]]
    return padded, words, picked, torch.gather(x[0], 1, places), torch.chunk(x, 2, -1)[1]


def _logic(_: Any, x: Any, y: Any) -> Any:
    near = (x < y) & ~(x == y) | (x >= 0.5)
    far = torch.logical_and(near, torch.logical_not(x.ne(0.25)))
    chosen = torch.where(near, x, y[0]).masked_fill(far, -1.0)
    filled = chosen + torch.full((3, 5), 2.5) + torch.arange(5, dtype=torch.float32)
    rounded = torch.div(x, y, rounding_mode="floor")
    return filled, rounded, torch.argmax(x, -1), torch.argmin(x, 0, keepdim=True)


def _image(_: Any, x: Any, grid: Any) -> Any:
    y = functional.pixel_shuffle(x, 2)
    nearest = functional.interpolate(y, scale_factor=2)
    linear = functional.interpolate(y, size=(7, 9), mode="bilinear")
    sampled = functional.grid_sample(y, grid, padding_mode="border", align_corners=True)
    return functional.max_pool2d(nearest, 2), linear, sampled


def _attention(layers: Any, x: Any, mask: Any) -> Any:
    q, k, v = (layers[n](x).unflatten(-1, (2, 8)).transpose(1, 2) for n in "qkv")
    masked = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return functional.scaled_dot_product_attention(masked, k, v).transpose(1, 2).flatten(2)


def _trained_batch_norm() -> Any:
    layer = torch.nn.BatchNorm2d(4)
    torch.nn.init.normal_(layer.running_mean)
    torch.nn.init.uniform_(layer.running_var, 0.5, 2)
    return layer


def _networks() -> dict[str, tuple[Any, tuple[Any, ...]]]:
    torch.manual_seed(0)
    normal, nn = torch.randn, torch.nn
    norms = {
        "batch": _trained_batch_norm(), "group": nn.GroupNorm(2, 4), "layer": nn.LayerNorm(5),
        "rms": nn.RMSNorm(5),
    }  # fmt: skip
    linears = {name: nn.Linear(16, 16) for name in "qkv"}
    places = torch.randint(0, 5, (2, 3))
    return {
        "norms": (_Network(_norms, **norms), (normal(2, 4, 3, 5),)),
        "moves": (_Network(_moves, words=nn.Embedding(7, 3)), (normal(2, 4, 6), places)),
        "logic": (_Network(_logic), (normal(3, 5), normal(3, 5))),
        "image": (_Network(_image), (normal(1, 8, 3, 5), normal(1, 4, 6, 2))),
        "attention": (_Network(_attention, **linears), (normal(1, 5, 16), normal(1, 2, 5, 5))),
    }


@pytest.mark.parametrize("name", ["norms", "moves", "logic", "image", "attention"])
def test_exported_network_gives_the_eager_results(name: str, tmp_path: Path) -> None:
    """Operators bind as the exporter writes them, delegated or beside the delegates."""
    from nybble.export.lower import PARTITIONERS, lower

    network, inputs = _networks()[name]
    network.eval()
    expected = network(*inputs)
    lowered = lower(network, inputs, [PARTITIONERS["vulkan"]()])
    path = tmp_path / f"{name}.pte"
    path.write_bytes(lowered.program)
    with nybble.load(path, device="host") as program:
        got = program(*(i.numpy() for i in inputs))
    results = got if isinstance(got, tuple) else (got,)
    wanted = expected if isinstance(expected, tuple) else (expected,)
    problems = [
        compare(one.detach().numpy(), np.asarray(other), exact=False)
        for one, other in zip(wanted, results, strict=True)
    ]
    assert [None] * len(problems) == problems
