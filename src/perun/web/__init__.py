"""The dashboard: pages, and what serves or writes them."""
