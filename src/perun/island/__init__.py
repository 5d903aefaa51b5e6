"""Island: what a Python program uses, call by call, and where its time goes."""
