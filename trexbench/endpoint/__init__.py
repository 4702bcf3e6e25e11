"""The two hosts of a TCP test: what sends and receives on them, and what they read of themselves."""
