"""cordax: differentiable simulation of machines that work by cables."""

from typing import TYPE_CHECKING

from ._base.lazy_imports import later as _later
from ._jax.xla_flags import request_hoisting as _request_hoisting

_request_hoisting()  # sets XLA_FLAGS, before JAX runs anything: the only side effect of the import

from ._base.precision import enable_x64 as enable_x64  # noqa: E402
from ._base.precision import float_field as float_field  # noqa: E402
from ._base.results import Result as Result  # noqa: E402
from ._jax.xla_flags import enable_cache as enable_cache  # noqa: E402
from ._jax.xla_flags import hoisting_active as hoisting_active  # noqa: E402
from .formulations import Baumgarte as Baumgarte  # noqa: E402
from .formulations import Dynamics as Dynamics  # noqa: E402
from .formulations import Formulation as Formulation  # noqa: E402
from .formulations import Index3 as Index3  # noqa: E402
from .formulations import Minimal as Minimal  # noqa: E402
from .formulations import Penalty as Penalty  # noqa: E402
from .formulations import Projected as Projected  # noqa: E402
from .formulations import UdwadiaKalaba as UdwadiaKalaba  # noqa: E402
from .integrators import RK4 as RK4  # noqa: E402
from .integrators import Adaptive as Adaptive  # noqa: E402
from .integrators import ConvexContact as ConvexContact  # noqa: E402
from .integrators import Diffrax as Diffrax  # noqa: E402
from .integrators import ExplicitEuler as ExplicitEuler  # noqa: E402
from .integrators import ForestRuth4 as ForestRuth4  # noqa: E402
from .integrators import GeneralisedAlpha as GeneralisedAlpha  # noqa: E402
from .integrators import ImplicitEuler as ImplicitEuler  # noqa: E402
from .integrators import ImplicitMidpoint as ImplicitMidpoint  # noqa: E402
from .integrators import Integrator as Integrator  # noqa: E402
from .integrators import LinearlyImplicitEuler as LinearlyImplicitEuler  # noqa: E402
from .integrators import Rosenbrock2 as Rosenbrock2  # noqa: E402
from .integrators import StormerVerlet as StormerVerlet  # noqa: E402
from .integrators import Suzuki4 as Suzuki4  # noqa: E402
from .integrators import SymplecticEuler as SymplecticEuler  # noqa: E402
from .integrators import Unilateral as Unilateral  # noqa: E402
from .integrators import Zhai as Zhai  # noqa: E402
from .mechanics import Bodies as Bodies  # noqa: E402
from .mechanics import Controller as Controller  # noqa: E402
from .mechanics import Delegate as Delegate  # noqa: E402
from .mechanics import LagrangianSystem as LagrangianSystem  # noqa: E402
from .mechanics import Presentation as Presentation  # noqa: E402
from .mechanics import Scene as Scene  # noqa: E402
from .mechanics import State as State  # noqa: E402
from .mechanics import System as System  # noqa: E402
from .mechanics.consistent_state import consistent as consistent  # noqa: E402
from .simulation._simulate import SimulationError as SimulationError  # noqa: E402
from .simulation._simulate import simulate as simulate  # noqa: E402
from .simulation.experiment import Experiment as Experiment  # noqa: E402
from .simulation.machine_check import check_machine as check_machine  # noqa: E402
from .simulation.sensor import Sensor as Sensor  # noqa: E402
from .simulation.trajectory import Trajectory as Trajectory  # noqa: E402

if TYPE_CHECKING:
    from .identification import Fit as Fit
    from .identification import identify as identify
    from .optimisation import Constraint as Constraint
    from .optimisation import optimise as optimise
    from .parameters.parameter import Parameter as Parameter
    from .recordings.recording import Recording as Recording
    from .simulation.batch import simulate_batch as simulate_batch
    from .simulation.environment import Environment as Environment
    from .statics import Equilibrium as Equilibrium
    from .statics import equilibrium as equilibrium
    from .statics import modes as modes
    from .statics import step_limit as step_limit
    from .sweeps import sweep as sweep

__version__ = "0.1.0"

#: imported when first asked for: `cordax.plot` brings matplotlib with it, `identify` optax
__getattr__, __dir__ = _later(
    __name__,
    {
        "simulation": "Environment simulate_batch",
        "identification": "Fit identify",
        "optimisation": "Constraint optimise",
        "parameters": "Parameter",
        "recordings": "Recording",
        "statics": "Equilibrium equilibrium modes step_limit",
        "sweeps": "sweep",
        **dict.fromkeys(("control", "io", "plot", "reduction", "systems", "viewer"), ""),
    },
)
