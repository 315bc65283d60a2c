"""Problems in a document: collected with their places and reported all at once."""

from __future__ import annotations

from dataclasses import dataclass, field

from pennyweight.errors import InputError

MAX_SHOWN_PER_TABLE = 20
"""Problems shown of each file other than the document itself, such as a table of tasks."""


class DocumentError(InputError):
    """A suite, policy, rubric or price list is invalid; lists every problem with its place."""

    def __str__(self) -> str:
        return "\n".join((*self.problems, self.hint) if self.hint else self.problems)


@dataclass(frozen=True, slots=True, order=True)
class PlacedProblem:
    """One problem and its place; line 0 means the file as a whole."""

    file: str
    line: int
    message: str
    unit: str = "line"

    def __str__(self) -> str:
        place = f"{self.file}, {self.unit} {self.line}" if self.line else self.file
        return f"{place}: {self.message}" if place else self.message


@dataclass(slots=True)
class Problems:
    """Collects the problems of a document and of the files that it names."""

    file: str = ""
    unit: str = "line"
    found: list[PlacedProblem] = field(default_factory=list)
    line: int = 0
    """The line of problems that have none of their own; 0 means the file as a whole."""
    prefix: str = ""

    def add(self, line: int, message: str) -> None:
        """Add a problem; line 0 means that it has no line of its own."""
        where = line or self.line
        self.found.append(PlacedProblem(self.file, where, self.prefix + message, self.unit))

    def within(self, file: str, unit: str = "line") -> Problems:
        """Return a view that adds problems of another file."""
        return Problems(file, unit, self.found)

    def at(self, line: int, prefix: str) -> Problems:
        """Return a view that adds problems of one line, such as a row of a table."""
        return Problems(self.file, self.unit, self.found, line, prefix)

    def messages(self) -> list[str]:
        """Return the problems in the order of their places, those of this file first."""
        lines: list[str] = []
        for file in sorted(
            {p.file for p in self.found}, key=lambda name: (name != self.file, name)
        ):
            problems = sorted(p for p in self.found if p.file == file)
            limit = len(problems) if file == self.file else MAX_SHOWN_PER_TABLE
            lines += dict.fromkeys(map(str, problems[:limit]))
            if len(problems) > limit:
                lines.append(f"{file}: … and {len(problems) - limit:,} more problems.")
        return lines

    def stop(self) -> None:
        """Raise DocumentError if there are any problems."""
        if self.found:
            raise DocumentError(self.messages(), len(self.found))
