"""Bounds collector: how often each loop of C sources can run, from the source alone."""
