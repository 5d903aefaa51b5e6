"""What the version control systems of Perun's own share."""
