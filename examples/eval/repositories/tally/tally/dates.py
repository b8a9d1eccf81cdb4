"""Dates, periods and what recurs. A Period is half open: its end is the first day after it."""
import calendar
import dataclasses
import datetime
import re

from tally import TallyError

DAY = datetime.timedelta(days=1)
MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_abbr) if name}
UNITS = ("day", "week", "month", "quarter", "year")


def parse_date(text, place=None):
    """2026-01-31, 2026/1/31 or 31.1.2026."""
    for pattern, order in ((r"(\d{4})-(\d{1,2})-(\d{1,2})", (0, 1, 2)), (r"(\d{4})/(\d{1,2})/(\d{1,2})", (0, 1, 2)),
                           (r"(\d{1,2})\.(\d{1,2})\.(\d{4})", (2, 1, 0))):
        match = re.fullmatch(pattern, text.strip())
        if match:
            parts = [int(match.groups()[index]) for index in order]
            try:
                return datetime.date(*parts)
            except ValueError as failure:
                raise TallyError(f"no date: {text.strip()!r} ({failure})", place) from None
    raise TallyError(f"no date: {text.strip()!r}", place)


def add_months(date, count):
    """The same day so many months later, or the last one of a month that is shorter."""
    month = date.year * 12 + date.month - 1 + count
    year, month = month // 12, month % 12 + 1
    return datetime.date(year, month, min(date.day, calendar.monthrange(year, month)[1]))


@dataclasses.dataclass(frozen=True)
class Period:
    start: datetime.date
    end: datetime.date

    def __contains__(self, date):
        return self.start <= date < self.end

    def __str__(self):
        return f"{self.start}..{self.end - DAY}"

    @property
    def days(self):
        return (self.end - self.start).days

    def overlap(self, other):
        """The days that both have; None without any."""
        start, end = max(self.start, other.start), min(self.end, other.end)
        return Period(start, end) if start < end else None


def start_of(unit, date):
    if unit == "day":
        return date
    if unit == "week":
        return date - datetime.timedelta(days=date.weekday())
    if unit == "month":
        return date.replace(day=1)
    if unit == "quarter":
        return date.replace(month=(date.month - 1) // 3 * 3 + 1, day=1)
    if unit == "year":
        return date.replace(month=1, day=1)
    raise TallyError(f"no unit of time: {unit!r}; there are {', '.join(UNITS)}")


def after(unit, date, count=1):
    """The date so many units later."""
    if unit in ("day", "week"):
        return date + datetime.timedelta(days=count * (7 if unit == "week" else 1))
    return add_months(date, count * {"month": 1, "quarter": 3, "year": 12}[unit])


def period_of(unit, date):
    start = start_of(unit, date)
    return Period(start, after(unit, start))


def parse_period(text, today=None, place=None):
    """2026, 2026-03, mar 2026, 2026q1, 2026-w05, a date, FROM..TO (both included), and this/last/next UNIT."""
    said = text.strip().lower()
    if ".." in said:
        first, _, last = said.partition("..")
        start = parse_period(first, today, place).start if first else datetime.date.min
        end = parse_period(last, today, place).end if last else datetime.date.max
        if start >= end:
            raise TallyError(f"the period {text.strip()!r} ends before it begins", place)
        return Period(start, end)
    if re.fullmatch(r"\d{4}", said):
        return period_of("year", datetime.date(int(said), 1, 1))
    match = re.fullmatch(r"(\d{4})[-/](\d{1,2})", said)
    if match and 1 <= int(match[2]) <= 12:
        return period_of("month", datetime.date(int(match[1]), int(match[2]), 1))
    match = re.fullmatch(r"([a-z]{3})\w* (\d{4})", said)
    if match and match[1] in MONTHS:
        return period_of("month", datetime.date(int(match[2]), MONTHS[match[1]], 1))
    match = re.fullmatch(r"(\d{4})-?q([1-4])", said)
    if match:
        return period_of("quarter", datetime.date(int(match[1]), int(match[2]) * 3 - 2, 1))
    match = re.fullmatch(r"(\d{4})-?w(\d{1,2})", said)
    if match:
        try:
            return period_of("week", datetime.date.fromisocalendar(int(match[1]), int(match[2]), 1))
        except ValueError:
            raise TallyError(f"no week: {text.strip()!r}", place) from None
    match = re.fullmatch(r"(this|last|next) (\w+)", said)
    if match and match[2] in UNITS:
        start = start_of(match[2], today or datetime.date.today())
        start = after(match[2], start, {"last": -1, "this": 0, "next": 1}[match[1]])
        return Period(start, after(match[2], start))
    date = parse_date(said, place)
    return Period(date, date + DAY)


def divide(period, unit):
    """The days of a period in pieces of a unit; the first and the last may be shorter."""
    pieces, start = [], period.start
    while start < period.end:
        whole = period_of(unit, start)
        pieces.append(whole.overlap(period))
        start = whole.end
    return pieces


@dataclasses.dataclass(frozen=True)
class Recurrence:
    """Every so many units from a day on. A day that a month does not have is the month's last, and comes back afterwards."""
    unit: str
    first: datetime.date
    every: int = 1

    @classmethod
    def parse(cls, text, first, place=None):
        """daily, weekly, monthly, quarterly, yearly, or "every 2 weeks"."""
        said = text.strip().lower()
        names = {"daily": "day", "weekly": "week", "monthly": "month", "quarterly": "quarter", "yearly": "year"}
        if said in names:
            return cls(names[said], first)
        match = re.fullmatch(r"every (\d+) (\w+?)s?", said)
        if match and match[2] in UNITS and int(match[1]) > 0:
            return cls(match[2], first, int(match[1]))
        raise TallyError(f"no recurrence: {text.strip()!r}", place)

    def dates(self, period):
        count = 0
        while True:
            date = after(self.unit, self.first, count * self.every)
            if date >= period.end:
                return
            if date >= period.start:
                yield date
            count += 1
