"""Every machine simulated, every formulation once, with annotated types and shapes
checked at each call. A process of its own: the checks are decided where cordax is imported."""

from jaxtyping import install_import_hook

with install_import_hook("cordax", "beartype.beartype"):
    import cordax
    from cordax import control, formulations, reduction, systems
    from cordax.systems import mechanism

import equinox as eqx
import jax
import numpy as np

cordax.enable_x64()
FEW = {"duration": 2e-3, "dt": 1e-3}


def neck():
    machine = systems.Neck.default(1)
    wanted = control.ComputedTorque(machine, control.RaisedCosine([0.6]))
    run = cordax.simulate(machine, wanted.start(), control=wanted, **FEW)
    run.energy()
    run.summary()
    cordax.modes(machine)


def rod():
    rod = systems.SplineRod(young=2.5e6, control_points=5, right=systems.End.free())
    cordax.simulate(rod, integrator="linearly_implicit_euler", **FEW).energy()
    other = systems.SplineRod(young=2.5e6, control_points=5, left=systems.End.free())
    harness = systems.Harness((rod, other), (systems.Joint(0, "right", 1, "left"),))
    start = cordax.consistent(harness, harness.default_state())
    cordax.simulate(harness, start, integrator="rk4", **FEW).energy()
    hold = [systems.Gripper([x, 0, 0], [1.0, 0, 0], [0, 0, 1.0]) for x in (0.0, 1.0)]
    nodes = np.linspace([0.0, 0, 0], [1.0, 0, 0], 5)
    wire = systems.DiscreteRod(nodes, *hold, 1.0, stick=1.0, slip=0.1)
    cordax.simulate(wire, control=systems.StrandSlip(wire), **FEW).energy()


def rope_robot():
    robot = systems.RopeRobot([[0.0, 0.0]], 1.0, root_angle=0.2, root_stiffness=2.0, count=3)
    cordax.simulate(robot, **FEW).energy()
    cordax.simulate(reduction.Subspace(robot, np.eye(6), np.zeros(6)), integrator="rk4", **FEW)


def cable_robot():
    """Its constraints through every formulation."""
    corners = np.array([[-1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1.0, -1.0, 0.0]])
    cube = systems.NaturalBody(6.0, systems.box_inertia(6.0, [0.2, 0.2, 0.2]))
    exits = systems.PointExit(corners * [3.0, 2.0, 1.0] + [0.0, 0.0, 2.0])
    lengths = systems.ProgrammedLengths(np.ones(4))
    robot = systems.CableRobot(cube, 0.1 * corners, exits, lengths, position=[0.1, 0.2, 1.0])
    held = systems.ProgrammedLengths(robot.lengths())
    robot = eqx.tree_at(lambda r: r.drives, robot, held)
    for formulation, integrator in (
        (formulations.Baumgarte(), "rk4"),
        (formulations.Index3(), "generalised_alpha"),
    ):
        run = cordax.simulate(robot, formulation=formulation, integrator=integrator, **FEW)
        run.summary()
    # what is traced is checked: it need not be compiled
    for formulation, integrator in (
        (formulations.Projected(), "explicit_euler"),
        (formulations.UdwadiaKalaba(), "symplectic_euler"),
        (formulations.Penalty(), "zhai"),
    ):
        how = {"formulation": formulation, "integrator": integrator, "throw": False, **FEW}
        start = robot.default_state()
        jax.eval_shape(lambda start, how=how: cordax.simulate(robot, start, **how).q, start)
    robot.static_tensions()
    robot.structure_matrix()


def strut():
    machine = mechanism.single_strut()
    start = machine.state_at((0.0, 0.0), 0.01)
    run = cordax.simulate(machine, start, duration=2e-4, dt=1e-4)
    run.energy()
    machine.mobility(start.q)


def oscillator():
    for integrator in ("stormer_verlet", "implicit_euler", "rosenbrock_2"):
        cordax.simulate(systems.Oscillator(), integrator=integrator, **FEW)
    cordax.simulate(systems.Oscillator(), accuracy=1e-6, **FEW)
    cordax.simulate_batch(
        lambda m: (systems.Oscillator(mass=m), systems.Oscillator().default_state()),
        np.array([1.0, 2.0]),
        **FEW,
    )


RUNS = (oscillator, neck, rod, rope_robot, cable_robot, strut)

if __name__ == "__main__":
    for run in RUNS:
        run()
        print(run.__name__)
