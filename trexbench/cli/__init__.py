"""The command line: verbs and wiring. The only place that prints, exits, or joins rooms."""

from .main import main

__all__ = ["main"]
