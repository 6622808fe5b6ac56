import pytest
import torch
from huggingface_hub import ModelCard
from safetensors.torch import save_file

from avalanche_f2ocl import F2OCLModel, F2OCLStrategy, FrozenModel, ViTNCMModel, load_model
from avalanche_f2ocl.models.hub import FILE, HubModel, learned_file
from avalanche_f2ocl.models.loading import MODELS
from avalanche_f2ocl.models.random_prompt import RandomPromptModel
from tests.helpers import assert_same_state, learned
from tests.models.hub_stand_in import COMMIT, StandIn
from tests.models.test_saving import MODELS as MADE

MADE = MADE | {
    "random-prompt": lambda vit: RandomPromptModel(vit, prompt_length=3),
    "ranpac": lambda vit: FrozenModel.rival("ranpac", vit, projection=20),
}


@pytest.fixture
def hub(monkeypatch, tmp_path):
    return StandIn(monkeypatch, tmp_path / "cache")


@pytest.fixture
def taught(small_vit, images):
    model = F2OCLModel(small_vit, prompt_length=3)
    model.learn(images[:5], ["cat", "dog", "cat", "dog", "owl"])
    return model


def test_every_model_that_is_saved_can_be_shared():
    assert all(issubclass(cls, HubModel) for cls in MODELS.values())


@pytest.mark.parametrize("name", MADE)
def test_a_model_comes_back_from_the_hub_and_goes_on_alike(name, small_vit, images, hub):
    model = MADE[name](small_vit)
    model.learn(images[:6], ["cat", "dog", "owl"] * 2)
    model.push_to_hub("user/name")
    assert set(hub.files("user/name")) == {FILE, "README.md"}
    other = type(model).from_pretrained("user/name", backbone=small_vit, device="cpu")
    same = load_model("hf-hub:user/name", small_vit, device="cpu")
    assert type(other) is type(same) is type(model) and other.options == model.options
    for one in (model, other, same):
        one.learn(images[6:10], ["cat", "fox", "fox", "dog"])
    for one in (other, same):
        assert_same_state(learned(one), learned(model))
    for one in (other, same):
        assert torch.equal(one(images), model(images)) and one.class_names == model.class_names


def test_what_an_upload_asks_the_hub_for(taught, hub):
    address = taught.push_to_hub("name", token="t", private=True, branch="dev", commit_message="More", create_pr=True)
    assert address == f"https://huggingface.co/user/name/commit/{COMMIT}"
    (_, login), (_, created), (_, uploaded) = hub.asked
    assert login["token"] == "t" and created == {"repo_id": "name", "private": True, "exist_ok": True}
    assert uploaded == {"repo_id": "user/name", "commit_message": "More", "revision": "dev", "create_pr": True}
    assert 'load_model("hf-hub:user/name")' in hub.files("user/name")["README.md"].read_text()
    assert learned_file("hf-hub:user/name@dev") == hub.files("user/name")[FILE]


def test_of_several_processes_the_first_uploads(taught, hub, monkeypatch):
    monkeypatch.setattr("avalanche_f2ocl.models.hub.is_first", lambda: False)
    assert taught.push_to_hub("user/name") == "" and not hub.asked


def test_a_folder_is_as_a_repository(taught, images, small_vit, hub, tmp_path):
    folder = tmp_path / "new" / "folder"
    taught.save_pretrained(folder, backbone=True, license="mit")
    assert not hub.asked and {path.name for path in folder.iterdir()} == {FILE, "README.md"}
    for other in (F2OCLModel.from_pretrained(folder, backbone=small_vit), load_model(str(folder), small_vit)):
        assert torch.equal(other(images), taught(images))
    strategy = F2OCLStrategy.load(folder, small_vit, evaluator=None)
    assert torch.equal(strategy.model(images), taught(images))
    card = ModelCard.load(folder / "README.md")
    assert card.data.license == "mit" and "in the file; SHA-256" in card.text


def test_a_folder_is_written_anew(taught, images, tmp_path):
    for count in (3, 4):
        taught.save_pretrained(tmp_path)
        assert f"# Image classifier of {count} classes" in (tmp_path / "README.md").read_text()
        taught.learn(images[:1], ["fox"])


def test_rare_classes_are_left_out_of_the_file_and_the_card(taught, small_vit, hub):
    taught.push_to_hub("user/name", min_class_count=2)
    assert F2OCLModel.from_pretrained("user/name", backbone=small_vit).class_names == {0: "cat", 1: "dog"}
    card = hub.files("user/name")["README.md"].read_text()
    assert "owl" not in card and "2; 1 rare class was left out" in card


@pytest.mark.parametrize(
    "repo_id, options, error, said",
    [
        ("user//name", {}, ValueError, "'user//name' is no folder and no repository's id, such as 'user/name'"),
        ("-name", {}, ValueError, "cannot start or end with"),
        ("user/name", {"license": 4}, TypeError, "license=4: must be an identifier such as 'mit', or None"),
        ("user/name", {"min_class_count": 9}, ValueError, "min_class_count=9: no class has as many samples"),
    ],
)
def test_what_is_wrong_is_told_before_the_hub_is_asked(taught, hub, repo_id, options, error, said):
    with pytest.raises(error, match=said):
        taught.push_to_hub(repo_id, **options)
    assert not hub.asked


def test_models_that_are_not_there_or_of_others_are_refused(taught, hub, tmp_path):
    with pytest.raises(ValueError, match="'user/name/more' is no folder and no repository's id"):
        F2OCLModel.from_pretrained("user/name/more")
    with pytest.raises(FileNotFoundError, match="no model.safetensors of 'user/nothing': .*connection"):
        load_model("hf-hub:user/nothing")
    with pytest.raises(FileNotFoundError, match="no such file.*model.safetensors"):
        F2OCLModel.from_pretrained(tmp_path)
    taught.push_to_hub("user/name")
    with pytest.raises(ValueError, match="is of F2OCLStrategy: ViTNCMModel reads files of ViTNCM"):
        ViTNCMModel.from_pretrained("user/name")
    (tmp_path / "other").mkdir()
    save_file({"weight": torch.ones(2)}, tmp_path / "other" / FILE)
    hub.put("timm/other", tmp_path / "other")
    with pytest.raises(ValueError, match="timm--other.* is damaged or was not written by"):
        load_model("hf-hub:timm/other")


def test_a_repository_without_the_file(hub, monkeypatch):
    from huggingface_hub.errors import EntryNotFoundError

    def fail(*args, **options):
        raise EntryNotFoundError("404")

    monkeypatch.setattr("avalanche_f2ocl.models.hub.hf_hub_download", fail)
    with pytest.raises(FileNotFoundError, match="no model.safetensors of 'user/name': 404"):
        F2OCLModel.from_pretrained("user/name")
