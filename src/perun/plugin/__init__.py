"""What a plugin is, how its parameters are declared, and how it is found."""
