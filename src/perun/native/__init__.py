"""Programs as files: ELF, symbols and debug information, functions, and the graph of their calls."""
