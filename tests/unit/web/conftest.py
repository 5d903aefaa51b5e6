"""The fixtures of a server of the dashboard: see `web_server.py`."""

from web_server import serve, server

__all__ = ["serve", "server"]
