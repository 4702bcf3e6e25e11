"""Make the same calls on the embedded server and on a real TRex."""
