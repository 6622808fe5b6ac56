import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from benchmarks.runs.cost_chart import Point, draw_costs


def test_every_method_is_a_point_and_no_label_lies_on_another(tmp_path):
    # Equal points: labels beside them would lie on each other.
    points = {f"method-{i}": Point(50.0 + (i == 7), 1.0, 2.0, 1.0) for i in range(25)}
    figure = draw_costs(points, "A_n", tmp_path / "costs.png")
    legend = figure.legends[0]
    FigureCanvasAgg(figure).draw()
    boxes = [text.get_window_extent() for text in legend.get_texts()]
    assert [text.get_text() for text in legend.get_texts()][0] == "51.0  method-7" and len(boxes) == 25
    for one, other in zip(boxes, boxes[1:], strict=False):
        assert one.y0 >= other.y1 - 1
    assert min(box.y0 for box in boxes) >= 0 and max(box.x1 for box in boxes) <= figure.bbox.x1
    for panel, part in zip(figure.axes, ("train", "test"), strict=True):
        assert panel.get_xlabel() == f"seconds per 1,000 {'training' if part == 'train' else 'test'} images"
    with Image.open(tmp_path / "costs.png") as image:
        assert len(np.unique(image.convert("L"))) > 10
