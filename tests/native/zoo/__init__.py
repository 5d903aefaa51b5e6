"""Programs that are each strange in one way, and what collectors and engines make of them."""
