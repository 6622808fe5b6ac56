"""A lock, so that threads learn one mini-batch or make one prediction at a time."""

from threading import RLock
from typing import Any


class ModelLock:
    """A lock that its thread may take again; a copied or unpickled lock is a new one.

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
