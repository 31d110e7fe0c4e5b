"""Arms compared on the same tasks: pairs, effects, sentences, and what is still missing."""
