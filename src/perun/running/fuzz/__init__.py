"""Searching for slow inputs in a version of the project: `perun fuzz`."""
