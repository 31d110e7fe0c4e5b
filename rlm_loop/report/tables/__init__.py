"""The tables of a study, as text, Markdown and HTML."""
