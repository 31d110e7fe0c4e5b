"""The display in a notebook: runs, ledgers and studies as HTML and Markdown, the live view, the magic."""
