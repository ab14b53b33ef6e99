"""Cable-driven parallel robots with rigid cables: three models of exits, a pick, an overturning.

G. Piva, D. Richiedei, A. Trevisani, "Using differential-algebraic equations and natural coordinates
for modelling and simulating cable-driven parallel robots" (2024).
"""
