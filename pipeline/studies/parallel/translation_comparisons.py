"""The comparisons of translators, which `comparisons` declares (EXP-8, EXP-9).

A unit is a model, a seed of initial weights and of data order. Models of one number are paired wherever they learn the
same corpus: they start alike as far as their shapes agree, and see the same batches. Rates are in per cent.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise

from pipeline.kit import comparisons
from pipeline.kit.comparisons import MEAN, MEAN_DIFFERENCE, RATIO, Arm
from pipeline.studies.parallel.names import (
    ALPHAS,
    AR,
    ATTENTION,
    DIAL,
    KEPT,
    NO_POSITION,
    ONE_STAGE,
    PADIR,
    SINGLE,
    TAUGHT,
    TRANSLATION,
)
from schemas.comparisons import SEEDS
from schemas.parallel.translation import CLEANED, REMASKED, REMASKED_LATE, TAKEN_OUT

Of = partial(comparisons.Comparison, experiment=TRANSLATION, learned=False)
Seen = partial(comparisons.Comparison, experiment=ATTENTION, learned=False)

HUNDRED = (0.0, 100.0)
VALID, STUTTER, BLEU = "share of valid translations, per cent", "stutter, per 100 tokens", "BLEU"
LENGTH = "share of translations of the right length, per cent"
PASSES = (1, 4)  # T of most comparisons
LEAST_DIAL = 0.25  # alpha from which stutter is compared


def _at(alpha: float) -> str:
    return f"{100 * alpha:.0f}"


WORD_VALID = {
    a: Of(f"ar-valid-{_at(a)}", f"{VALID}, alpha = {a:g}", MEAN, arms=(Arm("word by word", AR[a]),), span=HUNDRED)
    for a in ALPHAS
}
WORD_STUTTER = {
    a: Of(f"ar-stutter-{_at(a)}", f"{STUTTER}, alpha = {a:g}", MEAN, arms=(Arm("word by word", AR[a]),), span=HUNDRED)
    for a in ALPHAS
}
PARALLEL_VALID = {
    a: Of(f"padir-valid-{_at(a)}", f"{VALID}, T = 1, alpha = {a:g}", MEAN, arms=(Arm("PaDIR", PADIR[a]),), span=HUNDRED)
    for a in ALPHAS
}
GAP = {
    (a, T): Of(
        f"gap-{_at(a)}-T{T}",
        f"{VALID}, T = {T}, alpha = {a:g}",
        MEAN_DIFFERENCE,
        arms=(Arm("word by word", AR[a]), Arm("PaDIR", PADIR[a])),
        in_common=SEEDS,
    )
    for a in ALPHAS
    for T in PASSES
}
# Corpora of different alpha are different data: units are not paired.
STEPS = (*pairwise(ALPHAS), (ALPHAS[0], DIAL))
RISE = {
    (low, high): Of(
        f"gap-rises-{_at(low)}-{_at(high)}",
        f"{VALID}, word by word minus PaDIR with T = 4",
        MEAN_DIFFERENCE,
        arms=(Arm(f"alpha = {high:g}", AR[high], PADIR[high]), Arm(f"alpha = {low:g}", AR[low], PADIR[low])),
    )
    for low, high in STEPS
}
REFINED = {
    (few, many): Of(
        f"refined-{few}-{many}",
        f"{VALID}, alpha = {DIAL:g}",
        MEAN_DIFFERENCE,
        arms=(Arm(f"T = {many}", PADIR[DIAL]), Arm(f"T = {few}", PADIR[DIAL])),
        in_common=SEEDS,
    )
    for few, many in ((1, 2), (4, 10))
}
CALMED = Of(
    "stutter-refined",
    f"{STUTTER}, alpha = {DIAL:g}",
    RATIO,
    arms=(Arm("T = 4", PADIR[DIAL]), Arm("T = 1", PADIR[DIAL])),
    in_common=SEEDS,
)
# What the text does against stutter, remasking between passes and taking out repeated tokens at the end: each alone,
# remasking also without the first pass, which read noise; and both, also where targets are distilled.
WAYS = {
    TAKEN_OUT: "without repeated tokens",
    REMASKED: "remasked",
    REMASKED_LATE: "remasked from the second pass on",
    CLEANED: "remasked, without repeated tokens",
}
TARGETS = {PADIR[DIAL]: f"alpha = {DIAL:g}", TAUGHT: "translations of a model as targets"}
WITHOUT_STUTTER = {
    (run, post, measure): Of(
        f"{post.replace('_', '-')}-{'taught-' if run == TAUGHT else ''}{key}",
        f"{measure}, T = 4, {targets}",
        MEAN_DIFFERENCE,
        arms=(Arm(way, run), Arm("as decoded", run)),
        in_common=SEEDS,
    )
    for run, targets in TARGETS.items()
    for post, way in WAYS.items()
    for measure, key in ((VALID, "valid"), (LENGTH, "length"), (BLEU, "bleu"))
    # Whatever is valid repeats no token: taking them out makes nothing invalid. Remasking leaves lengths as they are.
    if (post, measure) != (TAKEN_OUT, VALID) and (measure != LENGTH or post in (TAKEN_OUT, CLEANED))
    if run != TAUGHT or post == CLEANED
}
# Twice what the twin does, which hardly stutters: more than that says no less.
TWICE = {
    (a, T): Of(
        f"stutter-twice-{_at(a)}-T{T}",
        f"{STUTTER}, T = {T}, alpha = {a:g}",
        MEAN_DIFFERENCE,
        arms=(Arm("PaDIR", PADIR[a]), Arm("twice that word by word", AR[a])),
        in_common=SEEDS,
    )
    for a in ALPHAS
    if a >= LEAST_DIAL
    for T in PASSES
}
FULL_STUTTER = {
    T: Of(f"stutter-T{T}", f"{STUTTER}, T = {T}, alpha = 1", MEAN, arms=(Arm("PaDIR", PADIR[1.0]),), span=HUNDRED)
    for T in PASSES
}
DISTILLED = Of(
    "distilled-oracle",
    f"{VALID}, T = 1",
    MEAN_DIFFERENCE,
    arms=(Arm("one translation of each source", PADIR[0.0]), Arm("all translations", PADIR[1.0])),
)
TAUGHT_BY = Of(
    "distilled-ar",
    f"{VALID}, T = 1",
    MEAN_DIFFERENCE,
    arms=(Arm("translations of a model", TAUGHT), Arm("all translations", PADIR[1.0])),
)
MASKED = {
    (measure, T): Of(
        f"masked-{key}-T{T}",
        f"{measure}, T = {T}, alpha = {DIAL:g}",
        MEAN_DIFFERENCE,
        arms=(Arm("u = 0.15", PADIR[DIAL]), Arm("u = 0.6", KEPT[0.6])),
        in_common=SEEDS,
    )
    for measure, key in ((VALID, "valid"), (BLEU, "bleu"), (STUTTER, "stutter"))
    for T in PASSES
}
POSITIONAL = Of(
    "positional",
    f"{VALID}, T = 4, alpha = {DIAL:g}",
    MEAN_DIFFERENCE,
    arms=(Arm("with positional attention", PADIR[DIAL]), Arm("without", NO_POSITION)),
    in_common=SEEDS,
)
STAGES = {
    T: Of(
        f"stages-T{T}",
        f"{VALID}, T = {T}, alpha = {DIAL:g}",
        MEAN_DIFFERENCE,
        arms=(Arm("S = 2", PADIR[DIAL]), Arm("S = 1", ONE_STAGE)),
        in_common=SEEDS,
    )
    for T in PASSES
}
WORD_PASSES = {
    a: Of(f"ar-passes-{_at(a)}", f"passes of the decoder, alpha = {a:g}", MEAN, arms=(Arm("word by word", AR[a]),))
    for a in ALPHAS
}
FEWER_PASSES = {
    a: Of(
        f"passes-{_at(a)}",
        f"passes of the decoder, T = 4, alpha = {a:g}",
        RATIO,
        arms=(Arm("word by word", AR[a]), Arm("PaDIR", PADIR[a])),
        in_common=SEEDS,
    )
    for a in ALPHAS
}

# EXP-9: Cohen's d of neighbouring equal tokens, or of both tokens of a word, against all other neighbours
SELF, CROSS, TOP = "sa_mean", "tv_mean", "ov1"
EFFECTS = {
    SELF: "Cohen's d of mean self-attention, stutter against other neighbours",
    CROSS: "Cohen's d of the mean distance of cross-attention, stutter against other neighbours",
}
DIALS = tuple(a for a in ALPHAS if a > 0)  # where each source has one translation there is hardly any stutter
D = {
    (metric, a): Seen(f"d-{metric}-{_at(a)}", f"{words}, T = 1, alpha = {a:g}", MEAN, arms=(Arm("", PADIR[a]),))
    for metric, words in EFFECTS.items()
    for a in DIALS
}
LATER = {
    (metric, a): Seen(f"d-{metric}-{_at(a)}-four", f"{words}, T = 4, alpha = {a:g}", MEAN, arms=(Arm("", PADIR[a]),))
    for metric, words in EFFECTS.items()
    for a in DIALS
}
TELLS = {
    (a, T): Seen(
        f"tells-{_at(a)}-T{T}",
        f"size of Cohen's d, stutter against other neighbours, T = {T}, alpha = {a:g}",
        MEAN_DIFFERENCE,
        arms=(Arm("distance of cross-attention", PADIR[a]), Arm("self-attention", PADIR[a])),
        in_common=SEEDS,
    )
    for a in DIALS
    for T in PASSES
}
OVERLAP = {
    a: Seen(
        f"overlap-{_at(a)}",
        f"share of heads whose top source token is the same, T = 1, alpha = {a:g}",
        MEAN_DIFFERENCE,
        arms=(Arm("stutter", PADIR[a]), Arm("other neighbours", PADIR[a])),
        in_common=SEEDS,
    )
    for a in DIALS
}
WITHIN_WORD = {
    a: Seen(
        f"word-{_at(a)}",
        f"Cohen's d of the mean distance of cross-attention, tokens of one word against other neighbours, T = 1, "
        f"alpha = {a:g}",
        MEAN,
        arms=(Arm("", PADIR[a]),),
    )
    for a in DIALS
}
SINGLE_WORDS = Seen(
    "d-cross-single",
    f"{EFFECTS[CROSS]}, T = 1, alpha = {DIAL:g}, no words of two tokens",
    MEAN,
    arms=(Arm("", SINGLE),),
)
EXCEPTION = Seen(
    "d-self-exception", f"{EFFECTS[SELF]}, T = 4, u = 0.6, alpha = {DIAL:g}", MEAN, arms=(Arm("", KEPT[0.6]),)
)

ALL = (
    *(*WORD_VALID.values(), *WORD_STUTTER.values(), *PARALLEL_VALID.values(), *GAP.values(), *RISE.values()),
    *(
        *REFINED.values(),
        CALMED,
        *WITHOUT_STUTTER.values(),
        *TWICE.values(),
        *FULL_STUTTER.values(),
        DISTILLED,
        TAUGHT_BY,
    ),
    *(*MASKED.values(), POSITIONAL, *STAGES.values(), *WORD_PASSES.values(), *FEWER_PASSES.values()),
    *(*D.values(), *LATER.values(), *TELLS.values(), *OVERLAP.values(), *WITHIN_WORD.values(), SINGLE_WORDS, EXCEPTION),
)
