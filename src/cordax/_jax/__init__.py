"""All code that depends on internals of JAX or XLA. No other package does."""
