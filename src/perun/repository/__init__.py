"""The repository that verbs work on: opening it, trust, its profiles by name, and what keeps it in order."""
