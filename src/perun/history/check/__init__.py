"""Finding changes of performance between versions: `perun check`."""
