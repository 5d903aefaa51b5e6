"""Suites: the named benchmarks of a harness, measured of two versions in turns."""
