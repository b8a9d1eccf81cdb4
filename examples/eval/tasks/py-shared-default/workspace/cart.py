class Cart:
    def __init__(self, items=[], discounts={}):
        self.items = items
        self.discounts = discounts

    def add(self, name, price, count=1):
        self.items.append((name, price, count))

    def discount(self, name, percent):
        self.discounts[name] = percent

    def total(self):
        return sum(price * count * (100 - self.discounts.get(name, 0)) / 100 for name, price, count in self.items)
