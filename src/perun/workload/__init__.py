"""Generators of workloads (manual 7.4)."""
