"""Several processes that share the work learn what one process learns."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
from torch import distributed as dist
from torch import multiprocessing

from avalanche_f2ocl import F2OCLModel, F2OCLStrategy, ranks
from avalanche_f2ocl.options import HeadOptions, choices
from avalanche_f2ocl.ranks import Share, own_share
from tests.ranks_work import MODELS, Broken, join, learn, run_stream, small_vit, train_on, work


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
