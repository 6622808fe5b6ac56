from avalanche_f2ocl import ViTNCMModel
from benchmarks.speed import many_classes


def test_what_is_timed_are_mini_batches_of_known_classes(monkeypatch, capsys):
    learned, learn = [], ViTNCMModel.learn
    monkeypatch.setattr(ViTNCMModel, "learn", lambda model, x, y: (learned.append(y.tolist()), learn(model, x, y))[1])
    monkeypatch.setattr(many_classes, "FILL", 8)
    assert many_classes.step_ms(12, steps=2) > 0
    first, second, *timed = learned
    assert [*first, *second] == list(range(12))
    assert [len(labels) for labels in timed] == [10, 10] and max(map(max, timed)) < 12
