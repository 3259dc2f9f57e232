"""Pages · What everybody needs who makes a page: text, code, tables, the file, and `publish`."""
