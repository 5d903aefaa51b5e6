"""Performance fuzzing: inputs that make a program slow, found by mutation (manual, chapter 9).

`rules` make inputs from inputs, `coverage` tells what a program executes for one. Nothing here knows the
store or the configuration; `perun.running.fuzz` brings these together with collectors and checks.
"""
