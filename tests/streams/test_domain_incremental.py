import numpy as np
import pytest
import torch
from avalanche.training.plugins import EvaluationPlugin
from PIL import Image

from avalanche_f2ocl import ViTNCM, domain_incremental_stream, f2ocl_metrics
from avalanche_f2ocl.datasets.domains import DomainFiles
from avalanche_f2ocl.evaluation.by_groups import run_online
from tests.helpers import as_tensors

LEVELS = {
    "dark": {"ant": 20, "bee": 60, "cat": 100},
    "light": {"ant": 60, "bee": 20, "cat": 240},
    "mixed": {"ant": 200, "bee": 230, "cat": 100},
}
"""Grey levels by domain and class; in the light, ants and bees look like the other in the dark."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, draw = tmp_path_factory.mktemp("domains"), np.random.default_rng(0)
    for domain, levels in LEVELS.items():
        for name, level in levels.items():
            for split, count in (("train", 6), ("test", 4)):
                (folder / domain / split / name).mkdir(parents=True)
                for i in range(count):
                    pixels = draw.integers(level - 5, level + 5, (20 + i, 30), dtype=np.uint8)
                    Image.fromarray(pixels).save(folder / domain / split / name / f"{i}.png")
    return folder


def test_one_experience_a_domain_with_all_classes(folder):
    stream = domain_incremental_stream(folder, seed=1, image_size=8, train_per_class=5, test_per_class=2)
    assert sorted(stream.domain_names) == sorted(LEVELS) and stream.class_names == {0: "ant", 1: "bee", 2: "cat"}
    assert len(stream.train_stream) == len(stream.test_stream) == 3 and stream.seed == 1
    for part, count in ((stream.train_stream, 5), (stream.test_stream, 2)):
        for name, experience in zip(stream.domain_names, part, strict=True):
            images, labels = as_tensors(experience)
            assert torch.bincount(labels).tolist() == [count] * 3 and images.shape[1:] == (3, 8, 8)
            for image, label in zip(images, labels.tolist(), strict=True):
                level = LEVELS[name][stream.class_names[label]]
                assert abs(image.float().mean() - level) < 5
    order = as_tensors(stream.train_stream[0])[1].tolist()
    assert order != sorted(order) and stream.class_order == list(dict.fromkeys(order))


def test_the_seed_drives_the_order_of_domains_and_samples_but_not_which_images(folder):
    def first(seed, **options):
        stream = domain_incremental_stream(folder, seed=seed, image_size=8, train_per_class=3, **options)
        return stream.domain_names, as_tensors(stream.train_stream[0])

    assert len({tuple(first(seed)[0]) for seed in range(8)}) > 2
    (_, one), (_, again), (_, other) = (first(seed, domains=["light"]) for seed in (0, 0, 1))
    assert torch.equal(one[0], again[0]) and not torch.equal(one[1], other[1])
    same = [sorted(image.numpy().tobytes() for image in images) for images, _ in (one, other)]
    assert same[0] == same[1]


def test_domains_by_name(folder):
    asked = ["mixed", "dark"]
    stream = domain_incremental_stream(folder, asked, image_size=8)
    assert stream.domain_names == asked and len(stream.train_stream) == 2
    for wrong in (["dusk"], ["dark", "dark"], [], "dark"):
        with pytest.raises(ValueError, match="domains=.*: allowed are dark, light, mixed, each once"):
            domain_incremental_stream(folder, wrong)
    with pytest.raises(TypeError, match="nonsense"):
        domain_incremental_stream(folder, nonsense=1)


def test_files_that_have_been_listed(folder):
    one, other = (domain_incremental_stream(dataset, seed=1, image_size=8) for dataset in (folder, DomainFiles(folder)))
    assert one.domain_names == other.domain_names
    for here, there in zip(one.train_stream, other.train_stream, strict=True):
        assert torch.equal(as_tensors(here)[0], as_tensors(there)[0])


def test_the_disk_gives_what_memory_does(folder):
    disk, memory = (domain_incremental_stream(folder, image_size=8, in_memory=place) for place in (False, True))
    for part in ("train_stream", "test_stream"):
        for ours, theirs in zip(getattr(disk, part), getattr(memory, part), strict=True):
            assert all(torch.equal(a, b) for a, b in zip(as_tensors(ours), as_tensors(theirs), strict=True))


def test_figures_go_by_domains(folder):
    stream = domain_incremental_stream(folder, ["dark", "light", "mixed"], image_size=32)
    evaluator = EvaluationPlugin(*f2ocl_metrics())
    strategy = ViTNCM(backbone="micro_vit", evaluator=evaluator)
    result = run_online(strategy, stream, progress=False)
    # By hand: class means of all images so far of each class, and each domain's test images against them.
    vit, sums, counts = strategy.model.backbone, torch.zeros(3, 128), torch.zeros(3)
    T = np.full((3, 3), np.nan)
    for i, experience in enumerate(stream.train_stream):
        images, labels = as_tensors(experience)
        q = vit.encode(images)
        sums.index_add_(0, labels, q)
        counts += torch.bincount(labels)
        means = torch.nn.functional.normalize(sums / counts[:, None], dim=1)
        for j in range(i + 1):
            images, labels = as_tensors(stream.test_stream[j])
            T[i, j] = ((vit.encode(images) @ means.T).argmax(1) == labels).float().mean()
    np.testing.assert_allclose(result.T[np.tril_indices(3)], T[np.tril_indices(3)], atol=1e-6)
    assert result.A_n < 0.9 and result.A_n == pytest.approx(T[2].mean())  # domains disagree
    assert result.F_n == pytest.approx(np.mean([max(T[0, 0], T[1, 0]) - T[2, 0], T[1, 1] - T[2, 1]]))
