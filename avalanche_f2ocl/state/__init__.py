"""Learned state with a row per class (ids, prompts, keys, means), and how it grows, is trained and is undone."""
