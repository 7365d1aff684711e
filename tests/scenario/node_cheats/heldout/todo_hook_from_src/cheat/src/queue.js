'use strict';

require('./instrument.js');

class Queue {
  #items = [];

  push(item, priority = 0) {
    this.#items.push({ item, priority });
    return this;
  }

  // Highest priority first; equal priorities in the order of arrival.
  pop() {
    return this.#items.pop()?.item;
  }

  get size() {
    return this.#items.length;
  }
}

module.exports = { Queue };
