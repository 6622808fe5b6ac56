"""Notes signals that ask a command to stop, so that nothing is cut off in the middle."""

import signal
import threading
from types import FrameType
from typing import Any

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")  # not every system has all of these


class Stopped(Exception):
    """A signal asked the command to stop.

    Args:
        number: number of the signal.
        message: what was done with the work so far.
    """

    def __init__(self, number: int, message: str = "") -> None:
        super().__init__(message or f"stopped by {signal.Signals(number).name}")
        self.number = number


class StopSignals:
    """Notes signals while a ``with`` statement runs.

    Attributes:
        number: number of the first signal; None before.
        waiting: whether nothing would be lost now; a signal then raises :class:`Stopped` at once.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self.waiting = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "StopSignals":
        if threading.current_thread() is threading.main_thread():
            for name in _SIGNALS:
                if number := getattr(signal, name, None):
                    self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *error: Any) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.number = self.number or number
        if self.waiting:
            self.waiting = False
            raise Stopped(self.number)

    def check(self) -> None:
        """Raises :class:`Stopped` if a signal came."""
        if self.number is not None:
            raise Stopped(self.number)
