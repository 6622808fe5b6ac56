"""What each process does in the tests of distributed runs, and one process alone."""

import os
import sys
import time
import warnings
from datetime import timedelta

import torch
from avalanche.benchmarks import benchmark_from_datasets
from avalanche.benchmarks.utils import as_classification_dataset
from avalanche.training.plugins import EvaluationPlugin
from timm.models import VisionTransformer
from torch import distributed as dist

from avalanche_f2ocl import F2OCLModel, F2OCLStrategy, ViTNCM, class_incremental_stream, f2ocl_metrics
from avalanche_f2ocl.backbone.load import load_backbone
from avalanche_f2ocl.baselines import ER
from avalanche_f2ocl.evaluation.by_groups import run_online
from avalanche_f2ocl.models.frozen import ViTNCMModel

if sys.platform == "linux":
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # a machine's name may lead nowhere

SHARED = {"prompt_assignment": "shared"}
MODELS = {
    "ncm": {"passes": 2, "keys": 2},
    "ncm, gradient keys, own prompts": {"prompt_assignment": "label", "head_features": "z", "key_update": "gradient"},
    "ncm, all negatives, one prompt": SHARED | {"negatives": "all"},
    "lda": {"head": "lda", "head_features": "zq", "prompt_election": "seen"},
    "ridge": SHARED | {"head": "ridge", "head_features": "ensemble", "projection": 0, "compensate_drift": True},
    "slda": {"head": "slda", "head_features": "q"},
    "klda": {"head": "klda", "head_features": "z", "projection": 30},
    "fecam": {"head": "fecam", "head_features": "q"},
    "ridge, projected": {"head": "ridge", "head_features": "layers", "projection": 30},
}
SIZES = (10, 7, 1, 2, 10, 3)
"""Of the mini-batches: shares of unequal size, and none for one of the processes."""


def small_vit(seed=0):
    torch.manual_seed(seed)
    return VisionTransformer(img_size=16, patch_size=8, embed_dim=16, depth=2, num_heads=2, num_classes=0)


def make_models():
    models = {name: F2OCLModel(small_vit(), prompt_length=3, **options) for name, options in MODELS.items()}
    frozen = load_backbone(small_vit())
    return models | {"frozen": ViTNCMModel(frozen, head="ridge", head_features="layers", projection=0)}


def learn():
    """What is learned, and what is predicted, by model."""
    found = {}
    for name, model in make_models().items():
        draw = torch.Generator().manual_seed(1)
        for step, size in enumerate(SIZES):
            images = torch.randint(0, 256, (size, 3, 16, 16), dtype=torch.uint8, generator=draw)
            # New classes come in the first or in the second half: in one process's share.
            model.learn(images, [step % 3 if i < size // 2 else 10 + step % 4 for i in range(size)])
        images = torch.randint(0, 256, (5, 3, 16, 16), dtype=torch.uint8, generator=draw)
        state = {k: v for k, v in model.state_dict().items() if not k.startswith("backbone")}
        found[name] = {**state, "logits": model(images), "one image": model(images[:1])}
    return found


def run_stream():
    """Figures of whole runs through Avalanche, all metrics included."""
    figures = {}
    for make in (F2OCLStrategy, F2OCLStrategy.best, ViTNCM):
        stream = class_incremental_stream("digits", groups=3, train_per_class=7, test_per_class=5)
        strategy = make(backbone=small_vit(), evaluator=EvaluationPlugin(*f2ocl_metrics()))
        result = run_online(strategy, stream, progress=False)
        figures[make.__name__] = torch.tensor([result.A_n, result.F_n, *result.T.flatten().tolist()])
    return figures


def join(rank, folder, ranks_count):
    torch.set_num_threads(1)
    store = f"file://{folder}/store"
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=ranks_count, timeout=timedelta(seconds=60))


def work(rank, folder, ranks_count):
    join(rank, folder, ranks_count)
    warnings.filterwarnings("error", message="You are using plugins that are not compatible")
    found = {"models": learn(), "streams": run_stream(), "refused": refused(rank)}
    found["skipped"], found["out of step"] = skip(rank), out_of_step(rank)
    model = F2OCLModel(small_vit(), prompt_length=2)
    model.save(f"{folder}/saved-{rank}")
    model.learn(torch.zeros(2, 3, 16, 16), [3, 4])
    if rank == 0:
        time.sleep(1)
    model.save(f"{folder}/saved")
    found["loaded"] = F2OCLModel.from_file(f"{folder}/saved", backbone=small_vit()).class_ids
    torch.save(found, f"{folder}/found-{rank}")
    dist.barrier()
    dist.destroy_process_group()


class Broken(torch.utils.data.Dataset):
    """Images of ten classes; some cannot be read, some are not finite."""

    def __init__(self, unreadable=(), unfit=()):
        self.targets = [i % 10 for i in range(60)]
        self.images = torch.rand(60, 3, 16, 16, generator=torch.Generator().manual_seed(0))
        self.images[list(unfit)] = float("nan")
        self.unreadable = unreadable

    def __len__(self):
        return 60

    def __getitem__(self, index):
        if index in self.unreadable:
            raise OSError("unreadable")
        return self.images[index], self.targets[index]


def train_on(dataset, **options):
    """A model that learned it in mini-batches of 10, and how many were skipped."""
    strategy = F2OCLStrategy(backbone=small_vit(), prompt_length=2, evaluator=None, **options)
    stream = benchmark_from_datasets(train=[as_classification_dataset(dataset)])
    strategy.train(stream.train_stream, eval_streams=[])
    return strategy.model, strategy.skipped


BROKEN = ({"unreadable": [5, 33]}, {"unreadable": [34], "unfit": [17]})
"""Of the first and the second process."""


def skip(rank):
    """What is learned where processes have other bad mini-batches."""
    with warnings.catch_warnings(record=True):
        model, skipped = train_on(Broken(**BROKEN[rank]), on_bad_input="skip")
    state = {k: v for k, v in model.state_dict().items() if not k.startswith("backbone")}
    return {"skipped": torch.tensor(skipped), **state}


def out_of_step(rank):
    """The message where each process shuffles by a seed of its own."""
    try:
        train_on(Broken(), seed=rank, on_bad_input="skip")
    except RuntimeError as error:
        return str(error)


def refused(rank):
    """What is refused with several processes."""
    messages = []
    for make in (lambda: ER(backbone=small_vit(), evaluator=None), lambda: F2OCLModel(small_vit(seed=rank))):
        try:
            make()
        except (RuntimeError, ValueError) as error:
            messages.append(str(error))
    return messages
