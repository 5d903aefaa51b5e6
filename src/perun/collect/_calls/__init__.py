"""Calls of functions: the functions of a program, the sizes of structures, and profiles of calls."""
