"""Cuts WGSL into tokens, and walks them."""

from __future__ import annotations

import re

from nybble.errors import NybbleError

__all__ = ["Cursor", "ShaderError"]

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TOKEN = re.compile(
    r"""0[xX][0-9a-fA-F]+[iu]?
      | (?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?[fh]? | \d+[eE][+-]?\d+[fh]? | \d+[iufh]?
      | [A-Za-z_]\w*
      | <<= | >>= | && | \|\| | == | != | <= | >= | << | >> | \+\+ | -- | -> | [-+*/%&|^]=
      | \S""",
    re.VERBOSE,
)
_END = "end of the shader"


class ShaderError(NybbleError):
    """A shader's text is outside the subset of WGSL that is compiled here."""


class Cursor:
    """A position in the tokens of a shader."""

    def __init__(self, source: str) -> None:
        # Comments keep their newlines, for the line numbers in errors.
        self._source = _COMMENT.sub(lambda m: " " + "\n" * m.group().count("\n"), source)
        self.tokens = _TOKEN.findall(self._source)
        self.tokens.append(_END)
        self.at = 0

    @property
    def now(self) -> str:
        """The token at the position."""
        return self.tokens[self.at]

    @property
    def done(self) -> bool:
        """Whether no token is left."""
        return self.at >= len(self.tokens) - 1

    def take(self) -> str:
        """The token at the position, which moves on."""
        token = self.tokens[self.at]
        self.at += 1
        return token

    def accept(self, token: str) -> bool:
        """Move on if ``token`` is next."""
        if self.tokens[self.at] == token:
            self.at += 1
            return True
        return False

    def expect(self, wanted: str) -> None:
        """Move past ``wanted``.

        Raises:
            ShaderError: something else is next.
        """
        if self.tokens[self.at] == wanted:
            self.at += 1
        elif wanted == ">" and self.tokens[self.at].startswith(">"):
            # Two lists of type parameters end together: leave the rest of the token.
            self.tokens[self.at] = self.tokens[self.at][1:]
        else:
            raise self.error(f"expected '{wanted}', found '{self.now}'")

    def name(self) -> str:
        """Move past an identifier.

        Raises:
            ShaderError: something else is next.
        """
        token = self.take()
        if not (token[0].isalpha() or token[0] == "_") or token is _END:
            raise self.error(f"expected a name, found '{token}'")
        return token

    def skip(self, opening: str, closing: str) -> None:
        """Move past a bracketed part, the position being behind its opening bracket."""
        depth = 1
        tokens = self.tokens
        while depth:
            token = tokens[self.at]
            if token is _END:
                raise self.error(f"expected '{closing}', found the {_END}")
            depth += (token == opening) - (token == closing)
            self.at += 1

    def between(self, closing: str, separator: str = ",") -> bool:
        """In a list: whether another item follows; moves past separators and ``closing``."""
        self.accept(separator)
        return not self.accept(closing)

    def error(self, problem: str) -> ShaderError:
        """An error at the position; it names the line."""
        # The last token taken: what is missing behind a line belongs to that line.
        starts = [match.start() for match in _TOKEN.finditer(self._source)]
        last = starts[max(0, self.at - 1)] if self.at <= len(starts) else len(self._source)
        line = self._source.count("\n", 0, last) + 1
        text = self._source.split("\n")[line - 1].strip()
        return ShaderError(f"shader, line {line}: {problem}, in '{text}'")
