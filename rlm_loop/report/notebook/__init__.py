"""What a notebook shows: runs, ledgers and studies as HTML and Markdown, the live view, the magic."""
