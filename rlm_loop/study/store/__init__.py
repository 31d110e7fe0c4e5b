"""A study's folder: rows and traces, written as they come, packed and read back."""
