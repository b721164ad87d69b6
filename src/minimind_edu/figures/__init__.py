"""Interactive figures: one Python class and one plain ES module each, alive with a kernel and without."""

from minimind_edu.figures._base import Figure, figure_names, module_source, stylesheet
from minimind_edu.figures.quiz import Quiz

__all__ = ["Figure", "Quiz", "figure_names", "module_source", "stylesheet"]
