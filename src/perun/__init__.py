"""Perun: a performance version system, a layer over git that keeps performance profiles by commit."""

__version__ = "@VERSION@"  # the build fills it in, see tools/version.py
