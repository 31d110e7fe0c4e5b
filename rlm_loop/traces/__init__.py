"""What happened in a run: written line by line, read back, without secrets."""
