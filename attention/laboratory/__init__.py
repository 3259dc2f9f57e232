"""16.1 · The laboratory: what the scale does, question by question."""
