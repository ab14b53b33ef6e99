"""What happens between steps."""

import equinox as eqx
from jaxtyping import Array, Float, Int


class Events(eqx.Module):
    """Cables (or other one-sided constraints) let go and caught again, in order: `time` [s] (inf: no
    further event), `row` of the constraint, `kind` -1 let go or +1 caught, `impulse` of the catch
    [N s for cables], shape (k,) each."""

    time: Float[Array, " k"]
    row: Int[Array, " k"]
    kind: Int[Array, " k"]
    impulse: Float[Array, " k"]
