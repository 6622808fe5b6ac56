"""Two processes that share each mini-batch: whether both hold the same bits and learn what one does, and how fast.

On one device they communicate by gloo, since NCCL does not allow it; with two devices by NCCL. torchrun starts this
file.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from torch import Tensor

from avalanche_f2ocl import F2OCLModel, ranks
from benchmarks.gpu.setting import Results, Setting, tried
from benchmarks.speed.setting import BATCH, random_data, toy_vit, vit_tiny_112

PROCESSES = 2
FOLDER = "F2OCL_PROCESSES_FOLDER"
"""Environment variable with the folder for what the processes learned."""


def main(argv: list[str] | None = None) -> None:
    setting = Setting.of(argv)
    if FOLDER in os.environ:
        work(setting)
        return
    results = Results(setting.out)
    with tempfile.TemporaryDirectory() as folder:
        results["processes"] = tried(together, setting, folder)


def together(setting: Setting, folder: str) -> dict:
    """The results of all processes."""
    start_all(setting, folder)
    first, second = (torch.load(Path(folder, f"learned-{rank}"), weights_only=True) for rank in range(PROCESSES))
    alone = learn(setting)
    far = max((first["state"][name] - value).abs().max().item() for name, value in alone["state"].items())
    return {
        "by": first["backend"],
        "same_bits": all(torch.equal(value, second["state"][name]) for name, value in first["state"].items()),
        "off_from_one_process": far,
        "ms": first["ms"],
        "ms_of_one_process": alone["ms"],
    }


def start_all(setting: Setting, folder: str) -> None:
    """Starts the processes by torchrun."""
    arguments = [f"--out={setting.out}", f"--device={setting.device.type}", *(["--small"] if setting.small else [])]
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={PROCESSES}"]
    environment = {"GLOO_SOCKET_IFNAME": "lo", **os.environ, FOLDER: folder}
    subprocess.run([*command, "-m", "benchmarks.gpu.processes", *arguments], check=True, env=environment)


def work(setting: Setting) -> None:
    """The work of one process."""
    ranks.start()
    torch.save(learn(setting), Path(os.environ[FOLDER], f"learned-{ranks.rank()}"))
    ranks.wait_for_all()


def learn(setting: Setting) -> dict:
    """State, milliseconds a mini-batch, and the backend by which processes communicate."""
    device = torch.device(setting.device.type)  # each process's own
    torch.manual_seed(0)
    model = F2OCLModel((toy_vit if setting.small else vit_tiny_112)(), device=device, precision="float32")
    count = 4 if setting.small else 40
    data = random_data(BATCH * count, 10)
    batches = list(zip(data.images.split(BATCH), data.labels.split(BATCH), strict=True))
    for images, labels in batches[: count // 2]:
        model.learn(images, labels)
    start = time.perf_counter()
    for images, labels in batches[count // 2 :]:
        model.learn(images, labels)
    state: dict[str, Tensor] = {k: v.cpu() for k, v in model.state_dict().items() if not k.startswith("backbone")}
    # Copying the state waits for the device.
    took = time.perf_counter() - start
    backend = torch.distributed.get_backend() if ranks.world_size() > 1 else "none"
    return {"state": state, "ms": 1e3 * took / (count - count // 2), "backend": str(backend)}


if __name__ == "__main__":
    main()
