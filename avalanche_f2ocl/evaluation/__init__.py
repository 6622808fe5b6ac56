"""Whole runs over a stream, evaluated by groups or at any time, and their tables and pictures (:mod:`.plots`)."""

from avalanche_f2ocl.evaluation.anytime import AnytimeResult, run_anytime
from avalanche_f2ocl.evaluation.by_groups import GroupsResult, run_online
from avalanche_f2ocl.evaluation.table import result_table

__all__ = ["AnytimeResult", "GroupsResult", "result_table", "run_anytime", "run_online"]
