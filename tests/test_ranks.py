"""Several processes that share the work learn what one process learns."""

import os
import subprocess
import sys
import time
import warnings
from datetime import timedelta
from pathlib import Path

import pytest
import torch
from avalanche.benchmarks import benchmark_from_datasets
from avalanche.benchmarks.utils import as_classification_dataset
from avalanche.training.plugins import EvaluationPlugin
from timm.models import VisionTransformer
from torch import distributed as dist
from torch import multiprocessing

from avalanche_f2ocl import F2OCLModel, F2OCLStrategy, ViTNCM, class_incremental_stream, f2ocl_metrics, ranks
from avalanche_f2ocl.backbone.load import load_backbone
from avalanche_f2ocl.baselines import ER
from avalanche_f2ocl.evaluation.by_groups import run_online
from avalanche_f2ocl.models.frozen import ViTNCMModel
from avalanche_f2ocl.options import HeadOptions, choices
from avalanche_f2ocl.ranks import Share, own_share

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


def test_distributed_processes_learn_what_one_learns(tmp_path):
    """In one test, since starting processes takes longer than what they do."""
    multiprocessing.spawn(work, (str(tmp_path), 2), nprocs=2)
    first, second = (torch.load(tmp_path / f"found-{rank}", weights_only=True) for rank in range(2))
    for name, parts in learn().items():
        for part, expected in parts.items():
            got, where = first["models"][name][part], f"{name}, {part}"
            # KLDA's pseudoinverse, which is not shrunk, magnifies the rounding of embeddings.
            limit = 2e-3 if name == "klda" else 2e-4
            torch.testing.assert_close(got, expected, rtol=1e-3, atol=limit, msg=lambda m, where=where: f"{where}: {m}")
            assert torch.equal(got, second["models"][name][part]), f"{where}: not the same bits in both processes"
    for name, figures in run_stream().items():
        torch.testing.assert_close(first["streams"][name], figures, rtol=0, atol=0.03, equal_nan=True)
        assert torch.equal(first["streams"][name].nan_to_num(), second["streams"][name].nan_to_num())
    expected = skip_in_one_process()
    for name, value in first["skipped"].items():
        assert torch.equal(value, second["skipped"][name]), name
        torch.testing.assert_close(value, expected[name], rtol=1e-3, atol=2e-4, msg=lambda m, name=name: f"{name}: {m}")
    assert 2 <= first["skipped"]["skipped"] <= 4
    assert "different mini-batches" in first["out of step"] and first["out of step"] == second["out of step"]
    assert first["loaded"].tolist() == second["loaded"].tolist() == [3, 4]
    assert (tmp_path / "saved-0").exists() and not (tmp_path / "saved-1").exists()
    for er, weights in (first["refused"], second["refused"]):
        assert "ER does not run in several processes" in er and "different weights" in weights


def skip_in_one_process():
    """With the bad images of both."""
    with warnings.catch_warnings(record=True):
        model, skipped = train_on(Broken(unreadable=[5, 33, 34], unfit=[17]), on_bad_input="skip")
    return {"skipped": torch.tensor(skipped), **model.state_dict()}


def test_every_head_is_tested_distributed():
    heads = {options.get("head", "ncm") for options in MODELS.values()}
    assert heads == set(choices(HeadOptions)["head"])


def lose(rank, folder, ranks_count):
    join(rank, folder, ranks_count)
    strategy = F2OCLStrategy(backbone=small_vit(), prompt_length=2, evaluator=None)
    images = torch.zeros(4, 3, 16, 16, dtype=torch.uint8)
    strategy.model.learn(images, [0, 1, 0, 1])
    strategy.save(f"{folder}/last")
    if rank == 1:
        os._exit(1)
    try:
        strategy.model.learn(images, [0, 1, 0, 1])
    except RuntimeError as error:
        Path(folder, "message").write_text(f"{error} | {strategy.model.batches}")
    os._exit(0)


def test_a_distributed_run_that_loses_a_process_ends_and_says_so(tmp_path):
    context = multiprocessing.spawn(lose, (str(tmp_path), 2), nprocs=2, join=False)
    for process in context.processes:
        process.join(120)
        assert not process.is_alive()
    message = (tmp_path / "message").read_text()
    assert "one was lost" in message and message.endswith("| 1")  # the mini-batch is taken back
    assert F2OCLModel.from_file(tmp_path / "last", backbone=small_vit()).batches == 1


def test_torchrun_distributed_start(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from pathlib import Path\nfrom avalanche_f2ocl import ranks\nfirst = ranks.start()\n"
        "Path(__file__).with_name(f'{ranks.rank()} of {ranks.world_size()} {first}').touch()\n"
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    package = Path(ranks.__file__).parents[1]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(package)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} >= {"0 of 2 True", "1 of 2 False"}


@pytest.mark.parametrize(
    "devices, processes, backend, device",
    [
        (2, 2, "cpu:gloo,cuda:nccl", torch.device("cuda", 1)),
        (4, 2, "cpu:gloo,cuda:nccl", torch.device("cuda", 1)),
        (1, 2, "gloo", None),  # NCCL refuses two processes on one device
        (0, 2, "gloo", None),
    ],
)
def test_what_distributed_processes_talk_by(monkeypatch, devices, processes, backend, device):
    """As the second of them; a model on the CPU is served by gloo everywhere."""
    asked, current = {}, []
    monkeypatch.setattr(dist, "init_process_group", lambda name, **options: asked.update(name=name, **options))
    monkeypatch.setattr(dist, "is_nccl_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: devices)
    monkeypatch.setattr(torch.cuda, "set_device", current.append)
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(processes))
    ranks.start()
    assert asked["name"] == backend and asked.get("device_id") == device
    assert current == ([1 % devices] if devices else [])


@pytest.mark.parametrize("total, ranks_count", [(10, 3), (1, 4), (7, 7)])
def test_distributed_shares_are_all_there_is(total, ranks_count):
    rows = torch.arange(total)
    shares = [Share(total, rank, ranks_count) for rank in range(ranks_count)]
    assert torch.cat([share.of(rows)[: share.size] for share in shares]).tolist() == rows.tolist()
    assert max(shares[0].sizes) - min(shares[0].sizes) <= 1
    assert all(len(share.of(rows)) >= 1 for share in shares)


def test_without_torchrun_nothing_is_distributed():
    assert ranks.start() and ranks.world_size() == 1 and own_share(4).of(torch.arange(4)).tolist() == [0, 1, 2, 3]
