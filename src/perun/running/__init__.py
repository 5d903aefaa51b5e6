"""What starts measured programs: runs and the job matrix, `bench`, `compare`, `bisect`, `fuzz`, and pools."""
