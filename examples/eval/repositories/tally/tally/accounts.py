"""Names of accounts: parts with colons between them. Patterns, and the tree with the sums of what is below."""
import fnmatch
import re

from tally.amounts import Balance

KINDS = {"assets": "asset", "liabilities": "liability", "equity": "equity", "income": "income", "expenses": "expense"}


def kind_of(account):
    """What an account is, by its first part; None where that says nothing."""
    return KINDS.get(account.split(":")[0].lower())


def parents(account):
    """The accounts above, the uppermost first."""
    parts = account.split(":")
    return [":".join(parts[:count]) for count in range(1, len(parts))]


def is_below(account, parent):
    return account == parent or account.startswith(parent + ":")


def shortened(account, depth):
    """The account with so many parts at most."""
    return ":".join(account.split(":")[:depth]) if depth else account


class Pattern:
    """expenses:food is that account and what is below; *:food a glob of parts; ~foo a regular expression; food any part of that name.
    Case does not count."""

    def __init__(self, text):
        self.text = text
        if text.startswith("~"):
            self.regex = re.compile(text[1:], re.IGNORECASE)
            self.matches = lambda account: self.regex.search(account) is not None
        elif any(mark in text for mark in "*?["):
            self.matches = lambda account: self.glob(account)
        elif ":" in text or text.lower() in KINDS:
            self.matches = lambda account: is_below(account.lower(), text.lower())
        else:
            self.matches = lambda account: text.lower() in account.lower().split(":")

    def glob(self, account):
        wanted, parts = self.text.lower().split(":"), account.lower().split(":")
        return self.glob_parts(wanted, parts)

    def glob_parts(self, wanted, parts):
        """** is any number of parts; the others are one part each. What is below counts too."""
        if not wanted:
            return True
        if wanted[0] == "**":
            return any(self.glob_parts(wanted[1:], parts[start:]) for start in range(len(parts) + 1))
        return bool(parts) and fnmatch.fnmatchcase(parts[0], wanted[0]) and self.glob_parts(wanted[1:], parts[1:])


class Node:
    def __init__(self, name, account):
        self.name, self.account, self.children = name, account, {}
        self.own = Balance()

    def total(self):
        """Its own balance and all below."""
        return sum((child.total() for child in self.children.values()), self.own)

    def walk(self, depth=0):
        """The nodes below in order, each with its depth."""
        for _, child in sorted(self.children.items()):
            yield child, depth
            yield from child.walk(depth + 1)


def tree(balances):
    """The root of all accounts. balances: of each account, by name."""
    root = Node("", "")
    for account, balance in balances.items():
        node = root
        for count, name in enumerate(account.split(":"), 1):
            node = node.children.setdefault(name, Node(name, ":".join(account.split(":")[:count])))
        node.own = node.own + balance
    return root


def joined(node):
    """A node that has one child and nothing of its own is written with it in one line: (name, the last of these nodes)."""
    names = [node.name]
    while len(node.children) == 1 and node.own.is_zero():
        (node,) = node.children.values()
        names.append(node.name)
    return ":".join(names), node
