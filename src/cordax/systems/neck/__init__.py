"""Tendon-driven neck of stacked X-joints."""

from .neck import PUSH, Bars, Neck, Springs
from .tendons import ElasticTendon, Motors, RigidTendon, Routing

__all__ = ["PUSH", "Bars", "ElasticTendon", "Motors", "Neck", "RigidTendon", "Routing", "Springs"]
