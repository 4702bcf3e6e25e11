"""Measure how fast a router really is."""
