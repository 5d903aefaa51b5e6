"""Two versions measured side by side: `perun compare`."""
