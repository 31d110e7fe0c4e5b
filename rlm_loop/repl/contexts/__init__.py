"""The `context` of a run: what a model is told of it, and how it reaches the cells."""
