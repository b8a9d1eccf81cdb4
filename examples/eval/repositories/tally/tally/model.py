"""Postings, transactions and the journal. A transaction balances: the weights of its postings sum to zero."""
import dataclasses
import datetime
import typing

from tally import TallyError
from tally.amounts import Amount, Balance


@dataclasses.dataclass
class Posting:
    account: str
    amount: typing.Optional[Amount] = None
    cost: typing.Optional[Amount] = None  # of one unit
    assertion: typing.Optional[Amount] = None
    comment: str = ""
    tags: dict = dataclasses.field(default_factory=dict)
    line: int = 0

    def weight(self):
        """What counts in the sum of the transaction."""
        return self.cost.times(Amount(self.amount.units, self.amount.places)) if self.cost else self.amount


@dataclasses.dataclass
class Transaction:
    date: datetime.date
    payee: str
    note: str = ""
    status: str = ""  # "", "!" pending, "*" cleared
    code: str = ""
    comment: str = ""
    tags: dict = dataclasses.field(default_factory=dict)
    postings: list = dataclasses.field(default_factory=list)
    file: str = ""
    line: int = 0

    @property
    def place(self):
        return f"{self.file}:{self.line}" if self.file else None

    def balance(self):
        return sum((Balance([posting.weight()]) for posting in self.postings if posting.amount is not None), Balance())

    def complete(self):
        """Gives the one posting without an amount what is missing; with several commodities it becomes several postings."""
        if len(self.postings) < 2:
            raise TallyError("a transaction has two postings at least", self.place)
        missing = [posting for posting in self.postings if posting.amount is None]
        if len(missing) > 1:
            raise TallyError(f"{len(missing)} postings have no amount; one may", self.place)
        rest = (-self.balance()).amounts()
        if not missing:
            if rest:
                raise TallyError(f"the transaction does not balance: {Balance(rest)} is missing", self.place)
            return
        if not rest:
            rest = [Amount(0)]
        at = self.postings.index(missing[0])
        self.postings[at:at + 1] = [dataclasses.replace(missing[0], amount=amount) for amount in rest]

    def all_tags(self, posting):
        """The tags of a posting and those of its transaction; its own count first."""
        return {**self.tags, **posting.tags}


@dataclasses.dataclass
class Budget:
    account: str
    amount: Amount
    unit: str
    start: datetime.date


class Journal:
    """Transactions in the order of their dates; those of one day as they were written."""

    def __init__(self):
        self.transactions, self.prices, self.budgets = [], [], []
        self.declared, self.closed, self.aliases, self.strict = {}, {}, {}, False

    def add(self, transaction):
        for posting in transaction.postings:
            posting.account = self.resolve(posting.account)
        transaction.complete()
        self.transactions.append(transaction)

    def resolve(self, account):
        """An alias stands for the whole name, or for its first parts."""
        parts, seen = account.split(":"), set()
        while True:
            for count in range(len(parts), 0, -1):
                head = ":".join(parts[:count])
                if head in self.aliases and head not in seen:
                    seen.add(head)
                    parts = self.aliases[head].split(":") + parts[count:]
                    break
            else:
                return ":".join(parts)

    def finish(self):
        """Sorts, and checks what only the whole journal tells."""
        self.transactions.sort(key=lambda transaction: transaction.date)
        self.check_accounts()
        self.check_assertions()
        return self

    def check_accounts(self):
        for transaction in self.transactions:
            for posting in transaction.postings:
                if self.strict and posting.account not in self.declared:
                    raise TallyError(f"the account {posting.account} is not declared", transaction.place)
                closed = self.closed.get(posting.account)
                if closed and transaction.date > closed:
                    raise TallyError(f"the account {posting.account} was closed on {closed}", transaction.place)

    def check_assertions(self):
        running = {}
        for transaction in self.transactions:
            for posting in transaction.postings:
                balance = running.setdefault(posting.account, Balance())
                balance.add(posting.amount)
                wanted = posting.assertion
                if wanted is not None and balance.get(wanted.commodity) != wanted:
                    raise TallyError(f"{posting.account} has {balance.get(wanted.commodity)} and not {wanted}", transaction.place)

    def postings(self):
        """Pairs of transaction and posting."""
        for transaction in self.transactions:
            for posting in transaction.postings:
                yield transaction, posting

    def accounts(self):
        return sorted({posting.account for _, posting in self.postings()} | set(self.declared))

    def span(self):
        """From the first to the last day of a transaction, both included; None without any."""
        if not self.transactions:
            return None
        return self.transactions[0].date, self.transactions[-1].date
