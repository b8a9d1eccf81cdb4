"""First in, first out: what was bought at which cost, and what a sale brought."""
import collections
import dataclasses
import datetime

from tally import TallyError
from tally.amounts import Amount


@dataclasses.dataclass
class Lot:
    date: datetime.date
    amount: Amount
    cost: Amount  # of one unit


@dataclasses.dataclass
class Sale:
    date: datetime.date
    amount: Amount
    bought: datetime.date
    cost: Amount  # of what was sold
    proceeds: Amount

    @property
    def gain(self):
        return self.proceeds - self.cost

    @property
    def is_long_term(self):
        """Held for more than a year."""
        try:
            anniversary = self.bought.replace(year=self.bought.year + 1)
        except ValueError:
            anniversary = datetime.date(self.bought.year + 1, 3, 1)
        return self.date > anniversary


class Lots:
    def __init__(self):
        self.open = collections.defaultdict(collections.deque)  # commodity -> lots, the oldest first

    def buy(self, date, amount, cost):
        self.open[amount.commodity].append(Lot(date, amount, cost))

    def sell(self, date, amount, price):
        """The sales, one for each lot that is touched. amount: positive; price: of one unit."""
        lots, rest, sales = self.open[amount.commodity], amount, []
        while rest:
            if not lots:
                raise TallyError(f"on {date} {rest} more are sold than there are")
            lot = lots[0]
            sold = min(lot.amount, rest)
            number = Amount(sold.units, sold.places)
            sales.append(Sale(date, sold, lot.date, lot.cost.times(number), price.times(number)))
            lot.amount, rest = lot.amount - sold, rest - sold
            if not lot.amount:
                lots.popleft()
        return sales

    def held(self, commodity):
        """The amount, and what it cost; None where there is nothing."""
        lots = self.open[commodity]
        if not lots:
            return None
        amount, cost = lots[0].amount, self.cost_of(lots[0])
        for lot in list(lots)[1:]:
            amount, cost = amount + lot.amount, cost + self.cost_of(lot)
        return amount, cost

    @staticmethod
    def cost_of(lot):
        return lot.cost.times(Amount(lot.amount.units, lot.amount.places))


def of_journal(journal):
    """The lots that are left, and all sales, from the postings that have a cost."""
    lots, sales = Lots(), []
    for transaction, posting in journal.postings():
        if not posting.cost:
            continue
        if posting.amount > Amount(0, 0, posting.amount.commodity):
            lots.buy(transaction.date, posting.amount, posting.cost)
        else:
            sales += lots.sell(transaction.date, -posting.amount, posting.cost)
    return lots, sales
