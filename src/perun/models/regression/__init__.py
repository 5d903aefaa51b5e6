"""Parametric models by least squares, and the methods that choose points and models (manual 5.1.2)."""
