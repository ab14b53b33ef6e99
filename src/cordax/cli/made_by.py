"""How a recording was made, where cordax made it."""

from .. import __version__


def made_by(machine: str, integrator: str, dt: float) -> dict[str, str]:
    """Words above a table: whoever fits it should simulate likewise."""
    return {
        "simulated by": f"cordax {__version__}",
        "machine": machine,
        "integrator": integrator,
        "dt": repr(dt),
    }
