"""Tables of the experiments on documents of test cases, the stand-in for CodeLlama: ``source`` says so in each row."""

from __future__ import annotations

import pandera.polars as pa
import polars as pl
from pandera.api.polars.types import PolarsData

from schemas.results import Result

_VERIFIERS = ["none", "trained", "ground truth", "random", "random, as often"]


class CodeModels(Result):
    """What every language model of documents learned."""

    replica: pl.Int32 = pa.Field(ge=0, unique=True)
    parameters: pl.Int32 = pa.Field(ge=1, description="weights of one model")
    loss_held: pl.Float64 = pa.Field(ge=0, description="cross-entropy on held-out documents")


class CodeRuns(Result):
    """The analogues of Tables 3.6, 3.9 to 3.13, 3.15 and 3.17: one row for each decoder, model and run."""

    config: pl.Int32 = pa.Field(ge=0, description="number of the decoder")
    replica: pl.Int32 = pa.Field(ge=0)
    run: pl.Int32 = pa.Field(ge=0, description="number of the run on the same prompts, from 0")
    source: pl.String = pa.Field(
        isin=["syn_tc", "codellama"], description="language models: the stand-in trained here, or CodeLlama"
    )
    top_p: pl.Float64 = pa.Field(
        ge=0, le=1, description="nucleus sampling: probability that is kept, 1 for all; 0: the likeliest token"
    )
    temperature: pl.Float64 = pa.Field(ge=0, description="what logits are divided by before nucleus sampling")
    verifier: pl.String = pa.Field(
        isin=_VERIFIERS, description="what objects to strings; ground truth: it knows, random: it guesses"
    )
    threshold: pl.Float64 = pa.Field(ge=0, le=1, description="reject below this probability of being right")
    quota: pl.Int32 = pa.Field(ge=0, description="most backtracks of a completion; 0: no backtracking")
    stride: pl.Int32 = pa.Field(ge=0, description="tokens that a backtrack erases; 0: no backtracking")
    refill: pl.String = pa.Field(
        isin=["", "argmax", "sample"],
        description="what replaces erased tokens: the likeliest ones, or drawn ones; empty without backtracking",
    )
    layer: pl.Int32 = pa.Field(ge=-1, description="whose state the verifier learned from; -1: it reads none")
    depth: pl.Int32 = pa.Field(ge=0, description="linear layers of the verifier")
    read: pl.Int32 = pa.Field(ge=-1, description="the layer whose state it is shown")
    candidates: pl.Int32 = pa.Field(ge=0, description="of block best-of-n; 0: no blocks")
    reserved: pl.Boolean = pa.Field(description="names whose body is another in training")
    requested: pl.Int32 = pa.Field(ge=1, description="test cases asked for, over all prompts and repetitions")
    distinct: pl.Int32 = pa.Field(ge=0, description="distinct right test cases, over repetitions of a prompt")
    accuracy: pl.Float64 = pa.Field(ge=0, le=1, description="distinct over requested")
    calls: pl.Int64 = pa.Field(ge=0, description="tokens drawn, in total")
    erased: pl.Int64 = pa.Field(ge=0, description="tokens erased, in total")
    generated: pl.Int32 = pa.Field(ge=0, description="lines that were read as test cases")
    right: pl.Int32 = pa.Field(ge=0, description="test cases with the right result, repeated ones counted again")
    backtracks: pl.Int32 = pa.Field(ge=0, description="of all completions together")

    class Config:
        """One row per decoder, model and run."""

        unique = ["config", "replica", "run"]

    @pa.dataframe_check(name="distinct right cases are right, and right ones were generated")
    def counted(cls, data: PolarsData) -> pl.LazyFrame:
        ordered = (pl.col("distinct") <= pl.col("right")) & (pl.col("right") <= pl.col("generated"))
        return data.lazyframe.select(ordered & (pl.col("generated") <= pl.col("requested")))


class CodeCumulative(Result):
    """Figures 3.3 and 3.4: queries and distinct right cases after each round of repetitions."""

    config: pl.Int32 = pa.Field(ge=0, description="number of the decoder, as in code_runs")
    replica: pl.Int32 = pa.Field(ge=0)
    run: pl.Int32 = pa.Field(ge=0, description="number of the run on the same prompts, from 0")
    completion: pl.Int32 = pa.Field(
        ge=0, description="number of the round, in which each prompt is completed once; from 0"
    )
    calls: pl.Int64 = pa.Field(ge=0, description="tokens drawn in all rounds so far")
    distinct: pl.Int32 = pa.Field(ge=0, description="distinct right test cases of all rounds so far, counted by prompt")

    class Config:
        """One row per decoder, model, run and repetition."""

        unique = ["config", "replica", "run", "completion"]

    @pa.dataframe_check(name="queries and distinct cases never fall")
    def rising(cls, data: PolarsData) -> pl.LazyFrame:
        key = ["config", "replica", "run"]
        falls = [pl.col(name).diff().over(key, order_by="completion") < 0 for name in ("calls", "distinct")]
        return data.lazyframe.select(~(falls[0] | falls[1]).fill_null(False))


class CodeVerifiers(Result):
    """Verifiers of states of the stand-in's models."""

    replica: pl.Int32 = pa.Field(ge=0)
    layer: pl.Int32 = pa.Field(ge=0, description="whose state it reads; 0: the embeddings")
    depth: pl.Int32 = pa.Field(ge=1, description="linear layers of the verifier")
    block: pl.Boolean = pa.Field(description="trained on the ends of lines alone")
    n_train: pl.Int32 = pa.Field(ge=1, description="samples that verifiers are trained on")
    n_validation: pl.Int32 = pa.Field(ge=1, description="samples held out, by which the epoch is chosen")
    right: pl.Float64 = pa.Field(ge=0, le=1, description="share of right samples")
    validation: pl.Float64 = pa.Field(ge=0, le=1, description="accuracy, at the best epoch")

    class Config:
        """One row per model, layer, depth and kind."""

        unique = ["replica", "layer", "depth", "block"]


class CodeValidation(Result):
    """Decoders without a verifier on names of their own, by which the best of them is chosen."""

    replica: pl.Int32 = pa.Field(ge=0)
    top_p: pl.Float64 = pa.Field(ge=0, le=1, description="nucleus sampling: probability that is kept, 1 for all")
    temperature: pl.Float64 = pa.Field(ge=0, description="what logits are divided by before nucleus sampling")
    accuracy: pl.Float64 = pa.Field(ge=0, le=1, description="distinct right test cases over those asked for")
    chosen: pl.Boolean = pa.Field(description="whether it is the best, by the mean over models")

    class Config:
        """One row per model and decoder."""

        unique = ["replica", "top_p", "temperature"]


class CodeThresholds(Result):
    """The analogue of Table 3.10 for two numbers of test cases in a prompt: means over runs."""

    cases: pl.Int32 = pa.Field(ge=1, description="K, that a prompt asks for")
    replica: pl.Int32 = pa.Field(ge=0)
    top_p: pl.Float64 = pa.Field(ge=0, le=1, description="nucleus sampling: probability that is kept, 1 for all")
    temperature: pl.Float64 = pa.Field(ge=0, description="what logits are divided by before nucleus sampling")
    threshold: pl.Float64 = pa.Field(ge=0, le=1, description="reject below this probability of being right")
    runs: pl.Int32 = pa.Field(ge=1, description="runs on the same prompts, of which the others are means")
    accuracy: pl.Float64 = pa.Field(ge=0, le=1, description="distinct right test cases over those asked for")
    calls: pl.Float64 = pa.Field(ge=0, description="tokens drawn in a run")

    class Config:
        """One row per K, model and decoder."""

        unique = ["cases", "replica", "top_p", "temperature", "threshold"]


class PretrainedRuns(Result):
    """Table 3.6 by a pretrained model from a local folder: one row for each decoder and run."""

    model: pl.String = pa.Field(description="name of the folder")
    run: pl.Int32 = pa.Field(ge=0, description="number of the run on the same prompts, from 0")
    top_p: pl.Float64 = pa.Field(ge=0, le=1, description="nucleus sampling: probability that is kept")
    temperature: pl.Float64 = pa.Field(ge=0, description="what logits are divided by before nucleus sampling")
    verifier: pl.String = pa.Field(
        isin=["none", "trained", "random"], description="what objects to strings; random: it guesses"
    )
    threshold: pl.Float64 = pa.Field(ge=0, le=1, description="reject below this probability of being right")
    layer: pl.Int32 = pa.Field(ge=-1, description="whose state the verifier reads; -1: none")
    requested: pl.Int32 = pa.Field(ge=1, description="test cases asked for, over all prompts and repetitions")
    distinct: pl.Int32 = pa.Field(ge=0, description="distinct right test cases, over repetitions of a prompt")
    accuracy: pl.Float64 = pa.Field(ge=0, le=1, description="distinct over requested")
    calls: pl.Int64 = pa.Field(ge=0, description="tokens drawn, in total")
    erased: pl.Int64 = pa.Field(ge=0, description="tokens erased, in total")
    backtracks: pl.Int32 = pa.Field(ge=0, description="of all completions together")
    validation: pl.Float64 = pa.Field(ge=0, le=1, description="accuracy of the trained verifier")

    class Config:
        """One row per decoder and run."""

        unique = ["model", "run", "top_p", "temperature", "verifier", "threshold"]


class CodeRobustness(Result):
    """Settings 1 and 2 of the stand-in, as table `code_runs` has setting 3: means over runs."""

    setting: pl.Int32 = pa.Field(ge=1, description="of the chapter")
    replica: pl.Int32 = pa.Field(ge=0)
    top_p: pl.Float64 = pa.Field(ge=0, le=1, description="nucleus sampling: probability that is kept, 1 for all")
    temperature: pl.Float64 = pa.Field(ge=0, description="what logits are divided by before nucleus sampling")
    verifier: pl.String = pa.Field(
        isin=_VERIFIERS, description="what objects to strings; ground truth: it knows, random: it guesses"
    )
    threshold: pl.Float64 = pa.Field(ge=0, le=1, description="reject below this probability of being right")
    chosen: pl.Boolean = pa.Field(description="whether it is best without a verifier on names of their own")
    runs: pl.Int32 = pa.Field(ge=1, description="runs on the same prompts, of which the others are means")
    accuracy: pl.Float64 = pa.Field(ge=0, le=1, description="distinct right test cases over those asked for")
    calls: pl.Float64 = pa.Field(ge=0, description="tokens drawn in a run")

    class Config:
        """One row per setting, model and decoder."""

        unique = ["setting", "replica", "top_p", "temperature", "verifier", "threshold"]


class CodeSamples(Result):
    """Tables 3.7, 3.8 and 3.14: prompts and completions of the first model, with the first error marked."""

    reserved: pl.Boolean = pa.Field(description="whether the name has another body in training")
    name: pl.String = pa.Field(description="of the function that is asked about, three letters")
    completion: pl.Int32 = pa.Field(ge=0, description="number of the completion of the prompt, from 0")
    prompt: pl.String = pa.Field(description="what the model was given, as text")
    written: pl.String = pa.Field(description="up to its first error")
    from_its_first_error: pl.String = pa.Field(description="empty for none")

    class Config:
        """One row per completion."""

        unique = ["reserved", "name", "completion"]


SCHEMAS = {
    "code_models": CodeModels,
    "code_runs": CodeRuns,
    "code_cumulative": CodeCumulative,
    "code_validation": CodeValidation,
    "code_verifiers": CodeVerifiers,
    "code_thresholds": CodeThresholds,
    "code_samples": CodeSamples,
    "code_robustness": CodeRobustness,
    "pretrained_runs": PretrainedRuns,
}
