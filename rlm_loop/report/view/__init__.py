"""A folder of runs, studies and sessions of the meter as pages: a table of all episodes, and a page for each."""
