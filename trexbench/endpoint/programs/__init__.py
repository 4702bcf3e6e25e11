"""Programs that trexbench sends to the hosts of a TCP test, which need nothing but python3 (3.7 or later).

A module here imports from the standard library and, at the left margin, from others here: ``endpoint.hosts`` sends a
program together with those.
"""
