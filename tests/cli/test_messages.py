from tqdm import tqdm

from avalanche_f2ocl.cli.messages import counted, one_line, say


def test_one_line():
    assert one_line("a\tb\r\nc\\") == "a\\tb\\r\\nc\\\\"
    assert one_line("C:\\pictures") == "C:\\pictures"  # nothing to tell apart


def test_numbers_and_what_they_count():
    assert [counted(n, "class", "classes") for n in (0, 1, 2)] == ["0 classes", "1 class", "2 classes"]


def test_lines_and_a_bar_do_not_mix(capsys):
    with tqdm(total=2, ncols=60) as bar:
        bar.update()
        say("skipped: 'a\nb'")
    assert "skipped: 'a\\nb'\n" in capsys.readouterr().err
