"""The verbs: each opens the repository, does its work and returns data; nothing here prints."""
