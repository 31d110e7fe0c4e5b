"""Files of other tools: runs written for them and read from them, and tables of results that anybody made."""
