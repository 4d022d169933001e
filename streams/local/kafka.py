"""One Apache Kafka node in a process of its own, on loopback, with nothing but Python to install."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from pml.schemas.errors import BrokerUnavailable, ConfigurationError, PrerequisiteError
from pml.streams.local.jars import kafka_jars, local_repository, resolve_jars
from pml.streams.local.java import QUICK_POLL_S, JavaProcess
from pml.streams.local.kafka_folder import CONSOLE, SETTINGS, BrokerRecord, KafkaFolder
from pml.streams.local.kafka_probe import answers
from pml.streams.local.polling import until
from pml.streams.local.ports import HOST, choose_port, is_free

HEAP_MB = 512
OPTIONS = (
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:ErrorFile=crash.log",
    "-Djdk.nio.maxCachedBufferSize=1048576",  # or each thread keeps a copy of its largest record off the heap
    "-Dlog4j2.configurationFile=log4j2.yaml",
)
START_TIMEOUT_S = 90  # takes 1.5 s, 3 s after kill -9; a large log on a slow disk is read again for longer
STOP_TIMEOUT_S = 20  # takes 0.3 s; what is not stopped by then is killed, which loses nothing
LOCK_TIMEOUT_S = 2  # a broker that was killed a moment ago is gone by then
START_ATTEMPTS = 3  # with other ports, if another program took a chosen one first


class BrokerStartFailed(BrokerUnavailable):
    """The embedded Kafka ended, or did not answer in time; the message ends with its last lines."""

    code = "BROKER_START_FAILED"


class BrokerInUse(ConfigurationError):
    """A living broker holds the data folder."""

    code = "BROKER_IN_USE"


class EmbeddedKafka:
    """A broker of one KRaft node whose data lie in `data_dir`/kafka.

    A port of 0 means the one of the last start if it is free, else any free one. The broker has a session of
    its own, so that Ctrl-C in a terminal does not reach it, and on Linux the kernel kills it when the thread
    that called `start` is gone, unless `on_leash` is false. It may be started again after `stop`, `kill` or
    its own end, from any event loop.
    """

    def __init__(
        self,
        data_dir: Path,
        port: int = 0,
        controller_port: int = 0,
        *,
        heap_mb: int = HEAP_MB,
        on_leash: bool = True,
    ) -> None:
        self._folder = KafkaFolder(data_dir.absolute() / "kafka")
        self._wanted = BrokerRecord(port, controller_port)
        self._chosen = self._wanted
        self._heap_mb = heap_mb
        self._on_leash = on_leash
        self._process: JavaProcess | None = None
        self._lock: int | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def bootstrap_servers(self) -> str:
        """`host:port` for clients; known once it was started, and the same when it is started again."""
        return f"{HOST}:{self._chosen.port}"

    @property
    def folder(self) -> Path:
        """Where its data, settings and logs (`server.log`, `console.log`) are."""
        return self._folder.path

    @property
    def pid(self) -> int | None:
        """Its process id while it lives."""
        return self._process.pid if self._process and self._process.alive() else None

    def alive(self) -> bool:
        """Whether its process lives; `start` has waited until it also answers."""
        return self.pid is not None

    async def start(self) -> None:
        """Starts the broker and waits until it answers; does nothing if it lives.

        Raises:
            PrerequisiteError: a jar is missing or wrong, or the folder cannot be written, or no port is free.
            ConfigurationError: a port that was asked for is taken.
            BrokerInUse: another broker runs in that folder.
            BrokerStartFailed: the broker ended or did not answer within 90 s.
        """
        if self.alive():
            return
        await self._hold_folder()
        try:
            jars = await resolve_jars(kafka_jars(), local_repository())
            await self._start_on_free_ports(os.pathsep.join(map(str, jars)))
        except BaseException:
            self.kill()
            raise

    async def stop(self) -> None:
        """Stops the broker cleanly; kills it if that takes longer than 20 s."""
        try:
            if self._process and self.alive():
                await self._process.terminate(STOP_TIMEOUT_S)
        finally:
            self._let_folder_go()

    def kill(self) -> None:
        """Kills the broker as a crash would; acknowledged data stay, and `start` takes them up again."""
        if self._process:
            self._process.kill()
        self._let_folder_go()

    async def wait(self) -> int:
        """Waits until the broker ends, and returns its exit code (negative: the signal that ended it)."""
        return await self._process.wait() if self._process else 0

    async def _hold_folder(self) -> None:
        self._let_folder_go()
        try:
            await until(self._take_lock, QUICK_POLL_S, LOCK_TIMEOUT_S)
        except OSError as error:
            raise PrerequisiteError(
                f"Kafka cannot keep its data in {self.folder} ({error}): make it writable or choose another."
            ) from error
        if self._lock is None:
            raise self._in_use()

    def _take_lock(self) -> bool:
        self._lock = self._folder.lock()
        return self._lock is not None

    def _let_folder_go(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _in_use(self) -> BrokerInUse:
        record = self._folder.read_record() or BrokerRecord(0, 0)
        return BrokerInUse(
            f"A Kafka broker (process {record.pid}, port {record.port}) is running on {self.folder}: stop it "
            "(`pml down`) or use another data folder.",
            pid=record.pid,
            port=record.port,
        )

    async def _start_on_free_ports(self, class_path: str) -> None:
        for attempt in range(1, START_ATTEMPTS + 1):
            self._prepare_folder()
            try:
                await self._serve(class_path)
                return
            except BrokerStartFailed:
                if self._process:
                    self._process.kill()
                if attempt == START_ATTEMPTS or self._ports_are_free():
                    raise

    def _prepare_folder(self) -> None:
        last = self._folder.read_record() or self._wanted
        port = choose_port(self._wanted.port, last.port)
        controller_port = choose_port(self._wanted.controller_port, last.controller_port, besides=(port,))
        self._chosen = BrokerRecord(port, controller_port)
        self._folder.write_settings(port, controller_port)
        self._folder.format()

    def _ports_are_free(self) -> bool:
        return is_free(self._chosen.port) and is_free(self._chosen.controller_port)

    async def _serve(self, class_path: str) -> None:
        log_from_bytes = self._folder.log_size_bytes()
        broker = self._spawn(class_path, "kafka.Kafka", SETTINGS)
        self._folder.write_record(replace(self._chosen, pid=broker.pid))
        if not await until(self._answers_or_ended, QUICK_POLL_S, START_TIMEOUT_S):
            raise self._failed(f"did not answer within {START_TIMEOUT_S} s", log_from_bytes)
        if not broker.alive():
            raise self._failed(f"ended while starting (exit code {broker.exit_code})", log_from_bytes)

    async def _answers_or_ended(self) -> bool:
        return not self.alive() or await answers(HOST, self._chosen.port)

    def _spawn(self, class_path: str, program: str, *arguments: str) -> JavaProcess:
        assert self._lock is not None
        self._process = JavaProcess(
            (f"-Xmx{self._heap_mb}m", *OPTIONS, "-cp", class_path, program, *arguments),
            self.folder,
            self.folder / CONSOLE,
            inherited=self._lock,
            on_leash=self._on_leash,
        )
        return self._process

    def _failed(self, what: str, log_from_bytes: int = 0) -> BrokerStartFailed:
        lines = "\n".join(self._folder.last_lines(log_from_bytes)) or "(it wrote nothing)"
        return BrokerStartFailed(
            f"The embedded Kafka {what}. Its logs are in {self.folder}; their last lines:\n{lines}",
            folder=str(self.folder),
        )
