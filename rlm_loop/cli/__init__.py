"""The sub-commands of `rlm-loop`, one module each."""
