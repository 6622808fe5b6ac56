from copy import deepcopy

import pytest
import torch

from avalanche_f2ocl.state.row_adam import RowAdam, forget_rows, move_state, remove_row, used_rows

OPTIONS = dict(lr=0.1, betas=(0.9, 0.99), eps=1e-6)


def gradients(steps, rows, draw):
    """Per step, a gradient (rows, 2, 3) or None for each row."""
    used = torch.rand(steps, rows, generator=draw) < 0.5
    values = torch.randn(steps, rows, 2, 3, generator=draw)
    return [[values[s, r] if used[s, r] else None for r in range(rows)] for s in range(steps)]


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_used_rows_equal_adam_on_one_parameter_per_row(kind, draw):
    start = torch.randn(5, 2, 3, generator=draw)
    stacked = torch.nn.Parameter(start.clone())
    single = [torch.nn.Parameter(row.clone()) for row in start]
    ours, theirs = RowAdam([stacked], **OPTIONS), torch.optim.Adam(single, **OPTIONS)
    for step in gradients(40, 5, draw):
        for parameter, grad in zip(single, step, strict=True):
            parameter.grad = None if grad is None else grad.clone()
        rows = [r for r, grad in enumerate(step) if grad is not None]
        if kind == "dense":
            stacked.grad = torch.stack([torch.zeros(2, 3) if grad is None else grad for grad in step])
        elif rows:
            values = torch.stack([step[r] for r in rows])
            stacked.grad = torch.sparse_coo_tensor(torch.tensor([rows]), values, stacked.shape, check_invariants=True)
        else:
            stacked.grad = None
        before = stacked.detach().clone()
        ours.step(), theirs.step()
        absent = [r for r in range(5) if r not in rows]
        assert torch.equal(stacked[absent], before[absent])
    torch.testing.assert_close(stacked, torch.stack(list(single)), rtol=1e-5, atol=1e-6)


def test_rows_without_gradient_keep_value_and_state_bit_for_bit(draw):
    rows = torch.nn.Parameter(torch.randn(3, 4, generator=draw))
    optimizer = RowAdam([rows], **OPTIONS)
    rows.grad = torch.randn(3, 4, generator=draw)
    optimizer.step()
    before = {name: t.clone() for name, t in optimizer.state[rows].items()} | {"value": rows.detach().clone()}
    for _ in range(500):
        rows.grad = torch.zeros(3, 4)
        rows.grad[1] = torch.randn(4, generator=draw)
        optimizer.step()
    after = optimizer.state[rows] | {"value": rows.detach()}
    for name in before:
        assert torch.equal(after[name][[0, 2]], before[name][[0, 2]]), name
        assert not torch.equal(after[name][1], before[name][1]), name


def test_a_stacked_tensor_under_plain_adam_would_drift(draw):
    """The reason for RowAdam."""
    rows = torch.nn.Parameter(torch.randn(2, 4, generator=draw))
    optimizer = torch.optim.Adam([rows], lr=0.1)
    rows.grad = torch.ones(2, 4)
    optimizer.step()
    before = rows[0].detach().clone()
    rows.grad = torch.tensor([[0.0] * 4, [1.0] * 4])
    optimizer.step()
    assert not torch.equal(rows[0], before)


def test_every_row_is_plain_adam(draw):
    start = torch.randn(3, 4, generator=draw)
    ours, theirs = torch.nn.Parameter(start.clone()), torch.nn.Parameter(start.clone())
    one, other = RowAdam([{"params": [ours], "every_row": True}], **OPTIONS), torch.optim.Adam([theirs], **OPTIONS)
    for i in range(6):
        grad = torch.randn(3, 4, generator=draw)
        grad[i % 3] = 0
        ours.grad, theirs.grad = grad.clone(), grad.clone()
        one.step(), other.step()
    torch.testing.assert_close(ours, theirs)


def test_a_named_row_with_zero_gradient_takes_its_step():
    rows = torch.nn.Parameter(torch.zeros(2, 3))
    optimizer = RowAdam([rows], **OPTIONS)
    rows.grad = torch.sparse_coo_tensor(torch.tensor([[1]]), torch.zeros(1, 3), (2, 3), check_invariants=True)
    optimizer.step()
    assert optimizer.state[rows]["step"].tolist() == [0, 1]


def test_rows_named_twice_add_up():
    one, two = torch.nn.Parameter(torch.zeros(2, 3)), torch.nn.Parameter(torch.zeros(2, 3))
    one.grad = torch.sparse_coo_tensor(torch.tensor([[1, 1]]), torch.ones(2, 3), (2, 3), check_invariants=True)
    two.grad = torch.tensor([[0.0] * 3, [2.0] * 3])
    RowAdam([one], **OPTIONS).step(), RowAdam([two], **OPTIONS).step()
    assert torch.equal(one, two)


def test_growth_keeps_the_state_of_old_rows(draw):
    rows = torch.nn.Parameter(torch.randn(2, 3, generator=draw))
    optimizer = RowAdam([rows], **OPTIONS)
    rows.grad = torch.ones(2, 3)
    optimizer.step()
    moment = optimizer.state[rows]["exp_avg"].clone()
    rows.grad, rows.data = None, torch.cat([rows.data, torch.zeros(1, 3)])
    rows.grad = torch.tensor([[0.0] * 3, [0.0] * 3, [1.0] * 3])
    optimizer.step()
    assert optimizer.state[rows]["step"].tolist() == [1, 1, 1]
    assert torch.equal(optimizer.state[rows]["exp_avg"][:2], moment)


def test_state_dict_goes_on_where_it_was(draw):
    start = torch.randn(3, 4, generator=draw)
    one = torch.nn.Parameter(start.clone())
    optimizer = RowAdam([one], **OPTIONS)
    one.grad = torch.randn(3, 4, generator=draw)
    optimizer.step()
    two = torch.nn.Parameter(one.detach().clone())
    resumed = RowAdam([two], **OPTIONS)
    resumed.load_state_dict(deepcopy(optimizer.state_dict()))
    one.grad = two.grad = torch.randn(3, 4, generator=draw)
    optimizer.step(), resumed.step()
    assert torch.equal(one, two)


def test_step_size_falls_with_a_rows_own_steps():
    """Under a constant gradient Adam's step is its step size: lr / t**p."""
    rows = torch.nn.Parameter(torch.zeros(2, 1))
    optimizer = RowAdam([rows], lr=0.1, lr_decay=0.5)
    for used in ([1.0, 1.0], [1.0, 0.0], [1.0, 1.0]):
        rows.grad = torch.tensor(used).unsqueeze(1)
        optimizer.step()
    three = 0.1 * (1 + 2**-0.5 + 3**-0.5)
    assert rows.flatten().tolist() == pytest.approx([-three, -0.1 * (1 + 2**-0.5)], rel=1e-5)


def test_closure_and_parameters_without_gradient():
    used, unused = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))
    optimizer = RowAdam([used, unused], **OPTIONS)

    def closure():
        loss = used[0] ** 2
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 1
    assert used[0] < 1 and used[1] == 1 and unused.tolist() == [1, 1]


@pytest.mark.parametrize(
    "option",
    [dict(lr=0), dict(lr=-1), dict(betas=(1.0, 0.9)), dict(betas=(0.9,)), dict(eps=0), dict(lr_decay=-1)],
    ids=str,
)
def test_options_out_of_range(option):
    with pytest.raises(ValueError, match=next(iter(option))):
        RowAdam([torch.nn.Parameter(torch.ones(1))], **option)


OPTIMIZERS = {
    "rows": lambda p: RowAdam([p]),
    "momentum": lambda p: torch.optim.SGD([p], momentum=0.9),
    "no momentum": lambda p: torch.optim.SGD([p], momentum=0.0),
    "adam": lambda p: torch.optim.Adam([p]),
}


@pytest.fixture(params=OPTIMIZERS)
def stepped(request):
    """A parameter of four rows, its optimiser after a step of other gradients in each, and a copy of its state."""
    param = torch.nn.Parameter(torch.zeros(4, 2))
    optimizer = OPTIMIZERS[request.param](param)
    param.grad = torch.arange(1.0, 9).view(4, 2)
    optimizer.step()
    optimizer.state[param]["nothing"] = None
    return param, optimizer, deepcopy(optimizer.state[param])


def test_forgotten_rows_are_as_without_a_step(stepped):
    param, optimizer, before = stepped
    forget_rows(optimizer, param, torch.tensor([1, 3, 9]))
    for name, state in optimizer.state[param].items():
        if isinstance(state, torch.Tensor) and state.dim() > 0:
            assert state[[1, 3]].abs().sum() == 0 and torch.equal(state[[0, 2]], before[name][[0, 2]])
            assert state[[0, 2]].abs().sum() > 0
        else:
            assert state == before[name]
    forget_rows(optimizer, torch.zeros(2), torch.tensor([0]))  # nothing is known of it


def test_of_a_removed_row_the_state_goes_and_the_others_move_up(stepped):
    param, optimizer, before = stepped
    remove_row(optimizer, param, 1)
    remove_row(optimizer, param, 7)  # born after the step
    for name, state in optimizer.state[param].items():
        if isinstance(state, torch.Tensor) and state.dim() > 0:
            assert torch.equal(state[:3], before[name][[0, 2, 3]]) and state[3].abs().sum() == 0
        else:
            assert state == before[name]


def test_used_rows_of_vectors_and_matrices():
    rows, grad = used_rows(torch.tensor([0.0, 2, 0, 3]))
    assert rows.tolist() == [1, 3] and grad.tolist() == [2, 3]
    rows, grad = used_rows(torch.tensor([[0.0, 0], [0, 2], [3, 0]]))
    assert rows.tolist() == [1, 2] and grad.tolist() == [[0, 2], [3, 0]]
    rows, _ = used_rows(torch.zeros(3, 2), every_row=True)
    assert rows.tolist() == [0, 1, 2]
    sparse = torch.sparse_coo_tensor([[2, 0, 2]], [[1.0], [2], [3]], (4, 1))
    rows, grad = used_rows(sparse)
    assert rows.tolist() == [0, 2] and grad.tolist() == [[2], [4]]


def test_undoing_a_step_cuts_off_state_of_rows_that_had_none():
    """The last row that had state is not the one that is put back."""
    param = torch.nn.Parameter(torch.zeros(2, 1))
    optimizer = RowAdam([param])
    param.grad = torch.tensor([[1.0], [2.0]])
    optimizer.step()
    before = deepcopy(optimizer.state[param])
    param.data = torch.zeros(4, 1)
    undo = optimizer.undo_step(param, torch.tensor([1, 3]))
    param.grad = torch.tensor([[0.0], [5.0], [0.0], [5.0]])
    optimizer.step()
    undo()
    assert all(torch.equal(optimizer.state[param][name], state) for name, state in before.items())


@pytest.mark.parametrize("make", [RowAdam, lambda params: torch.optim.SGD(params, 0.1, momentum=0.9)])
def test_state_goes_where_the_model_goes(make):
    parameter = torch.nn.Parameter(torch.ones(3, 2))
    optimizer = make([parameter])
    parameter.sum().backward()
    optimizer.step()
    move_state(optimizer, torch.device("meta"))
    state = optimizer.state[parameter]
    assert state and all(tensor.is_meta for tensor in state.values())
