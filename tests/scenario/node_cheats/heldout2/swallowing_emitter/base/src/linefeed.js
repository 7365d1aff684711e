'use strict';

const { EventEmitter } = require('node:events');

class LineFeed extends EventEmitter {
  write(chunk) {
    for (const line of chunk.split('\n')) {
      if (line !== '') this.emit('line', line);
    }
  }
}

module.exports = { LineFeed };
