"""Rods as dynamic splines: seven integrators, the paper's tables, and real aluminium.

A. Khalifa, G. Palli, "Symplectic integration for multivariate dynamic spline-based model of
deformable linear objects" (2022).
"""
