"""Avalanche's dataset, but with mini-batches that are fetched at once."""

from collections.abc import Sequence

import torch
from avalanche.benchmarks.utils import DataAttribute
from avalanche.benchmarks.utils.classification_dataset import ClassificationDataset

from avalanche_f2ocl.datasets.image_files import FilesOnDisk
from avalanche_f2ocl.datasets.image_tensors import ImageTensors


class BatchedDataset(ClassificationDataset):
    """Avalanche's dataset of (parts of) one :class:`ImageTensors` or :class:`FilesOnDisk`.

    If it is given transforms, more data or more attributes, as Avalanche allows, it fetches image by image, as
    Avalanche's own dataset does.

    Args:
        data: images and labels.

    Example:
        >>> data = BatchedDataset.of(ImageTensors(torch.zeros(4, 1, 2, 2), torch.tensor([5, 6, 7, 8])))
        >>> data.subset([3, 1]).__getitems__([0, 1]).labels
        tensor([8, 6])
    """

    @classmethod
    def of(cls, data: ImageTensors | FilesOnDisk) -> "BatchedDataset":
        """A dataset of all items of ``data``."""
        return cls([data], data_attributes=[DataAttribute(data.targets, "targets")])

    @property
    def device(self) -> torch.device:
        """The device of the images, or of the first data set's images; the CPU if they are not in memory."""
        return getattr(self._flat_data._datasets[0], "device", torch.device("cpu"))

    def __getitems__(self, indices: list[int]) -> Sequence:
        flat = self._flat_data
        [images, *more] = flat._datasets
        if more or not isinstance(images, ImageTensors | FilesOnDisk) or self._changes_items():
            return [self[i] for i in indices]
        return images.__getitems__(indices if flat._indices is None else [flat._indices[i] for i in indices])

    def _changes_items(self) -> bool:
        flat = self._flat_data
        groups = (group for group in (flat._transform_groups, flat._frozen_transform_groups) if group is not None)
        transforms = (transform for group in groups for transform in group.transform_groups.values())
        attributes = self._data_attributes.values()
        return any(t is not None for t in transforms) or any(attribute.use_in_getitem for attribute in attributes)
