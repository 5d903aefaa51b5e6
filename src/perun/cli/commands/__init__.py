"""One module for each verb: options in, the work called, its answer printed."""
