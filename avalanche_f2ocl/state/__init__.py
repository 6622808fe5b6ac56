"""What is learned, a row per class: ids, prompts, keys, means; how it grows, is stepped and is taken back."""
