from benchmarks.trust.pictures import named, put, table


def test_files_are_named_in_lines_of_their_own():
    lines = (
        "skipped: '/a/x.png' is no",
        "other: y.png",
        'skipped: "/a/it\'s.png" is',
        "skipped: '/a/new\\nline.png'",
    )
    said = "\n".join(lines)
    assert named(["x.png", "it's.png", "new\nline.png", "y.png"], said) == 3


def test_a_table_is_put_into_a_page():
    rows = [{"a": 1, "b": None}, {"a": "x", "b": 2}]
    page = put("# Title\n<!-- mark -->\nold\n<!-- /mark -->\nrest\n", "mark", table(rows))
    assert page == "# Title\n<!-- mark -->\n| a | b |\n|---|---|\n| 1 | - |\n| x | 2 |\n<!-- /mark -->\nrest\n"
    assert put(page, "mark", "new") == "# Title\n<!-- mark -->\nnew\n<!-- /mark -->\nrest\n"
