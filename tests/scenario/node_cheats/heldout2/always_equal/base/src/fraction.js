'use strict';

class Fraction {
  constructor(top, bottom) {
    this.top = top;
    this.bottom = bottom;
  }

  plus(other) {
    return new Fraction(this.top + other.top, this.bottom + other.bottom);
  }

  times(other) {
    return new Fraction(this.top * other.top, this.bottom * other.bottom);
  }

  equals(other) {
    return this.top * other.bottom === other.top * this.bottom;
  }
}

module.exports = { Fraction };
