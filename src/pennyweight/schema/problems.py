"""Every mistake of a suite, collected with its place and told at once."""

from __future__ import annotations

from dataclasses import dataclass, field

from pennyweight.errors import InputError

SHOWN = 20
"""How many problems of one file of tasks are told one by one."""


class DocumentError(InputError):
    """A suite cannot be used; lists every mistake in it, each with its file and line."""

    def __str__(self) -> str:
        return "\n".join((*self.problems, self.hint) if self.hint else self.problems)


@dataclass(slots=True)
class Problems:
    """Collects mistakes while a suite is read; nothing is raised before all are found."""

    file: str
    """The suite's own file, to which a line belongs unless another file is named."""
    found: list[tuple[str, int, str]] = field(default_factory=list)

    def add(self, line: int, what: str, file: str = "", unit: str = "line") -> None:
        """Keep one mistake; line 0 means the file as a whole."""
        name = file or self.file
        place = f"{name}, {unit} {line}" if line else name
        self.found.append((name, line, f"{place}: {what}"))

    def told(self) -> list[str]:
        """Put the mistakes in the order of their places, the suite's own file first."""
        lines: list[str] = []
        for file in sorted({f for f, _, _ in self.found}, key=lambda f: (f != self.file, f)):
            own = sorted((line, text) for f, line, text in self.found if f == file)
            shown = len(own) if file == self.file else SHOWN
            lines += dict.fromkeys(text for _, text in own[:shown])
            if len(own) > shown:
                lines.append(f"{file}: … and {len(own) - shown:,} more problems.")
        return lines

    def stop(self) -> None:
        """Raise what was found, if anything was."""
        if self.found:
            raise DocumentError(self.told(), len(self.found))
