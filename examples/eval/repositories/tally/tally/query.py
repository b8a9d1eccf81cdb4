"""The language of filters: words are accounts; field:value and field>value are conditions; not, and, or and parentheses join them. Between
two conditions stands an "and" that need not be written.

    food                       an account of that name, or below
    payee:shop note:week       parts of the text, whatever the case
    date:2026q1 status:cleared
    amount>10 amount<=20EUR    of the posting's absolute amount
    tag:trip tag:trip=rome
    not (assets or income)
"""
import operator
import re

from tally import TallyError
from tally.accounts import Pattern
from tally.amounts import Amount
from tally.dates import parse_period

TOKEN = re.compile(r"""\s*(?:(?P<mark>[()])|"(?P<quoted>[^"]*)"|(?P<word>(?:[^\s()"]|"[^"]*")+))""")
COMPARISON = re.compile(r"(?P<field>\w+)(?P<how><=|>=|!=|[:<>=])(?P<value>.*)", re.DOTALL)
ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, ":": operator.eq, "!=": operator.ne}
STATUS = {"cleared": "*", "pending": "!", "unmarked": "", "*": "*", "!": "!"}


def tokens_of(text):
    tokens, at = [], 0
    text = text.strip()
    while at < len(text):
        match = TOKEN.match(text, at)
        if not match:
            raise TallyError(f"the query {text!r} cannot be read from {text[at:]!r} on")
        if match["quoted"] is not None:
            tokens.append(("text", match["quoted"]))
        elif match["mark"]:
            tokens.append(("mark", match["mark"]))
        elif match["word"].lower() in ("and", "or", "not"):
            tokens.append(("mark", match["word"].lower()))
        else:
            tokens.append(("word", match["word"]))
        at = match.end()
    return tokens


class Reader:
    """or binds least, then and, then not."""

    def __init__(self, text, today=None):
        self.text, self.today, self.tokens, self.at = text, today, tokens_of(text), 0

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", "")

    def next(self):
        token = self.peek()
        self.at += 1
        return token

    def whole(self):
        if not self.tokens:
            return lambda transaction, posting: True
        result = self.either()
        if self.peek() != ("end", ""):
            raise TallyError(f"unexpected {self.peek()[1]!r} in the query {self.text!r}")
        return result

    def either(self):
        parts = [self.all()]
        while self.peek() == ("mark", "or"):
            self.next()
            parts.append(self.all())
        return parts[0] if len(parts) == 1 else lambda *pair: any(part(*pair) for part in parts)

    def all(self):
        parts = [self.single()]
        while self.peek() not in (("end", ""), ("mark", "or"), ("mark", ")")):
            if self.peek() == ("mark", "and"):
                self.next()
            parts.append(self.single())
        return parts[0] if len(parts) == 1 else lambda *pair: all(part(*pair) for part in parts)

    def single(self):
        kind, word = self.next()
        if (kind, word) == ("mark", "not"):
            inner = self.single()
            return lambda *pair: not inner(*pair)
        if (kind, word) == ("mark", "("):
            inner = self.either()
            if self.next() != ("mark", ")"):
                raise TallyError(f"a parenthesis is open in the query {self.text!r}")
            return inner
        if kind in ("mark", "end"):
            raise TallyError(f"a condition is missing in the query {self.text!r}")
        match = COMPARISON.fullmatch(word) if kind == "word" else None
        condition = getattr(self, "field_" + match["field"].lower(), None) if match else None
        if condition:
            return condition(match["how"], match["value"].replace('"', ""))
        if match and match["how"] != ":":
            raise TallyError(f"unknown field {match['field']!r} in the query {self.text!r}")
        return self.field_account(":", word)

    def only(self, how, *allowed):
        if how not in allowed:
            raise TallyError(f"{how!r} cannot be used there in the query {self.text!r}")

    def field_account(self, how, value):
        self.only(how, ":", "=", "!=")
        pattern = Pattern(value)
        return lambda _, posting: pattern.matches(posting.account) != (how == "!=")

    def text_field(self, how, value, get):
        self.only(how, ":", "=", "!=")
        value = value.lower()
        if how == ":":
            return lambda *pair: value in get(*pair).lower()
        return lambda *pair: (get(*pair).lower() == value) == (how == "=")

    def field_payee(self, how, value):
        return self.text_field(how, value, lambda transaction, _: transaction.payee)

    def field_note(self, how, value):
        return self.text_field(how, value, lambda transaction, _: transaction.note)

    def field_code(self, how, value):
        return self.text_field(how, value, lambda transaction, _: transaction.code)

    def field_comment(self, how, value):
        return self.text_field(how, value, lambda transaction, posting: transaction.comment + "\n" + posting.comment)

    def field_date(self, how, value):
        period = parse_period(value, self.today)
        if how in (":", "="):
            return lambda transaction, _: transaction.date in period
        if how == "!=":
            return lambda transaction, _: transaction.date not in period
        edge = {"<": (operator.lt, period.start), ">=": (operator.ge, period.start), ">": (operator.ge, period.end),
                "<=": (operator.lt, period.end)}[how]
        return lambda transaction, _: edge[0](transaction.date, edge[1])

    def field_status(self, how, value):
        self.only(how, ":", "=", "!=")
        if value.lower() not in STATUS:
            raise TallyError(f"unknown status {value!r}; there are cleared, pending and unmarked")
        wanted = STATUS[value.lower()]
        return lambda transaction, _: (transaction.status == wanted) == (how != "!=")

    def field_amount(self, how, value):
        wanted = Amount.parse(value)

        def compare(_, posting):
            amount = posting.amount
            if wanted.commodity and amount.commodity != wanted.commodity:
                return how == "!="
            return ORDER[how](abs(Amount(amount.units, amount.places)), Amount(wanted.units, wanted.places))
        return compare

    def field_commodity(self, how, value):
        return self.text_field("=" if how == ":" else how, value, lambda _, posting: posting.amount.commodity)

    def field_tag(self, how, value):
        self.only(how, ":", "!=")
        name, equals, wanted = value.partition("=")

        def has(transaction, posting):
            tags = transaction.all_tags(posting)
            return (name in tags and (not equals or tags[name] == wanted)) == (how == ":")
        return has


def compile(text, today=None):
    """A function of transaction and posting that says whether a posting is wanted."""
    return Reader(text, today).whole()
