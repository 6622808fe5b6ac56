import torch

from avalanche_f2ocl.heads import RidgeHead


def fitted(x, y, **options):
    head = RidgeHead(x.shape[1], **options)
    head.add_rows(int(y.max()) + 1)
    for part in torch.arange(len(x)).split(10):
        head.update(x[part], y[part])
    return head
