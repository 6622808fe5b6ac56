import torch

from avalanche_f2ocl.rng import generator


def first(*args):
    return torch.randint(2**31, (1,), generator=generator(*args)).item()


def test_a_draw_depends_on_all_three_arguments_and_on_nothing_else():
    draws = {(s, p, n): first(s, p, n) for s in (0, 1) for p in ("key", "prompt") for n in (-3, 0, 3, 2**40)}
    assert len(set(draws.values())) == len(draws)
    torch.manual_seed(5)
    assert all(first(*arguments) == value for arguments, value in draws.items())


def test_the_global_generator_is_left_alone():
    before = torch.random.get_rng_state()
    first(0, "prompt", 1)
    assert torch.equal(torch.random.get_rng_state(), before)
