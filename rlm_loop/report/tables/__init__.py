"""The tables of a study, as text, Markdown, LaTeX and HTML."""
