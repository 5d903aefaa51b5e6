"""Island: what a Python program uses, call by call, and where its time went.

Importing this imports nothing else.
"""
