"""Checks that no sample is kept."""

from avalanche.training.plugins import EvaluationPlugin

from avalanche_f2ocl.metrics.f2ocl import f2ocl_metrics
from avalanche_f2ocl.rehearsal.check import check_rehearsal_free, held_bytes
from avalanche_f2ocl.testing.running import Make, few_digits, train_online


def no_sample_is_kept(make: Make) -> None:
    """No image, tokens or embedding are kept after mini-batches of ten, and after more of one."""
    digits = few_digits()
    strategy = make(evaluator=EvaluationPlugin(*f2ocl_metrics()))
    samples: list[tuple] = []
    for experience, batch_size in zip(digits.train_stream, (10, 1), strict=False):
        train_online(strategy, [experience], batch_size)
        strategy.eval(digits.test_stream[:2])
        samples.extend(experience.dataset)
        report = check_rehearsal_free(strategy, samples)
        assert report.passed, str(report)


def bytes_do_not_grow_with_samples(make: Make) -> None:
    """A strategy holds as many bytes after further mini-batches of known classes as before."""
    digits = few_digits()
    strategy = train_online(make(evaluator=EvaluationPlugin(*f2ocl_metrics())), digits.train_stream[:1])
    before = held_bytes(strategy)
    assert held_bytes(train_online(strategy, digits.train_stream[:1])) == before


REHEARSAL = (no_sample_is_kept, bytes_do_not_grow_with_samples)
