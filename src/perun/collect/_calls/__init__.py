"""Calls of functions, however they were recorded, and the profile that is made of them."""
