"""Moving averages and medians (manual 5.1.5)."""
