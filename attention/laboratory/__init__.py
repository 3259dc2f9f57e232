"""16.1 · The laboratory: why √d_k, question by question."""
