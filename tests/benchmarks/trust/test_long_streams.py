from benchmarks.trust.long_streams import many_steps, means_error


def test_means_stay_exact():
    assert means_error(5000) < 1e-6


def test_nothing_grows_and_an_absent_class_stays_as_it_was():
    result = many_steps(1200)
    assert result["absent class unchanged"]
    assert result["files"] == 0 and result["threads"] == 0
    assert result["memory_mb"] < 20 and result["objects"] < 200
