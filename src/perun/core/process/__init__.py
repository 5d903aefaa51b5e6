"""Running commands: the measured ones, engines that record them, and those of `execute.pre_run`."""
