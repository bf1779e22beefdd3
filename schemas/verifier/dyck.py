"""Tables of the experiments on Dyck strings."""

from __future__ import annotations

import pandera.polars as pa
import polars as pl
from pandera.api.polars.types import PolarsData

from pipeline.languages import dyck_strings as language
from schemas.results import Result

# What a verifier reads: the state of its model, that of a model of the same shape which was never trained, or a token.
LINEAR, UNTRAINED, LAST_TOKEN = "linear", "untrained", "last token"
OWN = "trained"  # the model that made the mistakes; the other one of clusters is UNTRAINED
# Strings whose states cluster: all, or as many mistakes as right ones of each last sign.
ALL, MATCHED = "all", "as many of each last sign"


class Models(Result):
    """E-D0: what every language model learned."""

    replica: pl.Int32 = pa.Field(ge=0)
    weights: pl.String = pa.Field(isin=["last", "average"], description="after the last step, or their moving average")
    parameters: pl.Int32 = pa.Field(ge=1, description="weights of one model")
    closers_id: pl.Float64 = pa.Field(ge=0, le=1, description="closers that are the likeliest sign, as in training")
    closers_ood: pl.Float64 = pa.Field(ge=0, le=1, description="out of distribution")
    completed_id: pl.Float64 = pa.Field(
        ge=0, le=1, nullable=True, description="prompts completed rightly, as in training"
    )
    completed_ood: pl.Float64 = pa.Field(ge=0, le=1, nullable=True, description="out of distribution")

    class Config:
        """One row per model and kind of weights."""

        unique = ["replica", "weights"]


class VerifierEval(Result):
    """E-D1: how right verifiers are, one row for each model, kind and split."""

    replica: pl.Int32 = pa.Field(ge=0)
    kind: pl.String = pa.Field(
        isin=[LINEAR, UNTRAINED, LAST_TOKEN],
        description="what it reads: the state, that of a model which was never trained, or the last token alone",
    )
    split: pl.Int32 = pa.Field(ge=0, description="number of the random split of the samples, from 0")
    n_train: pl.Int32 = pa.Field(ge=1, description="samples that verifiers are trained on")
    n_validation: pl.Int32 = pa.Field(ge=1, description="the other samples of the split, by which the epoch is chosen")
    n_held: pl.Int32 = pa.Field(ge=1, description="samples from further prompts")
    training: pl.Float64 = pa.Field(ge=0, le=1, description="accuracy on what it was trained on")
    validation: pl.Float64 = pa.Field(ge=0, le=1, description="on the rest of the split, at the best epoch there")
    held: pl.Float64 = pa.Field(ge=0, le=1, description="on mistakes of further prompts, and right strings beside them")

    class Config:
        """One row per model, kind and split."""

        unique = ["replica", "kind", "split"]


class Clusters(Result):
    """Figure 3.1: how the states of mistakes and of right strings lie."""

    replica: pl.Int32 = pa.Field(ge=0)
    model: pl.String = pa.Field(
        isin=[OWN, UNTRAINED], description="whose states: of the model, or of one of its shape that was never trained"
    )
    strings: pl.String = pa.Field(
        isin=[ALL, MATCHED], description="all, or as many mistakes as right strings with each last sign"
    )
    metric: pl.String = pa.Field(
        isin=["nearest neighbour", "explained variance"],
        description="share whose nearest neighbour has the same label, or of the variance that k clusters explain",
    )
    label: pl.String = pa.Field(
        isin=["all", "error", "correct"],
        description="states it is of: ends of mistaken strings, of right ones, or both",
    )
    k: pl.Int32 = pa.Field(ge=1, description="clusters; 1 for neighbours")
    value: pl.Float64 = pa.Field(ge=0, le=1, description="the share")

    class Config:
        """One row per model, strings, metric, label and k."""

        unique = ["replica", "model", "strings", "metric", "label", "k"]


class Tsne(Result):
    """Figure 3.1: t-SNE of the states of the first model."""

    random_state: pl.Int32 = pa.Field(ge=0, description="seed of t-SNE")
    string_id: pl.Int32 = pa.Field(ge=0, description="number of the string, mistaken ones first; from 0")
    label: pl.String = pa.Field(
        isin=["error", "correct"], description="whether the string ends with a mistake or is right"
    )
    x: pl.Float64 = pa.Field(description="first coordinate of t-SNE")
    y: pl.Float64 = pa.Field(description="second coordinate of t-SNE")

    class Config:
        """One row per string and random state."""

        unique = ["random_state", "string_id"]


class Forced(Result):
    """Table 3.1: one backtrack at error-inducing prefixes, and then nucleus sampling."""

    replica: pl.Int32 = pa.Field(ge=0)
    prefixes: pl.String = pa.Field(
        isin=["seen", "held"], description="whether verifiers were trained on their mistakes"
    )
    stride: pl.Int32 = pa.Field(ge=0, description="signs that are erased; 0 for none")
    refill: pl.String = pa.Field(isin=["none", "greedy", "argmax", "sample"], description="greedy: all of the rest")
    n: pl.Int32 = pa.Field(ge=1, description="prefixes that were completed")
    accuracy: pl.Float64 = pa.Field(ge=0, le=1, description="share of prefixes completed rightly")

    class Config:
        """One row per model, prefixes, stride and refill."""

        unique = ["replica", "prefixes", "stride", "refill"]


class Algorithm1(Result):
    """Table 3.2: Algorithm 1 at error-inducing prefixes."""

    replica: pl.Int32 = pa.Field(ge=0)
    prefixes: pl.String = pa.Field(
        isin=["seen", "held"], description="whether verifiers were trained on their mistakes"
    )
    quota: pl.Int32 = pa.Field(ge=1, description="most backtracks of a completion")
    stride: pl.Int32 = pa.Field(ge=1, description="tokens that a backtrack erases")
    n: pl.Int32 = pa.Field(ge=1, description="prefixes that were completed")
    accuracy: pl.Float64 = pa.Field(ge=0, le=1, description="share of prefixes completed rightly")
    calls: pl.Float64 = pa.Field(ge=0, description="tokens drawn, mean")
    erased: pl.Float64 = pa.Field(ge=0, description="tokens erased, mean")
    backtracks: pl.Int32 = pa.Field(ge=0, description="of all prefixes together")
    exact: pl.Boolean = pa.Field(description="calls are tokens and what was erased, in every row")

    class Config:
        """One row per model, prefixes, quota and stride."""

        unique = ["replica", "prefixes", "quota", "stride"]

    @pa.dataframe_check(name="no more backtracks than the quotas of all prefixes")
    def within_quota(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col("backtracks") <= pl.col("quota") * pl.col("n"))


class Guessed(Result):
    """A verifier that knows nothing, in the largest cell of Table 3.2: at a rate that sends back as often."""

    replica: pl.Int32 = pa.Field(ge=0)
    prefixes: pl.String = pa.Field(
        isin=["seen", "held"], description="whether verifiers were trained on their mistakes"
    )
    quota: pl.Int32 = pa.Field(ge=1, description="most backtracks of a completion")
    stride: pl.Int32 = pa.Field(ge=1, description="tokens that a backtrack erases")
    rate: pl.Float64 = pa.Field(ge=0, le=1, description="probability of an objection, token by token")
    n: pl.Int32 = pa.Field(ge=1, description="prefixes that were completed")
    accuracy: pl.Float64 = pa.Field(ge=0, le=1, description="share of prefixes completed rightly")
    backtracks: pl.Int32 = pa.Field(ge=0, description="of all prefixes together")

    class Config:
        """One row per model and prefixes."""

        unique = ["replica", "prefixes"]


class Necessity(Result):
    """Table 3.4: what becomes of the strings that a verifier objected to if nothing is erased."""

    replica: pl.Int32 = pa.Field(ge=0)
    prefixes: pl.String = pa.Field(
        isin=["seen", "held"], description="whether verifiers were trained on their mistakes"
    )
    quota: pl.Int32 = pa.Field(ge=1, description="most backtracks of a completion while objections were collected")
    stride: pl.Int32 = pa.Field(ge=1, description="tokens that a backtrack erases while objections were collected")
    triggers: pl.Int32 = pa.Field(ge=0, description="strings that the verifier objected to")
    with_it: pl.Float64 = pa.Field(
        ge=0, le=1, nullable=True, description="completed rightly by Algorithm 1, which goes back"
    )
    valid: pl.Int32 = pa.Field(ge=0, description="of these can still be completed, and are not whole")
    whole: pl.Int32 = pa.Field(ge=0, description="of these are whole and right, with their end")
    nucleus: pl.Float64 = pa.Field(ge=0, le=1, nullable=True, description="completed rightly by nucleus sampling")
    greedy: pl.Float64 = pa.Field(ge=0, le=1, nullable=True, description="by the likeliest signs")
    with_it_valid: pl.Float64 = pa.Field(
        ge=0, le=1, nullable=True, description="by Algorithm 1, of those that can be completed"
    )
    nucleus_valid: pl.Float64 = pa.Field(
        ge=0, le=1, nullable=True, description="by nucleus sampling, of those that can be completed"
    )
    greedy_valid: pl.Float64 = pa.Field(
        ge=0, le=1, nullable=True, description="by the likeliest signs, of those that can be completed"
    )

    class Config:
        """One row per model, prefixes, quota and stride."""

        unique = ["replica", "prefixes", "quota", "stride"]


_VERIFIERS = ["none", "trained", "trained, where it learned", "ground truth", "random"]


class UnseenRuns(Result):
    """Tables 3.3 and 3.16, run by run."""

    replica: pl.Int32 = pa.Field(ge=0)
    top_p: pl.Float64 = pa.Field(
        ge=0, le=1, description="nucleus sampling: probability that is kept, 1 for all; 0: the likeliest token"
    )
    verifier: pl.String = pa.Field(
        isin=_VERIFIERS, description="what objects to strings; ground truth: it knows, random: it guesses"
    )
    refill: pl.String = pa.Field(
        isin=["", "argmax", "sample"],
        description="what replaces erased tokens: the likeliest ones, or drawn ones; empty without backtracking",
    )
    run: pl.Int32 = pa.Field(ge=0, description="number of the run on the same prompts, from 0")
    n: pl.Int32 = pa.Field(ge=1, description="prompts")
    errors: pl.Int32 = pa.Field(ge=0, description="prompts completed wrongly")
    calls: pl.Float64 = pa.Field(ge=0, description="tokens drawn, mean")
    erased: pl.Float64 = pa.Field(ge=0, description="tokens erased, mean")
    completion: pl.Float64 = pa.Field(ge=0, description="tokens of a completion, mean")
    backtracks: pl.Int32 = pa.Field(ge=0, description="of all prompts together")
    needless: pl.Int32 = pa.Field(ge=0, description="of these from strings that could still be completed")
    exact: pl.Boolean = pa.Field(description="calls are tokens and what was erased, in every row")

    class Config:
        """One row per model, decoder and run."""

        unique = ["replica", "top_p", "verifier", "refill", "run"]


class Unseen(Result):
    """Tables 3.3 and 3.16: means over runs, which complete the same prompts again."""

    replica: pl.Int32 = pa.Field(ge=0)
    top_p: pl.Float64 = pa.Field(
        ge=0, le=1, description="nucleus sampling: probability that is kept, 1 for all; 0: the likeliest token"
    )
    verifier: pl.String = pa.Field(
        isin=_VERIFIERS, description="what objects to strings; ground truth: it knows, random: it guesses"
    )
    refill: pl.String = pa.Field(
        isin=["", "argmax", "sample"],
        description="what replaces erased tokens: the likeliest ones, or drawn ones; empty without backtracking",
    )
    runs: pl.Int32 = pa.Field(ge=1, description="runs on the same prompts")
    n: pl.Int32 = pa.Field(ge=1, description="prompts")
    errors: pl.Float64 = pa.Field(ge=0, description="prompts completed wrongly")
    errors_std: pl.Float64 = pa.Field(ge=0, description="over runs, of the population: what the source prints as ±")
    errors_se: pl.Float64 = pa.Field(ge=0, nullable=True, description="standard error of the mean over runs")
    calls: pl.Float64 = pa.Field(ge=0, description="tokens drawn for a prompt, mean")
    erased: pl.Float64 = pa.Field(ge=0, description="tokens erased for a prompt, mean")
    completion: pl.Float64 = pa.Field(ge=0, description="tokens of a completion, mean")
    backtracks: pl.Float64 = pa.Field(ge=0, description="of all prompts of a run together, mean")
    needless: pl.Float64 = pa.Field(ge=0, description="of these from strings that could still be completed")

    class Config:
        """One row per model and decoder."""

        unique = ["replica", "top_p", "verifier", "refill"]


class ResidualErrors(Result):
    """Figure 3.2: mistakes that are left, by kind."""

    replica: pl.Int32 = pa.Field(ge=0)
    top_p: pl.Float64 = pa.Field(
        ge=0, le=1, description="nucleus sampling: probability that is kept, 1 for all; 0: the likeliest token"
    )
    verifier: pl.String = pa.Field(
        isin=_VERIFIERS, description="what objects to strings; ground truth: it knows, random: it guesses"
    )
    refill: pl.String = pa.Field(
        isin=["", "argmax", "sample"],
        description="what replaces erased tokens: the likeliest ones, or drawn ones; empty without backtracking",
    )
    error: pl.String = pa.Field(
        isin=language.ERRORS, description="kind of the first mistake, in the words of the authors' release"
    )
    count: pl.Int32 = pa.Field(ge=0, description="completions with this mistake, of all runs together")
    majority: pl.Int32 = pa.Field(ge=0, description="of these are closers of training's majority kind")
    without_quota: pl.Int32 = pa.Field(ge=0, description="of these in strings whose quota is used up")

    class Config:
        """One row per model, decoder and kind of error."""

        unique = ["replica", "top_p", "verifier", "refill", "error"]


class ResidualExamples(Result):
    """Figure 3.2: mistakes that Algorithm 1 leaves, one by one."""

    replica: pl.Int32 = pa.Field(ge=0)
    row: pl.Int32 = pa.Field(
        ge=0, description="number of the completion, the runs of a prompt one after the other; from 0"
    )
    error: pl.String = pa.Field(
        isin=language.ERRORS, description="kind of the first mistake, in the words of the authors' release"
    )
    prefix: pl.String = pa.Field(description="the string before the mistake")
    sign: pl.String = pa.Field(description="what was written")
    probability: pl.Float64 = pa.Field(ge=0, le=1, description="of it, before nucleus sampling")
    likeliest: pl.String = pa.Field(description="sign that the model finds likeliest behind the prefix")
    its_probability: pl.Float64 = pa.Field(ge=0, le=1, description="of the likeliest sign")
    quota_left: pl.Int32 = pa.Field(ge=0, description="backtracks that were left at the end")

    class Config:
        """One row per mistake."""

        unique = ["replica", "row"]


class Closers(Result):
    """Closing brackets that were written behind the prompt, up to the first mistake, by the kind that was due."""

    replica: pl.Int32 = pa.Field(ge=0)
    top_p: pl.Float64 = pa.Field(
        ge=0, le=1, description="nucleus sampling: probability that is kept, 1 for all; 0: the likeliest token"
    )
    verifier: pl.String = pa.Field(
        isin=_VERIFIERS, description="what objects to strings; ground truth: it knows, random: it guesses"
    )
    refill: pl.String = pa.Field(
        isin=["", "argmax", "sample"],
        description="what replaces erased tokens: the likeliest ones, or drawn ones; empty without backtracking",
    )
    kind: pl.Int32 = pa.Field(isin=[0, 1], description="of the bracket that is open: 0 is rare in training")
    due: pl.Int32 = pa.Field(ge=0, description="closing brackets written where one of this kind was due")
    wrong: pl.Int32 = pa.Field(ge=0, description="of these are of the other kind")

    class Config:
        """One row per model, decoder and kind."""

        unique = ["replica", "top_p", "verifier", "refill", "kind"]


class Objections(Result):
    """To what the trained verifier objects, of what a model writes without it, place by place."""

    replica: pl.Int32 = pa.Field(ge=0)
    place: pl.Int32 = pa.Field(ge=1, description="signs of the string behind its first, B")
    wrong: pl.Boolean = pa.Field(description="the last sign is the first mistake; else the string can be completed")
    n: pl.Int32 = pa.Field(ge=1, description="strings")
    objected: pl.Int32 = pa.Field(ge=0, description="of these the verifier would send back")
    samples: pl.Int32 = pa.Field(ge=0, description="mistakes of this length, of those that it learned from")
    learned: pl.Boolean = pa.Field(description="whether that is enough to say that it learned from this length")

    class Config:
        """One row per model, place and whether the last sign is a mistake."""

        unique = ["replica", "place", "wrong"]


class Diversity(Result):
    """Table 3.5: distinct completions of a prompt."""

    replica: pl.Int32 = pa.Field(ge=0)
    prompt_id: pl.Int32 = pa.Field(ge=0, description="number of the prompt, from 0")
    top_p: pl.Float64 = pa.Field(
        ge=0, le=1, description="nucleus sampling: probability that is kept, 1 for all; 0: the likeliest token"
    )
    verifier: pl.String = pa.Field(
        isin=_VERIFIERS, description="what objects to strings; ground truth: it knows, random: it guesses"
    )
    distinct: pl.Int32 = pa.Field(
        ge=1, description="distinct strings among the completions of the prompt, 10 in the source"
    )
    right: pl.Int32 = pa.Field(ge=0, description="of these are right")

    class Config:
        """One row per model, prompt and decoder."""

        unique = ["replica", "prompt_id", "top_p", "verifier"]


SCHEMAS = {
    "models": Models,
    "verifier_eval": VerifierEval,
    "clusters": Clusters,
    "tsne": Tsne,
    "forced": Forced,
    "algorithm_1": Algorithm1,
    "guessed": Guessed,
    "necessity": Necessity,
    "unseen_runs": UnseenRuns,
    "unseen": Unseen,
    "residual_errors": ResidualErrors,
    "residual_examples": ResidualExamples,
    "closers": Closers,
    "objections": Objections,
    "diversity": Diversity,
}
