from avalanche_f2ocl.heads import RidgeHead
from avalanche_f2ocl.heads.calibration import is_due
from benchmarks.speed.predict_at_once import BATCH, COLUMNS, TURNS, costs

SAMPLES = 11 * BATCH * TURNS  # the turns add less than a tenth
HOLDS = sum(is_due(batches, RidgeHead.judging.growth) for batches in range(1, SAMPLES // BATCH + 1))
"""Mini-batches after which the heads are solved so that they can be judged, none of them among the turns."""


def test_it_times_what_it_says(small_vit, monkeypatch):
    solved, solve = [], RidgeHead.solve
    monkeypatch.setattr(RidgeHead, "solve", lambda *args: (solved.append(1), solve(*args))[1])
    found = costs(small_vit, samples=SAMPLES, classes=3)
    assert set(found) == {*COLUMNS, "file MB"} and all(value > 0 for value in found.values())
    # Six heads in full, once beside the holds: what follows in the row is kept current, also in the file.
    assert len(solved) == 6 * (1 + HOLDS)


def test_a_row_that_outgrows_its_solution_would_show(small_vit, monkeypatch):
    monkeypatch.setattr("avalanche_f2ocl.heads.ridge.GROWTH", 1.0)
    solved, solve = [], RidgeHead.solve
    monkeypatch.setattr(RidgeHead, "solve", lambda *args: (solved.append(1), solve(*args))[1])
    costs(small_vit, samples=SAMPLES, classes=3)
    assert len(solved) > 6 * (1 + HOLDS)
