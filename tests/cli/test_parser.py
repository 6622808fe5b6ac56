import pytest

from avalanche_f2ocl.cli.parser import make_parser

COMMANDS = next(action.choices for action in make_parser()._actions if action.choices)


@pytest.mark.parametrize("option", ["--workers", "--save-every", "--hold-out", "--batch-size"])
@pytest.mark.parametrize("value", ["-1", "1.5", "many"])
def test_numbers_out_of_range(capsys, option, value):
    with pytest.raises(SystemExit) as left:
        make_parser().parse_args(["train", "x", "--out", "y", option, value])
    assert left.value.code == 2 and f"{option}: '{value}': must be" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_help_explains_every_argument(capsys, command):
    assert all(action.help for action in COMMANDS[command]._actions)
    with pytest.raises(SystemExit) as left:
        make_parser().parse_args([command, "--help"])
    assert left.value.code == 0 and f"usage: f2ocl {command}" in capsys.readouterr().out
