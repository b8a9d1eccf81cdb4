"""Exact amounts. An Amount is a whole number of the smallest unit that was written, with a commodity; a Balance sums several of them."""
import functools
import re

from tally import TallyError

PATTERN = re.compile(r"""
    (?P<sign>[+-])?\s*
    (?P<before>[^\W\d_]+|[$€£])?\s*
    (?P<inner>-)?
    (?P<whole>\d{1,3}(?:,\d{3})+|\d+)
    (?:\.(?P<part>\d+))?\s*
    (?P<after>[^\W\d_]+|[$€£])?""", re.VERBOSE)

SYMBOLS = {"$": "USD", "€": "EUR", "£": "GBP"}


@functools.total_ordering
class Amount:
    """units / 10**places of a commodity. Amounts of one commodity compare and add, whatever their places."""
    __slots__ = ("units", "places", "commodity")

    def __init__(self, units, places=0, commodity=""):
        self.units, self.places, self.commodity = units, places, commodity

    @classmethod
    def parse(cls, text, place=None):
        match = PATTERN.fullmatch(text.strip())
        if not match:
            raise TallyError(f"no amount: {text.strip()!r}", place)
        if match["before"] and match["after"]:
            raise TallyError(f"two commodities: {text.strip()!r}", place)
        if match["sign"] and match["inner"]:
            raise TallyError(f"two signs: {text.strip()!r}", place)
        part = match["part"] or ""
        units = int(match["whole"].replace(",", "") + part)
        if match["sign"] == "-" or match["inner"]:
            units = -units
        commodity = match["before"] or match["after"] or ""
        return cls(units, len(part), SYMBOLS.get(commodity, commodity))

    def scaled(self, places):
        """The units with at least as many places."""
        return self.units * 10 ** (places - self.places)

    def same(self, other):
        if not isinstance(other, Amount):
            raise TypeError(f"an amount is wanted, not {other!r}")
        if other.commodity != self.commodity:
            raise TallyError(f"{self} and {other} are of different commodities")
        return max(self.places, other.places)

    def __add__(self, other):
        places = self.same(other)
        return Amount(self.scaled(places) + other.scaled(places), places, self.commodity)

    def __sub__(self, other):
        return self + -other

    def __neg__(self):
        return Amount(-self.units, self.places, self.commodity)

    def __abs__(self):
        return Amount(abs(self.units), self.places, self.commodity)

    def __bool__(self):
        return self.units != 0

    def __eq__(self, other):
        if not isinstance(other, Amount):
            return NotImplemented
        if self.units == 0 and other.units == 0:
            return True
        places = max(self.places, other.places)
        return self.commodity == other.commodity and self.scaled(places) == other.scaled(places)

    def __lt__(self, other):
        places = self.same(other)
        return self.scaled(places) < other.scaled(places)

    def __hash__(self):
        units, places = self.units, self.places
        while places and units % 10 == 0:
            units, places = units // 10, places - 1
        return hash((units, places, self.commodity if units else ""))

    def times(self, number):
        """Multiplied by a whole number, or by an Amount without a commodity."""
        if isinstance(number, int):
            return Amount(self.units * number, self.places, self.commodity)
        return Amount(self.units * number.units, self.places + number.places, self.commodity)

    def rounded(self, places):
        """With so many places; halves go away from zero."""
        if places >= self.places:
            return Amount(self.scaled(places), places, self.commodity)
        factor = 10 ** (self.places - places)
        whole, rest = divmod(abs(self.units), factor)
        whole += 2 * rest >= factor
        return Amount(whole if self.units >= 0 else -whole, places, self.commodity)

    def split(self, count):
        """So many parts, as equal as can be, that add up to the whole; the first ones are the larger."""
        if count < 1:
            raise ValueError("an amount is split into one part at least")
        each, rest = divmod(abs(self.units), count)
        sign = -1 if self.units < 0 else 1
        return [Amount(sign * (each + (index < rest)), self.places, self.commodity) for index in range(count)]

    def number(self, grouped=False):
        digits = str(abs(self.units)).rjust(self.places + 1, "0")
        whole, part = (digits[:-self.places], digits[-self.places:]) if self.places else (digits, "")
        if grouped:
            whole = f"{int(whole):,}"
        return ("-" if self.units < 0 else "") + whole + ("." + part if part else "")

    def __str__(self):
        return f"{self.number()} {self.commodity}".rstrip()

    def __repr__(self):
        return f"Amount({str(self)!r})"


class Balance:
    """Amounts by commodity. What is zero counts as absent."""

    def __init__(self, amounts=()):
        self.by_commodity = {}
        for amount in amounts:
            self.add(amount)

    def add(self, amount):
        old = self.by_commodity.get(amount.commodity)
        self.by_commodity[amount.commodity] = old + amount if old is not None else amount
        return self

    def copy(self):
        return Balance(self.by_commodity.values())

    def __add__(self, other):
        result = self.copy()
        for amount in other.by_commodity.values():
            result.add(amount)
        return result

    def __neg__(self):
        return Balance(-amount for amount in self.by_commodity.values())

    def __sub__(self, other):
        return self + -other

    def amounts(self):
        """What is not zero, by name of the commodity."""
        return [amount for _, amount in sorted(self.by_commodity.items()) if amount]

    def get(self, commodity):
        return self.by_commodity.get(commodity, Amount(0, 0, commodity))

    def is_zero(self):
        return not self.amounts()

    def __eq__(self, other):
        return isinstance(other, Balance) and self.amounts() == other.amounts()

    def __str__(self):
        return ", ".join(map(str, self.amounts())) or "0"

    def __repr__(self):
        return f"Balance({str(self)!r})"
