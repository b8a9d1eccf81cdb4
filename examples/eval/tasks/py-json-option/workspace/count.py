import sys


def count(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return len(text.splitlines()), len(text.split())


def main(paths):
    for path in paths:
        lines, words = count(path)
        print(f"{path}: {lines} lines, {words} words")


if __name__ == "__main__":
    main(sys.argv[1:])
