"""Performance fuzzing: inputs that make a program slow, by mutation and coverage (manual, chapter 9)."""
