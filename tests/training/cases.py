"""One call for every row of the table of gradients: arrays are differentiated unless named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nybble.contract import Array

__all__ = ["CASES", "GradientCase"]

RNG = np.random.default_rng(20)


@dataclass(frozen=True, eq=False)
class GradientCase:
    """A call; ``fixed`` names arrays that are not differentiated, ``results`` what counts."""

    operator: str
    arguments: Mapping[str, Any] = field(repr=False)
    fixed: tuple[str, ...] = ()
    results: tuple[int, ...] = (0,)

    @property
    def name(self) -> str:
        """The printed name."""
        shapes = [
            "x".join(map(str, a.shape)) or "scalar"
            for a in self.arguments.values()
            if isinstance(a, np.ndarray)
        ]
        return "-".join((self.operator, *shapes))


def normal(*shape: int) -> Array:
    """Draws from the normal distribution."""
    return np.asarray(RNG.standard_normal(shape), np.float32)


def positive(*shape: int) -> Array:
    """Draws between 0.5 and 2."""
    return np.asarray(RNG.uniform(0.5, 2, shape), np.float32)


def apart(*shape: int) -> Array:
    """Draws that keep away from 0 and from 1 and -1, where some functions have corners."""
    return np.asarray(
        RNG.choice([-1, 1], shape) * RNG.choice([0.5, 1.5], shape) + RNG.uniform(-0.3, 0.3, shape),
        np.float32,
    )


def _binary(name: str, draw: Any = normal, **attributes: Any) -> list[GradientCase]:
    shapes = [((3, 5), (3, 5)), ((3, 5), (5,)), ((3, 1), (2, 1, 5)), ((), (7,))]
    return [
        GradientCase(name, {"x": draw(*one), "other": draw(*two), **attributes})
        for one, two in shapes
    ]


def _unary(name: str, draw: Any = normal, **attributes: Any) -> GradientCase:
    return GradientCase(name, {"x": draw(3, 7), **attributes})


CASES = [
    *_binary("aten.add.Tensor", alpha=1.5),
    *_binary("aten.sub.Tensor", alpha=1.0),
    *_binary("aten.mul.Tensor"),
    *_binary("aten.div.Tensor", positive),
    *_binary("aten.minimum.default"),
    *_binary("aten.maximum.default"),
    *(_unary(f"aten.{n}.default") for n in ("exp", "neg", "sin", "cos", "tanh", "sigmoid")),
    *(
        _unary(f"aten.{n}.default", positive)
        for n in ("log", "log10", "sqrt", "rsqrt", "reciprocal")
    ),
    *(_unary(f"aten.{n}.default", apart) for n in ("relu", "abs", "hardswish", "leaky_relu")),
    _unary("aten.gelu.default"),
    _unary("aten.gelu.default", approximate="tanh"),
    _unary("aten.pow.Tensor_Scalar", exponent=2.0),
    _unary("aten.pow.Tensor_Scalar", positive, exponent=-1.5),
    _unary("aten.clamp.default", apart, low=-1.0, high=None),
    _unary("aten.clamp.default", apart, low=-1.0, high=1.0),
    _unary("aten.hardtanh.default", apart),
    *(
        GradientCase(f"aten.{name}", {"x": normal(3, 4, 5), "dim": dim, "keepdim": keep})
        for name in ("sum.dim_IntList", "mean.dim")
        for dim, keep in ((None, False), ((1,), False), ((-1, 0), True))
    ),
    GradientCase("aten.view_copy.default", {"x": normal(3, 4), "size": (2, -1)}),
    GradientCase("aten.squeeze_copy.dims", {"x": normal(3, 1, 4), "dim": (1,)}),
    GradientCase("aten.unsqueeze_copy.default", {"x": normal(3, 4), "dim": -1}),
    GradientCase("aten.clone.default", {"x": normal(3)}),
    GradientCase("dim_order_ops._clone_dim_order.default", {"x": normal(3)}),
    GradientCase("et_vk.prepack.default", {"x": normal(3)}),
    *(
        GradientCase(name, {"x": normal(3), "out_dtype": "float32"})
        for name in (
            "dim_order_ops._to_dim_order_copy.default", "dim_order_ops._to_dim_order_copy.out",
            "aten._to_copy.default", "aten._to_copy.out",
        )
    ),
    GradientCase("aten.permute_copy.default", {"x": normal(2, 3, 4), "dims": (2, 0, -2)}),
    GradientCase("aten.permute.default", {"x": normal(2, 3), "dims": (1, 0)}),
    GradientCase("aten.expand_copy.default", {"x": normal(3, 1), "size": (2, -1, 5)}),
    GradientCase("aten.select_copy.int", {"x": normal(3, 4, 5), "dim": 1, "index": -2}),
    GradientCase("aten.slice_copy.Tensor", {"x": normal(3, 11), "dim": -1, "start": 1, "end": 9,
                                            "step": 3}),
    GradientCase("aten.slice_copy.Tensor", {"x": normal(5, 3), "dim": 0, "start": -3, "end": None,
                                            "step": 1}),
    GradientCase("aten.linear.default", {"x": normal(2, 3, 5), "weight": normal(7, 5),
                                         "bias": normal(7)}),
    GradientCase("aten.linear.default", {"x": normal(5), "weight": normal(7, 5)}),
    GradientCase("aten.mm.default", {"x": normal(3, 5), "weight": normal(5, 4)}),
    GradientCase("aten.bmm.default", {"x": normal(2, 3, 5), "weight": normal(2, 5, 4)}),
    GradientCase("aten.addmm.default", {"addend": normal(4), "x": normal(3, 5),
                                        "weight": normal(5, 4), "beta": 0.5, "alpha": 2.0}),
    GradientCase(
        "nybble.cross_entropy.default",
        {"logits": normal(4, 5), "labels": np.array([0, 4, -1, 2], np.int32),
         "weight": np.asarray(0.25, np.float32)},
        fixed=("labels", "weight"),
    ),
]  # fmt: skip

CASES += [
    *(
        GradientCase(f"aten.{name}.default", {"x": normal(3, 4, 5), "dim": dim})
        for name in ("_softmax", "_log_softmax")
        for dim in (-1, 1)
    ),
    GradientCase("aten.native_layer_norm.default",
                 {"x": normal(2, 3, 4), "normalized_shape": (3, 4), "weight": normal(3, 4),
                  "bias": normal(3, 4), "eps": 1e-5}),
    GradientCase("aten.native_layer_norm.default",
                 {"x": normal(3, 7), "normalized_shape": (7,), "weight": None, "bias": None,
                  "eps": 1e-3}),
    GradientCase("et_vk.rms_norm.default", {"x": normal(2, 3, 5), "weight": normal(5),
                                            "eps": 1e-6}),
    GradientCase("aten._native_batch_norm_legit_no_training.default",
                 {"x": normal(2, 3, 4, 2), "weight": normal(3), "bias": normal(3),
                  "mean": normal(3), "variance": positive(3), "momentum": 0.1, "eps": 1e-5},
                 fixed=("weight", "bias", "mean", "variance")),
]  # fmt: skip

ANGLES = RNG.uniform(0, 6, (4, 3))
TABLE = RNG.uniform(0, 6, (9, 4))
CASES += [
    GradientCase("et_vk.sdpa.default", {"q": normal(1, 2, 3, 4), "k": normal(1, 2, 5, 4),
                                        "v": normal(1, 2, 5, 6), "mask": normal(3, 5),
                                        "scale": None}),
    GradientCase("et_vk.sdpa.default", {"q": normal(2, 1, 3, 4), "k": normal(2, 1, 3, 4),
                                        "v": normal(2, 1, 3, 4), "mask": None, "scale": 0.7}),
    GradientCase("et_vk.apply_rotary_emb.default",
                 {"xq": normal(1, 4, 2, 6), "xk": normal(1, 4, 1, 6),
                  "cos": np.cos(ANGLES).astype(np.float32),
                  "sin": np.sin(ANGLES).astype(np.float32)},
                 fixed=("cos", "sin"), results=(0, 1)),
    GradientCase("et_vk.apply_rotary_emb_hf.default",
                 {"xq": normal(1, 3, 2, 6), "xk": normal(1, 3, 1, 6),
                  "cos": np.cos(TABLE).astype(np.float32),
                  "sin": np.sin(TABLE).astype(np.float32), "start_pos": 2},
                 fixed=("cos", "sin"), results=(0, 1)),
    GradientCase("et_vk.apply_rotary_emb_interleaved.default",
                 {"x": normal(2, 3, 4), "freqs": normal(3, 4)}, fixed=("freqs",)),
    GradientCase("aten.embedding.default",
                 {"weight": normal(5, 3), "index": np.array([[1, 4], [1, 0]], np.int32)},
                 fixed=("index",)),
    GradientCase("aten.index_select.default",
                 {"x": normal(3, 5, 2), "dim": 1, "index": np.array([4, 0, 4], np.int32)},
                 fixed=("index",)),
    GradientCase("aten.index_select.default",
                 {"x": normal(5, 2), "dim": 0, "index": np.array([-1, 7, -9, 4], np.int32)},
                 fixed=("index",)),
    *(
        _unary(f"aten.{name}.Scalar", other=1.5) for name in ("add", "sub", "mul", "div")
    ),
    GradientCase("aten.where.self",
                 {"condition": RNG.random((3, 4)) < 0.5, "x": normal(4), "other": normal(3, 1)},
                 fixed=("condition",)),
    GradientCase("aten.flip.default", {"x": normal(3, 4), "dims": (1,)}),
    GradientCase("aten.repeat.default", {"x": normal(3, 2), "repeats": (2, 1, 3)}),
    GradientCase("nybble.concat.default",
                 {"x_0": normal(2, 3), "x_1": normal(2, 1), "x_2": normal(2, 2), "dim": -1}),
    GradientCase("aten.constant_pad_nd.default",
                 {"x": normal(3, 4), "pad": (1, -2, 0, 2), "value": 0.5}),
]  # fmt: skip


def _four_bit(rows: tuple[int, ...], n: int, k: int, group: int, *, bias: bool) -> GradientCase:
    parts = -(-k // group)
    return GradientCase(
        "et_vk.linear_q4gsw.default",
        {
            "x": normal(*rows, k),
            "weight": RNG.integers(0, 256, (n, -(-k // 2))).astype(np.uint8),
            "scales": positive(parts, n),
            "group_size": group,
            "bias": normal(n) if bias else None,
        },
        fixed=("weight", "scales"),
    )


CASES += [
    _four_bit((3,), 8, 16, 4, bias=True),
    _four_bit((2, 3), 5, 7, 3, bias=False),
    _four_bit((1,), 3, 33, 32, bias=True),
]
