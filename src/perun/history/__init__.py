"""What reads stored histories: `check`, `changes`, `trend`, `log`, `status`, `explain`, `ack`."""
