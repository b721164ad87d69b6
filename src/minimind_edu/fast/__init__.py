"""Faster ways to read one token after another. They stand above the model, which knows nothing of them."""
