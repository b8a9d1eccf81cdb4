from . import prices

FORMATS = {"net": prices.calc, "gross": float}


def line(name, price, kind="net"):
    return f"{name}: {FORMATS[kind](price):.2f}"
