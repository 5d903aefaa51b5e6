"""What everything else stands on: errors, files, locks of killed processes, programs, the machine, the
configuration."""
