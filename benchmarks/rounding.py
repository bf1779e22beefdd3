"""What rounding alone does to the claims: ``make rounding``.

Everything is trained again, in a clone, from initial weights that are multiplied by 1 + 1e-7 z, z standard normal:
about the last bit of a float32. What then differs, a build on another processor may differ by as well, for no other
reason.
The result, profiles/rounding.json, is what `audit` and `summary` hold such a build against.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from pipeline import params
from pipeline.audit import elsewhere
from pipeline.errors import SandglassError
from pipeline.store import paths

SIZE = 1e-7
JOBS = Path("pipeline/training/jobs.py")
PLAIN = "        return torch.from_numpy(np.stack(rows)).to(torch.float32)\n"
PERTURBED = f"""        noise = np.stack([self.rng(r, "rounding").standard_normal(len(rows[0])) for r in replicas])
        return torch.from_numpy(np.stack(rows) * (1 + {SIZE} * noise)).to(torch.float32)
"""


def main(
    folder: Annotated[Path | None, typer.Option(help="for the clone, which is kept and continued next time")] = None,
) -> None:
    """Train everything again from weights that differ in their last bit; write profiles/rounding.json."""
    with tempfile.TemporaryDirectory(prefix="sandglass-") as scratch:
        tree = folder or Path(scratch) / "tree"
        if not tree.exists():
            subprocess.run(["git", "clone", "-q", ".", str(tree)], check=True)
        perturb(tree)
        status = subprocess.run([sys.executable, "-m", "pipeline", "build"], cwd=tree, check=False).returncode
        if status:
            raise SandglassError(f"the build in {tree} ended with status {status}")
        yardstick = measure(tree)
    scale = params.load().scale
    file = elsewhere.YARDSTICK
    kept: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    file.write_text(json.dumps(kept | {scale: yardstick}, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(json.dumps(yardstick, indent=1))


def perturb(tree: Path) -> None:
    """Have trainings in ``tree`` start from other last bits."""
    file = tree / JOBS
    text = file.read_text(encoding="utf-8")
    if PERTURBED not in text:
        if PLAIN not in text:
            raise SandglassError(f"{JOBS}: initial weights are not made as {Path(__file__).name} expects")
        file.write_text(text.replace(PLAIN, PERTURBED), encoding="utf-8")


def measure(tree: Path) -> dict[str, Any]:
    """Return how the claims of ``tree`` stand to the claims here: see `elsewhere.Yardstick`."""
    loaded = params.load()
    gates = pl.concat(elsewhere.beside(_claims(tree, study), _claims(Path(), study)) for study in loaded.studies)
    return asdict(elsewhere.Yardstick.of(gates))


def _claims(root: Path, study: str) -> pl.DataFrame:
    return pl.read_parquet(root / paths.claims_path(study, "parquet"))


if __name__ == "__main__":
    typer.run(main)
