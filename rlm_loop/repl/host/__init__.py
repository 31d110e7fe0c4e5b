"""The host's end of a worker: started, given jobs, read as a stranger's words, replaced where it is lost."""
