"""Harnesses: what finds, builds and runs the named benchmarks of a project."""
