"""Foundations that every other package imports: types, fields, checks, results and files."""
