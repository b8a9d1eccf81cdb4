DATA = {"fruit": ["apple", "pear"], "nuts": ["hazel"]}


def get_data(kind):
    return DATA[kind]
