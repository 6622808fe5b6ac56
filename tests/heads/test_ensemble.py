import torch

from avalanche_f2ocl.heads import EnsembleHead, LDAHead, RidgeHead


def make():
    return LDAHead(3, shrinkage=0.1), RidgeHead(3, projection=0)


def test_logits_are_the_sum_of_heads_that_learn_alone(draw):
    x, rows = torch.randn(40, 6, generator=draw), torch.arange(40) % 4
    ensemble, alone = EnsembleHead(make()), make()
    ensemble.add_rows(4)
    for start in range(0, 40, 8):
        ensemble.update(x[start : start + 8], rows[start : start + 8])
    expected = 0
    for head, part in zip(alone, (x[:, :3], x[:, 3:]), strict=True):
        head.add_rows(4)
        head.update(part, rows)
        expected = expected + head.logits(part)
    torch.testing.assert_close(ensemble.logits(x), expected)
    torch.testing.assert_close(ensemble.means()[2], x[rows == 2].mean(0))


def test_prepared_it_solves_nothing_at_a_prediction(draw, monkeypatch):
    x, ensemble = torch.randn(40, 6, generator=draw), EnsembleHead(make())
    ensemble.add_rows(4)
    ensemble.update(x, torch.arange(40) % 4)
    ensemble.prepare()
    for head in ensemble.heads:
        monkeypatch.setattr(head, "solve", None)
    assert ensemble.logits(x).shape == (40, 4)
