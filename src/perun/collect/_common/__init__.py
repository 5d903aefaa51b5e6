"""What several collectors need."""
