"""What several postprocessors need."""
