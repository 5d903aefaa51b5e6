"""One module for each verb: options in, porcelain called, its answer printed."""
