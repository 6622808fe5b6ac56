from avalanche_f2ocl import F2OCLModel


def test_a_line_for_each_class(f2ocl, vit, images, tmp_path):
    model = F2OCLModel(vit, prompt_length=2)
    model.learn(images[:3], ["owl", "c\tat", "owl"])
    model.learn(images[3:5], [7, 7])
    model.save(tmp_path / "m.safetensors")
    assert f2ocl("counts", tmp_path / "m.safetensors") == (0, "owl\t2\nc\\tat\t1\n7\t2\n", "")
    assert f2ocl("counts", tmp_path / "m.safetensors", "--json")[1][1] == {"id": 1, "name": "c\tat", "images": 1}
