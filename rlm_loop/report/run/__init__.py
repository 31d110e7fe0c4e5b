"""A page to read a run: one HTML file, with no network, made from a trace."""
