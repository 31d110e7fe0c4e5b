"""Cells in a Jupyter kernel."""
