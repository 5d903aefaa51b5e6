"""Bounds of loops from C sources: the analysis behind the collector `bounds`."""
