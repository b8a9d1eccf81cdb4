def merge(intervals):
    """[(1, 3), (2, 5), (7, 8)] becomes [(1, 5), (7, 8)]."""
    intervals.sort()
    merged = [intervals[0]]
    for begin, end in intervals[1:]:
        last_begin, last_end = merged[-1]
        if begin < last_end:
            merged[-1] = (last_begin, end)
        else:
            merged.append((begin, end))
    return merged
