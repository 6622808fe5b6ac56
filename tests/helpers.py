"""What several test files need."""

import torch
from avalanche.benchmarks import split_online_stream


def learned(model) -> dict[str, torch.Tensor]:
    """Everything a model has learned, without the frozen backbone."""
    return {name: t.clone() for name, t in model.state_dict().items() if not name.startswith("backbone.")}


def assert_same_state(one, other, exactly=True):
    assert one.keys() == other.keys()
    for name in one:
        if exactly:
            assert torch.equal(one[name], other[name]), name
        else:
            torch.testing.assert_close(one[name], other[name], rtol=1e-4, atol=1e-4, msg=lambda m, name=name: name + m)


def train_online(strategy, stream, batch_size=10):
    for experience in stream:
        strategy.train(split_online_stream([experience], batch_size, shuffle=False), eval_streams=[])
    return strategy


def as_tensors(experience):
    """An experience's images and labels, (N, C, H, W) and (N,)."""
    items = [experience.dataset[i] for i in range(len(experience.dataset))]
    return torch.stack([item[0] for item in items]), torch.tensor([item[1] for item in items])
