"""The classifier's loss: cross entropy with ignored labels, numerically stable."""

from typing import Any

import numpy as np

from nybble.contract import Array, Emit, Float32, Int32, Kernel, expansion, f32, op, rule, u32

__all__ = ["cross_entropy", "fused_ce", "valid_weight"]


@op(
    "nybble.valid_weight.default",
    out=Float32[Array, ""],
    kernels=[
        Kernel(
            "valid_weight.wgsl",
            grid=("1",),
            params={"rows": u32("numel(shape)")},
            constants={"THREADS": 256},
        )
    ],
    operations="numel(shape)",
)
def valid_weight(labels: Int32[Array, "*shape"]) -> Array:
    """One over the number of labels that are not negative; 0 where all are."""
    valid = int((labels >= 0).sum())
    return np.asarray(1 / valid if valid else 0, np.float32)


def _rows(logits: Array, labels: Array) -> tuple[Array, Array, Array]:
    """Each row's loss and gradient before any weight, in double, and whether the row counts."""
    with np.errstate(all="ignore"):
        shifted = logits.astype(np.float64)
        shifted -= shifted.max(axis=1, keepdims=True)
        exponentials = np.exp(shifted)
        sums = exponentials.sum(axis=1)
        counted = (labels >= 0) & (labels < logits.shape[1])
        at = np.where(counted, labels, 0)
        rows = np.arange(len(labels))
        losses = np.log(sums) - shifted[rows, at]
        slopes = exponentials / sums[:, None]
        slopes[rows, at] -= 1
    return losses, slopes, counted


@op(
    "nybble.cross_entropy.default",
    out={"losses": Float32[Array, "rows"], "dlogits": Float32[Array, "rows classes"]},
    rules=[rule("classes >= 1", "there must be at least one class")],
    kernels=[
        Kernel(
            "cross_entropy.wgsl",
            grid=("rows",),
            params={"rows": u32("rows"), "classes": u32("classes"), "share": f32("share")},
            constants={"THREADS": "256 if classes > 1024 else 64"},
        )
    ],
    operations="30 * rows * classes",
)
def cross_entropy(
    logits: Float32[Array, "rows classes"],
    labels: Int32[Array, "rows"],
    weight: Float32[Array, ""] | None = None,
    share: float = 1.0,
) -> tuple[Array, Array]:
    """Each row's cross entropy times ``weight`` and ``share``, and the gradient of their sum.

    Rows whose label is negative, or no class, have loss and gradient 0. With
    ``nybble.valid_weight`` as weight the losses sum to their mean over the rows that count.
    """
    losses, slopes, counted = _rows(logits, labels)
    with np.errstate(all="ignore"):
        factor = np.float32(share) if weight is None else np.float32(share) * weight
        # Last, so that no weight, be it NaN, is seen in rows that do not count.
        return (
            np.where(counted, losses * factor, 0).astype(np.float32),
            np.where(counted[:, None], slopes * factor, 0).astype(np.float32),
        )


@expansion("et_vk.fused_ce.default", out_variants=["fused_ce.default"])
def fused_ce(emit: Emit, logits: Any, labels: Any, n_valid: float) -> tuple[Any, Any]:
    """Cross entropy summed over rows and divided by ``n_valid``, and its gradient."""
    losses, slopes = emit(
        "nybble.cross_entropy.default", logits=logits, labels=labels, share=1 / n_valid
    )
    return emit("aten.sum.dim_IntList", x=losses), slopes
