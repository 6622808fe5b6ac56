from collections import namedtuple

import pytest
import torch

from avalanche_f2ocl import F2OCLModel, ViTNCMModel
from avalanche_f2ocl.cli import output


def test_places_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "there").write_text("")
    for path, error, said in (
        (tmp_path / "no" / "a", FileNotFoundError, "there is no folder"),
        (tmp_path, IsADirectoryError, "is a folder"),
        (tmp_path / "there", FileExistsError, "--from .*there continues with it, --overwrite replaces it"),
    ):
        with pytest.raises(error, match=said):
            output.check_place(path, replace=False)
    output.check_place(tmp_path / "there", replace=True)
    output.check_place(tmp_path / "new", replace=False)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["there"]  # trying left nothing

    def refused(dir):
        raise PermissionError("not allowed")

    monkeypatch.setattr(output.tempfile, "TemporaryFile", refused)
    with pytest.raises(OSError, match=r"nothing can be written to .* \(not allowed\)"):
        output.check_place(tmp_path / "new", replace=False)


def test_a_full_disk_is_seen_before(tmp_path, monkeypatch):
    usage = namedtuple("usage", "free")
    model = ViTNCMModel("micro_vit")
    monkeypatch.setattr(output.shutil, "disk_usage", lambda path: usage(30_000_000))
    output.check_space(tmp_path / "a", model, new_classes=10, backbone=True)
    with pytest.raises(OSError, match=r"needs 5\d\d\d MB, and .* has 30 MB left"):
        output.check_space(tmp_path / "a", model, new_classes=1_000_000, backbone=False)


@pytest.mark.parametrize("backbone", [False, True])
@pytest.mark.parametrize("make", [F2OCLModel, F2OCLModel.best, ViTNCMModel])
def test_what_a_file_is_going_to_take(make, backbone, tmp_path):
    model, classes = make("micro_vit"), 30
    expected = model.saved_bytes(classes, backbone)
    images = torch.randint(0, 256, (classes, 3, 32, 32), dtype=torch.uint8)
    model.learn(images, list(range(classes)))
    model.save(tmp_path / "a", backbone=backbone)
    size = (tmp_path / "a").stat().st_size
    assert size * 0.9 < expected + 60_000 and expected < size * 1.1  # names and options take some kB
