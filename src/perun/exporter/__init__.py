"""Exporters: what writes profiles for other tools, one file each."""
