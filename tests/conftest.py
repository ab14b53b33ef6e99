"""Tests run in double precision; cordax comes before any use of JAX (see `cordax._xla`)."""

import cordax

cordax.enable_x64()
