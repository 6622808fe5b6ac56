import pytest
from huggingface_hub import ModelCard

from avalanche_f2ocl.models.card import MOST_CLASSES, model_card
from avalanche_f2ocl.models.description import describe


def described(names, counts=None, **values):
    backbone = {"name": "vit_x", "image_size": 32, "sha256": "ab12"}
    ids = list(range(len(names)))
    kept = {"strategy": "ViTNCM", "options": {"head": "ncm", "lr": 0.1}, "backbone": backbone, "classes_left_out": 0}
    kept |= {"class_ids": ids, "class_names": list(zip(ids, names, strict=True)), **values}
    result = describe({}, kept)
    for one, count in zip(result["classes"], counts or [], strict=False):
        one["images"] = count
    return result


def test_it_says_what_was_learned_on_what_and_how_it_is_loaded():
    card = model_card(described(["cat", "dog"], [3, 1]), "user/name", "cc-by-4.0")
    for part in (
        "# Image classifier of 2 classes", "| method | `ViTNCM`, head `ncm`",
        "| images learned | 4, 1 to 3 of a class |",
        "| backbone | `vit_x` at 32 pixels, frozen |", "not in the file", "SHA-256 `ab12`", '"lr": 0.1',
        "| 0 | cat | 3 |", "| 1 | dog | 1 |", 'load_model("hf-hub:user/name")', "f2ocl predict hf-hub:user/name",
        "`cc-by-4.0`; the backbone has its own",
    ):  # fmt: skip
        assert part in card.text
    again = ModelCard(str(card))
    assert again.data.license == "cc-by-4.0" and again.data.library_name == "avalanche_f2ocl"
    assert again.data.pipeline_tag == "image-classification" and again.text == card.text


def test_no_licence_is_none_in_the_metadata():
    card = model_card(described(["cat"]))
    assert "license" not in str(card) and "none is stated" in card.text


@pytest.mark.parametrize("name", ["---", "a|b", "x\n---\ny", "<img src=x>", "`code`", "license: mit\n"])
def test_names_cannot_spoil_it(name):
    card = ModelCard(str(model_card(described([name, "dog"], [1, 1]))))
    assert card.data.license is None and "\n| 1 | dog | 1 |\n" in card.text
    row = next(line for line in card.text.splitlines() if line.startswith("| 0 |"))
    assert row.replace("\\|", "").count("|") == 4 and "<img" not in row.replace("\\<", "")


def test_long_lists_end():
    text = model_card(described([f"class {i}" for i in range(MOST_CLASSES + 5)])).text
    assert f"class {MOST_CLASSES - 1} " in text and f"class {MOST_CLASSES} " not in text and "And 5 more." in text


def test_code_that_it_needs_is_named():
    assert "needs `head=mine`" in model_card(described(["cat"], needs={"head": "mine"})).text
