import datetime
import unittest

from tally import TallyError
from tally.dates import Period, Recurrence, add_months, divide, parse_date, parse_period

TODAY = datetime.date(2026, 5, 14)


def day(text):
    return datetime.date.fromisoformat(text)


class Dates(unittest.TestCase):
    def test_forms(self):
        for text in ["2026-01-31", "2026/1/31", "31.1.2026", " 2026-1-31 "]:
            self.assertEqual(parse_date(text), day("2026-01-31"))

    def test_mistakes(self):
        for text in ["2026-02-30", "2026-13-01", "26-01-01", "1.2", "today"]:
            with self.subTest(text), self.assertRaises(TallyError):
                parse_date(text)

    def test_months_later(self):
        for start, count, end in [("2026-01-31", 1, "2026-02-28"), ("2028-01-31", 1, "2028-02-29"), ("2026-11-30", 3, "2027-02-28"),
                                  ("2026-03-31", -1, "2026-02-28"), ("2026-01-15", -1, "2025-12-15"), ("2026-12-01", 12, "2027-12-01")]:
            with self.subTest(start, count=count):
                self.assertEqual(add_months(day(start), count), day(end))


class Periods(unittest.TestCase):
    def test_forms(self):
        for text, start, end in [
                ("2026", "2026-01-01", "2027-01-01"), ("2026-02", "2026-02-01", "2026-03-01"), ("mar 2026", "2026-03-01", "2026-04-01"),
                ("December 2026", "2026-12-01", "2027-01-01"), ("2026q4", "2026-10-01", "2027-01-01"), ("2026-Q1", "2026-01-01", "2026-04-01"),
                ("2026-w01", "2025-12-29", "2026-01-05"), ("2026-05-14", "2026-05-14", "2026-05-15"), ("2026-01..2026-03", "2026-01-01", "2026-04-01"),
                ("2026-01-05..2026-01-06", "2026-01-05", "2026-01-07"), ("this month", "2026-05-01", "2026-06-01"),
                ("last quarter", "2026-01-01", "2026-04-01"), ("next year", "2027-01-01", "2028-01-01"), ("last week", "2026-05-04", "2026-05-11"),
                ("next day", "2026-05-15", "2026-05-16")]:
            with self.subTest(text):
                self.assertEqual(parse_period(text, TODAY), Period(day(start), day(end)))

    def test_open_ends(self):
        self.assertIn(day("1999-01-01"), parse_period("..2026-01"))
        self.assertNotIn(day("2026-02-01"), parse_period("..2026-01"))
        self.assertIn(day("2099-01-01"), parse_period("2026.."))

    def test_mistakes(self):
        for text in ["2026q5", "2026-w54", "2026-13", "soon", "this decade", "2026-03..2026-01"]:
            with self.subTest(text), self.assertRaises(TallyError):
                parse_period(text, TODAY)

    def test_last_day_is_in(self):
        period = parse_period("2026-02")
        self.assertIn(day("2026-02-28"), period)
        self.assertNotIn(day("2026-03-01"), period)
        self.assertEqual(str(period), "2026-02-01..2026-02-28")

    def test_divide(self):
        pieces = divide(Period(day("2026-01-20"), day("2026-03-05")), "month")
        self.assertEqual([str(piece) for piece in pieces], ["2026-01-20..2026-01-31", "2026-02-01..2026-02-28", "2026-03-01..2026-03-04"])
        self.assertEqual(len(divide(parse_period("2026"), "quarter")), 4)
        self.assertEqual(sum(piece.days for piece in divide(parse_period("2026"), "week")), 365)


class Recurrences(unittest.TestCase):
    def test_the_last_day_of_a_month_comes_back(self):
        monthly = Recurrence.parse("monthly", day("2026-01-31"))
        self.assertEqual([str(date) for date in monthly.dates(parse_period("2026-01..2026-04"))],
                         ["2026-01-31", "2026-02-28", "2026-03-31", "2026-04-30"])

    def test_every_two_weeks(self):
        dates = Recurrence.parse("every 2 weeks", day("2026-01-01")).dates(parse_period("2026-02"))
        self.assertEqual([str(date) for date in dates], ["2026-02-12", "2026-02-26"])

    def test_mistakes(self):
        for text in ["sometimes", "every 0 days", "every 2 decades"]:
            with self.subTest(text), self.assertRaises(TallyError):
                Recurrence.parse(text, TODAY)
