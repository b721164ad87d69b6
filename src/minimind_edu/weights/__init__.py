"""Weights in files: reading what MiniMind and transformers store, and writing it."""
