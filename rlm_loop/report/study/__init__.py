"""The page of a study or of a comparison: one HTML file, and a page for each trace beside it."""
