"""Counters that any Linux or FreeBSD host reports: CPU time, packets, interrupts, cycles; and the power it draws."""
