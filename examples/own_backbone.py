"""Your own ViT: any timm VisionTransformer, with weights from any source.

    python examples/own_backbone.py
"""

from avalanche.training.plugins import EvaluationPlugin
from timm.models import VisionTransformer

from avalanche_f2ocl import F2OCLStrategy, class_incremental_stream, f2ocl_metrics, run_online

vit = VisionTransformer(img_size=32, patch_size=8, embed_dim=96, depth=4, num_heads=3, num_classes=0, reg_tokens=2)
# vit.load_state_dict(torch.load("my_vit.pt", weights_only=True))
vit.pretrained_cfg = {"architecture": "my_vit", "mean": (0.5,) * 3, "std": (0.5,) * 3}  # how images are normalised

stream = class_incremental_stream("digits", groups=5, train_per_class=20, test_per_class=10)
strategy = F2OCLStrategy(backbone=vit, evaluator=EvaluationPlugin(*f2ocl_metrics()))
run_online(strategy, stream)
print(f"{strategy.model.backbone.name}: {len(strategy.model.class_ids)} classes, {vit.embed_dim} numbers an image")
