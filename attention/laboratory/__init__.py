"""16.1 · The laboratory: what √d_k does, question by question."""
