"""Headings under which --help lists options."""

from enum import Enum


class Heading(Enum):
    """In the order of the help."""

    WHAT = "What to send"
    THROUGH = "Through what"
    LENGTH = "How long, how exactly"
    OTHER = "Options"
    OUTPUT = "Output"
