"""The tendon-driven neck: explicit and implicit integration with rigid and elastic tendons.

N. J. S. Testard, C. Chevallereau, P. Wenger, "Comparison of explicit and implicit numerical
integrations for a tendon-driven robot", CableCon 2023, doi 10.1007/978-3-031-32322-5_19.
"""
