import pathlib
import tempfile
import unittest

from tally import TallyError
from tally.parser import load, parse, split_comment, tags_of

SHOP = """
2026-01-05 * (17) Corner shop | groceries ; #food trip:rome
    expenses:food    12.50 EUR ; who:me
    assets:cash
"""


class Transactions(unittest.TestCase):
    def test_the_parts_of_one(self):
        (one,) = parse(SHOP).transactions
        self.assertEqual((str(one.date), one.status, one.code, one.payee, one.note), ("2026-01-05", "*", "17", "Corner shop", "groceries"))
        self.assertEqual(one.tags, {"food": "", "trip": "rome"})
        self.assertEqual([(posting.account, str(posting.amount)) for posting in one.postings],
                         [("expenses:food", "12.50 EUR"), ("assets:cash", "-12.50 EUR")])
        self.assertEqual(one.all_tags(one.postings[0]), {"food": "", "trip": "rome", "who": "me"})

    def test_what_is_missing_in_several_commodities(self):
        (one,) = parse("2026-01-01 x\n  a  1 EUR\n  b  2 USD\n  c\n").transactions
        self.assertEqual([(posting.account, str(posting.amount)) for posting in one.postings],
                         [("a", "1 EUR"), ("b", "2 USD"), ("c", "-1 EUR"), ("c", "-2 USD")])

    def test_mistakes(self):
        for text, message in [
                ("2026-01-01 x\n  a  1 EUR\n  b  -2 EUR\n", "journal:1: .*does not balance: 1 EUR is missing"),
                ("2026-01-01 x\n  a  1 EUR\n  b\n  c\n", "2 postings have no amount"), ("2026-01-01 x\n  a  0 EUR\n", "two postings at least"),
                ("\n2026-02-30 x\n", "journal:2: no date"), ("  a  1\n", "a posting without a transaction"), ("frobnicate\n", "unknown directive: 'frobnicate'"),
                ("2026-01-01 x\n  a  1.2.3 EUR\n  b\n", "journal:2: no amount")]:
            with self.subTest(text), self.assertRaisesRegex(TallyError, message):
                parse(text)

    def test_the_order_is_that_of_dates(self):
        text = "".join(f"2026-01-0{day} {name}\n  a  1 EUR\n  b\n\n" for day, name in [(3, "c"), (1, "a"), (3, "d"), (2, "b")])
        self.assertEqual([one.payee for one in parse(text).transactions], ["a", "b", "c", "d"])

    def test_comments(self):
        self.assertEqual(split_comment('a "x;y" ; z'), ('a "x;y"', "z"))
        self.assertEqual(tags_of("on #trip to where:rome, not at http: #a-b"), {"trip": "", "where": "rome,", "a-b": ""})
        (one,) = parse("; top\n2026-01-01 x ; one\n  ; two #t\n  a  1 EUR ; three\n  ; four\n  b\n").transactions
        self.assertEqual((one.comment, one.tags, one.postings[0].comment), ("one\ntwo #t", {"t": ""}, "three\nfour"))

    def test_costs(self):
        (one,) = parse("2026-01-01 x\n  assets:acme  4 ACME @@ 10 EUR\n  assets:bank\n").transactions
        self.assertEqual((str(one.postings[0].cost), str(one.postings[1].amount)), ("2.5 EUR", "-10.0 EUR"))
        (one,) = parse("2026-01-01 x\n  assets:acme  -4 ACME @ 2.50 EUR\n  assets:bank\n").transactions
        self.assertEqual(str(one.postings[1].amount), "10.00 EUR")
        with self.assertRaisesRegex(TallyError, "cannot be divided"):
            parse("2026-01-01 x\n  a  3 ACME @@ 10 EUR\n  b\n")


class Directives(unittest.TestCase):
    def test_alias(self):
        journal = parse("alias food = expenses:food\nalias expenses = expenses:home\n2026-01-01 x\n  food:fruit  1 EUR\n  cash\n")
        self.assertEqual(journal.accounts(), ["cash", "expenses:home:food:fruit"])

    def test_an_alias_that_names_itself(self):
        journal = parse("alias a = a:b\n2026-01-01 x\n  a  1 EUR\n  c\n")
        self.assertEqual(journal.accounts(), ["a:b", "c"])

    def test_strict_and_closed(self):
        with self.assertRaisesRegex(TallyError, "the account b is not declared"):
            parse("strict\naccount a\n2026-01-01 x\n  a  1 EUR\n  b\n")
        parse("close 2026-01-01 a\n2026-01-01 x\n  a  1 EUR\n  b\n")
        with self.assertRaisesRegex(TallyError, "the account a was closed on 2026-01-01"):
            parse("close 2026-01-01 a\n2026-01-02 x\n  a  1 EUR\n  b\n")

    def test_assertions_follow_the_dates(self):
        parse("2026-01-02 y\n  a  1 EUR = 3 EUR\n  b\n\n2026-01-01 x\n  a  2 EUR = 2 EUR\n  b\n")
        with self.assertRaisesRegex(TallyError, "a has 2 EUR and not 3 EUR"):
            parse("2026-01-01 x\n  a  2 EUR = 3 EUR\n  b\n")

    def test_includes(self):
        with tempfile.TemporaryDirectory() as place:
            root = pathlib.Path(place)
            (root / "years").mkdir()
            (root / "main.txt").write_text("include years/*.txt\n")
            (root / "years" / "2025.txt").write_text("2025-01-01 x\n  a  1 EUR\n  b\n")
            (root / "years" / "2026.txt").write_text("2026-01-01 y\n  a  1 EUR\n  b\n")
            self.assertEqual([one.payee for one in load(root / "main.txt").transactions], ["x", "y"])
            (root / "main.txt").write_text("include main.txt\n")
            with self.assertRaisesRegex(TallyError, "main.txt:1: .* includes itself"):
                load(root / "main.txt")
            (root / "main.txt").write_text("include none.txt\n")
            with self.assertRaisesRegex(TallyError, "cannot read .*none.txt"):
                load(root / "main.txt")
