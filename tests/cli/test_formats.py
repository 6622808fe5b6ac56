import csv
import io
import json

from avalanche_f2ocl.cli.formats import print_result


def test_csv_and_json_lines_say_what_json_says(f2ocl, learned, pictures):
    command = "predict", learned, pictures / "test" / "red", "--topk", 2, "--quiet", "--workers", 0
    _, rows, _ = f2ocl(*command, "--json")
    _, lines, _ = f2ocl(*command, "--jsonl")
    assert [json.loads(line) for line in lines.splitlines()] == rows
    _, text, _ = f2ocl(*command, "--csv")
    table = list(csv.reader(io.StringIO(text)))
    assert table[0] == ["image", "class", "probability", "class_2", "probability_2"]
    for row, own in zip(table[1:], rows, strict=True):
        one, other = own["classes"]
        pairs = one["class"], str(one["probability"]), other["class"], str(other["probability"])
        assert row == [own["image"], *pairs]


def test_commas_quotes_and_line_breaks_come_back(capsys):
    names = ['a,"b"', "c\nd"]
    print_result(iter([{"image": name} for name in names]), str, "csv")
    assert [row["image"] for row in csv.DictReader(io.StringIO(capsys.readouterr().out, newline=""))] == names


def test_nothing_is_an_empty_list(capsys):
    print_result(iter([]), str, "json")
    assert json.loads(capsys.readouterr().out) == []
