"""Measuring versions: `perun run`, `perun collect` and the hooks."""
