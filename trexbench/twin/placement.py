"""Which worker polls which receive queue."""

from __future__ import annotations


def place(how: str, workers: int, ports: int, queues: int) -> list[int]:
    """The worker of each queue, port 0's queues first.

    round-robin: every queue that registers goes to the next worker, whatever port it is of, as VPP does
    (``src/vnet/interface/rx_queue.c``, next_thread_index). per-port: each port begins at worker 0, as Linux' and
    FreeBSD's drivers do where a port has as many queues as there are cores.
    """
    if how == "round-robin":
        return [index % workers for index in range(ports * queues)]
    return [queue % workers for _ in range(ports) for queue in range(queues)]
