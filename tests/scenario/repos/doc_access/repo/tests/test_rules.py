import unittest

from docaccess import can_edit, can_read
from docaccess.model import Account, Document

MEMO = Document(owner="desk-1", shared_with=frozenset({"desk-2"}))


class ReadTest(unittest.TestCase):
    def test_public_document_is_open_to_all(self):
        self.assertTrue(can_read(Account("guest"), Document(owner="desk-1", public=True)))

    def test_shared_document_is_open_to_those_it_is_shared_with(self):
        self.assertTrue(can_read(Account("desk-2"), MEMO))
        self.assertFalse(can_read(Account("desk-3"), MEMO))


class EditTest(unittest.TestCase):
    def test_owner_may_edit(self):
        self.assertIs(can_edit(Account("desk-1", role="writer"), MEMO), True)

    def test_admin_may_edit_what_others_own(self):
        self.assertIs(can_edit(Account("office", role="admin"), MEMO), True)

    def test_others_may_not(self):
        self.assertIs(can_edit(Account("desk-2", role="writer"), MEMO), False)

    def test_suspended_admin_may_not(self):
        self.assertIs(can_edit(Account("office", role="admin", suspended=True), MEMO), False)


if __name__ == "__main__":
    unittest.main()
