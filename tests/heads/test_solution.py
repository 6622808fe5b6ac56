import pytest
import torch

from avalanche_f2ocl.heads.solution import Solution, solution_of, solution_problem, take_solution

SETTINGS, CPU = (1.0, 0.25, 1.0), torch.device("cpu")


@pytest.fixture
def solution(draw):
    weight, bias = torch.randn(5, 3, generator=draw).double().T, torch.randn(3, generator=draw).double()
    return Solution(weight, bias, bias.abs() + 1, (0.5, 2.0), torch.eye(5).double())


def test_outputs_one_by_one(solution, draw):
    x = torch.randn(4, 5, generator=draw).double()
    parts = list(zip(solution.weight, solution.bias, solution.scale, strict=True))
    expected = [[(w @ sample + b) / s for w, b, s in parts] for sample in x]
    torch.testing.assert_close(solution.outputs(x), torch.tensor(expected, dtype=torch.float64))


def test_there_and_back_with_the_same_bits_and_no_inverse(solution, draw):
    state = {f"a.{name}": tensor for name, tensor in solution.tensors(SETTINGS).items()} | {"a.rest": torch.zeros(1)}
    tensors = take_solution(state, "a.")
    assert list(state) == ["a.rest"] and solution_problem(tensors, 3, 5) is None
    back = solution_of(tensors, SETTINGS, 2, CPU)
    assert back.facts == (0.5, 2.0) and back.inverse is None
    x = torch.randn(4, 5, generator=draw).double()
    assert torch.equal(back.outputs(x), solution.outputs(x))
    solution.weight.zero_()
    assert back.weight.all()  # its own memory


def test_nothing_is_nothing_and_no_problem():
    assert solution_of({}, SETTINGS, 2, CPU) is None and solution_problem({}, 3, 5) is None


def test_it_is_nothing_to_a_head_of_other_settings(solution):
    tensors = solution.tensors(SETTINGS)
    assert solution_of(tensors, SETTINGS, 2, CPU) is not None
    for settings, facts in (((0.0, 0.25, 1.0), 2), ((1.0, -1.0, 1.0), 2), ((1.0, 0.25, 0.0), 2), (SETTINGS, 3)):
        assert solution_of(tensors, settings, facts, CPU) is None


@pytest.mark.parametrize(
    "change, problem",
    [
        ({"solution_weight": torch.zeros(3, 4).double()}, "solution_weight is .*3, 4.*expected .*3, 5"),
        ({"solution_weight": torch.zeros(4, 5).double()}, "solution_weight is .*4, 5.*expected .*3, 5"),
        ({"solution_weight": torch.zeros(()).double()}, "solution_weight is"),
        ({"solution_bias": torch.zeros(3)}, "solution_bias is torch.float32"),
        ({"solution_facts": torch.zeros(1, 2).double()}, "solution_facts"),
        ({"solution_settings": torch.zeros(2).double()}, "solution_settings"),
        ({"solution_scale": None}, "solution_scale"),
    ],
)
def test_what_does_not_fit_is_named(solution, change, problem):
    tensors = {name: tensor for name, tensor in (solution.tensors(SETTINGS) | change).items() if tensor is not None}
    with pytest.raises(AssertionError, match=problem):
        raise AssertionError(solution_problem(tensors, 3, 5))


def test_moved_is_without_the_inverse(solution):
    moved = solution.moved(lambda tensor: tensor * 2)
    assert torch.equal(moved.weight, solution.weight * 2) and moved.inverse is None and moved.facts == (0.5, 2.0)
