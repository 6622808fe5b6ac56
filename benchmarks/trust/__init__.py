"""Tests of robustness: kills, damaged files, bad input, long streams."""
