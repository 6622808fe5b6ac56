import torch

from avalanche_f2ocl.state.replaced import ReplacedRows


class Counts(ReplacedRows):
    def __init__(self):
        super().__init__()
        self.register_rows("counts", dtype=torch.int64)
        self.register_buffer("total", torch.zeros((), dtype=torch.int64))


def filled():
    part = Counts()
    part.add_rows(2)
    part.counts, part.total = part.counts + 3, part.total + 6
    return part


def test_what_is_replaced_comes_back_by_growth_beyond_the_capacity():
    part = filled()
    put_back = part.undo_growth()
    part.add_rows(200)
    put_back_rows = part.undo_writes(torch.arange(202))
    part.counts, part.total = part.counts + 1, part.total + 1
    put_back_rows()
    put_back()
    assert part.num_rows == 2 and part.used("counts").tolist() == [3, 3] and part.total == 6


def test_with_the_last_class_all_is_zero_also_after_loading():
    part = Counts()
    part.load_state_dict(filled().state_dict())
    part.remove_row(0)
    assert part.total == 6
    part.remove_row(0)
    assert part.total == 0
