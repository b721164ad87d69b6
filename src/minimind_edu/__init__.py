"""minimind_edu: the inside of the MiniMind language model, part by part."""

__version__ = "0.1.0"
