"""What verbs answer, as text and as JSON. Nothing here needs click."""
