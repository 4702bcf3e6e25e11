"""Headings under which --help lists options."""

from enum import Enum


class Heading(Enum):
    """Headings in the order of the help."""

    WHAT = "What to send"
    THROUGH = "Through what"
    LENGTH = "How long, how exactly"
    OUTPUT = "Output"
    OTHER = "Options"
