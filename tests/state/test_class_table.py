import torch

from avalanche_f2ocl.state.class_table import ClassTable


def test_any_integers_in_any_order():
    table = ClassTable()
    table.add(torch.tensor([900, -3]))
    assert table.unknown(torch.tensor([5, -3, 5, -7])).tolist() == [-7, 5]
    table.add(torch.tensor([2**40]))
    assert table.rows(torch.tensor([-3, 2**40, 900, -3, 1])).tolist() == [1, 2, 0, 1, -1]
    assert (len(table), table.max_id, table.used("ids").tolist()) == (3, 2**40, [900, -3, 2**40])


def test_empty():
    assert ClassTable().max_id == -1 and ClassTable().rows(torch.tensor([1])).tolist() == [-1]


def test_loading_restores_the_lookup():
    table, other = ClassTable(), ClassTable()
    table.add(torch.tensor([7, -1]))
    other.add(torch.tensor([0, 1, 2]))
    other.load_state_dict(table.state_dict())
    assert other.rows(torch.tensor([-1, 7, 0])).tolist() == [1, 0, -1]
