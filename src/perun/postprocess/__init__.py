"""Postprocessors, each in a folder of its own (manual chapter 5)."""
