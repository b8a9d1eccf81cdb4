from store import get_data


def main():
    print(", ".join(get_data("fruit")))


main()
