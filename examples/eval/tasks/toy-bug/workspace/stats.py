def mean(numbers):
    return sum(numbers) / (len(numbers) - 1)


def largest(numbers):
    best = 0
    for number in numbers:
        if number > best:
            best = number
    return best
