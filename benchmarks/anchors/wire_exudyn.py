"""The wire of `benchmarks/rod.py` in Exudyn: ANCF cables in space, generalised alpha.

`python wire_exudyn.py END DAMPING RHO ELEMENTS DT ...` prints a JSON list: for each step the
seconds of the run and the height of the centre every 10 ms until END [s]. DAMPING [s]: of Kelvin
and Voigt, for all strains. For an interpreter that has Exudyn; it needs nothing of cordax."""

import json
import sys
import time
from itertools import pairwise

import exudyn
import exudyn.utilities as items
import numpy as np

LENGTH, SPAN, RADIUS = 2.0, 1.6, 1e-3
ELEMENTS = int(sys.argv[4])
AREA, SECOND_MOMENT = np.pi * RADIUS**2, np.pi * RADIUS**4 / 4


def half_angle() -> float:
    """Of the arc of `LENGTH` between supports, by bisection of sin(a)/a = SPAN/LENGTH."""
    low, high = 0.1, 3.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.sin(middle) / middle > SPAN / LENGTH else (low, middle)
    return low


def wire(damping: float):
    container = exudyn.SystemContainer()
    mbs = container.AddSystem()
    ground = mbs.AddNode(items.NodePointGround())
    fixed = mbs.AddMarker(items.MarkerNodeCoordinate(nodeNumber=ground, coordinate=0))
    half, element = half_angle(), LENGTH / ELEMENTS
    radius = 0.5 * LENGTH / half
    nodes = []
    for i, angle in enumerate(np.linspace(-half, half, ELEMENTS + 1)):
        reference = np.array([i * element, 0, 0, 1, 0, 0])
        x, z = radius * np.sin(angle), radius * (np.cos(half) - np.cos(angle))
        place = np.array([0.5 * SPAN + x, 0, z, np.cos(angle), 0, np.sin(angle)])
        coordinates = {"referenceCoordinates": list(reference)}
        coordinates["initialCoordinates"] = list(place - reference)
        nodes.append(mbs.AddNode(items.NodePointSlope1(**coordinates)))
    for pair in pairwise(nodes):
        cable = items.ObjectANCFCable(
            nodeNumbers=list(pair),
            physicsLength=element,
            physicsMassPerLength=2700.0 * AREA,
            physicsBendingStiffness=70e9 * SECOND_MOMENT,
            physicsAxialStiffness=70e9 * AREA,
            physicsBendingDamping=damping * 70e9 * SECOND_MOMENT,
            physicsAxialDamping=damping * 70e9 * AREA,
        )
        body = mbs.AddMarker(items.MarkerBodyMass(bodyNumber=mbs.AddObject(cable)))
        mbs.AddLoad(items.LoadMassProportional(markerNumber=body, loadVector=[0, 0, -9.81]))
    for node, offset in ((nodes[0], 0.0), (nodes[-1], SPAN - LENGTH)):
        for c in range(3):
            end = mbs.AddMarker(items.MarkerNodeCoordinate(nodeNumber=node, coordinate=c))
            away = offset if c == 0 else 0.0
            join = items.ObjectConnectorCoordinate(markerNumbers=[fixed, end], offset=away)
            mbs.AddObject(join)
    kind = exudyn.OutputVariableType.Position
    centre = items.SensorNode(
        nodeNumber=nodes[ELEMENTS // 2], outputVariableType=kind, storeInternal=True
    )
    sensor = mbs.AddSensor(centre)
    mbs.Assemble()
    return container, mbs, sensor


def run(dt: float, end: float, damping: float, rho: float) -> dict:
    seconds = []
    for _ in range(3):
        _container, mbs, sensor = wire(damping)
        settings = exudyn.SimulationSettings()
        scheme = settings.timeIntegration
        scheme.numberOfSteps, scheme.endTime = round(end / dt), end
        scheme.generalizedAlpha.spectralRadius = rho
        scheme.newton.useModifiedNewton = True
        scheme.verboseMode = 0
        settings.solutionSettings.writeSolutionToFile = False
        settings.solutionSettings.sensorsWritePeriod = 0.01
        settings.displayStatistics = settings.displayComputationTime = False
        start = time.process_time()
        done = mbs.SolveDynamic(settings)
        seconds.append(time.process_time() - start)
    z = np.asarray(mbs.GetSensorStoredData(sensor))
    return {"dt": dt, "ok": bool(done), "s": min(seconds), "t": list(z[:, 0]), "z": list(z[:, 3])}


if __name__ == "__main__":
    exudyn.config.suppressWarnings = True
    end, damping, rho, _, *steps = map(float, sys.argv[1:])
    print(json.dumps([run(dt, end, damping, rho) for dt in steps]))
