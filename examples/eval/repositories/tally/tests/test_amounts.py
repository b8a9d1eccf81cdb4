import unittest

from tally import TallyError
from tally.amounts import Amount, Balance

EUR = Amount.parse


class Parsing(unittest.TestCase):
    def test_forms(self):
        for text, units, places, commodity in [
                ("12.50 EUR", 1250, 2, "EUR"), ("EUR 12.50", 1250, 2, "EUR"), ("$5", 5, 0, "USD"), ("-$5.00", -500, 2, "USD"), ("$-5", -5, 0, "USD"),
                ("1,234,567.8 JPY", 12345678, 1, "JPY"), ("0.001", 1, 3, ""), ("+3 ACME", 3, 0, "ACME"), (" 7€ ", 7, 0, "EUR")]:
            with self.subTest(text):
                amount = Amount.parse(text)
                self.assertEqual((amount.units, amount.places, amount.commodity), (units, places, commodity))

    def test_mistakes(self):
        for text in ["", "EUR", "1.2.3", "12,50 EUR", "USD 5 EUR", "- -5", "-$-5", "five"]:
            with self.subTest(text), self.assertRaises(TallyError):
                Amount.parse(text)

    def test_the_place_is_named(self):
        with self.assertRaisesRegex(TallyError, "^a.txt:3: no amount: 'x'$"):
            Amount.parse("x", "a.txt:3")


class Arithmetic(unittest.TestCase):
    def test_places_do_not_matter(self):
        self.assertEqual(EUR("1.5 EUR"), EUR("1.50 EUR"))
        self.assertEqual(hash(EUR("1.5 EUR")), hash(EUR("1.500 EUR")))
        self.assertEqual(str(EUR("1.5 EUR") + EUR("2.25 EUR")), "3.75 EUR")
        self.assertEqual(str(EUR("1 EUR") - EUR("2.25 EUR")), "-1.25 EUR")
        self.assertLess(EUR("1.49 EUR"), EUR("1.5 EUR"))

    def test_nothing_is_nothing_in_any_commodity(self):
        self.assertEqual(EUR("0 EUR"), EUR("0.00 USD"))
        self.assertNotEqual(EUR("1 EUR"), EUR("1 USD"))

    def test_different_commodities(self):
        with self.assertRaisesRegex(TallyError, "different commodities"):
            _ = EUR("1 EUR") + EUR("1 USD")

    def test_rounding_goes_away_from_zero(self):
        for text, places, rounded in [("1.005 EUR", 2, "1.01 EUR"), ("-1.005 EUR", 2, "-1.01 EUR"), ("1.004 EUR", 2, "1.00 EUR"),
                                      ("-0.4 EUR", 0, "0 EUR"), ("2 EUR", 2, "2.00 EUR"), ("2.5", 0, "3"), ("-2.5", 0, "-3")]:
            with self.subTest(text):
                self.assertEqual(str(EUR(text).rounded(places)), rounded)

    def test_split_adds_up(self):
        self.assertEqual([str(part) for part in EUR("10.00 EUR").split(3)], ["3.34 EUR", "3.33 EUR", "3.33 EUR"])
        self.assertEqual([str(part) for part in EUR("-0.05 EUR").split(2)], ["-0.03 EUR", "-0.02 EUR"])
        with self.assertRaises(ValueError):
            EUR("1").split(0)

    def test_times(self):
        self.assertEqual(str(EUR("2.50 EUR").times(3)), "7.50 EUR")
        self.assertEqual(str(EUR("2.50 EUR").times(EUR("1.5"))), "3.750 EUR")

    def test_numbers(self):
        self.assertEqual(EUR("-1234567.05").number(grouped=True), "-1,234,567.05")
        self.assertEqual(EUR("0.05 EUR").number(), "0.05")


class Balances(unittest.TestCase):
    def test_sums_by_commodity(self):
        balance = Balance([EUR("1 EUR"), EUR("2 USD"), EUR("0.50 EUR")])
        self.assertEqual(str(balance), "1.50 EUR, 2 USD")
        self.assertEqual(str(balance - Balance([EUR("2 USD")])), "1.50 EUR")
        self.assertTrue((balance + -balance).is_zero())

    def test_a_sum_leaves_its_parts_alone(self):
        one, other = Balance([EUR("1 EUR")]), Balance([EUR("2 EUR")])
        _ = one + other
        self.assertEqual((str(one), str(other)), ("1 EUR", "2 EUR"))

    def test_empty(self):
        self.assertEqual(str(Balance()), "0")
        self.assertEqual(Balance([EUR("0 EUR")]), Balance())
        self.assertFalse(Balance().get("EUR"))
