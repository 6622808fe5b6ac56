import pytest
import torch
from torch.overrides import TorchFunctionMode

from avalanche_f2ocl.state.rows import ClassRows, add_to_rows


class Rows(ClassRows):
    def __init__(self, width=2):
        super().__init__()
        self.register_rows("weights", width, trainable=True)
        self.register_rows("counts", dtype=torch.int64)


def filled(count):
    rows = Rows()
    rows.add_rows(count)
    with torch.no_grad():
        rows.weights[:count] = torch.arange(2.0 * count).view(count, 2)
        rows.counts[:count] = torch.arange(count)
    return rows


def test_growth_never_changes_a_row_and_keeps_the_parameter():
    rows = filled(3)
    parameter, values = rows.weights, rows.used("weights").detach().clone()
    parameter.grad = torch.ones_like(parameter)
    assert rows.add_rows(1000) == slice(3, 1003)
    assert rows.weights is parameter and parameter.grad is None
    assert torch.equal(rows.used("weights")[:3], values) and rows.used("counts")[:3].tolist() == [0, 1, 2]
    assert rows.used("weights").shape == (1003, 2) and rows.used("weights")[3:].abs().sum() == 0


def test_growth_one_by_one_copies_seldom_and_wastes_little():
    rows, copies, last = Rows(), 0, None
    for _ in range(10_000):
        rows.add_rows(1)
        copies += rows.counts.data_ptr() != last
        last = rows.counts.data_ptr()
    assert copies < 80
    assert len(rows.counts) <= 10_000 * 1.13


@pytest.mark.parametrize("count", [0, 1, 70])
def test_state_dict_holds_the_used_rows_and_loads_into_any_size(count):
    state = filled(count).state_dict()
    assert state["weights"].shape == (count, 2)
    for before in (0, 100):
        rows = filled(before)
        rows.load_state_dict(state)
        assert rows.num_rows == count
        assert torch.equal(rows.used("weights"), state["weights"])
        rows.add_rows(1)
        assert torch.equal(rows.used("counts")[:count], state["counts"])


def test_a_state_that_does_not_fit_changes_nothing():
    rows = filled(3)
    before = {name: t.clone() for name, t in rows.state_dict().items()}
    with pytest.raises(RuntimeError, match="weights"):
        rows.load_state_dict(Rows(width=5).state_dict())
    assert rows.num_rows == 3
    assert all(torch.equal(rows.state_dict()[name], before[name]) for name in before)


def test_training_on_some_rows_of_tensors_of_any_shape():
    class Mixed(ClassRows):
        def __init__(self):
            super().__init__()
            self.register_rows("bias", trainable=True)
            self.register_rows("weight", 2, 3, trainable=True)

    rows = Mixed()
    rows.add_rows(5)
    for name in ("bias", "weight"):
        leaf = rows.trainable(name, torch.tensor([3, 1]))
        assert leaf.shape == (2, *rows.used(name).shape[1:])
        leaf.backward(torch.ones_like(leaf) * torch.tensor([1.0, 2.0]).view(-1, *[1] * (leaf.dim() - 1)))
        grad = getattr(rows, name).grad
        assert grad.is_sparse
        assert grad.to_dense().reshape(len(grad), -1)[:5, -1].tolist() == [0, 2, 0, 1, 0]


def test_frozen_only_the_rows_in_use_are_left_and_nothing_is_trained():
    rows = Rows()
    rows.add_rows(3)
    with torch.no_grad():
        rows.weights[:3] = torch.arange(6.0).view(3, 2)
    rows.freeze()
    assert rows.weights.tolist() == [[0, 1], [2, 3], [4, 5]] and not list(rows.parameters())


@pytest.mark.parametrize("row", range(5))
def test_a_row_that_goes_leaves_the_others_in_their_order(row):
    rows = filled(5)
    rows.remove_row(row)
    kept = [i for i in range(5) if i != row]
    assert rows.num_rows == 4
    assert rows.used("counts").tolist() == kept
    assert rows.used("weights").tolist() == [[2.0 * i, 2.0 * i + 1] for i in kept]
    assert rows.counts[4:].sum() == 0 and rows.weights[4:].abs().sum() == 0
    assert rows.add_rows(1) == slice(4, 5) and rows.used("counts").tolist() == [*kept, 0]


def test_frozen_rows_are_no_parameters_and_have_none_to_spare():
    rows = filled(3)
    values = rows.used("weights").detach().clone()
    rows.freeze()
    assert not list(rows.parameters()) and not rows.weights.requires_grad
    assert torch.equal(rows.weights, values) and rows.counts.tolist() == [0, 1, 2]


def test_sums_by_row_with_repeats_have_one_order_on_every_device():
    rows, values = torch.tensor([2, 0, 2]), torch.tensor([[1.0], [2.0], [4.0]], dtype=torch.float64)
    for device in ("cpu", "meta"):
        table, called = torch.zeros(3, 1, dtype=torch.float64, device=device), []
        with Functions(called):
            add_to_rows(table, rows.to(device), values.to(device))
        if device == "cpu":
            assert table.squeeze(1).tolist() == [2, 0, 5]
        # On CUDA index_add_ adds in any order, and index_put_ with accumulate=True sorts first.
        assert ("index_add_" in called) == (device == "cpu") and ("index_put_" in called) == (device == "meta")
    table = torch.zeros(3, 1, dtype=torch.float64)
    table.index_put_((rows,), values, accumulate=True)
    assert table.squeeze(1).tolist() == [2, 0, 5]


class Functions(TorchFunctionMode):
    """Notes the names of torch's functions that are called."""

    def __init__(self, called):
        self.called = called

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.called.append(getattr(func, "__name__", ""))
        return func(*args, **(kwargs or {}))


@pytest.mark.gpu
def test_on_cuda_sums_by_row_have_the_same_bits_each_time(draw):
    rows = torch.randint(0, 3, (5000,), generator=draw).cuda()
    values = torch.rand(5000, 64, generator=draw, dtype=torch.float64).cuda()
    tables = [torch.zeros(3, 64, dtype=torch.float64, device="cuda") for _ in range(20)]
    for table in tables:
        add_to_rows(table, rows, values)
    assert all(torch.equal(table, tables[0]) for table in tables)
    expected = torch.zeros(3, 64, dtype=torch.float64).index_add_(0, rows.cpu(), values.cpu())
    torch.testing.assert_close(tables[0].cpu(), expected)
