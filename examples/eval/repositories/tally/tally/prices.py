"""Prices: one unit of a commodity costs so much of another, from a day on. Conversion goes over several steps, and backwards."""
import bisect
import collections
import fractions

from tally import TallyError
from tally.amounts import Amount, Balance


class Prices:
    def __init__(self, listed=()):
        self.known = collections.defaultdict(list)  # (from, to) -> [(date, rate)], in the order of dates
        for date, commodity, amount in listed:
            self.add(date, commodity, amount)

    def add(self, date, commodity, amount):
        """The last one of a day counts."""
        rate = fractions.Fraction(amount.units, 10 ** amount.places)
        if rate <= 0:
            raise TallyError(f"the price of {commodity} must be positive, not {amount}")
        for pair, value in (((commodity, amount.commodity), rate), ((amount.commodity, commodity), 1 / rate)):
            rates = self.known[pair]
            at = bisect.bisect_right([one for one, _ in rates], date)
            if at and rates[at - 1][0] == date:
                rates[at - 1] = (date, value)
            else:
                rates.insert(at, (date, value))

    def direct(self, pair, date):
        rates = self.known.get(pair, [])
        at = bisect.bisect_right([one for one, _ in rates], date)
        return rates[at - 1][1] if at else None

    def rate(self, start, end, date):
        """The rate over as few steps as possible; None where there is no way."""
        if start == end:
            return fractions.Fraction(1)
        queue, seen = collections.deque([(start, fractions.Fraction(1))]), {start}
        while queue:
            commodity, so_far = queue.popleft()
            for first, second in sorted(self.known):
                if first != commodity or second in seen:
                    continue
                rate = self.direct((first, second), date)
                if rate is None:
                    continue
                if second == end:
                    return so_far * rate
                seen.add(second)
                queue.append((second, so_far * rate))
        return None

    def convert(self, amount, commodity, date, places=2):
        """The amount in another commodity; halves go away from zero."""
        rate = self.rate(amount.commodity, commodity, date)
        if rate is None:
            raise TallyError(f"no price of {amount.commodity} in {commodity} on {date}")
        exact = rate * amount.units * 10 ** places / 10 ** amount.places
        whole, rest = divmod(abs(exact.numerator), exact.denominator)
        whole += 2 * rest >= exact.denominator
        return Amount(whole if exact >= 0 else -whole, places, commodity)

    def convert_all(self, balance, commodity, date, places=2):
        """A balance in one commodity; what has no price stays as it is."""
        result = Balance()
        for amount in balance.amounts():
            try:
                result.add(self.convert(amount, commodity, date, places))
            except TallyError:
                result.add(amount)
        return result
