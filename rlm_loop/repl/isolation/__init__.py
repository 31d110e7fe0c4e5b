"""Launchers that keep cells apart from the machine, and their names."""
