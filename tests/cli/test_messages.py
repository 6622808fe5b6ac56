from tqdm import tqdm

from avalanche_f2ocl.cli.messages import one_line, say


def test_one_line():
    assert one_line("a\tb\r\nc\\") == "a\\tb\\r\\nc\\\\"
    assert one_line("C:\\pictures") == "C:\\pictures"  # nothing to tell apart


def test_lines_and_a_bar_do_not_mix(capsys):
    with tqdm(total=2, ncols=60) as bar:
        bar.update()
        say("passed over: 'a\nb'")
    assert "passed over: 'a\\nb'\n" in capsys.readouterr().err
