"""What several views share: their look, their pages, readable numbers, and the user's browser."""
