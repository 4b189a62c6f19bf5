"""Declares operators that exist for one test only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nybble.contract import REGISTRY, Operator, op

Declare = Callable[..., Operator]


@pytest.fixture
def declare(monkeypatch: pytest.MonkeyPatch) -> Declare:
    """``declare(reference, out=..., ...)``: an operator that is forgotten after the test."""
    monkeypatch.setattr("nybble.contract.operator.REGISTRY", dict(REGISTRY))

    def declared(reference: Callable[..., Any], **options: Any) -> Operator:
        reference.__module__ = "nybble.ops.sample"
        return op(options.pop("name", "test.sample.default"), **options)(reference)

    return declared
