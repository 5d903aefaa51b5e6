"""The front end: a C source becomes functions and loops with their places in the original text."""
