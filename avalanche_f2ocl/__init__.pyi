from avalanche_f2ocl.baselines.frozen import FrozenBackbone as FrozenBackbone
from avalanche_f2ocl.baselines.frozen import ViTNCM as ViTNCM
from avalanche_f2ocl.config import F2OCLConfig as F2OCLConfig
from avalanche_f2ocl.evaluation.anytime import run_anytime as run_anytime
from avalanche_f2ocl.evaluation.by_groups import run_online as run_online
from avalanche_f2ocl.extensions import register as register
from avalanche_f2ocl.metrics.f2ocl import f2ocl_metrics as f2ocl_metrics
from avalanche_f2ocl.metrics.training import training_metrics as training_metrics
from avalanche_f2ocl.models.answers import UNKNOWN as UNKNOWN
from avalanche_f2ocl.models.export import export_prediction as export_prediction
from avalanche_f2ocl.models.f2ocl import F2OCLModel as F2OCLModel
from avalanche_f2ocl.models.frozen import FrozenModel as FrozenModel
from avalanche_f2ocl.models.frozen import ViTNCMModel as ViTNCMModel
from avalanche_f2ocl.models.loading import load_model as load_model
from avalanche_f2ocl.models.onnx import export_onnx as export_onnx
from avalanche_f2ocl.models.scikit_learn import F2OCLClassifier as F2OCLClassifier
from avalanche_f2ocl.rehearsal.check import check_rehearsal_free as check_rehearsal_free
from avalanche_f2ocl.rehearsal.check import held_bytes as held_bytes
from avalanche_f2ocl.strategies.checkpoint_plugin import CheckpointPlugin as CheckpointPlugin
from avalanche_f2ocl.strategies.f2ocl import F2OCLStrategy as F2OCLStrategy
from avalanche_f2ocl.strategies.plugins import BeginBatchPlugin as BeginBatchPlugin
from avalanche_f2ocl.strategies.plugins import ContrastivePromptPlugin as ContrastivePromptPlugin
from avalanche_f2ocl.strategies.plugins import KeyUpdatePlugin as KeyUpdatePlugin
from avalanche_f2ocl.strategies.plugins import PromptGrowthPlugin as PromptGrowthPlugin
from avalanche_f2ocl.strategies.plugins import PrototypeUpdatePlugin as PrototypeUpdatePlugin
from avalanche_f2ocl.streams.boundary_free import drifting_stream as drifting_stream
from avalanche_f2ocl.streams.boundary_free import long_tailed_stream as long_tailed_stream
from avalanche_f2ocl.streams.boundary_free import recurring_stream as recurring_stream
from avalanche_f2ocl.streams.boundary_free import shuffled_stream as shuffled_stream
from avalanche_f2ocl.streams.boundary_free import si_blurry_stream as si_blurry_stream
from avalanche_f2ocl.streams.class_incremental import class_incremental_stream as class_incremental_stream
from avalanche_f2ocl.streams.domain_incremental import domain_incremental_stream as domain_incremental_stream
from avalanche_f2ocl.streams.online import online_stream as online_stream

__version__: str
__all__: list[str]
