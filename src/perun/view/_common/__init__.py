"""What several views share: theme, pages, charts, readable numbers, output files and the browser."""
