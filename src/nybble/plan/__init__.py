"""Graph -> Plan: kernels chosen, layouts, buffers shared by lifetime, parameters packed."""

from .lower import make_plan
from .plan import Capabilities, Constant, Dispatch, HostCall, Place, Plan, Region, StatePlace

__all__ = [
    "Capabilities", "Constant", "Dispatch", "HostCall", "Place", "Plan", "Region", "StatePlace",
    "make_plan",
]  # fmt: skip
