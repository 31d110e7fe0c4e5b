"""A study before it runs: its grid, what its arms differ in, and whether that is fair."""
