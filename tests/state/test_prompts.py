import pytest
import torch

from avalanche_f2ocl.state.prompts import OnePrompt, PromptPool, elect
from avalanche_f2ocl.state.row_adam import RowAdam


def pool_of(ids, **options):
    pool = PromptPool(length=3, dim=4, **options)
    pool.add_classes(torch.tensor(ids))
    return pool


def test_initial_prompts_are_a_function_of_seed_and_class_alone():
    together, apart = pool_of([5, -2, 9]), pool_of([9])
    assert torch.equal(together.used("prompts")[2], apart.used("prompts")[0])
    assert not torch.equal(together.used("prompts")[0], together.used("prompts")[1])
    assert not torch.equal(pool_of([9], seed=1).used("prompts"), apart.used("prompts"))


def test_initialisations():
    ids = list(range(400))
    uniform, normal = (pool_of(ids, init=i).used("prompts") for i in ("uniform", "normal"))
    assert -1 <= uniform.min() < -0.99 and 0.99 < uniform.max() < 1 and abs(uniform.mean()) < 0.03
    assert normal.std().item() == pytest.approx(0.02, rel=0.05) and abs(normal.mean()) < 0.002
    assert pool_of(ids, init="zeros").used("prompts").abs().sum() == 0


def test_gradient_names_the_gathered_rows_only():
    pool = pool_of(range(6))
    prompts = pool.gather(torch.tensor([4, 1]))
    assert torch.equal(prompts, pool.prompts[[4, 1]])
    (prompts * torch.tensor([2.0, 3.0]).view(2, 1, 1)).sum().backward()
    grad = pool.prompts.grad
    assert grad.is_sparse and grad.is_coalesced()
    assert grad.indices().tolist() == [[4, 1]] and grad.values()[:, 0, 0].tolist() == [2, 3]


def test_two_backward_passes_add_up():
    pool = pool_of(range(3))
    for rows in ([0, 1], [1, 2]):
        pool.gather(torch.tensor(rows)).sum().backward()
    assert pool.prompts.grad.to_dense()[:3, 0, 0].tolist() == [1, 2, 1]


def test_a_kept_loss_does_not_hinder_growth():
    pool = pool_of(range(2))
    optimizer = RowAdam([pool.prompts], lr=0.1)
    kept = []
    for new in range(2, 200):
        optimizer.zero_grad()
        kept.append(pool.gather(torch.tensor([new - 1])).sum())
        kept[-1].backward()
        optimizer.step()
        pool.add_classes(torch.tensor([new]))
    assert optimizer.state[pool.prompts]["step"][:200].tolist() == [0] + [1] * 198 + [0]


def elected(rows, num_rows, election, draws=400):
    return [
        elect(torch.tensor(rows), num_rows, election, torch.Generator().manual_seed(seed)).item()
        for seed in range(draws)
    ]


def test_election_by_sample_goes_by_frequency():
    rows = elected([2, 2, 2, 5], 9, "sample")
    assert set(rows) == {2, 5} and 0.68 < rows.count(2) / len(rows) < 0.82


def test_election_by_majority():
    assert set(elected([5, 2, 2, 5, 1], 9, "majority", 3)) == {2}


def test_election_of_any_seen_class():
    rows = elected([2], 4, "seen")
    assert set(rows) == {0, 1, 2, 3} and min(rows.count(r) for r in range(4)) > 70


def test_one_prompt_depends_on_the_seed_and_not_on_classes():
    one, again, other = OnePrompt(3, 8, seed=1), OnePrompt(3, 8, seed=1), OnePrompt(3, 8, seed=2)
    one.add_classes(torch.tensor([5, 7]))
    assert one.prompts.shape == (1, 3, 8) and one.prompts.abs().max() <= 1
    assert torch.equal(one.prompts, again.prompts) and not torch.equal(one.prompts, other.prompts)


def test_the_drift_of_one_prompt_adds_up_and_is_put_back():
    pool = OnePrompt(length=1, dim=2, kept={"drift": (3,)})
    assert pool.drift.shape == (1, 3) and not hasattr(OnePrompt(length=1, dim=2), "drift")
    pool.add("drift", torch.tensor([0]), torch.tensor([1.0, 2, 3]))
    undo = pool.undo_writes(torch.tensor([0]))
    pool.add("drift", torch.tensor([0]), torch.tensor([0.5, 0, -4]))
    assert pool.drift.tolist() == [[1.5, 2, -1]]
    undo()
    assert pool.drift.tolist() == [[1, 2, 3]]


def test_one_prompt_is_not_found_by_a_key():
    assert PromptPool.found_by_key and not OnePrompt.found_by_key
