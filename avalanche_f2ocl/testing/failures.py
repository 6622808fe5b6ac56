"""Loaders, plugins and methods that fail on command."""

import torch
from avalanche.core import SupervisedPlugin


class Failure(Exception):
    """The error that failing loaders and plugins raise."""


class FailingPlugin(SupervisedPlugin):
    """Raises an error in one callback, while armed."""

    def __init__(self, callback: str):
        super().__init__()
        self.armed = False
        setattr(self, callback, self._fail)

    def _fail(self, strategy, **kwargs):
        if self.armed:
            raise Failure


class FailingLoader:
    """A loader with one mini-batch, which cannot be fetched."""

    def __iter__(self):
        return self

    def __next__(self):
        raise Failure

    def __len__(self) -> int:
        return 1


class Calls:
    """A context that counts calls of an object's method; one call may run out of memory after it has run."""

    def __init__(self, owner: object, name: str, fail_at: int | None = None):
        self._owner, self._name, self._fail_at, self.count = owner, name, fail_at, 0

    def __enter__(self) -> "Calls":
        real = getattr(self._owner, self._name)

        def call(*args, **kwargs):
            result = real(*args, **kwargs)
            self.count += 1
            if self._fail_at == self.count - 1:
                raise torch.cuda.OutOfMemoryError("out of memory, for a test")
            return result

        setattr(self._owner, self._name, call)
        return self

    def __exit__(self, *_) -> None:
        delattr(self._owner, self._name)
