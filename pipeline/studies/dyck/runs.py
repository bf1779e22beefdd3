"""From sequences to training jobs (Wen et al. 2023, section 4.1, eqs 4 and 18; appendix D.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pipeline.errors import SandglassError
from pipeline.languages import dyck
from pipeline.training.jobs import Header
from schemas.dyck.datasets import Sequences

if TYPE_CHECKING:
    import polars as pl

    from pipeline.studies.dyck.params import Run

DATASET_SCHEMA = Sequences
COPY = "copy"  # the split that asks for its input again (DYCK-D7, appendix B.1)


def prepare(entry: Run, frame: pl.DataFrame, seed: int) -> tuple[Header, dict[str, np.ndarray], np.ndarray]:
    """Return header, data and frozen embedding table of the run's training job.

    Inputs are the start token and the tokens before each target; the last token is read only where
    the contrastive term compares the logits behind it (|s|+1 aligned positions). On a dataset whose split is
    ``copy``, every token is read and is its own target, the start token as well, so it is an output, too.

    Raises SandglassError if the dataset does not hold the run's grammar, or too few corpora, if the embedding
    needs more width, or if copying is not asked for at every position.
    """
    k, depth = entry.k, entry.depth
    frame = frame.filter(lang_k=k, lang_D=depth)
    if not frame.height:
        raise SandglassError(
            f"dataset {entry.dataset} holds no strings of k={k}, D={depth}: "
            f"add {{k: {k}, depth: {depth}}} to datasets.{entry.dataset}.grammars"
        )
    corpora = frame["corpus_seed"].unique().sort().to_list()
    chosen = list(range(entry.replicas)) if entry.corpus == "per_replica" else [0] * entry.replicas
    if max(chosen) >= len(corpora):
        raise SandglassError(
            f"{entry.replicas} replicas with a corpus each, but dataset {entry.dataset} holds {len(corpora)}: "
            f"set datasets.{entry.dataset}.corpora to at least {entry.replicas}"
        )
    try:
        table = dyck.embedding_table(entry.embedding, k, depth, entry.width)
    except ValueError as error:
        raise SandglassError(f"params/dyck/: {error}") from None
    copying = frame["split"][0] == COPY
    if copying and (entry.loss_positions != "all" or entry.contrastive):
        raise SandglassError(
            f"dataset {entry.dataset} is for copying, which has loss_positions 'all' and contrastive 0.0, "
            f"not {entry.loss_positions!r} and {entry.contrastive}"
        )
    used = frame.filter(frame["corpus_seed"].is_in(corpora[: max(chosen) + 1]))
    tokens_NxT = dyck.padded(used["length"].to_numpy(), used["tokens"].explode().to_numpy())
    tokens_CxNxT = tokens_NxT.reshape(max(chosen) + 1, -1, tokens_NxT.shape[1])
    data = _inputs(tokens_CxNxT, depth, entry.embedding, keep_last=copying or entry.contrastive > 0)
    if copying:
        data["targets"] = _with_start(tokens_CxNxT)
    else:
        data["targets"] = _targets(tokens_CxNxT, entry.loss_positions, data["ids"].shape[-1])
    if entry.contrastive:
        release = entry.contrastive_prefix == "release"
        bank, lengths, probability = (dyck.release_bank if release else dyck.prefix_bank)(k, depth)
        data |= {"prefix.ids": _ids(bank, depth, entry.embedding), "prefix.lengths": lengths}
        data["prefix.probability"] = probability
    spec = {
        "block": entry.block,
        "layers": entry.layers,
        "heads": entry.heads,
        "width": entry.width,
        "ffn": entry.ffn,
        "attention": entry.attention,
        "position": entry.position,
        "t_max": entry.t_max,
        "inputs": len(table),
        "outputs": 2 * k + copying,
    }
    header = Header(
        model=entry.model,
        spec=spec,
        objective=entry.objective,
        settings=_settings(entry),
        seed=seed,
        study=entry.study,
        stream=entry.stream,
        corpus=chosen,
        lr=[entry.lr] * entry.replicas,
        steps=entry.steps,
        batch=entry.batch,
        schedule=entry.schedule,
        betas=list(entry.betas),
        eps=entry.eps,
        clip=entry.clip,
        precision=entry.precision,
        log_every=entry.log_every,
    )
    return header, data, table


def _settings(entry: Run) -> dict[str, float | bool]:
    """Return the settings of the run's objective."""
    if entry.l2 is not None:
        return {"l2": entry.l2}
    return {"weight": entry.contrastive, "prefix_first": entry.contrastive_prefix == "release"}


def _ids(tokens: np.ndarray, depth: int, embedding: str) -> np.ndarray:
    """Return what the model reads for each token: the token itself, or its symbol (token, pair depth)."""
    return (tokens if embedding == "token" else dyck.symbols(tokens, depth)).astype(np.int16)


def _inputs(tokens_CxNxT: np.ndarray, depth: int, embedding: str, keep_last: bool) -> dict[str, np.ndarray]:
    corpora, n, T = tokens_CxNxT.shape
    flat = tokens_CxNxT.reshape(-1, T)
    ids = dyck.with_start(_ids(flat, depth, embedding))
    lengths = (flat != dyck.PADDING).sum(1) + 1
    if not keep_last:
        ids, lengths = ids[:, :-1], lengths - 1
    return {"ids": ids.reshape(corpora, n, -1), "lengths": lengths.reshape(corpora, n).astype(np.int16)}


def _with_start(tokens_CxNxT: np.ndarray) -> np.ndarray:
    """Return the tokens with the start token in front of each string and -1 behind its end."""
    corpora, n, T = tokens_CxNxT.shape
    return dyck.with_start(tokens_CxNxT.reshape(-1, T)).reshape(corpora, n, T + 1)


def _targets(tokens_CxNxT: np.ndarray, positions: str, width: int) -> np.ndarray:
    """Return the output index (token - 1) to predict at each input, -1 where the loss does not look (eq. 4).

    ``closing`` (the authors' release) keeps closing brackets only; ``all`` is the texts' reading.
    """
    loss_mask = dyck.is_close(tokens_CxNxT) if positions == "closing" else tokens_CxNxT > 0
    targets = np.full((*tokens_CxNxT.shape[:2], width), -1, dtype=np.int8)
    targets[..., : tokens_CxNxT.shape[-1]] = np.where(loss_mask, tokens_CxNxT - 1, -1)
    return targets
