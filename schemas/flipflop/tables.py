"""Result tables of the study."""

from __future__ import annotations

import pandera.polars as pa
import polars as pl
from pandera.api.polars.types import PolarsData

from schemas.results import Result


class Accuracy(Result):
    """The share of next tokens that a run predicts: mean over its replicas, with a bootstrap interval."""

    run: pl.String
    value: pl.Float64 = pa.Field(ge=0, le=1)
    lo: pl.Float64 = pa.Field(ge=0, le=1, nullable=True)
    hi: pl.Float64 = pa.Field(ge=0, le=1, nullable=True)
    n: pl.Int32 = pa.Field(ge=1, description="replicas")

    class Config:
        """One row per run."""

        unique = ["run"]


# --- theory, language models, addition -------------------------------------------------------------


class Machines(Result):
    """Every move of the flip-flop and of the machine that reads its language."""

    machine: pl.String = pa.Field(isin=["flip-flop", "recogniser"])
    state: pl.Int16 = pa.Field(ge=0)
    symbol: pl.Int16 = pa.Field(ge=0)
    next_state: pl.Int16 = pa.Field(ge=0)
    state_shown: pl.String
    symbol_shown: pl.String

    class Config:
        """One row per move."""

        unique = ["machine", "state", "symbol"]


class Dilution(Result):
    """Proposition 4: the largest weight that one token can have."""

    sigma: pl.Float64 = pa.Field(ge=0, description="norm of W_K'W_Q")
    length: pl.Int32 = pa.Field(ge=1, description="tokens, T")
    bound: pl.Float64 = pa.Field(gt=0, le=1, description="largest possible weight")
    half: pl.Float64 = pa.Field(ge=1, description="length at which the bound is one half")

    class Config:
        """One row per norm and length."""

        unique = ["sigma", "length"]


class NgramLaw(Result):
    """The least error of a predictor that sees n tokens, on all reads of a language."""

    n: pl.Int16 = pa.Field(ge=1, description="tokens that are seen, the read among them")
    set: pl.String = pa.Field(isin=["val", "sparse", "dense"])
    length: pl.Int16 = pa.Field(ge=4, description="tokens of a string, T")
    error: pl.Float64 = pa.Field(ge=0, le=1, description="share of reads that are wrong, by the closed form")
    sampled: pl.Float64 = pa.Field(ge=0, le=1, nullable=True, description="the same of the predictor itself")
    reads: pl.Int32 = pa.Field(ge=1, description="reads in the strings that were drawn for it")

    class Config:
        """One row per predictor and language."""

        unique = ["n", "set"]


class ProbeScores(Result):
    """Proposition 5: scores along a probe with two writes, less the score of the right one."""

    model: pl.String
    a: pl.Float64 = pa.Field(description="W_Qp' W_Kp, the term of both positions")
    position: pl.Int32 = pa.Field(ge=1, description="of the query, from 1")
    key: pl.String = pa.Field(isin=["last write", "first write", "itself"])
    score: pl.Float64 = pa.Field(description="score of the key less that of the last write")

    class Config:
        """One row per model, query and key."""

        unique = ["model", "position", "key"]


class LmEval(Result):
    """Light-switch stories: how many a predictor completes as they should be."""

    model: pl.String
    kind: pl.String = pa.Field(isin=["standin", "pretrained", "oracle", "heuristic", "ngram"])
    replica: pl.Int16 = pa.Field(ge=0)
    n_params: pl.Int64 = pa.Field(ge=0, nullable=True, description="trained numbers of a model")
    length: pl.Int16 = pa.Field(ge=4, description="tokens of the string that is asked about")
    n: pl.Int32 = pa.Field(ge=1, description="strings")
    n_correct: pl.Int32 = pa.Field(ge=0, nullable=True, description="strings for which the right state scores higher")
    accuracy: pl.Float64 = pa.Field(ge=0, le=1, nullable=True, description="their share")
    strict: pl.Float64 = pa.Field(
        ge=0, le=1, nullable=True, description="share for which the right state leads all words"
    )
    expected: pl.Float64 = pa.Field(ge=0, le=1, nullable=True, description="accuracy of a rule by the law of strings")

    class Config:
        """One row per model and length."""

        unique = ["model", "replica", "length"]

    @pa.dataframe_check(name="no more right answers than strings")
    def counts(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select((pl.col("n_correct") <= pl.col("n")).fill_null(True))


class Addition(Result):
    """Recorded answers of GPT models to additions (Tables 3.2, 3.3)."""

    printed_in: pl.String = pa.Field(isin=["Table 3.2", "Table 3.3"])
    a: pl.String = pa.Field(str_matches=r"^\d+$", description="first operand")
    b: pl.String = pa.Field(str_matches=r"^\d+$", description="second operand")
    model: pl.String = pa.Field(isin=["GPT-3.5", "GPT-4"])
    answer: pl.String = pa.Field(description="what the model said, as printed")
    marked_right: pl.Boolean = pa.Field(description="the printed mark")
    right: pl.Boolean = pa.Field(description="whether the answer is the sum")
    truth: pl.String = pa.Field(str_matches=r"^\d+$", description="the sum, computed")
    printed_truth: pl.String = pa.Field(str_matches=r"^\d+$", description="the sum, as printed")
    carried: pl.String = pa.Field(str_matches=r"^\d+$", description="the sum with a flip-flop as carry")

    class Config:
        """One row per question and model."""

        unique = ["a", "b", "model"]


THEORY = {
    "machines": Machines, "dilution": Dilution, "ngram_law": NgramLaw, "probe_scores": ProbeScores, "lm_eval": LmEval,
    "addition": Addition,
}  # fmt: skip
# ---------------------------------------------------------------------------------------------------


SCHEMAS = {"accuracy": Accuracy} | THEORY
