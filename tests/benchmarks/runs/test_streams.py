import argparse

import pytest
import torch
from PIL import Image

from avalanche_f2ocl import datasets
from benchmarks.runs import runner, streams
from benchmarks.runs.side_heads import by_class
from tests.benchmarks.runs.test_runner import arguments


def images(experiences):
    return [bytes(image.numpy().tobytes()) for experience in experiences for image, *_ in experience.dataset]


def test_held_out_images_are_training_images_that_are_not_trained_on(tmp_path):
    args = runner.parse_args([*arguments("vit-ncm", tmp_path), "--held-out", "4"])
    benchmark = streams.make_stream(args)
    train, test = images(benchmark.train_stream), images(benchmark.test_stream)
    assert len(train) == 60 and len(test) == 40 and not set(train) & set(test)
    all_training = {bytes(image.numpy().tobytes()) for image, _ in datasets.load("digits").train}
    assert set(train) | set(test) <= all_training
    for group, part in zip(benchmark.train_stream, benchmark.test_stream, strict=True):
        assert group.classes_in_this_experience == part.classes_in_this_experience
        assert torch.bincount(torch.tensor(list(part.dataset.targets))).max() == 4


@pytest.mark.parametrize("name", streams.BOUNDARY_FREE)
def test_streams_without_boundaries_have_one_experience(name, tmp_path):
    args = runner.parse_args([*arguments("vit-ncm", tmp_path), "--stream", name])
    benchmark = streams.make_stream(args)
    assert len(benchmark.train_stream) == len(benchmark.test_stream) == 1
    assert len(benchmark.test_stream[0].dataset) == 50


@pytest.fixture(scope="module")
def domains(tmp_path_factory):
    """Two domains of two classes; the grey level of an image is a number of its own."""
    folder, level = tmp_path_factory.mktemp("domains"), iter(range(0, 250, 5))
    for domain in ("dark", "light"):
        for split, count in (("train", 6), ("test", 3)):
            for name in ("ant", "bee"):
                (folder / domain / split / name).mkdir(parents=True)
                for i in range(count):
                    Image.new("L", (32, 32), next(level)).save(folder / domain / split / name / f"{i}.png")
    return folder


def levels(experience):
    return {int(image.flatten()[0]) for image, *_ in experience.dataset}


def test_classes_of_domains_come_with_all_their_domains(domains, tmp_path):
    more = ["--dataset", str(domains), "--stream", "classes-of-domains", "--groups", "2"]
    benchmark = streams.make_stream(runner.parse_args([*arguments("vit-ncm", tmp_path), *more]))
    ants, bees = ({*range(0, 30, 5), *range(90, 120, 5)}, {*range(30, 60, 5), *range(120, 150, 5)})
    assert sorted(map(levels, benchmark.train_stream), key=min) == [ants, bees]
    assert [len(part.dataset) for part in benchmark.test_stream] == [6, 6]


def test_images_of_domains_can_be_held_out(domains, tmp_path):
    more = ["--dataset", str(domains), "--stream", "classes-of-domains", "--groups", "2"]
    counts = ["--train-per-class", "8", "--held-out", "4"]
    benchmark = streams.make_stream(runner.parse_args([*arguments("vit-ncm", tmp_path), *more, *counts]))
    train, test = (set.union(*map(levels, part)) for part in (benchmark.train_stream, benchmark.test_stream))
    assert len(train) == 16 and len(test) == 8 and not train & test
    assert train | test == {*range(0, 60, 5), *range(90, 150, 5)}


def test_answers_on_domains_stand_in_one_order_for_all_seeds(domains, tmp_path):
    more = ["--dataset", str(domains), "--stream", "domains"]
    found = []
    for seed in ("0", "1", "2", "3"):
        args = runner.parse_args([*arguments("vit-ncm", tmp_path), *more, "--seed", seed])
        benchmark = streams.make_stream(args)
        shown = [(int(x.flatten()[0]), int(y)) for part in benchmark.test_stream for x, y, *_ in part.dataset]
        answers = argparse.Namespace(predictions=[x for x, _ in shown], labels=[y for _, y in shown])
        found.append((benchmark.domain_names, *map(list, by_class(answers, benchmark))))
    assert len({tuple(names) for names, *_ in found}) == 2
    assert all(rest == list(found[0][1:]) for _, *rest in found)


def test_held_out_images_of_domains_are_training_images_of_all_classes(domains, tmp_path):
    more = ["--dataset", str(domains), "--stream", "domains", "--train-per-class", "4", "--held-out", "2"]
    benchmark = streams.make_stream(runner.parse_args([*arguments("vit-ncm", tmp_path), *more]))
    both = {}
    for name, group, part in zip(benchmark.domain_names, benchmark.train_stream, benchmark.test_stream, strict=True):
        train, test = levels(group), levels(part)
        assert len(train) == 8 and len(test) == 4 and not train & test
        assert list(part.dataset.targets).count(0) == 2
        both[name] = train | test
    assert both == {"dark": {*range(0, 60, 5)}, "light": {*range(90, 150, 5)}}
