from benchmarks.runs.sweep import folder_name, in_order


def test_folders_have_names_that_every_system_takes():
    names = [folder_name(value) for value in (0.1, 1e-5, "cosine", True, None)]
    assert names == ["0.1", "1e-05", "cosine", "true", "null"]


def test_values_are_in_order():
    assert sorted(["none", "0.1", "1e-05", "batch", "10"], key=in_order) == ["1e-05", "0.1", "10", "batch", "none"]
