"""Image folders, zips and tars with ``<domain>/train/<class>/*`` and ``<domain>/test/<class>/*``."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path, PurePosixPath

import torch
from torch import Tensor

from avalanche_f2ocl.datasets.archives import Inside
from avalanche_f2ocl.datasets.by_class import SPLITS, files_by_class
from avalanche_f2ocl.datasets.image_source import ImageSource, normal
from avalanche_f2ocl.datasets.listed import ListedImages, check_same_classes
from avalanche_f2ocl.datasets.source import Source


class DomainFiles(ListedImages):
    """Lists images by split, domain and class; domains share their classes, though one may lack some.

    Args:
        dataset: folder, zip or tar of domains, each with ``train/<class>/*`` and ``test/<class>/*``; or a dict of
            folders, zips or tars by domain, without the domain's own folder.

    Attributes:
        domain_names: sorted names of the domains.
        class_names: sorted names of the classes; a label is an index into them.
        domains: by split, the index of each image's domain, ``(N,)`` int64.
        labels: labels by split, ``(N,)`` int64.
        passed_over: files that are no images by their names, or lie in no class.

    Raises:
        TypeError: ``dataset`` is neither a path nor a dict.
        FileNotFoundError: there is no such path.
        ValueError: a file is of another kind, there is no domain, a domain has no training or test images, or a class
            is in only one of the parts.
    """

    def __init__(self, dataset: str | PathLike | Mapping[str, str | PathLike]) -> None:
        sources = _sources(dataset)
        self.domain_names = sorted(sources)
        self.images: dict[str, list[tuple[Source, str]]] = {}
        self.domains: dict[str, Tensor] = {}
        classes: dict[str, list[str]] = {}
        passed_over: dict[str, set[str]] = {}
        for split in SPLITS:
            parts = [files_by_class(sources[name], split) for name in self.domain_names]
            for domain, part in zip(self.domain_names, parts, strict=True):
                if part.whole:
                    raise ValueError(f"domain {domain!r}, {str(sources[domain].path)!r}, has no train/ and test/")
            self.images[split] = [
                (sources[domain], name) for domain, p in zip(self.domain_names, parts, strict=True) for name in p.names
            ]
            sizes = torch.tensor([len(part.names) for part in parts])
            self.domains[split] = torch.arange(len(parts)).repeat_interleave(sizes)
            classes[split] = [name for part in parts for name in part.classes]
            named = zip(self.domain_names, parts, strict=True)
            passed_over[split] = {f"{domain}/{name}" for domain, part in named for name in part.passed_over}
        check_same_classes(classes)
        self.class_names = sorted(set(classes["train"]))
        ids = {name: label for label, name in enumerate(self.class_names)}
        self.labels = {split: torch.tensor([ids[name] for name in own]) for split, own in classes.items()}
        self.passed_over = sorted(passed_over["train"] & passed_over["test"])

    def chosen(self, split: str, indices: Tensor) -> list[tuple[Source, str]]:
        return [self.images[split][i] for i in indices.tolist()]

    def groups(self, split: str) -> Tensor:
        """For each image a number shared by exactly the images of its domain and class, ``(N,)`` int64."""
        return self.domains[split] * len(self.class_names) + self.labels[split]


def _sources(dataset: str | PathLike | Mapping[str, str | PathLike]) -> dict[str, ImageSource]:
    if isinstance(dataset, Mapping):
        if not dataset:
            raise ValueError("dataset={}: at least one domain is needed")
        return {str(name): ImageSource(Path(path)) for name, path in dataset.items()}
    if not isinstance(dataset, str | PathLike):
        raise TypeError(f"dataset is {type(dataset).__name__}: must be a path, or a dict of paths by domain")
    whole = ImageSource(Path(dataset))
    folders = set()
    for name in whole.images:
        parts = PurePosixPath(name).parts
        split = next((i for i, part in enumerate(parts) if part in SPLITS), 0)
        if split:
            folders.add("/".join(parts[:split]))
    sources = {
        normal(PurePosixPath(folder).name): ImageSource(whole.path / folder, Inside(whole.archive, folder + "/"))
        for folder in sorted(folders)
    }
    if not sources or len(sources) < len(folders):
        problem = "two domains of one name" if sources else "no <domain>/train/<class>/ with images in it"
        raise ValueError(f"{str(whole.path)!r} has {problem}")
    return sources
