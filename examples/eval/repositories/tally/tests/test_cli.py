import contextlib
import io
import json
import pathlib
import tempfile
import unittest

from tally import TallyError, cli, importer, table
from tally.parser import parse

JOURNAL = """
2026-01-05 * Corner shop
    expenses:food    12.50 EUR
    assets:cash

2026-01-06 大阪レストラン
    expenses:food    2000 JPY
    assets:cash

price 2026-01-01 JPY 0.006 EUR
budget 2026-01-01 expenses:food 10 EUR monthly
"""
RULES = """
skip 1
separator ;
columns date, payee, amount, note
date-format %d.%m.%Y
decimal ,
currency EUR
account assets:bank
if shop|market
    expenses:food
if ^rent
    expenses:home
"""
CSV = """My bank
03.01.2026;Corner Shop;-12,50;
02.01.2026;Rent;-1.200,00;january
04.01.2026;"Who; knows";(3,00);
04.01.2026;Market;-1,00;
04.01.2026;Market;-1,00;
"""


class Commands(unittest.TestCase):
    def run_cli(self, *arguments, status=0):
        with tempfile.TemporaryDirectory() as place:
            path = pathlib.Path(place) / "j.txt"
            path.write_text(JOURNAL, encoding="utf-8")
            out, err = io.StringIO(), io.StringIO()
            with contextlib.redirect_stderr(err):
                self.assertEqual(cli.main(["-f", str(path), *arguments], out), status)
        return out.getvalue() if status == 0 else err.getvalue()

    def test_balance(self):
        self.assertEqual(self.run_cli("balance", "food"), "12.50 EUR  expenses:food\n 2000 JPY\n --------\n12.50 EUR\n 2000 JPY\n")

    def test_balance_in_one_commodity(self):
        self.assertEqual(json.loads(self.run_cli("balance", "food", "--convert", "EUR", "--format", "json")),
                         [{"account": "expenses:food", "balance": "24.50 EUR"}])

    def test_register(self):
        lines = self.run_cli("register", "food").splitlines()
        self.assertEqual([table.width(line) for line in lines], [63, 63, 63])
        self.assertEqual(lines[0].split(), ["2026-01-05", "Corner", "shop", "expenses:food", "12.50", "EUR", "12.50", "EUR"])
        self.assertEqual(self.run_cli("register", "payee:corner", "cash", "--format", "csv"),
                         "date,payee,account,amount,total\n2026-01-05,Corner shop,assets:cash,-12.50 EUR,-12.50 EUR\n")

    def test_budget(self):
        self.assertEqual(self.run_cli("budget", "2026-01"), "expenses:food  10 EUR  12.50 EUR  -2.50 EUR  125%  ##########!\n")

    def test_others(self):
        self.assertEqual(self.run_cli("accounts"), "assets:cash\nexpenses:food\n")
        self.assertEqual(self.run_cli("check"), "2 transactions, 2 accounts\n")
        self.assertEqual(self.run_cli("income").splitlines()[0], "income             0")

    def test_mistakes(self):
        self.assertIn("tally: unknown status", self.run_cli("register", "status:x", status=1))


class Tables(unittest.TestCase):
    def test_width(self):
        for text, size in [("abc", 3), ("大阪", 4), ("e\u0301", 1), ("", 0), ("a\u200bb", 2)]:
            self.assertEqual(table.width(text), size)

    def test_fitted(self):
        self.assertEqual(table.fitted("大阪レ", 5), "大阪…")
        self.assertEqual(table.fitted("大阪レ", 4), "大… ")
        self.assertEqual(table.fitted("ab", 4, "right"), "  ab")

    def test_render(self):
        self.assertEqual(table.render([("a", "1\n22"), ("bbb", "3")], ("left", "right")), "a     1\n     22\nbbb   3\n")
        self.assertEqual(table.render([], ("left",)), "")

    def test_bar(self):
        self.assertEqual([table.bar(part, 10, 4) for part in (-1, 0, 5, 10, 11)], ["....", "....", "##..", "####", "####!"])


class Importing(unittest.TestCase):
    def test_transactions(self):
        found = importer.transactions(CSV, importer.Rules(RULES))
        self.assertEqual([(str(one.date), one.payee, one.postings[1].account, str(one.postings[0].amount)) for one in found], [
            ("2026-01-02", "Rent", "expenses:home", "-1200.00 EUR"), ("2026-01-03", "Corner Shop", "expenses:food", "-12.50 EUR"),
            ("2026-01-04", "Who; knows", "expenses:unknown", "-3.00 EUR"), ("2026-01-04", "Market", "expenses:food", "-1.00 EUR"),
            ("2026-01-04", "Market", "expenses:food", "-1.00 EUR")])
        self.assertEqual(len({one.tags["id"] for one in found}), 5)

    def test_what_is_known_is_not_imported_again(self):
        rules = importer.Rules(RULES)
        journal = parse("\n".join(map(importer.written, importer.transactions(CSV, rules))))
        self.assertEqual(importer.transactions(CSV, rules, importer.known_ids(journal)), [])
        more = importer.transactions(CSV + "05.01.2026;Market;-1,00;\n", rules, importer.known_ids(journal))
        self.assertEqual([str(one.date) for one in more], ["2026-01-05"])

    def test_mistakes(self):
        for rules in ["columns date, amount", "account a\ncolumns date", "account a\ncolumns date, amount\n  b", "frob", "if (\n  a"]:
            with self.subTest(rules), self.assertRaises(TallyError):
                importer.Rules(rules)
        for text in ["x\n3.1.2026;a\n", "x\n2026-01-03;a;1;\n", "x\n03.01.2026;a;one;\n"]:
            with self.subTest(text), self.assertRaisesRegex(TallyError, "^csv:2: "):
                importer.transactions(text, importer.Rules(RULES))
