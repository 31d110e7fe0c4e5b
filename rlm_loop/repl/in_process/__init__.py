"""Cells in this process: the user's own notebook, and RestrictedPython."""
