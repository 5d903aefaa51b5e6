"""The call graph of a program from its machine code (x86-64)."""
