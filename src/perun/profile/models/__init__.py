"""Models of performance: pure mathematics on arrays, without disk, configuration or printing."""
