"""Views of a profile, each in a folder of its own (manual chapter 6)."""
