"""Pages as text: documents that load nothing and execute no text of others, and the theme that all share."""
