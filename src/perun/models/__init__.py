"""Mathematics on arrays: models of points, and which values are outliers.

Nothing here knows of profiles, files or configuration.
"""
