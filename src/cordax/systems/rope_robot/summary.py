"""Text summary of a run of a rope robot."""

import numpy as np

#: ropes with a tension below this [N] count as slack
SLACK = 1.0


def summary(run) -> dict[str, str]:
    """Summary of a run with a platform, as a dictionary from names to texts."""
    t, z = np.asarray(run.t), np.asarray(run["z"])
    tension = np.asarray(run.outputs["tension"])
    slack = t[np.all(tension < SLACK, axis=1)]
    times = f"{slack[0]:.2f} to {slack[-1]:.2f} s, with rebounds" if len(slack) else "never"
    when, rope = np.unravel_index(np.argmax(tension), tension.shape)
    return {
        "platform": f"z {z.min():.4f} to {z.max():.4f} m, {z[0]:.4f} m at the start",
        "tension at the start": " and ".join(f"{x:.2f}" for x in tension[0]) + " N",
        "all ropes slack": f"{times} (less than {SLACK:g} N)",
        "largest tension": f"{tension[when, rope]:.1f} N in rope {rope + 1} at {t[when]:.2f} s, of "
        "the instants stored",
    }
