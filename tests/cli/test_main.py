import subprocess
import sys

import pytest

import avalanche_f2ocl
from avalanche_f2ocl.cli.main import main


def test_the_version(capsys):
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0 and capsys.readouterr().out == f"f2ocl {avalanche_f2ocl.__version__}\n"


def test_a_reader_that_goes_away_ends_it_quietly(learned, pictures):
    command = [sys.executable, "-W", "ignore", "-m", "avalanche_f2ocl.cli.main", "predict", str(learned)]
    command += ["--quiet", "--batch-size", "1", *[str(pictures / "test")] * 50]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert "\tblue\t" in process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == "" and process.wait() == 141
