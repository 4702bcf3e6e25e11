"""What any Linux or FreeBSD host tells of itself: CPU time, packets, interrupts, cycles; and the power it takes."""
