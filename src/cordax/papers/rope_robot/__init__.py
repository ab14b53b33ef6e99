"""Tempel, Schmidt, Haasdonk and Pott, "Application of the rigid finite element method to the
simulation of cable-driven parallel robots" (2017): its robot, its motion and its reduction."""
