"""The comparisons that this study measures and judges (`pipeline.kit.comparisons`).

A unit is a trained language model; how it was decoded, and with which verifier, are arms of the same models, so that
they are paired. What one model gives is a mean over prompts and over decoding runs, which are not independent of it.
All models count: that they make mistakes out of distribution is what is studied.
"""

from __future__ import annotations

from pipeline.kit import comparisons
from pipeline.kit.comparisons import MEAN, MEAN_DIFFERENCE, RATIO, Arm, Declared
from pipeline.studies.verifier.names import (
    CASE_MODELS,
    CASE_MODELS_TWICE,
    CLASSIFIERS,
    DYCK,
    GROUND_TRUTH,
    HELD,
    MODELS,
    PREFIXES,
    RANDOM,
    SEEN,
    TEST_CASES,
    THRESHOLDS,
    TRAINED,
    UNSEEN,
    VGB_DYCK,
)
from schemas import comparisons as schema
from schemas.verifier import vgb_dyck as leaves

DECLARED = Declared()
LOW, HIGH = "0.9", "1.0"  # top_p, as the source has it
ARGMAX, SAMPLE = "argmax", "sample"  # refills
# Verifiers of our own, beside those of `names`.
WITHIN = "trained, where it learned"  # the trained one, not asked about lengths that it hardly learned from
OFTEN = "random, as often"  # guesses, and sends back about as often as the trained one
_SHARE = (0.0, 1.0)


def _at(top_p: str) -> str:
    return top_p.replace(".", "")


def _mean(key: str, measure: str, experiment: str, span: tuple[float, float] = _SHARE) -> comparisons.Comparison:
    arms = (Arm("", DYCK),)
    return DECLARED(comparisons.Comparison(key, measure, MEAN, experiment, arms, learned=False, span=span))


def _paired(
    key: str, measure: str, experiment: str, first: str, second: str, statistic: str = MEAN_DIFFERENCE
) -> comparisons.Comparison:
    arms = (Arm(first, DYCK), Arm(second, DYCK))
    return DECLARED(
        comparisons.Comparison(key, measure, statistic, experiment, arms, in_common=schema.MODELS, learned=False)
    )


# E-D0
CLOSERS = _mean("closers", "share of closing brackets that are the likeliest sign, in distribution", MODELS)
OOD = _mean("ood", "share of prompts out of distribution that are completed rightly, top_p 0.9", MODELS)
GAP = _paired(
    "gap",
    "share of prompts that are completed rightly, top_p 0.9",
    MODELS,
    "prompts as in training",
    "prompts out of distribution",
)

# E-D1, Figure 3.1
VALIDATION = _mean("validation", "accuracy of verifiers on samples they were not trained on", CLASSIFIERS)
VALIDATION_HELD = _mean("validation-held", "accuracy of verifiers on mistakes of further prompts", CLASSIFIERS)
EXCESS = _paired(
    "excess",
    "accuracy on mistakes of further prompts",
    CLASSIFIERS,
    "verifiers of states",
    "verifiers of the last token",
)
EXCESS_UNTRAINED = _paired(
    "excess-untrained",
    "accuracy on mistakes of further prompts",
    CLASSIFIERS,
    "verifiers of states",
    "verifiers of states of a model that was never trained",
)
NEAREST = _mean("nearest", "share of states whose nearest neighbour has the same label", CLASSIFIERS)
_NEVER = "a model that was never trained"
NEAREST_UNTRAINED = _paired(
    "nearest-untrained",
    "share of states whose nearest neighbour has the same label",
    CLASSIFIERS,
    "the trained model",
    _NEVER,
)
_EXPLAINED = "variance of states that two clusters explain"
TIGHTER = _paired("tighter", _EXPLAINED, CLASSIFIERS, "mistakes", "right strings")
# Mistakes end in few signs, and a state tells the last sign: as many of each kind may cluster for this alone.
TIGHTER_MATCHED = _paired(
    "tighter-matched", f"{_EXPLAINED}, as many of each last sign", CLASSIFIERS, "mistakes", "right strings"
)
TIGHTER_UNTRAINED = _paired(
    "tighter-untrained", f"{_EXPLAINED}, mistakes less right strings", CLASSIFIERS, "the trained model", _NEVER
)

# Tables 3.1, 3.2, 3.4
_OF = {SEEN: "prefixes that verifiers were trained on", HELD: "further prefixes"}
_ACCURACY = "share of error-inducing prefixes that are completed rightly"
FORCED = {
    name: _paired(f"forced-{name}", f"{_ACCURACY} ({of})", PREFIXES, "eight signs erased once", "nucleus sampling")
    for name, of in _OF.items()
}
FORCED_STEPS = {
    name: _mean(
        f"forced-steps-{name}",
        f"smallest gain of accuracy from one stride of a single backtrack to the next ({of})",
        PREFIXES,
        (-1.0, 1.0),
    )
    for name, of in _OF.items()
}
LARGEST_CELL = {
    name: _paired(f"cell-{name}", f"{_ACCURACY} ({of})", PREFIXES, "Algorithm 1 with Q = 4, B = 6", "nucleus sampling")
    for name, of in _OF.items()
}
EVERY_CELL = {
    name: _mean(
        f"cells-{name}",
        f"smallest gain in accuracy over nucleus sampling in the nine cells of Table 3.2 ({of})",
        PREFIXES,
        (-1.0, 1.0),
    )
    for name, of in _OF.items()
}
CELL_STEPS = {
    name: _mean(
        f"cell-steps-{name}",
        f"smallest gain of a mean of rows or columns of Table 3.2 to the next ({of})",
        PREFIXES,
        (-1.0, 1.0),
    )
    for name, of in _OF.items()
}
OVER_GREEDY_CELLS = {
    name: _mean(
        f"cells-over-greedy-{name}",
        f"smallest gain in accuracy over the likeliest signs alone in the nine cells of Table 3.2 ({of})",
        PREFIXES,
        (-1.0, 1.0),
    )
    for name, of in _OF.items()
}
_EXCESS = "largest excess of accuracy without the backtrack over Algorithm 1, of the nine cells and two decoders"
UNNECESSARY = {
    name: _mean(f"unnecessary-{name}", f"{_EXCESS} ({of})", PREFIXES, (-1.0, 1.0)) for name, of in _OF.items()
}
UNNECESSARY_PAIRED, UNNECESSARY_VALID = (
    {
        name: _mean(f"unnecessary-{key}-{name}", f"{_EXCESS}, on {words} ({of})", PREFIXES, (-1.0, 1.0))
        for name, of in _OF.items()
    }
    for key, words in (
        ("paired", "the strings objected to alone"),
        ("valid", "those strings objected to that can still be completed"),
    )
)

# A verifier that knows nothing, and sends these prefixes back as often as the trained one, with Q = 4 and B = 6.
_LARGEST = "Algorithm 1 with Q = 4, B = 6"
GUESSED_CELL = {
    name: _paired(
        f"guessed-cell-{name}", f"{_ACCURACY} ({of})", PREFIXES, f"{_LARGEST} and a random verifier", "nucleus sampling"
    )
    for name, of in _OF.items()
}
OVER_GUESS = {
    name: _paired(
        f"over-guess-{name}", f"{_ACCURACY}, {_LARGEST} ({of})", PREFIXES, "trained verifier", "random verifier"
    )
    for name, of in _OF.items()
}
GUESS_MATCHED = {
    name: _paired(
        f"guess-matched-{name}",
        f"backtracks, {_LARGEST} ({of})",
        PREFIXES,
        "random verifier",
        "trained verifier",
        RATIO,
    )
    for name, of in _OF.items()
}

# Tables 3.3 and 3.16, and what of the gain is finding and what refilling
_ERRORS = "share of unseen prompts that are completed wrongly"
_WITHOUT, _WITH, _GREEDY = "no backtracks", "Algorithm 1", "the likeliest signs alone, no verifier"
_NAMES = {TRAINED: "trained verifier", GROUND_TRUTH: "ground truth", RANDOM: "random verifier"}
_REFILLS = {ARGMAX: "greedy refill", SAMPLE: "sampled refill"}
BY_TOP_P = _paired("by-top-p", f"{_ERRORS}, no backtracks", UNSEEN, "top_p 1.0", "top_p 0.9")
BY_TOP_P_RATIO = _paired("by-top-p-ratio", f"{_ERRORS}, no backtracks", UNSEEN, "top_p 1.0", "top_p 0.9", RATIO)
ERRORS_LEFT = {
    p: _paired(f"errors-left-{_at(p)}", f"{_ERRORS}, top_p {p}", UNSEEN, _WITH, _WITHOUT, RATIO) for p in (LOW, HIGH)
}
OVER_GREEDY = {
    p: _paired(f"over-greedy-{_at(p)}", _ERRORS, UNSEEN, _GREEDY, f"{_WITH}, top_p {p}") for p in (LOW, HIGH)
}
BY_CHANCE = {
    p: _paired(
        f"by-chance-{_at(p)}", f"{_ERRORS}, top_p {p}", UNSEEN, _WITHOUT, f"{_NAMES[RANDOM]} with {_REFILLS[ARGMAX]}"
    )
    for p in (LOW, HIGH)
}
REDUCTION = _paired("reduction", "share of mistakes that Algorithm 1 takes away", UNSEEN, "top_p 1.0", "top_p 0.9")
NO_ARGMAX = {
    p: _paired(f"no-argmax-{_at(p)}", f"{_ERRORS}, Algorithm 1, top_p {p}", UNSEEN, _REFILLS[SAMPLE], _REFILLS[ARGMAX])
    for p in (LOW, HIGH)
}
NO_ARGMAX_RATIO = {
    p: _paired(
        f"no-argmax-ratio-{_at(p)}",
        f"{_ERRORS}, Algorithm 1, top_p {p}",
        UNSEEN,
        _REFILLS[SAMPLE],
        _REFILLS[ARGMAX],
        RATIO,
    )
    for p in (LOW, HIGH)
}
NO_ARGMAX_BASE = {
    p: _paired(
        f"no-argmax-base-{_at(p)}", f"{_ERRORS}, top_p {p}", UNSEEN, "Algorithm 1 with sampled refill", _WITHOUT, RATIO
    )
    for p in (LOW, HIGH)
}
FINDING = {
    (p, refill): _paired(
        f"finding-{_at(p)}-{refill}",
        f"{_ERRORS}, {_REFILLS[refill]}, top_p {p}",
        UNSEEN,
        _NAMES[RANDOM],
        _NAMES[TRAINED],
    )
    for p in (LOW, HIGH)
    for refill in (ARGMAX, SAMPLE)
}
KNOWING = {
    (p, refill): _paired(
        f"knowing-{_at(p)}-{refill}",
        f"{_ERRORS}, {_REFILLS[refill]}, top_p {p}",
        UNSEEN,
        _NAMES[TRAINED],
        _NAMES[GROUND_TRUTH],
    )
    for p in (LOW, HIGH)
    for refill in (ARGMAX, SAMPLE)
}
REFILLING = {
    (p, verifier): _paired(
        f"refilling-{_at(p)}-{verifier.replace(' ', '-')}",
        f"{_ERRORS}, {_NAMES[verifier]}, top_p {p}",
        UNSEEN,
        _REFILLS[SAMPLE],
        _REFILLS[ARGMAX],
    )
    for p in (LOW, HIGH)
    for verifier in (TRAINED, GROUND_TRUTH, RANDOM)
}
MATCHED = {
    (p, refill): _paired(
        f"matched-{_at(p)}-{refill}",
        f"backtracks, {_REFILLS[refill]}, top_p {p}",
        UNSEEN,
        _NAMES[RANDOM],
        _NAMES[TRAINED],
        RATIO,
    )
    for p in (LOW, HIGH)
    for refill in (ARGMAX, SAMPLE)
}

# To what the trained verifier objects, and what it does where it learned
_WHERE = "Algorithm 1, its verifier asked where it learned"
NEEDLESS = {
    p: _mean(
        f"needless-{_at(p)}",
        f"share of what the trained verifier sends back that could still be completed, or is whole, top_p {p}",
        UNSEEN,
    )
    for p in (LOW, HIGH)
}
NEEDLESS_GUESSED = {
    p: _paired(
        f"needless-guessed-{_at(p)}",
        f"share of what is sent back that could still be completed, or is whole, top_p {p}",
        UNSEEN,
        "a verifier that guesses and sends back as often",
        "the trained verifier",
    )
    for p in (LOW, HIGH)
}
BEYOND, BEYOND_UNENDED = (
    _paired(
        key,
        f"share of right {strings} to which the trained verifier objects, no backtracks",
        UNSEEN,
        "of lengths from which it hardly learned",
        "of lengths from which it learned",
    )
    for key, strings in (("beyond", "strings"), ("beyond-unended", "strings that are not whole"))
)
WITHIN_LEFT = {
    p: _paired(f"within-left-{_at(p)}", f"{_ERRORS}, top_p {p}", UNSEEN, _WITHOUT, _WHERE) for p in (LOW, HIGH)
}
WITHIN_MORE = {p: _paired(f"within-more-{_at(p)}", f"{_ERRORS}, top_p {p}", UNSEEN, _WHERE, _WITH) for p in (LOW, HIGH)}
_QUERIES = "expected queries until a completion is right"
WITHIN_COST, WITHIN_PER_RIGHT = (
    {p: _paired(f"within-{key}-{_at(p)}", f"{_QUERIES}, top_p {p}", UNSEEN, _WHERE, other, RATIO) for p in (LOW, HIGH)}
    for key, other in (("cost", _WITHOUT), ("per-right", _WITH))
)

# Figure 3.2, Table 3.5, queries
WRONG_CLOSERS = _mean("wrong-closers", "share of mistakes left by Algorithm 1 that are wrong closing brackets", UNSEEN)
MAJORITY_DUE = _paired(
    "majority-due",
    "share of closing brackets, top_p 0.9, Algorithm 1",
    UNSEEN,
    "wrong ones that are of training's majority kind",
    "those due that are of its minority kind, which is where such a mistake can be made",
)
RARE_KIND = _paired(
    "rare-kind",
    "share of closing brackets that are of the wrong kind, top_p 0.9, no backtracks",
    UNSEEN,
    "where training's minority kind is due",
    "where its majority kind is due",
    RATIO,
)
MAJORITY = _mean("majority", "share of these wrong closing brackets that are of training's majority kind", UNSEEN)
OUT_OF_QUOTA = _mean("out-of-quota", "share of mistakes left by Algorithm 1 whose quota is used up", UNSEEN)
_DISTINCT = "distinct completions of ten"
DIVERSITY = _paired("diversity", _DISTINCT, UNSEEN, "Algorithm 1, top_p 1.0", "no backtracks, top_p 1.0")
DIVERSITY_KNOWN = _paired(
    "diversity-known", _DISTINCT, UNSEEN, "Algorithm 1 with the ground truth, top_p 1.0", "no backtracks, top_p 1.0"
)
WITHIN_DISTINCT = _paired("within-distinct", f"{_DISTINCT}, top_p 1.0", UNSEEN, _WHERE, _WITH)
DIVERSITY_LOW = _paired("diversity-low", _DISTINCT, UNSEEN, "Algorithm 1, top_p 1.0", "no backtracks, top_p 0.9")
RIGHT = {
    p: _paired(f"right-{_at(p)}", f"distinct right completions of ten, top_p {p}", UNSEEN, _WITH, _WITHOUT)
    for p in (LOW, HIGH)
}
RIGHT_KNOWN = _paired(
    "right-known", "distinct right completions of ten, top_p 1.0", UNSEEN, "Algorithm 1 with the ground truth", _WITHOUT
)
COST = {
    p: _paired(f"cost-{_at(p)}", f"queries for a completion, top_p {p}", UNSEEN, _WITH, _WITHOUT, RATIO)
    for p in (LOW, HIGH)
}
PER_RIGHT = {
    p: _paired(
        f"per-right-{_at(p)}",
        f"expected queries until a completion is right, top_p {p}",
        UNSEEN,
        _WITH,
        _WITHOUT,
        RATIO,
    )
    for p in (LOW, HIGH)
}
COST_BOUND = {
    p: _mean(
        f"cost-bound-{_at(p)}",
        f"queries of Algorithm 1 over those without backtracks, less 1 + Q B / mean completion, top_p {p}",
        UNSEEN,
        (-float("inf"), float("inf")),
    )
    for p in (LOW, HIGH)
}
EXACT = _mean("exact", "share of decoding runs in which every row's queries are its tokens and what was erased", UNSEEN)

# Documents of test cases, which stand in for CodeLlama (section 3.2.2)
_CODE = "share of requested test cases that come as distinct right ones (stand-in)"
_MAIN = "top_p 0.95, T 1.0"
_CODE_OURS = "Algorithm 1, threshold 0.1"


def _code_mean(key: str, measure: str, span: tuple[float, float] = (0.0, 1.0)) -> comparisons.Comparison:
    return DECLARED(
        comparisons.Comparison(
            f"code-{key}", measure, MEAN, TEST_CASES, (Arm("", CASE_MODELS),), learned=False, span=span
        )
    )


def _code_paired(
    key: str, measure: str, first: str, second: str, statistic: str = MEAN_DIFFERENCE
) -> comparisons.Comparison:
    arms = (Arm(first, CASE_MODELS), Arm(second, CASE_MODELS))
    return DECLARED(
        comparisons.Comparison(
            f"code-{key}", measure, statistic, TEST_CASES, arms, in_common=schema.MODELS, learned=False
        )
    )


CODE_GREEDY = _code_mean("greedy", f"{_CODE}, greedy")
CODE_GREEDY_FEWER = _code_paired("greedy-fewer", _CODE, _MAIN, "greedy")
CODE_TOO_HOT = _code_paired("too-hot", f"{_CODE}, top_p 1.0", "best temperature", "highest temperature")
CODE_TOO_COLD = _code_paired("too-cold", f"{_CODE}, top_p 0.95", "T 1.0", "T 0.4")
CODE_POOLED = _code_mean(
    "pooled",
    "gain in distinct right test cases of Algorithm 1, threshold 0.1, mean of five settings (stand-in)",
    (-1.0, 1.0),
)
CODE_CAREFUL = _code_mean(
    "careful",
    "gain in distinct right test cases of threshold 0.1 over 0.5, mean of five settings (stand-in)",
    (-1.0, 1.0),
)
CAREFUL_TWICE = DECLARED(
    comparisons.Comparison(
        "code-careful-twice",
        "gain in distinct right test cases of threshold 0.1 over 0.5, twice as many cases, mean of five settings "
        "(stand-in)",
        MEAN,
        THRESHOLDS,
        (Arm("", CASE_MODELS_TWICE),),
        learned=False,
        span=(-1.0, 1.0),
    )
)
CAREFUL_GROWS = DECLARED(
    comparisons.Comparison(
        "code-careful-grows",
        "gain in distinct right test cases of threshold 0.1 over 0.5, mean of five settings (stand-in)",
        MEAN_DIFFERENCE,
        THRESHOLDS,
        (Arm("twice as many cases", CASE_MODELS_TWICE), Arm("as many cases", CASE_MODELS)),
        learned=False,
    )
)
CODE_EQUAL = _code_mean(
    "equal-queries",
    "gain in distinct right test cases of Algorithm 1, threshold 0.1, by as many queries, mean of five settings "
    "(stand-in)",
    (-1.0, 1.0),
)
CODE_MORE_QUERIES = _code_paired(
    "more-queries", "queries, mean of five settings (stand-in)", _CODE_OURS, _WITHOUT, RATIO
)
CODE_RATE = _code_paired(
    "per-query-plain",
    "distinct right test cases per query, mean of five settings (stand-in)",
    _CODE_OURS,
    _WITHOUT,
    RATIO,
)
CODE_BEST = _code_paired(
    "best", f"{_CODE}, top_p and T that are best without backtracks on other names", _CODE_OURS, _WITHOUT
)
CODE_HOTTEST = _code_mean("hottest", "gain of Algorithm 1 at top_p 1.0, T 1.2 (stand-in)", (-1.0, 1.0))
CODE_BLOCK_COST = {
    n: _code_paired(f"block-cost-{n}", "queries of block best-of-n (stand-in)", f"n = {2 * n}", f"n = {n}", RATIO)
    for n in (2, 4)
}
CODE_BLOCK_ACCURACY = _code_paired("block-accuracy", f"{_CODE}, block best-of-n", "n = 8", "n = 2")
CODE_PER_QUERY = {
    n: _code_paired(
        f"per-query-{n}", "distinct right test cases per query (stand-in)", _CODE_OURS, f"block best-of-{n}", RATIO
    )
    for n in (4, 8)
}
CODE_TRUTH = _code_paired("truth", f"{_CODE}, {_MAIN}", "ground truth", "trained verifier")
CODE_KNOWS = _code_paired("knows", f"{_CODE}, {_MAIN}", "trained verifier", "random verifier")
_OFTEN = "random verifier that sends back as often"
CODE_OFTEN = _code_paired("knows-as-often", f"{_CODE}, {_MAIN}", "trained verifier", _OFTEN)
CODE_OFTEN_RIGHT = _code_paired(
    "knows-as-often-right",
    f"right test cases over those requested, repeated ones counted again, {_MAIN} (stand-in)",
    "trained verifier",
    _OFTEN,
)
CODE_OFTEN_MATCHED = _code_paired("as-often", f"backtracks, {_MAIN} (stand-in)", _OFTEN, "trained verifier", RATIO)
CODE_CHANCE = _code_paired("chance", f"{_CODE}, {_MAIN}", "random verifier", _WITHOUT)
CODE_DEPTH = _code_paired("depth", f"{_CODE}, {_MAIN}", "linear verifier", "best of deeper ones")
CODE_DEPTH_VALIDATION = _code_mean(
    "depth-validation", "range of validation accuracy over depths of verifiers (stand-in)"
)
CODE_DROP = _code_paired("drop", f"loss of {_CODE} on reserved names", _WITHOUT, _CODE_OURS)
CODE_REFILL = _code_paired("refill", f"{_CODE}, threshold 0.1, {_MAIN}", "greedy refill", "sampled refill")
CODE_REFILL_BOLD = _code_paired("refill-bold", f"{_CODE}, threshold 0.5, {_MAIN}", "greedy refill", "sampled refill")

# Exact laws below prompts (section 3.3.1)
_DISTANCE = "total variation to the target, exact values of leaves, H = 4"
_CASES_DISTANCE = "total variation to the target, exact values of leaves, digits of a test case"
_LEAVES = {
    leaves.EXACT: _DISTANCE,
    leaves.LEARNED: "total variation to the target, the verifier's values of leaves, H = 4",
}
_FIRST, _ACTION = "first leaf of Algorithm 2", "action-level rejection"
VGB_NEARER = _paired("vgb-nearer", _DISTANCE, VGB_DYCK, _FIRST, _ACTION)
HARD_FARTHER = _paired("hard-farther", _DISTANCE, VGB_DYCK, "tokenwise rejection at a threshold", _ACTION)
VGB_BASE = {kind: _paired(f"vgb-base-{kind}", _LEAVES[kind], VGB_DYCK, _FIRST, "no verifier") for kind in leaves.LEAVES}
ALRS_BASE = {
    kind: _paired(f"alrs-base-{kind}", _LEAVES[kind], VGB_DYCK, _ACTION, "no verifier") for kind in leaves.LEAVES
}
VGB_NEARER_LEARNED = _paired("vgb-nearer-learned", _LEAVES[leaves.LEARNED], VGB_DYCK, _FIRST, _ACTION)
WHOLE_LEARNED = _paired("whole-learned", _LEAVES[leaves.LEARNED], VGB_DYCK, _FIRST, "rejection of whole strings")
WHOLE_COST = _paired(
    "whole-cost",
    "laws of a next bracket asked for, exact values of leaves, H = 4",
    VGB_DYCK,
    _FIRST,
    "rejection of whole strings",
    RATIO,
)
VGB_CASES_NEARER = _code_paired("vgb-nearer", f"{_CASES_DISTANCE} (stand-in)", _FIRST, _ACTION)
CASES_HARD_FARTHER = _code_paired(
    "hard-farther", f"{_CASES_DISTANCE} (stand-in)", "tokenwise rejection at a threshold", _ACTION
)
VGB_EXACT = _mean("vgb-exact", "largest distance of Algorithm 2's stationary law at leaves from the target", VGB_DYCK)
VGB_VALID = _mean("vgb-valid", "largest probability that Algorithm 2 returns an unbalanced string", VGB_DYCK)
