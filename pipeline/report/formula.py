"""Formulas of a study's text, written in a small part of TeX, as MathML: browsers typeset it without a script.

No library: `requirements.txt` is an input of every step, so that one more pin there would make every result stale.
"""

from __future__ import annotations

import re

from markupsafe import Markup, escape

from pipeline.errors import SandglassError

_TOKEN = re.compile(r"\\(?:text|mathbb)\{[^{}]*\}|\\[a-zA-Z]+|\\[,{}|]|[0-9]+(?:\.[0-9]+)?|\s+|.", re.DOTALL)

_LATIN = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau phi chi psi omega"
    " Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega ell infty"
)
_LETTERS = dict(zip(_LATIN.split(), "αβγδεζηθικλμνξπρστφχψωΓΔΘΛΞΠΣΦΨΩℓ∞", strict=True))
_SIGNS = {
    "le": "≤", "ge": "≥", "ne": "≠", "approx": "≈", "sim": "∼", "in": "∈", "to": "→", "cdot": "·", "times": "×",
    "mid": "|", "ldots": "…", "sum": "∑", "prod": "∏", "int": "∫", "mapsto": "↦", "pm": "±",
    "{": "{", "}": "}", "|": "‖",
}  # fmt: skip
_NAMES = ("exp", "log", "min", "max", "tanh", "softmax", "Pr", "KL", "argmax", "det")
_BOARD = {"E": "𝔼", "R": "ℝ", "1": "𝟙"}
_MARKS = {"hat": "^", "bar": "¯", "tilde": "˜"}


def mathml(source: str) -> Markup:
    """Return the formula as an element of MathML.

    It knows letters, Greek ones, numbers, signs, ``^`` and ``_``, ``{}``, ``\\frac``, ``\\sqrt``, ``\\text``,
    ``\\mathbb``, ``\\hat``, ``\\bar``, ``\\tilde`` and names of functions such as ``\\exp``.
    Raises SandglassError naming what it does not know.
    """
    reader = _Reader(source)
    row = reader.row("")
    return Markup(f"<math><mrow>{row}</mrow></math>")


class _Reader:
    def __init__(self, source: str) -> None:
        self.source = source
        self.tokens = [token for token in _TOKEN.findall(source) if not token.isspace()]
        self.at = 0

    def row(self, end: str) -> str:
        """Return all up to ``end``, which is read as well."""
        parts = []
        while (token := self._next()) != end:
            if not token or token == "}":
                raise SandglassError(f"formula {self.source!r}: a brace is missing")
            parts.append(self._scripts(self._atom(token)))
        return "".join(parts)

    def _scripts(self, base: str) -> str:
        found: dict[str, str] = {}
        while self._peek() in ("^", "_"):
            sign = self._next()
            found[sign] = self._argument()
        if not found:
            return base
        if len(found) == 2:
            return f"<msubsup>{base}{found['_']}{found['^']}</msubsup>"
        kind, script = next(iter(found.items()))
        tag = "msup" if kind == "^" else "msub"
        return f"<{tag}>{base}{script}</{tag}>"

    def _argument(self) -> str:
        token = self._next()
        return self._atom(token) if token else "<mrow></mrow>"

    def _atom(self, token: str) -> str:
        if token == "{":
            return f"<mrow>{self.row('}')}</mrow>"
        if token.startswith("\\text{"):
            return f"<mtext>{escape(token[6:-1])}</mtext>"
        if token.startswith("\\mathbb{"):
            return f"<mi>{_BOARD.get(token[8:-1], token[8:-1])}</mi>"
        if token.startswith("\\"):
            return self._command(token[1:])
        if token[0].isdigit():
            return f"<mn>{token}</mn>"
        if token.isalpha():
            return f"<mi>{token}</mi>"
        if token == "'":
            return "<mo>′</mo>"
        return f"<mo>{escape({'-': '−', '*': '∗'}.get(token, token))}</mo>"

    def _command(self, name: str) -> str:
        if name in _LETTERS:
            return f"<mi>{_LETTERS[name]}</mi>"
        if name in _SIGNS:
            return f"<mo>{escape(_SIGNS[name])}</mo>"
        if name in _NAMES:
            return f"<mi>{name}</mi>" + ("" if self._peek() in ("^", "_") else "<mo>&#x2061;</mo>")
        if name == ",":
            return '<mspace width="0.17em"></mspace>'
        if name == "frac":
            return f"<mfrac>{self._argument()}{self._argument()}</mfrac>"
        if name == "sqrt":
            return f"<msqrt>{self._argument()}</msqrt>"
        if name in _MARKS:
            return f'<mover accent="true">{self._argument()}<mo>{_MARKS[name]}</mo></mover>'
        raise SandglassError(f"formula {self.source!r}: \\{name} is not known")

    def _peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self.at += bool(token)
        return token
