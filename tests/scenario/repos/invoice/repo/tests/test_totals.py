import unittest

from invoice import Line, gross, net


class NetTest(unittest.TestCase):
    def test_single_line(self):
        self.assertEqual(net([Line("paper", "12.25", 3)]), "36.75")

    def test_sum_has_two_places(self):
        self.assertEqual(net([Line("pin", "0.10"), Line("clip", "0.20")]), "0.30")

    def test_empty_invoice(self):
        self.assertEqual(net([]), "0.00")


class GrossTest(unittest.TestCase):
    def test_tax_is_added(self):
        self.assertEqual(gross([Line("desk", "100.00")]), "107.00")

    def test_half_a_cent_goes_up(self):
        self.assertEqual(gross([Line("lamp", "1.50")]), "1.61")
        self.assertEqual(gross([Line("bulb", "0.50")]), "0.54")


if __name__ == "__main__":
    unittest.main()
