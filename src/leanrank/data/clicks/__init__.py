"""Click logs: what they say of documents and of positions, and made-up ones."""
