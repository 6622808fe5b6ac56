from benchmarks.speed import teach
from tests.cli.conftest import pictures

__all__ = ["pictures"]  # a fixture


def test_each_row_is_of_so_many_pictures(pictures, monkeypatch, capsys):  # noqa: F811
    monkeypatch.setattr(teach, "TIMES", 1)
    command = ["teach", "--backbone", "micro_vit", "--images", str(pictures), "--known", "4", "12"]
    monkeypatch.setattr("sys.argv", command)
    counts = []
    ask = teach.Teacher.ask
    monkeypatch.setattr(
        teach.Teacher, "ask", lambda t, *given: (counts.append(sum(t.counts.values())), ask(t, *given))[1]
    )
    teach.main()
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[-2:]]
    assert [row[0] for row in rows] == ["4", "12"] and all(float(cell) > 0 for row in rows for cell in row)
    assert counts == [4, 5, 12, 13]
