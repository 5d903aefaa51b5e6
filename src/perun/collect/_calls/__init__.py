"""Calls of functions: what a program tells of them, and the profile of what was recorded."""
