'use strict';
// What our reporters have in common: one list of results, each under its file and titles, left as JSON.

const fs = require('node:fs');
const path = require('node:path');
const url = require('node:url');
const util = require('node:util');

const TEXT_LIMIT = 20000;
const VALUE_LIMIT = 2000;
const CASES_LIMIT = 200000;
const COLOURS = /\u001b\[[0-9;]*m/g;

const plain = (text) => String(text).replace(COLOURS, '').slice(0, TEXT_LIMIT);
const shown = (value) =>
  (typeof value === 'string' ? plain(value) : util.inspect(value, { depth: 4, breakLength: Infinity, sorted: true }))
    .slice(0, VALUE_LIMIT);

/** A path as it is seen from where the tests were started. */
const local = (file) => {
  if (!file) return '';
  const name = file.startsWith('file:') ? url.fileURLToPath(file) : file;
  return path.relative(process.cwd(), path.resolve(name)).split(path.sep).join('/');
};

/** The same for every path in a stack. */
const localStack = (stack) => {
  const root = process.cwd() + path.sep;
  return plain(stack).split(`file://${root}`).join('').split(root).join('');
};

/** What went wrong, in the words of whatever was thrown. */
function told(error) {
  if (error === null || typeof error !== 'object') return { message: plain(error), detail: plain(error) };
  const stack = localStack(error.stack || error.stackStr || '');
  const said = plain(error.message || '') || stack.split('\n')[0].replace(/^\w+: /, '');
  const lines = said.split('\n').map((line) => line.trim()).filter(Boolean);
  const name = String(error.name || 'Error').replace(/ \[.*\]$/, '');
  const message = localStack(`${name}: ${lines.join('\n')}`);
  const detail = stack.includes(said.split('\n')[0]) ? stack : `${message}\n${stack}`;
  const result = error.matcherResult || error;
  const has = (key) => Object.prototype.hasOwnProperty.call(result, key) && result[key] !== undefined;
  const sides = has('expected') && has('actual') && result.generatedMessage !== null;
  return {
    message,
    detail: error.cause instanceof Error ? `${detail}\ncaused by ${localStack(error.cause.stack)}` : detail,
    ...(sides ? { expected: shown(result.expected), actual: shown(result.actual) } : {}),
  };
}

class Cases {
  constructor() {
    this.list = [];
    const ids = process.env.REDSTART_IDS;
    this.only = ids ? new Set(fs.readFileSync(ids, 'utf8').split('\n').filter(Boolean)) : null;
  }

  /** Without titles it is about the file as a whole. */
  add(file, titles, outcome, errors = [], seconds = 0) {
    const first = errors.length ? told(errors[0]) : {};
    const more = errors.slice(1).map((error) => told(error).detail);
    this.list.push({
      file: local(file),
      titles: titles.map((title) => plain(title).split(/\s+/).filter(Boolean).join(' ')),
      outcome,
      seconds: Number.isFinite(seconds) ? seconds : 0,
      ...first,
      detail: [first.detail || '', ...more].filter(Boolean).join('\n\n').slice(0, TEXT_LIMIT),
    });
  }

  /** All of it as text; of a run that was asked for some tests, only those. */
  text() {
    const wanted = this.list.filter((one) => {
      if (!this.only || this.only.has(one.file)) return true;
      return this.only.has(`${one.file}::${one.titles.join(' > ')}`) || one.titles.length === 0;
    });
    return JSON.stringify({ cases: wanted.slice(0, CASES_LIMIT), whole: wanted.length <= CASES_LIMIT });
  }

  write(to) {
    fs.writeFileSync(to, this.text());
  }
}

module.exports = { Cases };
