"""Connections that can be cut, or stand still, and heal: each a port of loopback that leads to another."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable


class Line:
    """A way to a port. Its connections are served by a thread of its own."""

    def __init__(self, to_port: int) -> None:
        self._to, self._loop = to_port, asyncio.new_event_loop()
        self._writers: set[asyncio.StreamWriter] = set()
        self._is_cut = False
        self._flows = asyncio.Event()
        self._flows.set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        begun = asyncio.run_coroutine_threadsafe(asyncio.start_server(self._serve, "127.0.0.1", 0), self._loop)
        self._server = begun.result(30)
        self.port: int = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """End every connection, and refuse others until it is healed."""
        self._do(self._cut)

    def hold(self) -> None:
        """Let nothing through until it is healed, and lose nothing."""
        self._do(self._flows.clear)

    def heal(self) -> None:
        self._do(self._heal)

    def end(self) -> None:
        """End every connection, and give the port back; what is asked for later does nothing."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop)
        self._thread.join(30)

    async def _end(self) -> None:
        self._server.close()
        self._cut()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        self._loop.call_soon(self._loop.stop)

    def _do(self, what: Callable[..., object], *arguments: object) -> None:
        self._loop.call_soon_threadsafe(what, *arguments)

    def _cut(self) -> None:
        self._is_cut = True
        for writer in self._writers:
            writer.transport.abort()

    def _heal(self) -> None:
        self._is_cut = False
        self._flows.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.CancelledError):
            if not self._is_cut:
                far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._to)
                self._writers |= {writer, far_writer}
                await asyncio.gather(self._pass(reader, far_writer), self._pass(far_reader, writer))
        writer.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                await self._flows.wait()
                writer.write(data)
                await writer.drain()
        self._writers.discard(writer)
        writer.close()
