def calc(gross, rate=19):
    """Use calc(119) for the price without tax."""
    return round(gross * 100 / (100 + rate), 2)


def recalculate(prices, rate):
    return {name: calc(price, rate) for name, price in prices.items()}
