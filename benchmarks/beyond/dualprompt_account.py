"""Why DualPrompt is better here than in its best-known PyTorch code: from one to the other, one change at a time.

    python -m benchmarks.beyond.dualprompt_account --dataset DIR/cifar100.zip --backbone vit_tiny_patch16_224 \\
        --weights FILE --image-size 112

Each row builds one of that code's choices into our DualPrompt (with its loss masked to the mini-batch's classes), and
the last rows build in several. The result is A_n over groups at the end, in per cent. ``--train-per-class`` and similar
options are those of the runner. Rows that are done are skipped.
"""

import argparse
import json
from pathlib import Path
from statistics import mean

import torch

from avalanche_f2ocl.backbone.load import load_backbone
from benchmarks.beyond.dualprompt_learner import BATCH, Choices, Group, Views, learn
from benchmarks.runs.runner import parse_args
from benchmarks.runs.streams import make_stream
from benchmarks.runs.tables import to_readme, write_rows

TABLE = "dualprompt_account"
OURS = Choices()
TASK_FREE = Choices(5, 0.03 * BATCH / 256, 1.0, True, 0.02, "batch", "vote")
"""All choices of that code that need no boundaries, with normalised images."""
OWN = "as here"
ROWS = {
    OWN: OURS,
    "E-prompts of length 5": OURS._replace(e_length=5),
    "gradients clipped at 1": OURS._replace(clip=1.0),
    "one Adam for the whole head": OURS._replace(dense=True),
    "head starts at random": OURS._replace(head_std=0.02),
    "lr=0.00117": OURS._replace(lr=TASK_FREE.lr),
    "loss over the group's classes": OURS._replace(mask="group"),
    "one E-prompt for a mini-batch, by vote": OURS._replace(chosen="vote"),
    "the group's own E-prompt": OURS._replace(chosen="group"),
    "a new optimiser for each group": OURS._replace(restart=True),
    "images not normalised": OURS._replace(normalise="unit"),
    "one Adam, and the head starts at random": OURS._replace(dense=True, head_std=0.02),
    "all that needs no boundaries": TASK_FREE,
    "all of these but the one Adam": TASK_FREE._replace(dense=False),
    "all, with boundaries": TASK_FREE._replace(mask="group", chosen="group", restart=True),
}


def load_groups(args: argparse.Namespace) -> list[Group]:
    """The stream's groups, images in the order of the stream."""
    benchmark, groups = make_stream(args), []
    for train, test in zip(benchmark.train_stream, benchmark.test_stream, strict=True):
        parts = []
        for experience in (train, test):
            items = [experience.dataset[i] for i in range(len(experience.dataset))]
            parts += [torch.stack([item[0] for item in items]), torch.tensor([item[1] for item in items])]
        groups.append(Group(*parts))
    return groups


def publish(results: Path) -> None:
    """Writes the table of results so far: A_n and the difference from our DualPrompt, by images a class."""
    A_n: dict[str, dict[str, float]] = {}
    for path in sorted((results / TABLE).glob("*/row-*.json")):
        record = json.loads(path.read_text())
        A_n.setdefault(path.parent.name.replace("-", "/"), {})[record["row"]] = record["A_n"]
    rows = []
    for name in ROWS:
        row = {"changed": name}
        for size, found in A_n.items():
            known = name in found and OWN in found
            row[f"A_n, {size}"] = f"{found[name]:.2f}" if known else "-"
            row[f"points, {size}"] = f"{found[name] - found[OWN]:+.2f}" if known else "-"
        rows.append(row)
    text = write_rows(results / TABLE, "table", rows)
    print(text)
    to_readme(results, TABLE, text)


def main() -> None:
    own = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    own.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    chosen, rest = own.parse_known_args()
    args = parse_args([*rest, "--table", TABLE, "--method", "dualprompt-mask"])
    place = args.backbone, args.weights, args.image_size
    views = Views(lambda normalise: load_backbone(*place, normalise=normalise), load_groups(args))
    for name in chosen.rows:
        folder = args.results / TABLE / f"{args.train_per_class}-{args.test_per_class}"
        path = folder / f"row-{list(ROWS).index(name):02}.json"
        if not path.exists():
            learner = learn(views, ROWS[name], args.seed)
            tests = [views.batches(i, ROWS[name].normalise, False) for i in range(len(views.groups))]
            accuracies, backbone = [learner.accuracy(test) for test in tests], learner.model.backbone
            record = {"row": name, "A_n": mean(accuracies), "accuracies": accuracies, **ROWS[name]._asdict()}
            record |= {"dataset": Path(args.dataset).stem, "backbone": args.backbone, "image_size": backbone.image_size}
            record |= {"train_per_class": args.train_per_class, "test_per_class": args.test_per_class}
            record |= {"seed": args.seed, "precision": str(backbone.dtype), "torch": torch.__version__}
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(record, indent=1) + "\n")
        publish(args.results)


if __name__ == "__main__":
    main()
