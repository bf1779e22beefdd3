"""What params/flipflop/ may say."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from pipeline.params import DatasetEntry, ExperimentEntry, GridRunEntry, Positive, Probability, Strict, TheoryEntry

Task = Literal["strings", "automaton"]
Length = Annotated[int, Field(ge=4, le=4096, description="tokens of a sequence, T")]
Rate = Annotated[float, Field(ge=0, lt=1)]
SetName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9]*$")]


class HeldOut(Strict):
    """A held-out set."""

    p_ignore: Probability = Field(description="of a pair; writes and reads share the rest. Of no-ops in symbols")
    sequences: Positive


class Dataset(DatasetEntry):
    """Held-out sequences: strings of flip-flop languages, or inputs of the flip-flop automaton."""

    task: Task
    symbols: Annotated[int, Field(ge=2, le=100, description="data symbols of strings")]
    lengths: list[Length] = Field(min_length=1)
    sets: dict[SetName, HeldOut] = Field(min_length=1)

    @model_validator(mode="after")
    def _even(self) -> Self:
        if self.task == "strings" and any(length % 2 for length in self.lengths):
            raise ValueError(f"lengths {self.lengths}: strings have an even number of tokens")
        return self


class Dropout(Strict):
    """Rates of dropout by place."""

    embed: Rate
    attention: Rate
    ffn: Rate


class Sharpen(Strict):
    """A penalty on attention that is not sharp."""

    kind: Literal["entropy", "l2", "linf"]
    weight: Annotated[float, Field(gt=0, description="lambda")]
    schedule: Literal["constant", "linear", "oscillating"]
    start: Annotated[int, Field(ge=0, description="step before which the weight is 0")]
    layers: Literal["all", "first"]


class StringRun(GridRunEntry):
    """Models of one configuration; their data are fresh at every step unless ``epochs`` is above 1."""

    family: Literal[
        "baseline",
        "middle",
        "lstm",
        "data",
        "scale_data",
        "scale_epochs",
        "scale_size",
        "wd",
        "dropout_attn",
        "dropout_ff",
        "dropout_emb",
        "position",
        "activation",
        "sharpen",
        "optimiser",
        "combo",
        "generative",
        "seeds",
        "symbols",
        "one_head",
        "linear",
        "many_heads",
    ]
    task: Task
    length: Length
    train: list[Probability] = Field(
        min_length=1, description="p_ignore of the languages that a sequence is drawn from"
    )
    symbols: Annotated[int, Field(ge=2, le=100)]
    loss: Literal["clean", "generative"]
    weight_decay: Annotated[float, Field(ge=0)]
    warmup: Annotated[int, Field(ge=0)]
    snapshots: list[Annotated[int, Field(ge=0)]] = Field(description="steps after which weights are kept")
    epochs: Positive = Field(description="how often each sequence is read; 1: all are fresh")
    data_seeds: Annotated[int, Field(ge=0)] = Field(
        description="orders of data in a factorial with as many initial weights; 0: one for each replica"
    )
    online: Positive = Field(description="sequences of each held-out set that the curves are measured on")
    width: Positive
    layers: Positive | None = Field(None, description="of a Transformer")
    heads: Positive | None = Field(None, description="of a Transformer")
    position: Literal["learned", "sin", "alibi", "rope", "rope-values", "none", "linear"] | None = None
    activation: Literal["gelu", "relu", "relu2", "geglu", "swiglu"] | None = None
    embed: Positive | None = Field(None, description="width of an LSTM's embedding")
    dropout: Dropout
    sharpen: Sharpen | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        shape = (self.layers, self.heads, self.position, self.activation)
        if self.model == "automata/lstm":
            if self.embed is None or any(value is not None for value in shape):
                raise ValueError("an LSTM has embed, and neither layers, heads, position nor activation")
        elif self.embed is not None or any(value is None for value in shape):
            raise ValueError("a Transformer has layers, heads, position and activation, and no embed")
        if (self.model == "flipflop/linear_position") != (self.position == "linear"):
            raise ValueError("position 'linear' is that of model flipflop/linear_position alone")
        if self.position == "linear" and (self.layers, self.heads, self.activation) != (1, 1, "relu"):
            raise ValueError("flipflop/linear_position has one layer, one head and activation 'relu'")
        if self.heads and self.width % (2 * self.heads):
            raise ValueError(f"width {self.width} must be a multiple of twice the heads, {2 * self.heads}")
        if self.steps % self.epochs:
            raise ValueError(f"steps {self.steps} must be a multiple of epochs, {self.epochs}")
        if self.data_seeds and self.replicas not in (0, self.data_seeds**2):
            raise ValueError(f"replicas must be the square of data_seeds, {self.data_seeds**2}")
        if self.warmup >= self.steps or max(self.snapshots, default=0) > self.steps:
            raise ValueError(f"warmup and snapshots must lie within the steps, {self.steps}")
        if self.sharpen and (self.embed is not None or self.sharpen.start >= self.steps):
            raise ValueError("sharpen is for Transformers, and must start before the last step")
        return self

    @model_validator(mode="after")
    def _language(self) -> Self:
        if self.task == "strings" and self.length % 2:
            raise ValueError(f"length {self.length}: strings have an even number of tokens")
        if self.task == "automaton" and (self.symbols != 2 or self.loss != "clean"):
            raise ValueError("the automaton has 2 symbols to write, and loss 'clean'")
        return self


class StoryRun(GridRunEntry):
    """Language models of stories, which stand in for pretrained ones (E16)."""

    task: Literal["stories"]
    weight_decay: Annotated[float, Field(ge=0)]
    warmup: Annotated[int, Field(ge=0)]
    layers: Positive
    heads: Positive
    width: Positive
    position: Literal["sin", "alibi", "rope", "none"] = Field(description="longer stories than in training are read")
    lengths: Annotated[list[Length], Field(min_length=2, max_length=2, description="shortest, longest string")]
    p_ignore: Annotated[list[Probability], Field(min_length=2, max_length=2, description="least, most")]


Run = Annotated[StringRun | StoryRun, Field(discriminator="task")]


class Theory(TheoryEntry):
    """Constructions and closed forms, executed."""

    module: Literal["machines", "lstm", "parser", "gadgets", "attention", "prediction", "addition"]
    draws: Annotated[int, Field(ge=2, description="random inputs of each kind")]
    lengths: Annotated[
        list[Annotated[int, Field(ge=4, le=100_000, multiple_of=2)]],
        Field(min_length=2, description="of random inputs, ascending"),
    ]
    short: Annotated[int, Field(ge=4, le=12, description="length up to which all strings are tried")]


class LanguageModels(ExperimentEntry):
    """E16: the light switch."""

    module: Literal["language_models"]
    ngrams: list[Positive] = Field(description="tokens that n-gram predictors see")
    pretrained: str | None = Field(
        description="folder with a folder for each pretrained model, as Hugging Face keeps them; null: none is there"
    )


class Other(ExperimentEntry):
    """All other experiments."""

    module: Literal["recurrent", "errors", "simulation", "autopsy", "theory", "addition"]


Experiment = Annotated[LanguageModels | Other, Field(discriminator="module")]


class Analysis(Strict):
    """Settings that all experiments share."""

    confidence: Annotated[float, Field(gt=0.5, lt=1)]
    learned: Probability = Field(
        description="error on held-out inputs like those of training up to which a model counts as trained"
    )
    told: Probability = Field(
        description="accuracy on stories like those of training from which a stand-in counts as trained"
    )


class Claims(Strict):
    """How tables become verdicts."""

    far: Annotated[float, Field(gt=0, description="claim 25: standard errors that a rule may be off its law")]
