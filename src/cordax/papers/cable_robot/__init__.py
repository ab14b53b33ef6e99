"""Cable-driven parallel robots with rigid cables: three models of exit points, a payload that is
picked up, and a platform that overturns.

G. Piva, D. Richiedei, A. Trevisani, "Using differential-algebraic equations and natural coordinates
for modelling and simulating cable-driven parallel robots" (2024).
"""
