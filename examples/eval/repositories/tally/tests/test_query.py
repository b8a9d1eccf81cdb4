import datetime
import unittest

from tally import TallyError, query
from tally.accounts import Pattern, joined, parents, tree
from tally.amounts import Amount, Balance
from tally.parser import parse

JOURNAL = """
2026-01-05 * Corner Shop | weekly ; #food
    expenses:food:fruit    12.50 EUR
    assets:cash

2026-02-03 ! Hotel ; trip:rome
    expenses:travel    80 USD ; #night
    liabilities:card

2026-02-10 Corner Shop
    expenses:food    5 EUR
    expenses:home    30 EUR
    assets:bank
"""


def accounts(text):
    wanted = query.compile(text, datetime.date(2026, 2, 20))
    return [posting.account for pair in [parse(JOURNAL)] for transaction, posting in pair.postings() if wanted(transaction, posting)]


class Conditions(unittest.TestCase):
    def test_fields(self):
        for text, found in [
                ("food", ["expenses:food:fruit", "expenses:food"]), ("expenses:food", ["expenses:food:fruit", "expenses:food"]),
                ("payee:corner expenses", ["expenses:food:fruit", "expenses:food", "expenses:home"]), ("note:WEEK food", ["expenses:food:fruit"]),
                ("date:2026-01", ["expenses:food:fruit", "assets:cash"]), ("date:\"last month\"", ["expenses:food:fruit", "assets:cash"]),
                ("status:pending", ["expenses:travel", "liabilities:card"]), ("status!=unmarked expenses", ["expenses:food:fruit", "expenses:travel"]),
                ("amount>12.5EUR", ["expenses:home", "assets:bank"]), ("amount>=80", ["expenses:travel", "liabilities:card"]),
                ("amount:5", ["expenses:food"]), ("commodity:usd expenses", ["expenses:travel"]), ("tag:night", ["expenses:travel"]),
                ("tag:trip=rome expenses", ["expenses:travel"]), ("tag:trip=paris", []), ("date>2026-01 date<2026-02-10 expenses", ["expenses:travel"]),
                ("date<=2026-01", ["expenses:food:fruit", "assets:cash"]), ("payee=hotel tag!=night", ["liabilities:card"])]:
            with self.subTest(text):
                self.assertEqual(accounts(text), found)

    def test_joined(self):
        for text, found in [
                ("cash or bank", ["assets:cash", "assets:bank"]), ("not assets not expenses", ["liabilities:card"]),
                ("expenses and not (food or home)", ["expenses:travel"]), ("food or travel amount>50", ["expenses:food:fruit", "expenses:travel", "expenses:food"]),
                ("(food or travel) amount>50", ["expenses:travel"]), ("not food and expenses", ["expenses:travel", "expenses:home"]),
                ("", ["expenses:food:fruit", "assets:cash", "expenses:travel", "liabilities:card", "expenses:food", "expenses:home", "assets:bank"])]:
            with self.subTest(text):
                self.assertEqual(accounts(text), found)

    def test_mistakes(self):
        for text in ["(food", "food)", "and", "not", "food or", "status:done", "amount>x", "frob>3", "payee<x", "date:soon"]:
            with self.subTest(text), self.assertRaises(TallyError):
                query.compile(text)


class Patterns(unittest.TestCase):
    def test_forms(self):
        names = ["assets:bank:food", "expenses:food", "expenses:food:fruit", "expenses:foods", "Expenses:Travel:Food"]
        for text, found in [("expenses:food", [1, 2]), ("food", [0, 1, 2, 4]), ("*:food", [1, 2]), ("**:food", [0, 1, 2, 4]), ("exp*:*", [1, 2, 3, 4]),
                            ("~food$", [0, 1, 4]), ("expenses", [1, 2, 3, 4]), ("EXPENSES:FOOD", [1, 2])]:
            with self.subTest(text):
                self.assertEqual([index for index, name in enumerate(names) if Pattern(text).matches(name)], found)

    def test_tree(self):
        root = tree({"a:b:c": Balance([Amount.parse("1 EUR")]), "a:b:d": Balance([Amount.parse("2 EUR")]), "e": Balance([Amount.parse("4 EUR")])})
        self.assertEqual(str(root.total()), "7 EUR")
        name, last = joined(root.children["a"])
        self.assertEqual((name, sorted(last.children)), ("a:b", ["c", "d"]))
        self.assertEqual([(node.name, depth) for node, depth in root.walk()], [("a", 0), ("b", 1), ("c", 2), ("d", 2), ("e", 0)])
        self.assertEqual(parents("a:b:c"), ["a", "a:b"])
