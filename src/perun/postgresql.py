"""How Perun is connected to PostgreSQL, as a store and as a remote."""

from __future__ import annotations

from typing import Any, Final

WAIT: Final = 60
"""Seconds that are waited for the server."""
LINE: Final[dict[str, Any]] = {
    "connect_timeout": WAIT,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": WAIT * 1000,
}
"""What its library is told, so that nobody waits for hours on a line that is dead."""
