"""Checks that compare the profiles of two versions (manual chapter 8)."""
