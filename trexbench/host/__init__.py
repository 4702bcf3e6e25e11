"""What any Linux or FreeBSD host tells about itself: CPU time, packets, interrupts, cycles; and the power it draws."""
