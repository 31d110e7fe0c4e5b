"""Cells behind RestrictedPython's guards, in a process of their own."""
