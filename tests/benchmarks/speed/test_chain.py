import torch

from avalanche_f2ocl import F2OCLModel
from benchmarks.speed import chain


def test_calls_of_the_package_are_counted_in_order():
    model = F2OCLModel("micro_vit", prompt_length=2)
    calls = chain.chain(lambda: model.check(torch.zeros(1, 3, 4, 4, dtype=torch.uint8)))
    assert [(file.rsplit("/", 2)[-1], name.split(":")[1]) for file, name in calls] == [
        ("predicting.py", "check"),
        ("checks.py", "check_images"),
    ]


def test_the_table_has_what_is_done(capsys):
    chain.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| strategy.train", "| model.learn", "| model.predict"]
    calls, functions, files, changes = map(int, lines[4].strip("| ").split(" | ")[1:])
    assert files <= functions <= calls and files - 1 <= changes < calls
