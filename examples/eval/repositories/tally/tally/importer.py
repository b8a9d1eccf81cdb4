"""CSV files of banks become transactions, by rules.

    skip 1                         lines before the first that counts
    separator ;
    columns date, payee, amount, note
    date-format %d.%m.%Y
    decimal ,
    currency EUR
    account assets:bank
    if shop|market                 a regular expression over payee and note; the first rule that matches counts
        expenses:food
"""
import csv
import datetime
import hashlib
import io
import re

from tally import TallyError
from tally.amounts import Amount
from tally.model import Posting, Transaction

UNKNOWN = "expenses:unknown"
REQUIRED = ("date", "amount")


class Rules:
    def __init__(self, text, place="rules"):
        self.skip, self.separator, self.columns, self.format = 0, ",", [], "%Y-%m-%d"
        self.decimal, self.currency, self.account, self.matches = ".", "", "", []
        pattern = None
        for number, line in enumerate(text.splitlines(), 1):
            where = f"{place}:{number}"
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            if line[0].isspace():
                if not pattern:
                    raise TallyError("an account without an if", where)
                self.matches.append((pattern, line.strip()))
                pattern = None
                continue
            pattern = self.directive(line, where)
        for name in REQUIRED:
            if name not in self.columns:
                raise TallyError(f"the columns have no {name}", place)
        if not self.account:
            raise TallyError("no account is given", place)

    def directive(self, line, where):
        word, _, rest = line.partition(" ")
        rest = rest.strip()
        if word == "if":
            try:
                return re.compile(rest, re.IGNORECASE)
            except re.error as failure:
                raise TallyError(f"no regular expression: {rest!r} ({failure})", where) from None
        if word == "columns":
            self.columns = [name.strip() for name in rest.split(",")]
        elif word == "skip":
            self.skip = int(rest)
        elif word == "date-format":
            self.format = rest
        elif word in ("separator", "decimal", "currency", "account"):
            setattr(self, word, "\t" if rest == "TAB" else rest)
        else:
            raise TallyError(f"unknown rule: {word!r}", where)
        return None

    def account_for(self, text):
        for pattern, account in self.matches:
            if pattern.search(text):
                return account
        return UNKNOWN

    def amount_of(self, text, place):
        grouping = "," if self.decimal == "." else "."
        plain = text.strip().replace(grouping, "").replace(self.decimal, ".")
        if plain.startswith("(") and plain.endswith(")"):
            plain = "-" + plain[1:-1]
        amount = Amount.parse(plain, place)
        return Amount(amount.units, amount.places, amount.commodity or self.currency)


def identity(date, amount, payee):
    """The same for the same line of a bank, however often it is imported."""
    return hashlib.sha256(f"{date}|{amount}|{payee.lower()}".encode()).hexdigest()[:12]


def rows(text, rules):
    """Pairs of line number and the row's columns by name."""
    lines = text.splitlines()[rules.skip:]
    for number, row in enumerate(csv.reader(io.StringIO("\n".join(lines)), delimiter=rules.separator), rules.skip + 1):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) < len(rules.columns):
            raise TallyError(f"{len(row)} columns instead of {len(rules.columns)}", f"csv:{number}")
        yield number, dict(zip(rules.columns, (cell.strip() for cell in row)))


def transactions(text, rules, known=()):
    """The transactions of a CSV text that are not known, in the order of their dates. known: ids of those that are."""
    result, seen = [], dict.fromkeys(known, 1)
    counts = {}
    for number, row in rows(text, rules):
        place = f"csv:{number}"
        try:
            date = datetime.datetime.strptime(row["date"], rules.format).date()
        except ValueError:
            raise TallyError(f"no date: {row['date']!r}", place) from None
        amount, payee = rules.amount_of(row["amount"], place), row.get("payee", "")
        same = identity(date, amount, payee)
        counts[same] = counts.get(same, 0) + 1
        if counts[same] > 1:  # two equal lines of one file are two transactions
            same += f"-{counts[same]}"
        if same in seen:
            continue
        note = row.get("note", "")
        result.append(Transaction(date, payee, note, "*", tags={"id": same}, postings=[
            Posting(rules.account, amount), Posting(rules.account_for(f"{payee} {note}"), -amount)]))
    return sorted(result, key=lambda transaction: transaction.date)


def known_ids(journal):
    return {transaction.tags["id"] for transaction in journal.transactions if "id" in transaction.tags}


def written(transaction):
    """A transaction as the text of a journal."""
    note = f" | {transaction.note}" if transaction.note else ""
    tags = " ".join(f"{name}:{value}" if value else f"#{name}" for name, value in transaction.tags.items())
    head = f"{transaction.date} {transaction.status + ' ' if transaction.status else ''}{transaction.payee}{note}"
    lines = [f"{head}  ; {tags}" if tags else head]
    width = max(len(posting.account) for posting in transaction.postings)
    lines += [f"    {posting.account.ljust(width)}  {posting.amount}" for posting in transaction.postings]
    return "\n".join(lines) + "\n"
