import pytest
import torch
from torch.nn import functional as F

from avalanche_f2ocl.heads.familiarity import ENOUGH, Familiarity, Whitening, nearest
from avalanche_f2ocl.heads.lda import shrunk
from avalanche_f2ocl.heads.shares import BINS
from avalanche_f2ocl.state.undo import Undo


def learned(x, y, parts=1, classes=10):
    familiarity = Familiarity(x.shape[1], parts)
    familiarity.add_rows(classes)
    for number, rows in enumerate(torch.arange(len(x)).split(10), start=1):
        embeddings = x[rows].unsqueeze(1).expand(-1, parts, -1)
        familiarity.judge(embeddings, y[rows])
        familiarity.learn(embeddings, y[rows], number)
    return familiarity


@pytest.fixture(scope="module")
def halves(data):
    """Real digits: the familiarity with 0 to 4 after 400 of them, other images of these, and images of 5 to 9."""
    x, y = data
    own = (y < 5).nonzero().squeeze(1)
    return learned(x[own[:400]], y[own[:400]]), x[own[400:]], x[y >= 5]


def test_likeness_by_hand(data):
    """A loop over the equation, with the covariance from the samples themselves."""
    x, y = data
    x, y = x[:80], y[:80]
    familiarity = Familiarity(x.shape[1])
    familiarity.add_rows(10)
    familiarity.learn(x.unsqueeze(1), y, batches=2)
    u = F.normalize(x, dim=1).double()
    means = torch.stack([u[y == c].mean(0) for c in range(10)])
    scatter = u - means[y]
    inverse = torch.linalg.inv(shrunk(scatter.T @ scatter / 80, torch.tensor(80)))
    centre = means.mean(0)
    for one, likeness in zip(u[:5], familiarity.likeness(x[:5].unsqueeze(1)), strict=True):
        cosines, distances = [], []
        for c in range(10):
            a, b = one - centre, means[c] - centre
            cosines.append(a @ inverse @ b / ((a @ inverse @ a) * (b @ inverse @ b)).sqrt())
            away = one - means[c]
            distances.append((away @ inverse @ away / (len(centre) * (1 + 1 / (y == c).sum()))).sqrt())
        assert likeness.item() == pytest.approx((max(cosines) - min(distances) / 2).item(), abs=1e-3)


def test_scores_are_weighted_shares_of_known_images_by_a_loop(data, draw):
    x, y = data
    noise = torch.randn(420, generator=draw)
    familiarity, likenesses, logits, weights = learned(x[:200], y[:200]), [], [], []
    familiarity.histograms, familiarity.judged = familiarity.histograms * 0, familiarity.judged * 0
    for rows in torch.arange(200, 400).split(50):
        images, highest = x[rows].unsqueeze(1), noise[rows]
        likenesses += familiarity.likeness(images).tolist()
        logits += highest.tolist()
        weights += [min(count, 20) for count in familiarity.counts[y[rows]].tolist()]
        familiarity.judge(images, y[rows], highest)
    images, highest = x[400:420].unsqueeze(1), noise[400:420]
    found = familiarity.scores(images, highest)
    for likeness, logit, score in zip(familiarity.likeness(images), highest, found, strict=True):
        shares = [
            sum(w for value, w in zip(values, weights, strict=True) if value < own) / sum(weights)
            for values, own in ((likenesses, likeness), (logits, logit))
        ]
        assert score.item() == pytest.approx(min(shares), abs=0.02)  # by the width of a bin


def test_logits_of_classes_that_the_head_did_not_know_are_not_counted(data):
    x, y = data
    familiarity = learned(x[:100], y[:100])
    before = familiarity.judged.clone()
    familiarity.judge(x[100:110].unsqueeze(1), y[100:110], torch.tensor([torch.nan] * 4 + [1.0] * 6))
    assert (familiarity.judged - before).tolist() == [10, 6, 0]


def test_few_logits_say_nothing(data):
    x, y = data
    familiarity = learned(x[:300], y[:300])
    images, far = x[300:340].unsqueeze(1), torch.full((40,), -9.0)
    plain = familiarity.scores(images)
    for first in (0, ENOUGH):
        part = slice(first, first + ENOUGH)
        assert torch.equal(familiarity.scores(images, far), plain) and familiarity.threshold(0.05) == 0.05
        familiarity.judge(images[part], y[300:340][part], torch.ones(ENOUGH))
        plain = familiarity.scores(images)
    assert (familiarity.scores(images, far) == 0).all()


def test_earlier_logits_lose_weight_as_the_head_learns(data):
    x, y = data
    familiarity = learned(x[:70], y[:70])
    familiarity.histograms[:] = 8
    familiarity.learn(x[:0].unsqueeze(1), y[:0], batches=8)
    familiarity.learn(x[:0].unsqueeze(1), y[:0], batches=9)
    familiarity.learn(x[:0].unsqueeze(1), y[:0], batches=12)
    assert familiarity.histograms.unique(dim=1).tolist() == [[8], [2], [8]]


def test_digits_that_were_never_learned_are_less_familiar(halves):
    familiarity, known, unknown = halves
    scores = familiarity.scores(known.unsqueeze(1)), familiarity.scores(unknown.unsqueeze(1))
    assert (scores[0].unsqueeze(1) > scores[1]).float().mean() > 0.9  # AUROC


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_a_threshold_loses_about_the_share_that_was_accepted(halves, share):
    familiarity, known, _ = halves
    lost = (familiarity.scores(known.unsqueeze(1)) < familiarity.threshold(share)).float().mean()
    assert lost == pytest.approx(share, abs=0.04)


def test_classes_that_come_one_after_the_other_and_never_again(data):
    x, y = data
    order = torch.cat([(y[:1200] // 2 == group).nonzero().squeeze(1) for group in range(5)])
    familiarity = learned(x[order], y[order])
    lost = (familiarity.scores(x[1200:].unsqueeze(1)) < familiarity.threshold(0.1)).float().mean()
    assert lost == pytest.approx(0.1, abs=0.06)


def test_the_threshold_is_the_quantile_of_the_lower_shares():
    """Of likeness alone it is the share itself."""
    familiarity = Familiarity(2)
    familiarity.judged[0] = 100
    assert familiarity.threshold(0.3) == 0.3
    familiarity.histograms[2, 100], familiarity.histograms[2, 200], familiarity.judged[:] = 30, 70, 100
    assert familiarity.threshold(0.3 - 1e-9) == pytest.approx(101 / BINS)
    assert familiarity.threshold(0.65) == pytest.approx(200.5 / BINS)


def test_too_few_scores_say_nothing(data):
    x, y = data
    familiarity = learned(x[:30], y[:30])
    with pytest.raises(RuntimeError, match=r"reject=0.01: \d+ images .* at least 100 are needed"):
        familiarity.threshold(0.01)


def test_classes_without_samples_are_near_nothing():
    space = Whitening(torch.eye(2), torch.tensor([[1.0, 0], [0, 0]]), torch.zeros(2), torch.tensor([3, 0]))
    cosine, distance = nearest(torch.tensor([[0.0, 0.0], [-1.0, 0.0]]), space)
    assert cosine.tolist() == [0, -1] and distance[1].item() == pytest.approx((4 / 2 / (1 + 1 / 3)) ** 0.5)


def test_likeness_is_averaged_over_parts(data):
    x, y = data
    one, two = learned(x[:200], y[:200]), learned(x[:200], y[:200], parts=2)
    mixed = torch.stack([x[200:], x[200:].flip(0)], dim=1)
    alone = one.likeness(x[200:].unsqueeze(1))
    torch.testing.assert_close(two.likeness(mixed), (alone + alone.flip(0)) / 2)


def test_what_is_removed_was_never_there(data):
    x, y = data
    familiarity, other = learned(x[:200], y[:200]), learned(x[:200], y[:200])
    familiarity.learn(x[200:220].unsqueeze(1), y[200:220], batches=21)
    familiarity.remove(x[200:220].unsqueeze(1), y[200:220])
    other.learn(x[:0].unsqueeze(1), y[:0], batches=2)  # inverts the covariance as it is now
    images = x[300:].unsqueeze(1)
    torch.testing.assert_close(familiarity.likeness(images), other.likeness(images), rtol=1e-4, atol=1e-4)
    assert torch.equal(familiarity.counts, other.counts)


def test_a_mini_batch_that_fails_leaves_no_trace(data):
    x, y = data
    own = (y < 5).nonzero().squeeze(1)[:150]
    familiarity = learned(x[own], y[own], classes=5)
    before = {key: tensor.clone() for key, tensor in familiarity.state_dict().items()}
    with pytest.raises(OSError), Undo([familiarity, *familiarity.sums]) as undo:
        familiarity.add_rows(70)
        undo.save_rows(torch.arange(75))
        familiarity.judge(x[:50].unsqueeze(1), y[:50])
        familiarity.learn(x[:50].unsqueeze(1), y[:50], batches=2)
        raise OSError
    after = familiarity.state_dict()
    assert all(torch.equal(after[key], before[key]) for key in before)
