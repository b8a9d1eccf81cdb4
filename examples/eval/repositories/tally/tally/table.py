"""Columns of text, CSV and JSON. East Asian letters are two columns wide, combining marks none."""
import csv
import io
import json
import unicodedata


def width(text):
    total = 0
    for letter in text:
        if unicodedata.combining(letter) or unicodedata.category(letter) in ("Cf", "Mn", "Me"):
            continue
        total += 2 if unicodedata.east_asian_width(letter) in ("W", "F") else 1
    return total


def fitted(text, size, align="left"):
    """Exactly so many columns: filled with blanks, or cut with an ellipsis."""
    if width(text) > size:
        kept, room = "", size - 1
        for letter in text:
            if width(kept + letter) > room:
                break
            kept += letter
        text = kept + "…"
    fill = " " * (size - width(text))
    return fill + text if align == "right" else text + fill


def render(rows, aligns, gap="  ", limits=None):
    """Rows of cells, each column as wide as its widest cell, or its limit. A cell of several lines makes a row of several lines."""
    if not rows:
        return ""
    split = [[str(cell).split("\n") for cell in row] for row in rows]
    sizes = [max(width(line) for row in split for line in row[column]) for column in range(len(aligns))]
    for column, limit in (limits or {}).items():
        sizes[column] = min(sizes[column], limit)
    lines = []
    for row in split:
        for index in range(max(map(len, row))):
            cells = [cell[index] if index < len(cell) else "" for cell in row]
            lines.append(gap.join(fitted(cell, size, align) for cell, size, align in zip(cells, sizes, aligns)).rstrip())
    return "\n".join(lines) + "\n"


def as_csv(head, rows):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([[str(cell) for cell in row] for row in rows])
    return out.getvalue()


def as_json(head, rows):
    return json.dumps([dict(zip(head, map(str, row))) for row in rows], indent=2, ensure_ascii=False) + "\n"


def bar(part, whole, size=20):
    """A bar of so many columns; a part above the whole fills it and gets a mark."""
    if whole <= 0:
        return " " * size
    full = min(size, part * size // whole) if part > 0 else 0
    return "#" * full + "." * (size - full) + ("!" if part > whole else "")
