"""Interactive figures: one Python class and one plain ES module each, alive with a kernel and without."""

from minimind_edu.figures._base import Figure, figure_names, module_source, stylesheet

__all__ = ["Figure", "figure_names", "module_source", "stylesheet"]
