import sys

import pytest

from avalanche_f2ocl.cli.app import make_teacher
from avalanche_f2ocl.cli.main import main
from avalanche_f2ocl.cli.parser import make_parser


def given(*arguments):
    return make_parser().parse_args(["app", *map(str, arguments)])


def test_a_file_that_is_there_is_taught_on(learned):
    teacher = make_teacher(given(learned))
    assert teacher.counts == {"blue": 8, "green": 8, "red": 8} and teacher.path == learned
    with pytest.raises(ValueError, match="--method, --image-size cannot be given: .*the file decides"):
        make_teacher(given(learned, "--method", "best", "--image-size", 16))


def test_a_file_that_is_not_there_begins_anew(tmp_path):
    teacher = make_teacher(given(tmp_path / "new.safetensors", "--backbone", "micro_vit", "--method", "vit-ncm"))
    assert teacher.counts == {} and type(teacher.model).__name__ == "ViTNCMModel"
    teacher.save()
    assert (tmp_path / "new.safetensors").exists()
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        make_teacher(given(tmp_path / "nowhere" / "new.safetensors"))


def test_this_machine_alone_unless_told():
    assert given("a").host == "127.0.0.1" and given("a", "--host", "0.0.0.0").host == "0.0.0.0"


def test_a_missing_package_is_named_in_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "gradio", None)
    assert main(["app", str(tmp_path / "new.safetensors")]) == 1
    assert capsys.readouterr().err == "f2ocl app: needs gradio: pip install 'avalanche-f2ocl[app]'\n"
