"""Graph -> Plan: kernels chosen, layouts, buffers shared by lifetime, parameters packed."""

from .lower import make_plan
from .plan import Capabilities, Constant, Dispatch, HostCall, Place, Plan, Region

__all__ = [
    "Capabilities", "Constant", "Dispatch", "HostCall", "Place", "Plan", "Region", "make_plan",
]  # fmt: skip
