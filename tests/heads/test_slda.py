import pytest
import torch
from avalanche.training.supervised.deep_slda import StreamingLDA

from avalanche_f2ocl.heads import KLDAHead, LDAHead, SLDAHead
from avalanche_f2ocl.state.undo import Undo


def fitted(head, x, y, batch=10):
    head.add_rows(int(y.max()) + 1)
    for part in torch.arange(len(x)).split(batch):
        head.update(x[part], y[part])
    return head


def test_the_cut_into_mini_batches_makes_no_difference_and_the_order_does(data):
    x, y = data[0][:120], data[1][:120]
    one, other = (fitted(SLDAHead(64), x, y, batch) for batch in (1, 40))
    torch.testing.assert_close(one.moment, other.moment)
    turned = fitted(SLDAHead(64), x.flip(0), y.flip(0))
    assert (turned.moment - one.moment).abs().max() > 1e-2


def test_it_scores_as_avalanches_own(data):
    x, y = data[0][:150], data[1][:150]
    theirs = StreamingLDA(
        slda_model=torch.nn.Identity(), criterion=None, input_size=64, num_classes=10, evaluator=None
    )  # fmt: skip
    for one, label in zip(x.split(1), y.split(1), strict=True):
        theirs.fit(one, label)
    torch.testing.assert_close(fitted(SLDAHead(64), x, y).moment, 150 * theirs.Sigma.double(), rtol=1e-4, atol=1e-4)
    ours, expected = fitted(SLDAHead(64), x, y).logits(data[0][150:]), theirs.predict(data[0][150:])
    difference = ours - expected
    difference -= difference.mean(1, keepdim=True)  # what all classes have in common
    assert difference.abs().max() < 1e-3 * expected.std()
    assert torch.equal(ours.argmax(1), expected.argmax(1))


def test_in_a_block_samples_are_counted_on(data):
    x, y = data[0][:60], data[1][:60]
    head, plain = fitted(SLDAHead(64), x[:20], y[:20]), fitted(SLDAHead(64), x, y)
    head.add_rows(plain.num_rows - head.num_rows)
    with Undo([head]):
        for part in torch.arange(20, 60).split(10):
            head.update(x[part], y[part])
    torch.testing.assert_close(head.moment, plain.moment)


def test_its_covariance_is_above_the_exact_one_by_the_first_samples(data):
    """Each class's first sample counts with its whole length: with few samples a class that is most of it."""
    x, y = data[0][:100], data[1][:100]
    ours, exact = fitted(SLDAHead(64), x, y), fitted(LDAHead(64), x, y)
    assert ours.moment.trace() > 1.2 * exact.pooled(exact.moment, exact.total).trace() * 100


def test_a_forgotten_class_leaves_the_scores_of_others(data):
    x, y = data[0][:100], data[1][:100]
    head = fitted(SLDAHead(64), x, y)
    before, moment = head.logits(x), head.moment.clone()
    head.remove_row(3)
    after, others = head.logits(x), torch.cat([before[:, :3], before[:, 4:]], dim=1)
    shift = (after - others).mean(1, keepdim=True)  # what all have in common
    torch.testing.assert_close(after - shift, others, rtol=1e-4, atol=1e-3)
    assert torch.equal(head.moment, moment)
    for _ in range(9):
        head.remove_row(0)
    assert not head.moment.any() and head.total == 0


@pytest.mark.parametrize(
    "head", [SLDAHead(5, shrinkage=0.0), KLDAHead(5, projection=30, gamma=0.1)], ids=["slda", "klda"]
)
def test_fewer_samples_than_features_do_no_harm(head, draw):
    x, y = torch.randn(4, 5, generator=draw), torch.arange(4) % 2
    assert fitted(head, x, y).logits(x).isfinite().all()


def test_klda_has_5000_fourier_features_by_default():
    head = KLDAHead(3)
    assert len(head.moment) == 5000 and head.projection.kind == "fourier"
