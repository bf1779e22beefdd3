"""The ids that code of the study names. It is read at every start, so it imports nothing but the standard library."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, combinations

TEACHER = "distillation-teacher"
NARROW, WIDE = "distillation-narrow", "distillation-wide"
CHECKED = ("distillation-checked-narrow", "distillation-checked-wide")
SWEEP = ("distillation-width1", "distillation-width2", "distillation-width3")
WARMER = "distillation-warmer"  # teachers at a higher rate, and their students
WARM_CHECKED = ("distillation-warm-narrow", "distillation-warm-wide")
PARITY_RATES = tuple(f"distillation-{name}-rates" for name in ("teacher", "narrow", "wide"))  # grids of rates
CANDIDATES, WARM_CANDIDATES = "distillation-candidates", "distillation-warm-candidates"
TREE_TEACHER = "distillation-tree-teacher"
TREE_STUDENTS, TREE_NARROW = "distillation-tree-students", "distillation-tree-narrow"
ATTENTION, ATTENDING = "distillation-attention", "distillation-attending"
TAUGHT, TOKENS_TAUGHT = "distillation-tree-taught", "distillation-tokens-taught"
SOLO, ALONE_STRINGS = "distillation-solo", "distillation-alone-strings"  # students of one checkpoint alone
BERT, PLATEAU, SENTENCES = "distillation-bert", "distillation-plateau", "distillation-sentences"
PUPILS = tuple(f"distillation-pupils-{place}" for place in range(1, 5))  # by horizon
WIDER = tuple(f"distillation-wider-{place}" for place in range(1, 5))
RATES = (  # grids of learning rates: of teachers, and of students of both sizes by horizon
    "distillation-bert-rates",
    *(f"distillation-{size}-rates-{place}" for size in ("pupils", "wider") for place in range(1, 5)),
)
CHOOSERS = tuple(f"distillation-choosers-{place}" for place in range(1, 5))  # by steps with a checkpoint
CHOICES = tuple(f"distillation-choices-{place}" for place in range(1, 5))
LONERS, ALONE = ("distillation-loners-1",), "distillation-alone"
OTHERS = {  # other shares of masked tokens, other grammars
    "rate15": "15 % of tokens masked",
    "rate45": "45 % of tokens masked",
    "cfg3i": "cfg3i",
    "cfg3h": "cfg3h",
}
UNSEEN = "distillation-pupils-unseen"  # of a task in which masked tokens are attended to by none
OTHER_TEACHERS = tuple(f"distillation-bert-{name}" for name in (*OTHERS, "unseen"))
OTHER_PUPILS = {  # by horizon
    name: tuple(f"distillation-{name}-pupils-{place}" for place in (1, 2, 3)) for name in OTHERS
}
OTHER_WIDER = {name: tuple(f"distillation-{name}-wider-{place}" for place in (1, 2, 3)) for name in OTHERS}
# Last tokens of spans, by what is asked for: of a level of cfg3f, and of level 3 of two other grammars.
SPANS = {"2": "level 2", "3": "level 3", "4": "level 4", "3g": "level 3 of cfg3g", "3h": "level 3 of cfg3h"}
GPT = {f"distillation-gpt-{spans}": spans for spans in SPANS}
ENDINGS = tuple(f"distillation-endings-{spans}" for spans in SPANS)
ENDINGS_PUPILS = {  # by horizon
    spans: tuple(f"distillation-endings-pupils-{spans}-{place}" for place in range(1, 6)) for spans in SPANS
}
ENDINGS_WIDER = {
    spans: tuple(f"distillation-endings-wider-{spans}-{place}" for place in range(1, 6)) for spans in ("2", "3", "4")
}
OF_SPANS = {  # all models that learn what is asked for by a teacher, by that teacher
    teacher: (teacher, *ENDINGS_PUPILS[spans], *ENDINGS_WIDER.get(spans, ())) for teacher, spans in GPT.items()
}
TEXT, READER = "distillation-text", "distillation-reader"
TEXT_PUPILS = tuple(f"distillation-text-pupils-{place}" for place in (1, 2, 3))  # by horizon
HEADS = {
    f"distillation-{group}-{place}": (group, place)
    for group, count in (("heads", 4), ("hidden", 3), ("averaged", 3))
    for place in range(1, count + 1)
}
# Arms of hierarchical parity: candidates alone, and their pairs; not all are there at each scale.
SINGLES = {
    "low": "accuracy 0.2",
    "third": "accuracy 0.33",
    "mid": "accuracy 0.45",
    "most": "accuracy 0.6",
    "high": "accuracy 0.75",
    "late": "a step behind the transition",
}
LATE = "late"
PAIRS = {
    first + second: f"at {SINGLES[first]}, at {SINGLES[second]}".replace("accuracy ", "")
    for first, second in combinations(SINGLES, 2)
}
# Theory checks of sparse parity.
DEFINITIONS = "distillation-definitions"
SPARSE_PARITY = ("distillation-majority", "distillation-stages", "distillation-complexity", DEFINITIONS)
LENGTHS, ORACLE, SELECTION = "distillation-lengths", "distillation-oracle", "distillation-selection"
GRAMMARS = {"cfg3b": "cfg3b", "cfg3i": "cfg3i", "cfg3h": "cfg3h", "cfg3g": "cfg3g", "cfg3f": "cfg3f"} | {
    "cfg3b_pdcode": "cfg3b, published code"
}

# How students are taught, as the figures and the page call it.
ARMS = {
    "label": "teacher (labels)",
    "ce": "student of labels",
    "os": "one-shot",
    "warm": "one-shot, temperature 1",
    "prog": "progressive",
    "before": "1: before the transition, then last",
    "middle": "2: in the transition, then last",
    "behind": "3: behind the transition, then last",
    "cool": "2, temperature 0.0001",
    "mild": "2, temperature 0.01",
    "hot": "2, temperature 1",
    **{arm: f"at {what}, then last" for arm, what in SINGLES.items()},
    **{arm: f"{what}, then last" for arm, what in PAIRS.items()},
    "peak": "at the largest correlation, then last",
    "peakcool": "at the largest correlation, temperature 0.0001",
    "peakmild": "at the largest correlation, temperature 0.01",
    "peaktepid": "at the largest correlation, temperature 0.1",
    "peakhot": "at the largest correlation, temperature 1",
    "between": "between the peaks, then last",
    "half": "progressive, double speed",
    "even": "progressive, equal split",
    "halfwarm": "double speed, temperature 1",
}


def root_at(scale: str, roots: Iterable[int]) -> int | None:
    """Return the root of the sentences at a scale, of those with best predictors: the largest symbol at ``paper``, the
    whole grammar, else the smallest; none of none."""
    symbols = sorted(roots)
    return (symbols[-1] if scale == "paper" else symbols[0]) if symbols else None


# Parameters that lack one of these are refused at the start.
_PARITIES = (
    TEACHER,
    NARROW,
    WIDE,
    *CHECKED,
    *SWEEP,
    WARMER,
    *WARM_CHECKED,
    *PARITY_RATES,
    TREE_TEACHER,
    TREE_STUDENTS,
    TREE_NARROW,
    ATTENTION,
    ATTENDING,
    SOLO,
)
_MASKED = (
    BERT,
    PLATEAU,
    *RATES,
    *PUPILS,
    *WIDER,
    *CHOOSERS,
    *LONERS,
    *OTHER_TEACHERS,
    *chain(*OTHER_PUPILS.values()),
    *chain(*OTHER_WIDER.values()),
    UNSEEN,
)
_NEXT = (*GPT, *chain(*ENDINGS_PUPILS.values()), *chain(*ENDINGS_WIDER.values()))
RUNS = (*_PARITIES, *HEADS, *_MASKED, *_NEXT, READER, *TEXT_PUPILS)
DATASETS = (
    "distillation-parity",
    CANDIDATES,
    WARM_CANDIDATES,
    ALONE_STRINGS,
    TAUGHT,
    TOKENS_TAUGHT,
    SENTENCES,
    *CHOICES,
    ALONE,
    *ENDINGS,
    TEXT,
)
THEORY = (*SPARSE_PARITY, LENGTHS, ORACLE, SELECTION)
