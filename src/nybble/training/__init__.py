"""Training: gradients of graphs, and a trainer of 4-bit programs."""

from .batches import shuffled_batches, whole_batches
from .differentiate import differentiate
from .evaluation import Evaluation
from .optimizer import AdamW, Constant, Cosine, Linear, Schedule
from .pending import NonFiniteError, StepLoss
from .trainer import Trainer

__all__ = [
    "AdamW", "Constant", "Cosine", "Evaluation", "Linear", "NonFiniteError", "Schedule",
    "StepLoss", "Trainer", "differentiate", "shuffled_batches", "whole_batches",
]  # fmt: skip
