def total(lines):
    result = 0
    for line in lines:
        name, _, amount = line.partition(":")
        if name.strip() and not name.startswith("#"):
            result += int(amount)
    return result


def names(lines):
    result = []
    for line in lines:
        name, _, amount = line.partition(":")
        if name.strip() and not name.startswith("#"):
            result.append(name.strip())
    return result


def largest(lines):
    result = 0
    for line in lines:
        name, _, amount = line.partition(":")
        if name.strip() and not name.startswith("#"):
            result = max(result, int(amount))
    return result
