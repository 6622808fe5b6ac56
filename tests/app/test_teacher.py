from io import BytesIO

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from avalanche_f2ocl import F2OCLModel, FrozenModel, load_model
from avalanche_f2ocl.app import teacher as module
from avalanche_f2ocl.app.teacher import Teacher
from tests.helpers import assert_same_state, learned

DIGITS = load_digits()


def pictures(digit, first, last):
    """Some pictures of a digit, black on white."""
    pixels = DIGITS.images[DIGITS.target == digit][first:last]
    return [Image.fromarray((255 - one * (255 / 16)).astype(np.uint8)).resize((48, 48)) for one in pixels]


@pytest.fixture
def teacher(tmp_path):
    return Teacher(FrozenModel("micro_vit", head="ridge", projection=0), tmp_path / "taught.safetensors")


@pytest.fixture
def taught(teacher):
    teacher.teach(pictures(0, 0, 10), "zero")
    teacher.teach(pictures(1, 0, 10), "one")
    return teacher


def names(answers):
    return [answer.classes[0][0] for answer in answers]


def sums(teacher):
    """What has been learned, but for solutions, which are made when they are asked for."""
    kept = ("classes.", "head.")
    return {n: t for n, t in learned(teacher.model).items() if n.startswith(kept) and "solution" not in n}


def test_it_knows_what_it_was_taught_at_once(teacher):
    assert teacher.counts == {} and teacher.saved and not teacher.can_undo
    assert teacher.teach(pictures(0, 0, 10), " zero\n") == "10 pictures learned as “zero”."
    assert names(teacher.ask(pictures(0, 10, 13))) == ["zero"] * 3
    assert teacher.teach(pictures(1, 0, 1), "one") == "1 picture learned as “one”."
    assert teacher.counts == {"zero": 10, "one": 1} and not teacher.saved
    answers = teacher.ask(pictures(0, 10, 13) + pictures(1, 10, 13))
    assert names(answers) == ["zero"] * 3 + ["one"] * 3
    shares = [share for _, share in answers[0].classes]
    assert shares == sorted(shares, reverse=True) and abs(sum(shares) - 1) < 1e-5
    assert teacher.ask([]) == []


def test_pictures_taught_before_are_passed_over_or_corrected(taught):
    some = pictures(7, 0, 6)
    assert taught.teach([*some[:4], some[0]], "one") == "4 pictures learned as “one”."
    assert taught.teach(some[:4], "one") == "Nothing new: learned as “one” before."
    assert taught.counts == {"zero": 10, "one": 14}
    told = taught.teach([pictures(0, 0, 1)[0], *some], "seven")
    assert told == "2 pictures learned as “seven”, 5 pictures corrected to “seven”."
    assert taught.counts == {"zero": 9, "one": 10, "seven": 7}
    assert names(taught.ask(pictures(7, 10, 13))) == ["seven"] * 3


def test_each_step_is_undone_the_last_one_first(taught):
    def state():
        return sums(taught), taught.counts, dict(taught._taught)

    steps = (
        lambda: taught.teach(pictures(7, 0, 3), "one"),
        lambda: taught.teach(pictures(7, 0, 5), "seven"),
        lambda: taught.rename("seven", "sept"),
        lambda: taught.forget("zero"),
        lambda: taught.teach(pictures(0, 0, 2), "nil"),
    )
    before, told = [], []
    for step in steps:
        before.append(state())
        told.append(step())
    for (tensors, counts, known), one in zip(reversed(before), reversed(told), strict=True):
        assert taught.undo() == f"Undone: {one}"
        now = state()
        assert now[1:] == (counts, known)
        assert_same_state(now[0], tensors, exactly=False)
    assert taught.ask(pictures(1, 10, 11))[0].classes[0][0] == "one"


def test_only_so_many_steps_are_kept(teacher, monkeypatch):
    monkeypatch.setattr(module, "STEPS", 2)
    teacher = Teacher(teacher.model, teacher.path)
    for number in range(3):
        teacher.teach(pictures(number, 0, 1), str(number))
    for left in (2, 1):
        teacher.undo()
        assert len(teacher.counts) == left
    with pytest.raises(RuntimeError, match="nothing to undo"):
        teacher.undo()


def test_what_is_saved_can_be_taught_on(taught):
    assert str(taught.path) in taught.save() and taught.saved
    again = Teacher(load_model(taught.path), taught.path)
    assert again.counts == taught.counts and again.saved and not again.can_undo
    new = pictures(0, 10, 12)
    assert again.ask(new) == taught.ask(new)
    again.teach(new, "zero")
    assert again.counts["zero"] == 12


def test_the_recommended_settings_learn_and_take_back(tmp_path):
    teacher = Teacher(F2OCLModel.best("micro_vit"), tmp_path / "taught.safetensors")
    teacher.teach(pictures(0, 0, 4), "zero")
    teacher.teach(pictures(1, 0, 4), "zero")
    teacher.teach(pictures(1, 0, 4), "one")
    assert names(teacher.ask(pictures(0, 10, 12) + pictures(1, 10, 12))) == ["zero"] * 2 + ["one"] * 2
    teacher.undo()
    assert teacher.counts == {"zero": 8}


def test_files_are_read_as_a_person_sees_them(taught, tmp_path):
    upright = pictures(1, 12, 13)[0]
    exif = Image.Exif()
    exif[0x0112] = 6  # lies on its left side
    upright.transpose(Image.Transpose.ROTATE_90).save(tmp_path / "a.png", exif=exif)
    assert taught.ask([tmp_path / "a.png"]) == taught.ask([str(tmp_path / "a.png")]) == taught.ask([upright])


def test_what_is_wrong_changes_nothing(taught, monkeypatch, tmp_path):
    (tmp_path / "notes.png").write_text("no picture")
    damaged = BytesIO()
    pictures(0, 0, 1)[0].save(damaged, "PNG")
    broken = Image.open(BytesIO(damaged.getvalue()[:-40]))
    before, counts = sums(taught), taught.counts
    for act, error, said in (
        (lambda: taught.teach([], "one"), ValueError, "no picture"),
        (lambda: taught.teach(pictures(0, 11, 12), "  "), ValueError, "a name"),
        (lambda: taught.teach([broken], "one"), ValueError, "cannot be read"),
        (lambda: taught.ask([tmp_path / "notes.png"]), ValueError, "cannot be read"),
        (lambda: taught.rename("none", "one"), KeyError, "none"),
        (lambda: taught.rename("zero", "one"), ValueError, "one"),
        (lambda: taught.forget("none"), KeyError, "none"),
    ):
        with pytest.raises(error, match=said):
            act()
    learns = iter([taught.model.learn])
    monkeypatch.setattr(taught.model, "learn", lambda *given: next(learns)(*given))
    with pytest.raises(StopIteration):  # at the second mini-batch
        taught.teach(pictures(7, 0, 12), "seven")
    assert taught.counts == counts
    assert_same_state(sums(taught), before, exactly=False)
