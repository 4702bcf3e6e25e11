"""DUT twins: a router simulated from a few quantities that a person can read off a data sheet or measure."""
