from docaccess.model import Account, Document


def can_read(account: Account, document: Document) -> bool:
    """Public documents are open to all, others to their owner, to whom they are shared with, and to admins."""
    if account.suspended:
        return False
    return document.public or account.name in document.shared_with or _owns(account, document)


def can_edit(account: Account, document: Document) -> bool:
    """Only the owner and admins may edit."""
    return not account.suspended and _owns(account, document)


def _owns(account: Account, document: Document) -> bool:
    return account.role == "admin" and account.name == document.owner
