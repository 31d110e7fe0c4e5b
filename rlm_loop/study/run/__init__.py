"""A study as it runs: episodes in order, where they run, their progress and their cost."""
