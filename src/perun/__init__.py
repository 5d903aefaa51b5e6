"""Perun: a performance version system, a layer over git that keeps performance profiles by commit."""

__version__ = "0.1.0"
