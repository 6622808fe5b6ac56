import os
import signal
import threading

import pytest

from avalanche_f2ocl.cli.stopping import Stopped, StopSignals


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_is_noted_and_told_later(name):
    number, before = getattr(signal, name), signal.getsignal(getattr(signal, name))
    with StopSignals() as stop:
        stop.check()
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(Stopped, match=f"stopped by {name}") as stopped:
            stop.check()
    assert stopped.value.number == stop.number == number and signal.getsignal(number) is before


def test_while_waiting_it_is_told_at_once():
    with StopSignals() as stop:
        stop.waiting = True
        with pytest.raises(Stopped, match="SIGTERM"):
            signal.raise_signal(signal.SIGTERM)
        assert not stop.waiting  # so that what follows is not cut off by another


def test_other_threads_leave_signals_alone():
    before, after = signal.getsignal(signal.SIGTERM), []

    def use():
        with StopSignals():
            after.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert after == [before]
