"""Commands measured at once, without any configuration: `perun bench`."""
