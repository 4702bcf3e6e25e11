"""The pure heart: no files, no sockets, no clock, no print."""
