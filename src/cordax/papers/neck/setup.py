"""Robots and desired motion of the study."""

from typing import Literal, NamedTuple

import numpy as np

from ...control import ComputedTorque, RaisedCosine
from ...mechanics import State
from ...systems import Neck
from ...systems.neck.tendons import ElasticTendon, RigidTendon

Tendons = Literal["elastic", "rigid"]

#: one period of a cosine at 1 rad/s [s]
DURATION = 6.3

#: largest joint angles [rad]; the paper shows its motion but gives no values
_AMPLITUDE = {3: (0.6, -0.8, 1.0), 4: (0.5, -0.7, 0.7, 0.6)}


class Controlled(NamedTuple):
    """A neck, its controller and its initial state."""

    neck: Neck
    control: ComputedTorque
    start: State


def amplitude(joints: int) -> np.ndarray:
    """Largest joint angles of the motion [rad], shape (joints,). For numbers of joints that are not
    in the paper, the joints bend to alternate sides, by less for longer necks."""
    if joints in _AMPLITUDE:
        return np.array(_AMPLITUDE[joints])
    return 0.6 * min(1.0, 3.0 / joints) * (-1.0) ** np.arange(joints)


def tendon_model(tendons: Tendons) -> ElasticTendon | RigidTendon:
    """Tendon model; an elastic tendon has the stiffness [N/m] and damping [N s/m] of the paper."""
    return RigidTendon() if tendons == "rigid" else ElasticTendon(stiffness=1e5, damping=100.0)


def controlled(joints: int, tendons: Tendons) -> Controlled:
    """Default robot under computed-torque control that moves from rest to rest in `DURATION`."""
    neck = Neck.default(joints, tendon=tendon_model(tendons))
    control = ComputedTorque(neck, RaisedCosine(amplitude(joints)))
    return Controlled(neck, control, control.start())
