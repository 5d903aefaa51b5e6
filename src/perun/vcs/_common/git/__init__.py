"""Git as a program: what the systems that keep their versions in a git directory share."""
