"""Robustness cases for REPLs and loops, and what runs them.  Without `rlm_loop` where another project is looked at."""
