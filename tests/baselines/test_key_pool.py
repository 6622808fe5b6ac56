import torch

from avalanche_f2ocl.baselines.key_pool import KeyPool


def test_nearest_by_a_naive_loop(draw):
    pool = KeyPool(size=6, shape=(2, 8), dim=8)
    q = torch.randn(5, 8, generator=draw)
    rows, similarity = pool.nearest(q, count=3)
    for i in range(5):
        scores = [(q[i] @ key / q[i].norm() / key.norm()).item() for key in pool.keys.detach()]
        order = sorted(range(6), key=lambda k: -scores[k])[:3]
        assert rows[i].tolist() == order
        torch.testing.assert_close(similarity[i], torch.tensor([scores[k] for k in order]))


def test_gradients_reach_the_chosen_keys_alone(draw):
    pool = KeyPool(size=6, shape=(2, 8), dim=8)
    rows, similarity = pool.nearest(torch.randn(1, 8, generator=draw), count=2)
    similarity.sum().backward()
    assert pool.keys.grad.any(1).nonzero().squeeze(1).tolist() == sorted(rows[0].tolist())


def test_the_seed_decides_the_pool():
    one, same, other = (KeyPool(3, (2, 4), 4, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(one.prompts, same.prompts) and torch.equal(one.keys, same.keys)
    assert not torch.equal(one.prompts, other.prompts) and not torch.equal(one.keys, other.keys)
    assert one.prompts.abs().max() <= 1 and KeyPool(3, (2, 4), 4, "normal").prompts.abs().max() < 0.2
