"""Site · The project as a site of linked pages: `python -m demos site`."""
