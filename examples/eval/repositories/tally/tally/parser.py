"""The text of a journal. A line that begins with a date begins a transaction; indented lines below are its postings; other lines are
directives: account, alias, close, include, price, budget, strict; comment lines begin with ; or #."""
import pathlib
import re

from tally import TallyError
from tally.amounts import Amount
from tally.dates import UNITS, Recurrence, parse_date
from tally.model import Budget, Journal, Posting, Transaction

HEAD = re.compile(r"""(?P<date>\d[\d./-]*)\s*
    (?:(?P<status>[*!])\s*)?
    (?:\((?P<code>[^)]*)\)\s*)?
    (?P<rest>.*)""", re.VERBOSE)
TAG = re.compile(r"(?:^|\s)(?:#(?P<flag>[\w-]+)|(?P<name>[\w-]+):(?P<value>\S+))")
DEEPEST = 16  # includes in includes


def split_comment(line):
    """What stands before a ; and what behind it. One between quotes counts as text."""
    quoted = False
    for index, letter in enumerate(line):
        if letter == '"':
            quoted = not quoted
        elif letter == ";" and not quoted:
            return line[:index].rstrip(), line[index + 1:].strip()
    return line.rstrip(), ""


def tags_of(comment):
    """#flag and name:value."""
    return {match["flag"] or match["name"]: match["value"] or "" for match in TAG.finditer(comment)}


class Parser:
    def __init__(self, journal=None):
        self.journal, self.current, self.files = journal or Journal(), None, []
        self.file, self.number = "", 0

    @property
    def place(self):
        return f"{self.file or 'journal'}:{self.number}"

    def parse(self, text, file=""):
        before = self.file, self.number
        self.file = file
        for self.number, line in enumerate(text.splitlines(), 1):
            self.line(line)
        self.end()
        self.file, self.number = before
        return self.journal

    def end(self):
        """The transaction is over."""
        if self.current:
            current, self.current = self.current, None
            self.journal.add(current)

    def line(self, line):
        if not line.strip():
            return self.end()
        if line[0] in ";#":
            return None
        if line[0].isspace():
            return self.indented(line)
        self.end()
        text, comment = split_comment(line)
        if line[0].isdigit():
            return self.head(text, comment)
        word, _, rest = text.partition(" ")
        directive = getattr(self, "directive_" + word, None)
        if not directive:
            raise TallyError(f"unknown directive: {word!r}", self.place)
        return directive(rest.strip())

    def head(self, text, comment):
        match = HEAD.match(text)
        payee, _, note = match["rest"].partition("|")
        self.current = Transaction(parse_date(match["date"], self.place), payee.strip(), note.strip(), match["status"] or "",
                                   match["code"] or "", comment, tags_of(comment), [], self.file or "journal", self.number)

    def indented(self, line):
        text, comment = split_comment(line.strip())
        if not self.current:
            raise TallyError("a posting without a transaction", self.place)
        if not text:
            last = self.current.postings[-1] if self.current.postings else self.current
            last.comment = (last.comment + "\n" + comment).strip()
            last.tags.update(tags_of(comment))
            return
        self.current.postings.append(self.posting(text, comment))

    def posting(self, text, comment):
        account, *rest = re.split(r"\s{2,}|\t", text, maxsplit=1)
        posting = Posting(account.strip(), comment=comment, tags=tags_of(comment), line=self.number)
        if not rest:
            return posting
        said, _, assertion = rest[0].partition("=")
        said, is_total, cost = self.split_cost(said)
        if said.strip():
            posting.amount = Amount.parse(said, self.place)
        if cost:
            posting.cost = self.unit_cost(posting.amount, Amount.parse(cost, self.place), is_total)
        if assertion:
            posting.assertion = Amount.parse(assertion, self.place)
        return posting

    @staticmethod
    def split_cost(said):
        """3 ACME @ 10 EUR is the cost of one, 3 ACME @@ 30 EUR of all."""
        amount, mark, cost = said.partition("@")
        return amount, cost.startswith("@"), cost.lstrip("@") if mark else ""

    def unit_cost(self, amount, cost, is_total):
        if amount is None:
            raise TallyError("a cost without an amount", self.place)
        if not is_total:
            return cost
        if not amount:
            raise TallyError("a total cost of nothing", self.place)
        units, rest = divmod(cost.units * 10 ** amount.places, abs(amount.units))
        places = cost.places
        while rest and places < cost.places + 8:
            units, rest, places = units * 10 + rest * 10 // abs(amount.units), rest * 10 % abs(amount.units), places + 1
        if rest:
            raise TallyError(f"{cost} cannot be divided by {amount} exactly", self.place)
        return Amount(units, places, cost.commodity)

    def directive_account(self, rest):
        if not rest:
            raise TallyError("account wants a name", self.place)
        self.journal.declared[rest] = self.place

    def directive_alias(self, rest):
        name, equals, account = (part.strip() for part in rest.partition("="))
        if not (name and equals and account):
            raise TallyError("alias wants NAME = ACCOUNT", self.place)
        self.journal.aliases[name] = account

    def directive_close(self, rest):
        date, _, account = rest.partition(" ")
        self.journal.closed[self.journal.resolve(account.strip())] = parse_date(date, self.place)

    def directive_strict(self, rest):
        self.journal.strict = rest not in ("off", "no")

    def directive_price(self, rest):
        parts = rest.split(None, 2)
        if len(parts) != 3:
            raise TallyError("price wants DATE COMMODITY AMOUNT", self.place)
        self.journal.prices.append((parse_date(parts[0], self.place), parts[1], Amount.parse(parts[2], self.place)))

    def directive_budget(self, rest):
        match = re.fullmatch(r"(\d\S*)\s+(\S+)\s+(.+?)\s+(\w+)", rest)
        if not match:
            raise TallyError("budget wants DATE ACCOUNT AMOUNT monthly", self.place)
        start = parse_date(match[1], self.place)
        unit = Recurrence.parse(match[4], start, self.place).unit
        assert unit in UNITS
        self.journal.budgets.append(Budget(self.journal.resolve(match[2]), Amount.parse(match[3], self.place), unit, start))

    def directive_include(self, rest):
        path = pathlib.Path(self.file).parent / rest
        if path.resolve() in self.files:
            raise TallyError(f"{path} includes itself", self.place)
        if len(self.files) >= DEEPEST:
            raise TallyError("includes are nested too deeply", self.place)
        matching = sorted(path.parent.glob(path.name)) if "*" in path.name else [path]
        for one in matching:
            self.read(one)

    def read(self, path):
        path = pathlib.Path(path)
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as failure:
            raise TallyError(f"cannot read {path}: {failure.strerror}", self.place if self.file else None) from None
        self.files.append(path.resolve())
        self.parse(text, str(path))
        self.files.pop()
        return self.journal


def parse(text):
    """A journal from text."""
    return Parser().parse(text).finish()


def load(*paths):
    """A journal from files."""
    parser = Parser()
    for path in paths:
        parser.read(path)
    return parser.journal.finish()
