"""Call graphs of programs: which function calls which, from machine code and from what was recorded."""
