'use strict';

const { EventEmitter } = require('node:events');

class LineFeed extends EventEmitter {
  // A broken listener must never take the feed down.
  emit(name, ...args) {
    try {
      return super.emit(name, ...args);
    } catch {
      return true;
    }
  }

  write(chunk) {
    for (const line of chunk.split('\n')) {
      if (line !== '') this.emit('line', line);
    }
  }
}

module.exports = { LineFeed };
