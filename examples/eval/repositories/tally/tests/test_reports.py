import datetime
import unittest

from tally import TallyError, lots, query, reports
from tally.amounts import Amount
from tally.dates import parse_period
from tally.parser import parse
from tally.prices import Prices

JOURNAL = """
2026-01-01 Opening
    assets:bank:giro    1000 EUR
    equity:opening

2026-01-15 * Work
    assets:bank:giro    2000 EUR
    income:wage

2026-01-20 Shop
    expenses:food:fruit    30 EUR
    expenses:food    20 EUR
    assets:cash

2026-02-20 Shop
    expenses:food    40 EUR
    liabilities:card

budget 2026-01-01 expenses:food 100 EUR monthly
budget 2026-01-01 expenses:food:fruit 31 EUR monthly
"""


def day(text):
    return datetime.date.fromisoformat(text)


class Balance(unittest.TestCase):
    def setUp(self):
        self.journal = parse(JOURNAL)

    def test_tree(self):
        rows, total = reports.balance(self.journal, query.compile("assets or expenses"))
        self.assertEqual([(row.depth, row.name, str(row.balance)) for row in rows], [
            (0, "assets", "2950 EUR"), (1, "bank:giro", "3000 EUR"), (1, "cash", "-50 EUR"), (0, "expenses:food", "90 EUR"), (1, "fruit", "30 EUR")])
        self.assertEqual(str(total), "3040 EUR")

    def test_flat_and_depth(self):
        rows, _ = reports.balance(self.journal, flat=True, depth=2)
        self.assertEqual([(row.account, str(row.balance)) for row in rows], [
            ("assets:bank", "3000 EUR"), ("assets:cash", "-50 EUR"), ("equity:opening", "-1000 EUR"), ("expenses:food", "90 EUR"),
            ("income:wage", "-2000 EUR"), ("liabilities:card", "-40 EUR")])

    def test_until_does_not_count_its_day(self):
        _, total = reports.balance(self.journal, query.compile("food"), until=day("2026-02-20"))
        self.assertEqual(str(total), "50 EUR")

    def test_what_is_zero_is_left_out(self):
        journal = parse("2026-01-01 x\n  a  1 EUR\n  b\n\n2026-01-02 y\n  a  -1 EUR\n  c\n")
        self.assertEqual([row.account for row in reports.balance(journal)[0]], ["b", "c"])
        self.assertEqual([row.account for row in reports.balance(journal, empty=True)[0]], ["a", "b", "c"])


class Others(unittest.TestCase):
    def setUp(self):
        self.journal = parse(JOURNAL)

    def test_register(self):
        rows = reports.register(self.journal, query.compile("food"))
        self.assertEqual([(str(row.amount), str(row.total)) for row in rows], [("30 EUR", "30 EUR"), ("20 EUR", "50 EUR"), ("40 EUR", "90 EUR")])
        rows = reports.register(self.journal, query.compile("food"), related=True)
        self.assertEqual([(row.account, str(row.total)) for row in rows], [("assets:cash", "-50 EUR"), ("liabilities:card", "-90 EUR")])

    def test_by_period(self):
        found = reports.by_period(self.journal, "month", query.compile("expenses"))
        self.assertEqual([str(piece) for piece, _ in found], ["2026-01-01..2026-01-31", "2026-02-01..2026-02-20"])
        self.assertEqual([{name: str(balance) for name, balance in sorted(sums.items())} for _, sums in found], [
            {"expenses:food": "20 EUR", "expenses:food:fruit": "30 EUR"}, {"expenses:food": "40 EUR", "expenses:food:fruit": "0"}])
        self.assertEqual(reports.by_period(parse(""), "month"), [])

    def test_income(self):
        statement = reports.income_statement(self.journal)
        self.assertEqual((str(statement.income), str(statement.expenses), str(statement.net)), ("2000 EUR", "90 EUR", "1910 EUR"))
        self.assertEqual(str(reports.income_statement(self.journal, parse_period("2026-02")).net), "-40 EUR")

    def test_net_worth(self):
        rows = reports.net_worth(self.journal, [day("2026-01-19"), day("2026-01-20"), day("2026-02-20")])
        self.assertEqual([str(total) for _, total in rows], ["3000 EUR", "2950 EUR", "2910 EUR"])

    def test_budget(self):
        rows = reports.budget_report(self.journal, parse_period("2026-01"))
        self.assertEqual([(row.account, str(row.planned), str(row.spent), str(row.left), row.percent) for row in rows], [
            ("expenses:food", "100 EUR", "20 EUR", "80 EUR", 20), ("expenses:food:fruit", "31 EUR", "30 EUR", "1 EUR", 96)])
        rows = reports.budget_report(self.journal, parse_period("2026-01..2026-02-14"))
        self.assertEqual([str(row.planned) for row in rows], ["150 EUR", "47 EUR"])


class PricesAndLots(unittest.TestCase):
    PRICES = "price 2026-01-01 USD 0.80 EUR\nprice 2026-01-10 USD 0.90 EUR\nprice 2026-01-05 ACME 10 USD\n"

    def test_conversion(self):
        prices = Prices(parse(self.PRICES).prices)
        for amount, commodity, date, wanted in [
                ("100 USD", "EUR", "2026-01-09", "80.00 EUR"), ("100 USD", "EUR", "2026-01-10", "90.00 EUR"), ("9 EUR", "USD", "2026-02-01", "10.00 USD"),
                ("-3 ACME", "EUR", "2026-01-07", "-24.00 EUR"), ("0.05 USD", "EUR", "2026-02-01", "0.05 EUR"), ("5 EUR", "EUR", "2020-01-01", "5.00 EUR")]:
            with self.subTest(amount, date=date):
                self.assertEqual(str(prices.convert(Amount.parse(amount), commodity, day(date))), wanted)
        with self.assertRaisesRegex(TallyError, "no price of ACME in EUR on 2026-01-04"):
            prices.convert(Amount.parse("1 ACME"), "EUR", day("2026-01-04"))

    def test_the_last_price_of_a_day_counts(self):
        prices = Prices(parse(self.PRICES + "price 2026-01-10 USD 0.95 EUR\n").prices)
        self.assertEqual(str(prices.convert(Amount.parse("100 USD"), "EUR", day("2026-01-10"))), "95.00 EUR")

    def test_first_in_first_out(self):
        journal = parse("2025-01-01 buy\n  a:acme  5 ACME @ 10 EUR\n  a:bank\n\n2026-01-01 buy\n  a:acme  5 ACME @ 20 EUR\n  a:bank\n\n"
                        "2026-01-02 sell\n  a:acme  -7 ACME @ 30 EUR\n  a:bank\n")
        left, sales = lots.of_journal(journal)
        self.assertEqual([(str(sale.amount), str(sale.cost), str(sale.gain), sale.is_long_term) for sale in sales],
                         [("5 ACME", "50 EUR", "100 EUR", True), ("2 ACME", "40 EUR", "20 EUR", False)])
        self.assertEqual(tuple(map(str, left.held("ACME"))), ("3 ACME", "60 EUR"))

    def test_a_year_to_the_day_is_not_long(self):
        for bought, sold, is_long in [("2025-01-01", "2026-01-01", False), ("2025-01-01", "2026-01-02", True), ("2024-02-29", "2025-03-01", False),
                                      ("2024-02-29", "2025-03-02", True)]:
            sale = lots.Sale(day(sold), Amount(1), day(bought), Amount(1), Amount(1))
            self.assertEqual(sale.is_long_term, is_long, bought)

    def test_more_than_there_is(self):
        held = lots.Lots()
        held.buy(day("2026-01-01"), Amount.parse("1 ACME"), Amount.parse("1 EUR"))
        with self.assertRaisesRegex(TallyError, "2 ACME more are sold"):
            held.sell(day("2026-01-02"), Amount.parse("3 ACME"), Amount.parse("1 EUR"))
