"""The version that changed what a program costs: `perun bisect`."""
