"""Energy of rods whose ends are moved: the power of the grippers, as forces and velocities of the
control points they hold."""

import equinox as eqx
import jax
import numpy as np
from scipy.integrate import simpson

from cordax import simulate
from cordax.math.bsplines import gram
from cordax.mechanics.reference_motion import Quintic
from cordax.systems import End, Harness, SplineRod

LIFT = Quintic([0.0, 0.0, 0.0], [[0.1, -0.05, 0.3]], [[0.0, 0.1]])
TURN = Quintic([1.0, 0.0, 0.0], [[0.0, 0.3, -0.2]], [[0.02, 0.1]])
ROD = SplineRod(
    young=1e6, control_points=6, left=End.clamped(LIFT, TURN), right=End.pinned(), viscous=False
)


@eqx.filter_jit
def along(rod, t, q, v):
    """Velocities, accelerations and forces of all control points, (k, 4, n) each."""

    def one(t, q, v):
        u = np.zeros(rod.n_u)
        rates, accelerations = rod._end_rates(t)
        dP = rod.layout.join(v, *rates)
        ddP = rod.layout.join(rod.structure().acceleration(t, q, v, u), *accelerations)
        return dP, ddP, rod.control_forces(t, q, v, u)

    return jax.vmap(one)(t, q, v)


def test_power_of_a_gripper():
    """It lifts, carries and turns the end of a rod. Without the time of each instant, and without
    the velocities of what the gripper holds, the energy is another one."""
    run = simulate(ROD, dt=2e-4, duration=0.12, save_every=5, integrator="rk4")
    dP, ddP, F = (np.asarray(x) for x in along(ROD, run.t, run.q, run.v))
    density = np.asarray(ROD.densities() * ROD.span)
    reaction = np.einsum("c,ij,kcj->kci", density, np.asarray(gram(6)), ddP) - F
    held = ROD.layout.mask == 0.0
    assert np.abs(reaction[:, ~held]).max() < 1e-9 * np.abs(F).max()  # the rod's equations
    power = np.sum((reaction * dP)[:, held], axis=1)
    t, energy = np.asarray(run.t), np.asarray(run.energy()["total"])
    ends = range(20, len(t), 20)
    work = np.array([simpson(power[: k + 1], x=t[: k + 1]) for k in ends])
    assert np.abs(work).max() > 1e-2
    # Simpson's rule at 1 ms on waves of some 300 rad/s
    np.testing.assert_allclose(energy[20::20] - energy[0], work, atol=1e-5 * np.abs(work).max())
    # of a harness of this rod alone it is the same
    same = Harness((ROD,), ()).energies(run.t[60], run.q[60], run.v[60])
    np.testing.assert_allclose(float(same[0] + same[1]), energy[60], rtol=1e-12)
