"""One mini-batch or one prediction at a time, whatever threads ask for them."""

from threading import RLock
from typing import Any


class ModelLock:
    """A lock that its thread may take again; a copy, or what is unpickled, has one of its own.

    Example:
        >>> lock = ModelLock()
        >>> with lock, lock:
        ...     pass
    """

    def __init__(self) -> None:
        self._lock = RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: Any) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return ModelLock, ()
