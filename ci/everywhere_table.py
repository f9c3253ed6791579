# SPDX-License-Identifier: MIT OR Apache-2.0
"""The table of book/everywhere.md: made of columns, and read back into them, so that one that is run anew takes its own place alone."""
import re

HEAD = ["column", "what it is", "when", "checked", "ran", "notifications counted", "rings and messages in the stress", "tests of channels", "by"]
LATE = ["late", "lost", "armed before the second thread, shared: lost", "… private: lost"]
NONE = "–"


def late(said):
    """Of what the example `late_futex_wakes` said, the cells of the last table."""
    missing = re.findall(r"^late-futex-wakes: (not there: .*)$", said, re.M)
    if missing:
        return [missing[0], *[""] * 3]
    rounds = [tuple(map(int, each)) for each in re.findall(r"^late-futex-wakes: .*: (\d+) of (\d+) late, (\d+) lost", said, re.M)]
    alone = dict(re.findall(r"^late-futex-wakes: armed before the second thread, (\S+): (\d+ of \d+) lost", said, re.M))
    # A wait that ended with an error is none of these.
    failed = ["a wait was completed with an error"] if re.search(r"^late-futex-wakes: .*(completed with|\d failed)", said, re.M) else []
    if not rounds:
        return []
    total = [sum(column) for column in zip(*rounds)]
    return [", ".join([f"{total[0]} of {total[1]}", *failed]), str(total[2]), *(alone.get(key, "not asked") for key in ("shared", "private"))]


class Column:
    """What became of every mechanism on one kernel or system."""

    def __init__(self, row, cells, late=()):
        self.row = row  # of the first table, without the column's name
        self.cells = cells  # of each mechanism: "checked, ran", or "– " and a reason
        self.late = list(late)  # of the last table, without the column's name


def title(name):
    """As a table heads a column."""
    arch, system = name.split("/")
    return {"native": f"{arch}, no guest", "wine": "Wine", "macos": "macOS"}.get(system, f"{arch} {system}")


def row(cells):
    return "| " + " | ".join(cells) + " |"


def written(columns, absent, order):
    """Markdown of columns, and of why others are absent, both by name."""
    known = [name for name in order if name in columns] + [name for name in columns if name not in order]
    names = list(dict.fromkeys(name for column in known for name in columns[column].cells))
    # What is run in another way than by itself comes behind the mechanisms.
    names.sort(key=lambda name: " under " in name)
    reasons = []
    lines = [row(HEAD), "|" + "---|" * len(HEAD)]
    lines += [row([title(name), *columns[name].row]) for name in known]
    lines += ["", row(["mechanism", *map(title, known)]), "|" + "---|" * (1 + len(known))]
    for name in names:
        cells = []
        for column in known:
            cell = columns[column].cells.get(name, NONE)
            if cell.startswith(f"{NONE} "):
                reason = cell[2:]
                if reason not in reasons:
                    reasons.append(reason)
                cell = f"{NONE} {reasons.index(reason) + 1}"
            cells.append(cell)
        lines.append(row([name, *cells]))
    lines += [""] + [f"{number}. {reason}" for number, reason in enumerate(reasons, 1)]
    if absent:
        lines += ["", "Not had:", ""] + [f"- {title(name)}: {reason}" for name, reason in absent.items()]
    late = [row([title(name), *columns[name].late]) for name in known if columns[name].late]
    if late:
        lines += ["", "Late and lost wake-ups of io_uring's futexes:", "", row(["column", *LATE]), "|" + "---|" * (1 + len(LATE)), *late]
    return "\n".join(lines) + "\n"


def read(text, order):
    """The columns, and why others are absent, of what `written` wrote."""
    names = {title(name): name for name in order}
    blocks = [[[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines() if not line.startswith("|---")]
              for block in re.findall(r"(?:^\|.*\n)+", text, re.M)]
    if not blocks:
        return {}, {}
    reasons = dict(re.findall(r"^(\d+)\. (.*)$", text, re.M))
    columns = {names[cells[0]]: Column(cells[1:], {}) for cells in blocks[0][1:]}
    heads = [names[head] for head in blocks[1][0][1:]]
    for name, *cells in blocks[1][1:]:
        for column, cell in zip(heads, cells, strict=True):
            if cell.startswith(f"{NONE} "):
                cell = f"{NONE} {reasons[cell[2:]]}"
            if cell != NONE:
                columns[column].cells[name] = cell
    for block in blocks[2:]:
        for head, *cells in block[1:]:
            columns[names[head]].late = cells
    absent = {names[head]: reason for head, reason in re.findall(r"^- ([^:]+): (.*)$", text, re.M)}
    return columns, absent
