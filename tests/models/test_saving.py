import subprocess
import sys

import pytest
import torch

from avalanche_f2ocl import F2OCLModel, F2OCLStrategy, ViTNCM, ViTNCMModel
from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.backbone.weights import load_vit
from avalanche_f2ocl.heads import RidgeHead
from avalanche_f2ocl.models.learned import Learned
from avalanche_f2ocl.models.model_file import read_model_file, restore
from avalanche_f2ocl.safe_file import read_safe_file, write_safe_file
from tests.helpers import assert_same_state, learned, train_online

MODELS = {
    "f2ocl": lambda vit: F2OCLModel(vit, prompt_length=3, passes=2, betas=(0.8, 0.9)),
    "best": lambda vit: F2OCLModel.best(vit, prompt_length=3),
    "gradient keys": lambda vit: F2OCLModel(vit, prompt_length=3, key_update="gradient", readout="patch"),
    "vit-ncm": lambda vit: ViTNCMModel(PromptableViT(vit, readout="patch"), metric="euclidean"),
    "vit-ridge": lambda vit: ViTNCMModel(
        PromptableViT(vit), seed=5, head="ridge", head_features="layers", projection=9
    ),
}


@pytest.fixture(params=MODELS)
def taught(request, vit, images):
    model = MODELS[request.param](vit)
    for part in torch.arange(12).split(4):
        model.learn(images[part], ["a", "b", "a", "c"])
    return model


@pytest.fixture
def path(tmp_path):
    return tmp_path / "learned.safetensors"


def test_a_file_gives_the_model_back_and_it_goes_on_alike(taught, images, path):
    taught.save(path)
    other = type(taught).from_file(path, device="cpu")
    assert other.options == taught.options and other.class_names == {0: "a", 1: "b", 2: "c"}
    for model in (taught, other):
        model.learn(images[:4], ["b", "d", "d", "a"])
    assert_same_state(learned(other), learned(taught))
    assert torch.equal(other(images), taught(images)) and other.class_names == taught.class_names


def test_a_strategy_reads_it_and_writes_what_it_reads(taught, images, path):
    taught.save(path)
    strategy = {"F2OCLStrategy": F2OCLStrategy, "ViTNCM": ViTNCM}[taught.saved_as].load(path, evaluator=None)
    assert torch.equal(strategy.model(images), taught(images)) and strategy.model.class_names == taught.class_names
    strategy.save(path)
    other = type(taught).from_file(path)
    assert torch.equal(other(images), taught(images)) and other.options == taught.options


def test_no_run_can_be_resumed_from_it(model, images, labels, path):
    model.learn(images, labels)
    model.save(path)
    with pytest.raises(ValueError, match="lacks .*batches_done"):
        F2OCLStrategy(backbone="micro_vit", evaluator=None).resume(path)


def test_what_a_strategy_learned_from_a_stream(vit, digits, path):
    strategy = F2OCLStrategy(backbone=vit, evaluator=None, prompt_length=3, train_mb_size=10)
    train_online(strategy, digits.train_stream[:2])
    strategy.model.class_names = digits.class_names
    strategy.save(path)
    model = F2OCLModel.from_file(path, backbone=vit)
    assert_same_state(learned(model), learned(strategy.model))
    assert model.batches == 8 and model.class_names == {i: str(i) for i in model.class_ids.tolist()}


def test_the_backbone_goes_with_it_where_asked(vit, model, images, labels, path):
    model.learn(images, labels)
    for backbone in (False, True):
        model.save(path, backbone=backbone)
        assert any("vit." in name for name in read_model_file(path)[0]) == backbone
        assert torch.equal(F2OCLModel.from_file(path)(images), model(images))


def test_rare_classes_are_left_out_with_their_names(model, images, path):
    model.learn(images[:5], ["a", "a", "b", "c", "c"])
    model.save(path, min_class_count=2)
    other = F2OCLModel.from_file(path)
    assert other.class_ids.tolist() == [0, 2] and other.class_names == {0: "a", 2: "c"}


def test_files_of_others_and_no_files_are_refused(vit, model, images, path, tmp_path):
    model.learn(images[:2], [1, 2])
    model.save(path)
    with pytest.raises(ValueError, match="of F2OCLStrategy: ViTNCMModel reads files of ViTNCM"):
        ViTNCMModel.from_file(path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        F2OCLModel.from_file(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="learned at 32 pixels a side, the backbone takes 16"):
        F2OCLModel.from_file(path, load_vit("micro_vit", image_size=16))


def test_a_model_does_not_import_avalanche(path, model, images):
    model.learn(images[:2], [1, 2])
    model.save(path)
    code = (
        "import sys; from avalanche_f2ocl import F2OCLModel, ViTNCMModel; "
        f"F2OCLModel.from_file({str(path)!r}); sys.exit('avalanche' in sys.modules or 'sklearn' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=300).returncode == 0


@pytest.fixture
def prepared(vit, images):
    """Of three classes, "c" with fewest images."""
    model = F2OCLModel.best(vit, prompt_length=3)
    model.learn(images[:8], ["a", "b", "a", "b", "a", "c", "b", "a"])
    model.head.prepare()
    return model


def test_a_file_of_a_prepared_model_predicts_without_solving(prepared, images, path, monkeypatch):
    prepared.save(path)
    other = F2OCLModel.from_file(path, device="cpu")
    monkeypatch.setattr(RidgeHead, "solve", None)
    assert torch.equal(other(images), prepared(images))


def test_what_is_saved_comes_back_whole_prepared_too(prepared, path, tmp_path):
    prepared.save(path)
    F2OCLModel.from_file(path, device="cpu").save(tmp_path / "again.safetensors")
    (tensors, values), (same, told) = read_model_file(path), read_model_file(tmp_path / "again.safetensors")
    assert tensors.keys() == same.keys() and all(torch.equal(tensor, same[n]) for n, tensor in tensors.items())
    assert values == told


def test_classes_left_out_take_the_solution_along(prepared, images, path):
    prepared.save(path, min_class_count=2)
    assert not [name for name in read_model_file(path)[0] if "solution" in name]
    other = F2OCLModel.from_file(path, device="cpu")
    assert other.class_names == {0: "a", 1: "b"} and other(images).shape == (12, 2)
    prepared.save(path, min_class_count=1)
    assert [name for name in read_model_file(path)[0] if "solution" in name]


def test_a_file_whose_solution_does_not_fit_is_refused_before_anything_changes(prepared, path):
    prepared.save(path)
    tensors, values = read_model_file(path)
    before = learned(prepared)
    name = "model.head.heads.0.solution_weight"
    for wrong in (tensors[name][:, 1:], tensors[name].float(), tensors[name].repeat(2, 1)):
        write_safe_file(path, tensors | {name: wrong.contiguous()}, values)
        with pytest.raises(ValueError, match=r"head\.heads\.0: solution_.* is torch"):
            F2OCLModel.from_file(path, device="cpu")
        with pytest.raises(ValueError, match="does not fit"):
            restore(Learned(prepared, "F2OCLStrategy", prepared.optimizer), *read_model_file(path), path)
    assert_same_state(learned(prepared), before)


def test_the_bytes_of_a_solution_are_counted_before_there_is_one(prepared, vit, images):
    other = F2OCLModel.best(vit, prompt_length=3)
    other.learn(images[:8], ["a", "b", "a", "b", "a", "c", "b", "a"])
    assert other.saved_bytes() == prepared.saved_bytes()


@pytest.mark.parametrize("options", [{"ridge": 5.0}, {"priors": "counts"}, {"head": "lda"}])
def test_a_solution_is_not_taken_for_that_of_other_options(prepared, images, path, options):
    prepared.save(path)
    strategy = F2OCLStrategy.load(path, device="cpu", evaluator=None, **options)
    other = F2OCLModel.best(prepared.backbone, prompt_length=3, **options)
    state = {name: value for name, value in prepared.state_dict().items() if "solution" not in name}
    other.load_state_dict(state)
    assert torch.equal(strategy.model(images), other(images)) and not torch.equal(other(images), prepared(images))


def test_a_file_of_version_0_1_has_the_sums_of_an_ensemble_twice(vit, images, labels, tmp_path):
    options = {"blocks": 4, "blocks_per_head": 4, "vote": "equal", "grid": 1, "zoom": 1.0, "max_drift": None}
    model = F2OCLModel.best(vit, prompt_length=2, **options)
    model.learn(images, labels)
    model.save(tmp_path / "new.safetensors")
    tensors, values = read_safe_file(tmp_path / "new.safetensors")
    tensors["model.head.sums"] = torch.cat([head.used("sums") for head in model.head.heads], dim=1)
    values["options"] = {name: value for name, value in values["options"].items() if name not in options}
    write_safe_file(tmp_path / "old.safetensors", tensors, values)
    again = F2OCLModel.from_file(tmp_path / "old.safetensors", vit, device="cpu")
    assert {name: again.options[name] for name in options} == options
    torch.testing.assert_close(again(images), model(images))
