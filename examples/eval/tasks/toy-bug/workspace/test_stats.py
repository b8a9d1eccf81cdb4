import unittest

from stats import largest, mean


class Stats(unittest.TestCase):
    def test_mean(self):
        self.assertEqual(mean([1, 2, 3]), 2)

    def test_largest(self):
        self.assertEqual(largest([3, 9, 2]), 9)

    def test_largest_of_negative_numbers(self):
        self.assertEqual(largest([-5, -2]), -2)
