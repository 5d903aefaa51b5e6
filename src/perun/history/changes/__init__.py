"""Which versions changed the level of a series: `perun changes`."""
