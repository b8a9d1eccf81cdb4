"""Reports: balance, register, income statement, budget. Each gives rows; the table module writes them."""
import dataclasses
import datetime

from tally.accounts import is_below, joined, kind_of, shortened, tree
from tally.amounts import Amount, Balance
from tally.dates import DAY, Period, after, divide


def everything(*_):
    return True


def sums(journal, wanted=everything, until=None):
    """The balance of each account. until: the first day that does not count."""
    result = {}
    for transaction, posting in journal.postings():
        if until and transaction.date >= until or not wanted(transaction, posting):
            continue
        result.setdefault(posting.account, Balance()).add(posting.amount)
    return result


@dataclasses.dataclass
class BalanceRow:
    account: str
    depth: int
    balance: Balance
    name: str = ""


def balance(journal, wanted=everything, depth=0, flat=False, empty=False, until=None):
    """Rows of accounts, and the total of all. With a depth, what lies deeper is added to the account at that depth."""
    found = {}
    for account, amount in sums(journal, wanted, until).items():
        short = shortened(account, depth)
        found[short] = found.get(short, Balance()) + amount
    total = sum(found.values(), Balance())
    if flat:
        rows = [BalanceRow(account, 0, amount, account) for account, amount in sorted(found.items())]
    else:
        rows = list(nested(tree(found), 0))
    return [row for row in rows if empty or not row.balance.is_zero()], total


def nested(node, depth):
    for _, child in sorted(node.children.items()):
        name, last = joined(child)
        yield BalanceRow(last.account, depth, last.total(), name)
        yield from nested(last, depth + 1)


@dataclasses.dataclass
class RegisterRow:
    date: datetime.date
    payee: str
    account: str
    amount: Amount
    total: Balance


def register(journal, wanted=everything, related=False):
    """The postings that are wanted, with the running total; related: the others of their transactions instead."""
    total, rows = Balance(), []
    for transaction in journal.transactions:
        chosen = [posting for posting in transaction.postings if wanted(transaction, posting)]
        if related and chosen:
            chosen = [posting for posting in transaction.postings if posting not in chosen]
        for posting in chosen:
            total = total + Balance([posting.amount])
            rows.append(RegisterRow(transaction.date, transaction.payee, posting.account, posting.amount, total))
    return rows


def by_period(journal, unit, wanted=everything):
    """For each piece of the journal's time, the sums of its accounts, those without a posting too."""
    span = journal.span()
    if not span:
        return []
    pieces, accounts = divide(Period(span[0], span[1] + DAY), unit), set()
    result = [(piece, {}) for piece in pieces]
    for transaction, posting in journal.postings():
        if not wanted(transaction, posting):
            continue
        accounts.add(posting.account)
        for piece, found in result:
            if transaction.date in piece:
                found.setdefault(posting.account, Balance()).add(posting.amount)
    for _, found in result:
        for account in accounts:
            found.setdefault(account, Balance())
    return result


@dataclasses.dataclass
class Statement:
    income: Balance
    expenses: Balance

    @property
    def net(self):
        return self.income - self.expenses


def income_statement(journal, period=None):
    """Income counts as positive, as expenses do."""
    income, expenses = Balance(), Balance()
    for transaction, posting in journal.postings():
        if period and transaction.date not in period:
            continue
        kind = kind_of(posting.account)
        if kind == "income":
            income.add(-posting.amount)
        elif kind == "expense":
            expenses.add(posting.amount)
    return Statement(income, expenses)


def net_worth(journal, dates):
    """Assets and liabilities together at the end of each of these days."""
    rows = []
    for date in dates:
        found = sums(journal, lambda _, posting: kind_of(posting.account) in ("asset", "liability"), date + DAY)
        rows.append((date, sum(found.values(), Balance())))
    return rows


@dataclasses.dataclass
class BudgetRow:
    account: str
    planned: Amount
    spent: Amount

    @property
    def left(self):
        return self.planned - self.spent

    @property
    def percent(self):
        """Of the plan that is spent, rounded down; None where nothing is planned."""
        if not self.planned:
            return None
        places = max(self.planned.places, self.spent.places)
        return self.spent.scaled(places) * 100 // self.planned.scaled(places)


def planned(budget, period):
    """What a budget has for a period: its amount for each unit, and a part of it by days where the period has only a part."""
    total, start = Amount(0, budget.amount.places, budget.amount.commodity), budget.start
    while start < period.end:
        unit = Period(start, after(budget.unit, start))
        both = unit.overlap(period)
        if both == unit:
            total = total + budget.amount
        elif both:
            exact = Amount(budget.amount.units * both.days * 100 // unit.days, budget.amount.places + 2, budget.amount.commodity)
            total = total + exact.rounded(budget.amount.places)
        start = unit.end
    return total


def budget_report(journal, period):
    """A row for each account with a budget. An account's postings count for the nearest account above that has a budget."""
    accounts = sorted({budget.account for budget in journal.budgets})
    rows = []
    for account in accounts:
        mine = [budget for budget in journal.budgets if budget.account == account]
        plan = sum((planned(budget, period) for budget in mine[1:]), planned(mine[0], period))
        spent = Amount(0, 0, plan.commodity)
        for transaction, posting in journal.postings():
            if transaction.date not in period or posting.amount.commodity != plan.commodity:
                continue
            above = [other for other in accounts if is_below(posting.account, other)]
            if above and max(above, key=len) == account:
                spent = spent + posting.amount
        rows.append(BudgetRow(account, plan, spent))
    return rows
