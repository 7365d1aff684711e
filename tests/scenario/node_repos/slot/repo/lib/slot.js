class Slot {
  constructor(start, minutes) {
    this.start = start;
    this.end = start + minutes;
  }

  overlaps(other) {
    return this.start < other.end && other.start < this.end;
  }
}

module.exports = { Slot };
