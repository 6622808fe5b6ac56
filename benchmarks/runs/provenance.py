"""What a run's record says about its weights, versions, machine and memory."""

import hashlib
import platform
import resource
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import as_file, files
from pathlib import Path

import torch

from avalanche_f2ocl import __version__
from avalanche_f2ocl.backbone.weights import MICRO_VIT

PACKAGES = ("avalanche-f2ocl", "avalanche-lib", "torch", "timm", "torchvision", "numpy")


def weights_sha256(backbone: str, weights: str | None, vit: torch.nn.Module) -> str:
    """SHA-256 of the weights' file, or of the tensors if timm downloaded them."""
    if weights is not None:
        return hashlib.sha256(Path(weights).read_bytes()).hexdigest()
    if backbone == MICRO_VIT:
        with as_file(files("avalanche_f2ocl") / "assets" / "micro_vit.safetensors") as path:
            return hashlib.sha256(path.read_bytes()).hexdigest()
    digest = hashlib.sha256()
    for name, tensor in vit.state_dict().items():
        digest.update(name.encode() + tensor.cpu().numpy().tobytes())
    return digest.hexdigest()


def versions() -> dict[str, str]:
    """Of the packages and of Python."""
    return {name: version_of(name) for name in PACKAGES} | {"python": platform.python_version()}


def version_of(package: str) -> str:
    """Version of an installed package, or of a working tree that is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return __version__ if package == "avalanche-f2ocl" else "not installed"


def device_name(device: torch.device) -> str:
    """Name of the GPU, or of the processor as the system reports it."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    told = Path("/proc/cpuinfo")
    lines = told.read_text().splitlines() if told.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def peak_memory_bytes(device: torch.device) -> int:
    """Peak memory of the GPU if there is one, else of the process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if platform.system() == "Darwin" else peak * 1024
