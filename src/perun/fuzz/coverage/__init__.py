"""What a program executes for an input: by the counters of gcc (`--coverage`) or of clang
(`-fsanitize-coverage`).

Programs are run by a fork server where that is possible, so that they are loaded once and copied for each
input, and are started anew for each input where it is not.
"""
