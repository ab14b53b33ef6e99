"""Controllers, reference motions and tension distribution."""

from .computed_torque import ComputedTorque
from .input_function import InputPath, Programme
from .inverse_dynamics import InverseDynamics
from .multisine import Multisine
from .pid import PID
from .predictive import ModelPredictive
from .pulses import Pulses
from .recorded import RecordedInput
from .references import (
    BSpline,
    Constant,
    Hermite,
    Quintic,
    RaisedCosine,
    Reference,
    Shaped,
    Sinusoid,
)
from .task_space import TaskSpaceControl
from .tension import (
    BoundedTension,
    MeanTension,
    MinimumTension,
    NullSpaceTension,
    TensionDistribution,
)
from .tension_qp import NearRigidQP

__all__ = [
    "PID",
    "BSpline",
    "BoundedTension",
    "ComputedTorque",
    "Constant",
    "Hermite",
    "InputPath",
    "InverseDynamics",
    "MeanTension",
    "MinimumTension",
    "ModelPredictive",
    "Multisine",
    "NearRigidQP",
    "NullSpaceTension",
    "Programme",
    "Pulses",
    "Quintic",
    "RaisedCosine",
    "RecordedInput",
    "Reference",
    "Shaped",
    "Sinusoid",
    "TaskSpaceControl",
    "TensionDistribution",
]
