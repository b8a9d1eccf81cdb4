"""The command line."""
import argparse
import datetime
import pathlib
import sys

from tally import TallyError, __version__, importer, lots, query, reports, table
from tally.dates import DAY, parse_date, parse_period
from tally.parser import load
from tally.prices import Prices


def cell(balance):
    return "\n".join(map(str, balance.amounts())) or "0"


def balance_command(journal, options):
    until = parse_date(options.until) if options.until else None
    rows, total = reports.balance(journal, query.compile(" ".join(options.query)), options.depth, options.flat, options.empty, until)
    if options.convert:
        prices = Prices(journal.prices)
        date = (until - DAY) if until else journal.span()[1] if journal.span() else datetime.date.today()
        for row in rows:
            row.balance = prices.convert_all(row.balance, options.convert, date)
        total = prices.convert_all(total, options.convert, date)
    if options.format != "text":
        return write(options, ("account", "balance"), [(row.account, row.balance) for row in rows])
    lines = [(cell(row.balance), "  " * row.depth + row.name) for row in rows]
    return table.render([*lines, ("--------", ""), (cell(total), "")], ("right", "left"))


def write(options, head, rows):
    return (table.as_csv if options.format == "csv" else table.as_json)(head, rows)


def register_command(journal, options):
    rows = reports.register(journal, query.compile(" ".join(options.query)), options.related)
    if options.format != "text":
        return write(options, ("date", "payee", "account", "amount", "total"),
                     [(row.date, row.payee, row.account, row.amount, row.total) for row in rows])
    return table.render([(row.date, row.payee, row.account, row.amount, cell(row.total)) for row in rows],
                        ("left", "left", "left", "right", "right"), limits={1: 24, 2: 32})


def income_command(journal, options):
    period = parse_period(options.period) if options.period else None
    statement = reports.income_statement(journal, period)
    return table.render([("income", cell(statement.income)), ("expenses", cell(statement.expenses)), ("net", cell(statement.net))],
                        ("left", "right"))


def budget_command(journal, options):
    rows = reports.budget_report(journal, parse_period(options.period))
    lines = []
    for row in rows:
        percent = row.percent
        lines.append((row.account, row.planned, row.spent, row.left, "-" if percent is None else f"{percent}%",
                      table.bar(percent or 0, 100, 10)))
    return table.render(lines, ("left", "right", "right", "right", "right", "left"))


def gains_command(journal, _):
    _, sales = lots.of_journal(journal)
    return table.render([(sale.date, sale.amount, sale.bought, sale.cost, sale.proceeds, sale.gain, "long" if sale.is_long_term else "short")
                         for sale in sales], ("left", "right", "left", "right", "right", "right", "left"))


def accounts_command(journal, _):
    return "".join(account + "\n" for account in journal.accounts())


def check_command(journal, _):
    count = len(journal.transactions)
    return f"{count} transaction{'' if count == 1 else 's'}, {len(journal.accounts())} accounts\n"


def import_command(journal, options):
    rules = importer.Rules(pathlib.Path(options.rules).read_text(encoding="utf-8"), options.rules)
    text = pathlib.Path(options.csv).read_text(encoding="utf-8-sig")
    return "\n".join(map(importer.written, importer.transactions(text, rules, importer.known_ids(journal))))


def parser():
    top = argparse.ArgumentParser(prog="tally", description="Plain-text accounting.")
    top.add_argument("--version", action="version", version=__version__)
    top.add_argument("-f", "--file", action="append", default=[], help="a journal; several are read as one")
    commands = top.add_subparsers(dest="command", required=True)

    def command(name, run, words):
        one = commands.add_parser(name, help=words)
        one.set_defaults(run=run)
        return one
    one = command("balance", balance_command, "what the accounts hold")
    one.add_argument("query", nargs="*")
    one.add_argument("--depth", type=int, default=0), one.add_argument("--flat", action="store_true")
    one.add_argument("--empty", action="store_true"), one.add_argument("--until"), one.add_argument("--convert", metavar="COMMODITY")
    one.add_argument("--format", choices=("text", "csv", "json"), default="text")
    one = command("register", register_command, "postings, one after the other")
    one.add_argument("query", nargs="*"), one.add_argument("--related", action="store_true")
    one.add_argument("--format", choices=("text", "csv", "json"), default="text")
    command("income", income_command, "income and expenses").add_argument("period", nargs="?")
    command("budget", budget_command, "what is planned, and what is spent").add_argument("period")
    command("gains", gains_command, "sales, first in, first out")
    command("accounts", accounts_command, "the names of all accounts")
    command("check", check_command, "reads the journal, and says how much there is")
    one = command("import", import_command, "transactions of a bank's CSV file")
    one.add_argument("csv"), one.add_argument("--rules", required=True)
    return top


def main(arguments=None, out=None):
    options = parser().parse_args(arguments)
    try:
        (out or sys.stdout).write(options.run(load(*options.file), options))
    except (TallyError, OSError) as failure:
        print(f"tally: {failure}", file=sys.stderr)
        return 1
    return 0
