"""Tables from result files: Markdown and CSV, with paired intervals."""

import csv
import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev

import numpy as np

RESULTS = Path(__file__).parents[1] / "results"
REFERENCES = ("vit-ncm", "random-prompt")
Runs = dict[tuple[str, str, str], list[dict]]
"""Records by (dataset, backbone, method or variant), seeds ascending."""
COST_COLUMNS = (
    ("train_seconds_per_1000", "train s", 1),
    ("test_seconds_per_1000", "test s", 1),
    ("kept_bytes", "kept MB", 1e6),
)
"""Costs in records: name, name in a table, unit; seconds are per 1,000 images."""
FIGURES = ("A_n", "A_n_samples", "F_n", "A_k", "UB", "random_key", "seconds")


def load_runs(folder: Path) -> Runs:
    """A folder's records by method; each has the path of its predictions."""
    runs = defaultdict(list)
    for path in sorted(folder.glob("*.json")):
        record = json.loads(path.read_text())
        record["predictions"] = path.with_suffix(".npz")
        runs[record["dataset"], record["backbone"], record["method"]].append(record)
    return {key: sorted(records, key=lambda r: r["seed"]) for key, records in runs.items()}


def right(record: dict) -> np.ndarray:
    """Which test images were right at the end, ``(N,)`` bool, in an order all seeds share."""
    with np.load(record["predictions"]) as answers:
        return answers["predictions"] == answers["labels"]


def paired_difference(records: list[dict], reference: list[dict]) -> tuple[float, float] | None:
    """Mean difference in accuracy and half of its 95 % interval, in points, over the seeds that both have.

    Each test image gives one value: its difference averaged over seeds. The interval is the normal one over
    images, so it covers the choice of test images; the spread over seeds is in the tables' deviations.
    """
    other = {record["seed"]: record for record in reference}
    pairs = [(record, other[record["seed"]]) for record in records if record["seed"] in other]
    if not pairs:
        return None
    differences = np.mean([right(a).astype(float) - right(b) for a, b in pairs], axis=0)
    return 100 * differences.mean(), 100 * 1.96 * differences.std(ddof=1) / np.sqrt(len(differences))


def spread(records: list[dict], name: str) -> str:
    """Mean and, with several seeds, sample deviation."""
    values = [record[name] for record in records if record[name] is not None]
    if not values:
        return "-"
    digits = 0 if name == "seconds" else 2
    text = f"{mean(values):.{digits}f}"
    return text if len(values) == 1 or name == "seconds" else f"{text} ± {stdev(values):.{digits}f}"


def cost_row(records: list[dict]) -> dict[str, str]:
    """Accuracy, forgetting and costs of a method on one stream.

    A_auc and A_last stand for A_n and F_n where accuracy was measured at any time. Costs are those of one device, on
    which the last seed with costs ran.
    """
    figures = ("A_auc", "A_last") if "A_auc" in records[0] else ("A_n", "F_n")
    row = {"seeds": " ".join(str(record["seed"]) for record in records)}
    row |= {name: spread(records, name) for name in figures}
    timed = [record for record in records if record.get("kept_bytes") is not None]
    timed = [record for record in timed if record["device"] == timed[-1]["device"]]
    for name, label, unit in COST_COLUMNS:
        values = [record[name] / unit for record in timed]
        row[label] = f"{mean(values):.3g}" if values else "-"
    return row


def table_rows(
    runs: Runs, methods: Sequence[str], label: str = "method", references: Sequence[str] = REFERENCES
) -> list[dict[str, str]]:
    """One row per data set, backbone and method, in the methods' order; ``label`` heads the methods' column."""
    rows = []
    for dataset, backbone in sorted({key[:2] for key in runs}):
        for method in methods:
            records = runs.get((dataset, backbone, method))
            if not records:
                continue
            first = records[0]
            row = {
                "dataset": dataset,
                "backbone": backbone,
                "px": str(first["image_size"]),
                "train/test a class": f"{first['train_per_class'] or 'all'}/{first['test_per_class'] or 'all'}",
                label: method,
                "seeds": " ".join(str(record["seed"]) for record in records),
            }
            row |= {name: spread(records, name) for name in FIGURES}
            for reference in references:
                difference = paired_difference(records, runs.get((dataset, backbone, reference), []))
                known = difference is not None and method != reference
                row[f"to {reference}"] = f"{difference[0]:+.2f} ± {difference[1]:.2f}" if known else "-"
            rows.append(row)
    return rows


def markdown(rows: list[dict[str, str]]) -> str:
    """A Markdown table per data set and backbone."""
    parts = []
    shared = ("dataset", "backbone", "px", "train/test a class")
    for key in dict.fromkeys(tuple(row[name] for name in shared[:2]) for row in rows):
        own = [row for row in rows if (row["dataset"], row["backbone"]) == key]
        first = own[0]
        parts.append(
            f"**{first['dataset']}**, {first['backbone']}, {first['px']} px, {first['train/test a class']} images a "
            "class for training/test\n"
        )
        columns = [name for name in first if name not in shared]
        parts.append("| " + " | ".join(columns) + " |\n|---|" + "---:|" * (len(columns) - 1))
        parts += ["| " + " | ".join(row[name] for name in columns) + " |" for row in own]
        parts.append("")
    return "\n".join(parts)


def overview(runs: Runs, methods: Sequence[str]) -> str:
    """One Markdown table over all data sets: A_n / F_n, mean and deviation; no deviation where there is one seed."""
    columns = sorted({key[:2] for key in runs})
    lines = ["| method | " + " | ".join(f"{dataset}, {backbone}" for dataset, backbone in columns) + " |"]
    lines.append("|---|" + "---:|" * len(columns))
    for method in methods:
        records = [runs.get((*column, method)) for column in columns]
        if any(records):
            cells = [f"{spread(r, 'A_n')} / {spread(r, 'F_n')}" if r else "-" for r in records]
            lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def insert(page: Path, name: str, text: str) -> None:
    """Puts ``text`` between a page's comments ``<!-- name -->`` and ``<!-- /name -->``.

    Raises:
        ValueError: the page has no such comments.
    """
    before, start, rest = page.read_text().partition(f"<!-- {name} -->")
    _, end, after = rest.partition(f"<!-- /{name} -->")
    if not end:
        raise ValueError(f"{page} has no <!-- {name} --> ... <!-- /{name} -->")
    page.write_text(f"{before}{start}\n{text.rstrip()}\n{end}{after}")


def to_readme(results: Path, name: str, text: str) -> None:
    """Puts a table into benchmarks/README.md, see :func:`insert`; nothing if the results are not those kept here."""
    if results == RESULTS:
        insert(RESULTS.parent / "README.md", name, text)


def write_tables(
    folder: Path,
    runs: Runs,
    methods: Sequence[str],
    label: str = "method",
    references: Sequence[str] = REFERENCES,
) -> str:
    """Writes ``table.md`` and ``table.csv`` into a folder; returns the Markdown.

    Raises:
        FileNotFoundError: there are no runs.
    """
    rows = table_rows(runs, methods, label, references)
    if not rows:
        raise FileNotFoundError(f"no results in {folder}")
    text = markdown(rows)
    (folder / "table.md").write_text(text)
    write_csv(folder / "table.csv", rows)
    return text


def write_rows(folder: Path, name: str, rows: Sequence[dict]) -> str:
    """Writes rows that share their columns as JSON, CSV and Markdown; returns the Markdown."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(list(rows), indent=1) + "\n")
    write_csv(folder / f"{name}.csv", rows)
    lines = ["| " + " | ".join(rows[0]) + " |", "|---|" + "---:|" * (len(rows[0]) - 1)]
    lines += ["| " + " | ".join(map(str, row.values())) + " |" for row in rows]
    (folder / f"{name}.md").write_text("\n".join(lines) + "\n")
    return "\n".join(lines)


def publish(folder: Path, name: str, rows: Sequence[dict], page: Path | None) -> None:
    """Writes and prints the rows of a data set; with a page, the tables of all data sets in the folder go into it."""
    print(write_rows(folder, name, rows))
    if page is not None:
        tables = [f"**{path.stem}**\n\n{path.read_text()}" for path in sorted(folder.glob("*.md"))]
        insert(page, folder.name, "\n".join(tables))


def write_csv(path: Path, rows: Sequence[dict]) -> None:
    """Writes rows that share their columns."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
