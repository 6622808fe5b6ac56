"""What processes exchange, counted and by hand."""

import socket

import pytest

from benchmarks.speed import scaling


@pytest.mark.parametrize("ranks, size, bytes_sent", [(1, 10, 0), (2, 10, 3 * 5 * 192 * 4 + 20 * 192 * 4)])
def test_what_must_cross_by_hand(ranks, size, bytes_sent):
    assert scaling.must_cross(ranks, size) == bytes_sent


def test_network_bytes_are_counted():
    before = scaling.network_bytes()
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    accepted, _ = server.accept()
    client.sendall(b"x" * 20_000)
    received = 0
    while received < 20_000:
        received += len(accepted.recv(20_000))
    for end in (client, accepted, server):
        end.close()
    assert scaling.network_bytes() - before >= 20_000


def test_the_table_has_a_row_for_each_size_and_number_of_processes(monkeypatch):
    monkeypatch.setattr(scaling, "measure", lambda count, size, batches: (0.5 / count, 1000.0 * (count - 1)))
    table = scaling.rows([1, 2], [10, 64], 3)
    assert [(row["mini-batch"], row["processes"], row["by one process"]) for row in table] == [
        ("10", "1", "1.00"), ("10", "2", "2.00"), ("64", "1", "1.00"), ("64", "2", "2.00")
    ]  # fmt: skip
    assert table[1]["images a second"] == "40" and table[1]["kB sent"] == "1.0"
