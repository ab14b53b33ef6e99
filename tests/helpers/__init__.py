"""Shared by tests: small machines, stored references, scripts for subprocesses, a browser."""
