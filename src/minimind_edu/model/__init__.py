"""The model, part by part: what the chapters teach. The docstring of `minimind_edu` is the map."""
