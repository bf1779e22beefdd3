"""What params/distillation/ may say."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from pipeline.params import (
    DatasetEntry,
    ExperimentEntry,
    GridRunEntry,
    LabelsEntry,
    Positive,
    Probability,
    Strict,
    TheoryEntry,
)

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9]*$")]


Symbol = Annotated[int, Field(ge=7, le=22, description="root of a grammar")]
Length = Annotated[int, Field(ge=2, le=1000, description="signs of a string")]
Signs = Annotated[int, Field(ge=1, le=32, description="signs of a parity")]
Depth = Annotated[int, Field(ge=1, le=5, description="parities on the way to a class")]


class Strings(DatasetEntry):
    """Held-out strings of a parity task."""

    kind: Literal["strings"]
    task: Literal["parity"]
    d: Length
    k: Signs
    depth: Depth
    held: Positive = Field(description="held-out strings")

    @property
    def identity(self) -> tuple[int, ...]:
        """What the stream of held-out strings is named by."""
        return (self.d,)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.k * (2**self.depth - 1) > self.d:
            raise ValueError(f"{2**self.depth - 1} parities of {self.k} signs do not fit into {self.d}")
        return self


class Sentences(DatasetEntry):
    """Held-out sentences of a grammar, and what is asked of them."""

    kind: Literal["sentences"]
    task: Literal["masked", "next"]
    grammar: Literal["cfg3b", "cfg3i", "cfg3h", "cfg3g", "cfg3f", "cfg3b_pdcode"]
    root: Symbol
    rate: Probability | None = Field(None, description="share of tokens that are selected; masked")
    hide_masked: bool | None = Field(None, description="no selected token is attended to; masked")
    level: Annotated[int, Field(ge=1, le=6)] | None = Field(
        None, description="of the spans whose last tokens are asked for; next"
    )
    held: Positive = Field(description="held-out sentences")

    @property
    def identity(self) -> tuple[str | int, ...]:
        """What the stream of held-out sentences is named by."""
        return self.grammar, self.root, self.task

    @model_validator(mode="after")
    def _own_settings(self) -> Self:
        own = {name for name in ("rate", "hide_masked", "level") if getattr(self, name) is not None}
        needed = {"rate", "hide_masked"} if self.task == "masked" else {"level"}
        if own != needed:
            raise ValueError(f"task {self.task!r} needs {sorted(needed)}, has {sorted(own)}")
        return self


class TextFile(Strict):
    """A plain-text file of one's own."""

    path: str
    md5: Annotated[str, Field(pattern="^[0-9a-f]{32}$")] = Field(
        description="what the file must be, so that another file is another dataset"
    )


class Blocks(DatasetEntry):
    """Held-out blocks of the generated text that stands in for English, or of text files, and what is asked of them."""

    kind: Literal["blocks"]
    task: Literal["masked"]
    length: Annotated[int, Field(ge=2, le=1024, description="words of a block")]
    rate: Probability = Field(description="share of words that are selected")
    hide_masked: bool = Field(description="no selected word is attended to")
    files: Annotated[list[TextFile], Field(min_length=1)] | None = Field(
        None, description="text files that blocks are cut from, in order; without them the text is generated"
    )
    words: Annotated[int, Field(ge=6, le=32767)] | None = Field(
        None, description="size of the vocabulary of the files; rarer words are one"
    )
    held: Positive = Field(description="held-out blocks")

    @property
    def identity(self) -> tuple[str | int, ...]:
        """What the stream of held-out blocks is named by."""
        return "text", self.length

    @model_validator(mode="after")
    def _vocabulary_of_files(self) -> Self:
        if (self.files is None) != (self.words is None):
            raise ValueError("files and words go together")
        return self


class Checkpoint(Strict):
    """Which of a teacher's kept weights a student learns from."""

    rule: Literal["step", "reaches", "before", "correlation", "between", "inflection"] = Field(
        description="step: after so many steps; reaches: the first with this accuracy; before: the last below this "
        "accuracy that lies ``gap`` kept ones before the first with accuracy ``of``; correlation: the largest "
        "separation of degree 1; between: the smallest separation of degree 1 among those that lie between its two "
        "largest peaks; inflection: the one at which half of the fall of its loss is behind it"
    )
    value: Annotated[float, Field(ge=0)] | None = Field(None, description="a step, or an accuracy")
    of: Probability | None = Field(None, description="accuracy; rule before")
    gap: Positive | None = Field(None, description="kept weights; rule before")

    @model_validator(mode="after")
    def _own_settings(self) -> Self:
        needed = {"step": {"value"}, "reaches": {"value"}, "before": {"value", "of", "gap"}}.get(self.rule, set())
        own = {name for name in ("value", "of", "gap") if getattr(self, name) is not None}
        if own != needed:
            raise ValueError(f"rule {self.rule!r} needs {sorted(needed)}, has {sorted(own)}")
        return self


class Arm(Strict):
    """How a student is taught."""

    schedule: Literal["labels", "one_shot", "in_turn", "intervals", "equal_split", "share_split"]
    tau: Annotated[float, Field(ge=0)] | None = Field(
        None, description="temperature of the teacher; 0: its most likely class"
    )
    each: Positive | None = Field(None, description="student steps with a checkpoint: in_turn, intervals")
    checkpoints: Annotated[list[Checkpoint], Field(min_length=1)] | None = Field(
        None, description="those before the last one: intervals"
    )
    kappa: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None, description="share of the teacher's steps: share_split"
    )
    spaced: Literal["kept", "inflection"] | None = Field(
        None,
        description="which checkpoints are gone through, all kept ones, or multiples of the step of the inflection: "
        "in_turn, equal_split, share_split",
    )

    @model_validator(mode="after")
    def _own_settings(self) -> Self:
        needed = {
            "in_turn": {"each", "spaced"},
            "intervals": {"each", "checkpoints"},
            "share_split": {"kappa", "spaced"},
            "equal_split": {"spaced"},
        }
        expected = needed.get(self.schedule, set()) | ({"tau"} if self.schedule != "labels" else set())
        own = {name for name in ("tau", "each", "checkpoints", "kappa", "spaced") if getattr(self, name) is not None}
        if own != expected:
            raise ValueError(f"schedule {self.schedule!r} needs {sorted(expected)}, has {sorted(own)}")
        return self


class TaughtEntry(LabelsEntry):
    """What a teacher's checkpoints answer to the inputs that its students read."""

    stream: Annotated[str, Field(description="that of the run which learns from it")]
    replicas: Annotated[int, Field(ge=0)]
    side: Positive = Field(description="students of each arm that train side by side in a replica")
    steps: Positive
    batch: Positive
    arms: dict[Name, Arm] = Field(min_length=1)

    @property
    def answered_during_training(self) -> bool:
        """Whether the teacher answers while its students train, and nothing is stored before."""
        return bool(getattr(self, "streamed", False))


class TaughtStrings(Strings, TaughtEntry):
    """What a teacher answers to strings."""

    kind: Literal["taught_strings"]  # type: ignore[assignment]
    correlated: Positive = Field(description="strings on which correlations are estimated")


class TaughtSentences(Sentences, TaughtEntry):
    """What a teacher answers to sentences."""

    kind: Literal["taught_sentences"]  # type: ignore[assignment]
    streamed: bool = Field(
        description="the teacher answers while its students train, which takes its weights with them; otherwise all "
        "answers are made and stored before"
    )


class TaughtBlocks(Blocks, TaughtEntry):
    """What a teacher answers to blocks of text."""

    kind: Literal["taught_blocks"]  # type: ignore[assignment]


Taught = TaughtStrings | TaughtSentences | TaughtBlocks
Dataset = Annotated[Strings | Sentences | Blocks | Taught, Field(discriminator="kind")]


class Run(GridRunEntry):
    """Models that learn parities or sentences: teachers, from labels, or students, from the dataset that names their
    arms. ``clip`` bounds the gradient of each of the models side by side."""

    role: Literal["teacher", "student"]
    side: Positive = Field(description="models that train side by side in a replica; of a student, for each arm")
    warmup: Annotated[int, Field(ge=0)] = Field(description="steps in which the rate rises to its peak")
    snapshots_every: Annotated[int, Field(ge=0, description="steps between kept weights; 0: only the last")]
    width: Positive = Field(description="hidden units of an MLP; channels of a Transformer")
    layers: Positive | None = Field(None, description="of a Transformer")
    heads: Positive | None = Field(None, description="of a Transformer")
    head_width: Positive | None = Field(None, description="channels of a head")
    average: bool | None = Field(None, description="heads of full width, averaged, in place of concatenated")
    start: Annotated[float, Field(gt=0)] | None = Field(
        None, description="standard deviation of a Transformer's weights before training"
    )
    form: Literal["gpt2", "bert"] | None = Field(None, description="of a Transformer")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        shape = (self.layers, self.heads, self.head_width, self.average, self.start, self.form)
        mlp = self.model == "distillation/mlp"
        if mlp != all(value is None for value in shape) or (not mlp and None in shape):
            raise ValueError(
                "a Transformer has layers, heads, head_width, average, start and form; an MLP has none of them"
            )
        if mlp and self.clip and (self.side > 1 or self.role == "student"):
            raise ValueError(
                f"clip {self.clip}: MLPs side by side are clipped as one: clip must be 0 for students, one of each "
                f"arm, and side 1 for a teacher, not {self.side}"
            )
        if self.warmup >= self.steps:
            raise ValueError(f"warmup {self.warmup} must be less than the steps, {self.steps}")
        if self.snapshots_every and self.steps % self.snapshots_every:
            raise ValueError(f"steps {self.steps} must be a multiple of snapshots_every, {self.snapshots_every}")
        return self


# --- the theory of sparse parity ---

Odd = Annotated[int, Field(ge=5, description="coordinates, an odd number")]


def _odd(values: list[int]) -> list[int]:
    if any(value % 2 == 0 for value in values) or values != sorted(set(values)):
        raise ValueError(f"{values}: expected odd numbers, ascending")
    return values


Coordinates = Annotated[list[Odd], Field(min_length=2), AfterValidator(_odd)]
Batches = Annotated[
    list[Annotated[int, Field(ge=2, le=1 << 26)]], Field(min_length=2, description="samples, ascending")
]
Even = Annotated[int, Field(ge=2, multiple_of=2)]
Support = Annotated[int, Field(ge=2, le=10, multiple_of=2, description="coordinates of the support, k")]


class Majority(TheoryEntry):
    """Fourier coefficients of the majority."""

    module: Literal["majority"]
    coordinates: Coordinates = Field(description="all inputs of which are gone through")
    pairs: Odd = Field(description="largest d all k of which are gone through")
    most: Odd = Field(description="largest d of closed forms")
    draws: Positive = Field(description="random neurons of each kind")


class Stages(TheoryEntry):
    """Both stages of training, on all inputs."""

    module: Literal["stages"]
    d: Annotated[int, Field(ge=7, le=15)]
    k: Support
    m: Even = Field(description="neurons")
    widths: list[Even] = Field(min_length=2, description="neurons from the aligned start")
    wide: Even = Field(description="neurons from the printed start")
    wide_second: Even = Field(description="neurons of teachers that go through stage two")
    batches: Batches
    replicas: Annotated[int, Field(ge=2)]
    steps: Positive = Field(description="of stage two")
    rate: Annotated[float, Field(gt=0, description="learning rate of stage two")]


class Complexity(TheoryEntry):
    """Numbers of samples and of steps."""

    module: Literal["complexity"]
    k: Support
    coordinates: Coordinates = Field(description="of formulas")
    small: Annotated[int, Field(ge=7, le=13, description="d, all inputs of which are gone through")]
    m_student: Even = Field(description="neurons")
    m_teacher: Even = Field(description="neurons")
    replicas: Annotated[int, Field(ge=2)]
    half: Probability = Field(description="share of neurons at which the predicted batch is tried")


class Definitions(TheoryEntry):
    """Definitions that are printed wrongly."""

    module: Literal["definitions"]
    depths: list[Annotated[int, Field(ge=1, le=4)]] = Field(min_length=1, description="of trees of parities")
    longest: Annotated[int, Field(ge=5, le=60, description="tokens of a sentence")]
    levels: Annotated[int, Field(ge=3, le=9, description="of random trees")]
    draws: Positive = Field(description="random trees")


class Batched(Strict):
    """Numbers of coordinates, and how often the smallest batch is doubled for each."""

    coordinates: Coordinates
    doublings: list[Annotated[int, Field(ge=1, le=20)]]

    @model_validator(mode="after")
    def _pairs(self) -> Self:
        if len(self.doublings) != len(self.coordinates):
            raise ValueError(f"{len(self.doublings)} doublings for {len(self.coordinates)} numbers of coordinates")
        return self


class Recovery(Strict):
    """Theorem 23, stage one: how many samples a student needs to see the support."""

    k: Support
    m_student: Even = Field(description="neurons")
    m_teacher: Even = Field(description="neurons of teachers")
    replicas: Annotated[int, Field(ge=2)]
    share: Probability = Field(description="of neurons that have to show the support")
    least: Annotated[int, Field(ge=2, description="smallest batch; others double it")]
    aligned: Batched
    iid: Batched
    labels: Batched


class Correlations(Strict):
    """Lemma 64, from both starts."""

    d: Odd
    k: Support
    widths: list[Even] = Field(min_length=2, description="neurons")
    replicas: Annotated[int, Field(ge=2)]


class Weights(Strict):
    """Lemma 63 and Claim 8: weights after a step on a batch."""

    d: Odd
    k: Support
    m: Even = Field(description="neurons")
    batches: Batches
    replicas: Annotated[int, Field(ge=2)]


class SecondStage(Strict):
    """Lemma 65: stage two on top of weights from the whole population."""

    sizes: list[Annotated[list[int], Field(min_length=3, max_length=3)]] = Field(min_length=1, description="d, k and m")
    replicas: Annotated[int, Field(ge=2)]
    steps: Positive
    every: Positive = Field(description="steps between measurements")
    rate: Annotated[float, Field(gt=0, description="learning rate")]
    held_out: Positive = Field(description="inputs for the loss, and as many for accuracy")


class EndToEnd(Strict):
    """Theorem 23, both stages of a student."""

    d: Odd
    sizes: list[Annotated[list[int], Field(min_length=2, max_length=2)]] = Field(
        min_length=1, description="k, and the student's m"
    )
    m_teacher: Even = Field(description="neurons of teachers")
    batches: Batches
    replicas: Annotated[int, Field(ge=2)]
    teacher_steps: Positive = Field(description="of a teacher's stage two")
    steps: Positive = Field(description="of a student's stage two")
    every: Positive = Field(description="steps between measurements")
    rate: Annotated[float, Field(gt=0, description="learning rate of stage two")]
    held_out: Positive = Field(description="inputs for the loss, and as many for accuracy")


class TwoStages(ExperimentEntry):
    """The theory of sparse parity, simulated."""

    module: Literal["two_stages"]
    recovery: Recovery
    correlations: Correlations
    weights: Weights
    second_stage: SecondStage
    end_to_end: EndToEnd
    delta: Annotated[float, Field(gt=0, lt=1, description="probability that bounds may fail with")]


class Other(ExperimentEntry):
    """Trained models, compared."""

    module: Literal["acceleration", "curriculum", "trees"]

    correlated: Annotated[int, Field(ge=0, description="strings on which correlations are estimated; 0: none are")]
    others: Annotated[int, Field(ge=0, description="monomials of degrees 2 and 3 outside the support")]


class Transformers(Other):
    """Transformers on sparse parity."""

    module: Literal["transformers"]  # type: ignore[assignment]
    sequences: Positive = Field(description="strings on which attention is measured")


class Compared(ExperimentEntry):
    """Trained models, compared by how well they do."""

    module: Literal["masked", "ablations", "heads"]


class Probe(Strict):
    """The probe of non-terminals (section 4.2.8.2)."""

    heads: Positive
    width: Positive = Field(description="of the vectors of positions")
    epochs: Positive
    train: Positive = Field(description="sentences that it is trained on, about")
    test: Positive = Field(description="sentences of other strings that it is tested on, about")


class Windowed(ExperimentEntry):
    """Predictions with and without short windows."""

    module: Literal["endings", "text"]
    sentences: Positive = Field(description="that predictions are compared on")
    ngrams: list[Annotated[int, Field(ge=2)]] = Field(min_length=2, description="widths of windows; 3 among them")


class Features(ExperimentEntry):
    """What models lean on, and what can be read from them."""

    module: Literal["features"]
    sentences: Positive = Field(description="that predictions are compared on")
    ngrams: list[Annotated[int, Field(ge=2)]] = Field(min_length=2, description="widths of windows; 3 among them")
    probe: Probe
    probed: Positive = Field(description="of the teachers' kept checkpoints each so-many-th is probed")


# --- grammars, best predictors, attention ---


class Lengths(TheoryEntry):
    """The grammars, and the laws of their lengths."""

    module: Literal["lengths"]
    sentences: Annotated[int, Field(ge=20, description="strings of each grammar that are drawn")]
    parsed: Positive = Field(description="strings of each grammar that are parsed")
    rate: Probability = Field(description="of masks")


class Oracle(TheoryEntry):
    """The best predictors, on strings that are drawn."""

    module: Literal["oracle"]
    strings: Positive = Field(description="masked strings whose posteriors are enumerated")
    sentences: Annotated[int, Field(ge=40, description="strings of each truncated grammar")]
    full: Annotated[int, Field(ge=20, description="strings of each full grammar")]
    rate: Probability = Field(description="of masks")
    roots: list[Symbol] = Field(min_length=1, description="of truncated grammars")


class Selecting(TheoryEntry):
    """Two Transformers that compute a parity."""

    module: Literal["attention"]
    sizes: list[Annotated[list[Annotated[int, Field(ge=2)]], Field(min_length=2, max_length=2)]] = Field(
        min_length=1, description="d and k of the parities; k below d"
    )
    repeats: Positive = Field(description="strings beside each string on the support")


class Grammars(ExperimentEntry):
    """The grammars themselves, the best predictors, and attention with weights written down."""

    module: Literal["grammars"]
    sentences: Annotated[int, Field(ge=100, description="strings of each grammar for its length")]
    truncated: Annotated[int, Field(ge=20, description="strings of each truncated grammar for best predictors")]
    full: Annotated[int, Field(ge=4, description="strings of each full grammar for best predictors")]
    roots: list[Symbol] = Field(min_length=1, description="of truncated grammars")
    rates: list[Probability] = Field(min_length=1, description="of masks")
    ngrams: list[Annotated[int, Field(ge=2)]] = Field(min_length=1, description="widths of windows")
    levels: list[Annotated[int, Field(ge=1, le=6)]] = Field(
        min_length=1, description="of the spans at whose ends next tokens are asked for"
    )
    sizes: list[Annotated[list[Annotated[int, Field(ge=2)]], Field(min_length=2, max_length=2)]] = Field(
        min_length=1, description="d and k of parities"
    )
    sharpness: list[Annotated[float, Field(ge=0)]] = Field(min_length=1, description="c of Proposition 9")


Theory = Annotated[
    Majority | Stages | Complexity | Definitions | Lengths | Oracle | Selecting, Field(discriminator="module")
]
Experiment = Annotated[
    TwoStages | Grammars | Other | Transformers | Compared | Windowed | Features, Field(discriminator="module")
]


class Analysis(Strict):
    """Settings that all experiments share."""

    confidence: Annotated[float, Field(gt=0.5, lt=1)]
    risen: Probability = Field(description="accuracy that counts as having learned a parity (t90)")
    solved: Probability = Field(description="last accuracy with which a teacher has learned its parity")


class Claims(Strict):
    """How tables become verdicts: bars stand in the claims."""
