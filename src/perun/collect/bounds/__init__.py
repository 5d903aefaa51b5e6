"""Bounds of loops and functions of C sources, from the source alone (manual, 4.1.4)."""
