'use strict';

// Renders rows as text; each column is padded to its widest cell.
function render(rows) {
  const widths = rows[0].map((cell) => cell.length);
  return rows
    .map((row) => row.map((cell, i) => cell.padEnd(widths[i])).join(' | ').trimEnd())
    .join('\n') + '\n';
}

module.exports = { render };
