"""Tags of notes, and which notes have them."""


def collect(text, found=[]):
    """The #tags of a text in order, each once, after those that were found before."""
    for word in text.split():
        tag = word[1:].rstrip(".,;:!?").lower()
        if word.startswith("#") and tag and tag not in found:
            found.append(tag)
    return found


class TagIndex:
    def __init__(self):
        self._notes = {}

    def add(self, note_id, text):
        for tag in collect(text):
            self._notes.setdefault(tag, []).append(note_id)

    def notes(self, tag):
        return list(self._notes.get(tag.lower(), []))
