"""The command line: the tree of commands, the terminal, and the exit codes."""
