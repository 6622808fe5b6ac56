def test_what_a_file_is(f2ocl, learned):
    code, said, _ = f2ocl("info", learned)
    assert code == 0
    for part in ("F2OCLStrategy, head ridge on ensemble", "micro_vit at 32 px, not in the file", "classes     3: ",
                 "images      24, 8 to 8 a class"):  # fmt: skip
        assert part in said
    code, result, _ = f2ocl("info", learned, "--json")
    assert {c["name"]: c["images"] for c in result["classes"]} == {"blue": 8, "green": 8, "red": 8}
    assert result["bytes"] == learned.stat().st_size and result["options"]["prompt_assignment"] == "shared"


def test_a_strategys_file(f2ocl, vit, digits, tmp_path):
    from avalanche_f2ocl.baselines import L2P
    from tests.helpers import train_online

    strategy = train_online(L2P(backbone=vit, evaluator=None), digits.train_stream[:1])
    strategy.save(tmp_path / "a.safetensors")
    code, said, _ = f2ocl("info", tmp_path / "a.safetensors")
    assert code == 0 and "learned by  L2P" in said and "classes     2: " in said
    code, _, err = f2ocl("predict", tmp_path / "a.safetensors", "x.png")
    assert code == 1
