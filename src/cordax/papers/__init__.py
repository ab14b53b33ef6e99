"""Reproductions of the papers behind the machines, with verdicts on their claims.

Each paper has a package."""
