"""Errors that say what to do: which extra to install, and which name was meant."""
