"""Kernel regression: estimators, their sums over points, the selection of the bandwidth (manual 5.1.6)."""
