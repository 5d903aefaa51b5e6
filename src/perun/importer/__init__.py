"""Importers: what reads the formats of other tools, one file each."""
