"""One step of AdamW, and what lets a device decide by itself whether to take it.

A step whose loss or gradients hold a NaN or an infinity must not be applied, and the host does
not wait for the device to find out. So the device counts the steps that it applied, and picks
their learning rate and bias corrections from a table of the next few steps.
"""

import numpy as np

from nybble.contract import Array, Float32, Int32, Kernel, f32, i32, op, rule, u32

__all__ = ["adamw", "adamw_step", "advance", "count_nonfinite", "note_fault", "step_values"]

_IN_PLACE = {"new_param": "param", "new_m": "m", "new_v": "v"}
_OUT = dict.fromkeys(_IN_PLACE, Float32[Array, "*shape"])
_QUADS = {"param": 4, "m": 4, "v": 4, "grad": 4}
_ADAMW = {
    "grid": ("cdiv(words, THREADS)",),
    "constants": {"THREADS": 256},
    "vectors": _QUADS,
    "in_place": _IN_PLACE,
}
_WORDS = {"words": u32("cdiv(count, 4)")}
HYPER = ("lr", "beta1", "beta2", "rest1", "rest2", "eps", "weight_decay", "bc1", "bc2")


def _updated(param: Array, m: Array, v: Array, grad: Array, hyper: Array) -> tuple[Array, ...]:
    lr, beta1, beta2, rest1, rest2, eps, decay, correction1, correction2 = hyper
    with np.errstate(all="ignore"):
        first = beta1 * m + rest1 * grad
        second = beta2 * v + rest2 * (grad * grad)
        decayed = param - lr * decay * param
        divisor = np.sqrt(second) / np.sqrt(correction2) + eps
        return decayed - lr / correction1 * (first / divisor), first, second


@op(
    "nybble.adamw.default",
    out=_OUT,
    kernels=[Kernel("adamw.wgsl", params=_WORDS, **_ADAMW)],  # type: ignore[arg-type]
    operations="16 * count",
)
def adamw(
    param: Float32[Array, "*shape"],
    m: Float32[Array, "*shape"],
    v: Float32[Array, "*shape"],
    grad: Float32[Array, "*shape"],
    hyper: Float32[Array, "9"],
    fault: Int32[Array, "2"],
) -> tuple[Array, Array, Array]:
    """One step of AdamW (Loshchilov and Hutter), as ``torch.optim.AdamW`` takes it.

    ``hyper`` holds lr, beta1, beta2, 1 - beta1, 1 - beta2, eps, weight decay, and the bias
    corrections 1 - beta1^t and 1 - beta2^t. Nothing changes where ``fault[0]`` is not negative.
    """
    if fault[0] >= 0:
        return param.copy(), m.copy(), v.copy()
    new = _updated(param, m, v, grad, hyper)
    return new[0], new[1], new[2]


@op(
    "et_vk.adamw_step.default",
    out=_OUT,
    out_variants=["adamw_step.default"],
    rules=[
        rule("bias_correction1 != 0 and bias_correction2 != 0", "bias corrections must not be 0")
    ],
    kernels=[
        Kernel(
            "adamw.wgsl",
            params={
                **_WORDS,
                "lr": f32("lr"),
                "beta1": f32("beta1"),
                "beta2": f32("beta2"),
                "eps": f32("eps"),
                "weight_decay": f32("weight_decay"),
                "correction1": f32("bias_correction1"),
                "correction2": f32("bias_correction2"),
            },
            **_ADAMW,  # type: ignore[arg-type]
        )
    ],
    operations="16 * count",
)
def adamw_step(
    param: Float32[Array, "*shape"],
    m: Float32[Array, "*shape"],
    v: Float32[Array, "*shape"],
    grad: Float32[Array, "*shape"],
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    bias_correction1: float,
    bias_correction2: float,
) -> tuple[Array, Array, Array]:
    """One step of AdamW with its scalars fixed in the program; 1 - beta is taken in float32."""
    one = np.float32(1)
    rest = (one - np.float32(beta1), one - np.float32(beta2))
    scalars = (lr, beta1, beta2, *rest, eps, weight_decay, bias_correction1, bias_correction2)
    new = _updated(param, m, v, grad, np.array(scalars, np.float32))
    return new[0], new[1], new[2]


@op(
    "nybble.count_nonfinite.default",
    out=Int32[Array, "parts"],
    derived={"parts": "max(1, min(512, cdiv(numel(shape), 4096)))"},
    kernels=[
        Kernel(
            "count_nonfinite.wgsl",
            grid=("parts", "1"),
            params={"words": u32("cdiv(numel(shape), 4)"), "elements": u32("numel(shape)")},
            constants={"THREADS": 256, "PARTS": "parts"},
            vectors={"x": 4},
        )
    ],
    operations="numel(shape)",
    exact=True,
)
def count_nonfinite(x: Float32[Array, "*shape"]) -> Array:
    """How many elements are NaN or infinite, in as many parts as are counted at once.

    Part p counts the chunks of 1024 elements p, p + parts, p + 2 parts and so on.
    """
    parts = max(1, min(512, -(-x.size // 4096)))
    chunks = np.zeros(-(-x.size // (1024 * parts)) * parts * 1024, bool)
    chunks[: x.size] = ~np.isfinite(x.reshape(-1))
    return chunks.reshape(-1, parts, 1024).sum((0, 2), dtype=np.int32)


@op(
    "nybble.note_fault.default",
    out={"new_fault": Int32[Array, "2"]},
    kernels=[
        Kernel(
            "note_fault.wgsl",
            grid=("1",),
            params={"parts": u32("parts"), "slot": i32("slot")},
            constants={"THREADS": 256},
            in_place={"new_fault": "fault"},
        )
    ],
    operations="parts",
    exact=True,
)
def note_fault(fault: Int32[Array, "2"], counts: Int32[Array, "parts"], slot: int) -> Array:
    """(slot, count) where ``counts`` has any and no earlier fault was noted; else unchanged.

    ``fault[0]`` is -1 while all is well.
    """
    count = int(counts.sum())
    if count > 0 and fault[0] < 0:
        return np.array([slot, count], np.int32)
    return fault.copy()


@op(
    "nybble.step_values.default",
    out=Float32[Array, "columns"],
    rules=[rule("rows >= 1 and columns <= 64", "the table holds rows of up to 64 values")],
    kernels=[
        Kernel(
            "step_values.wgsl",
            grid=("1",),
            params={"rows": u32("rows"), "columns": u32("columns")},
            constants={"THREADS": 64},
        )
    ],
    operations="0",
    exact=True,
)
def step_values(
    table: Float32[Array, "rows columns"], applied: Int32[Array, "1"], base: Int32[Array, "1"]
) -> Array:
    """The row of ``table`` for the step after ``applied`` ones; its first row is for ``base``."""
    row = min(max(int(applied[0]) - int(base[0]), 0), table.shape[0] - 1)
    return table[row].copy()


@op(
    "nybble.advance.default",
    out={"new_applied": Int32[Array, "1"]},
    kernels=[Kernel("advance.wgsl", grid=("1",), in_place={"new_applied": "applied"})],
    operations="1",
    exact=True,
)
def advance(applied: Int32[Array, "1"], fault: Int32[Array, "2"]) -> Array:
    """The count of applied steps, one more unless a fault was noted."""
    return applied + np.int32(1) if fault[0] < 0 else applied.copy()
