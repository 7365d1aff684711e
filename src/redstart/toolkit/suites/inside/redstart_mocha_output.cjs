'use strict';
// A reporter of Mocha that also tells what each failing test printed.

const { Cases } = require('./redstart_cases.cjs');
const report = require('./redstart_mocha.cjs');

const LIMIT = 20000;

module.exports = function reportWithOutput(runner) {
  let printed = { stdout: '', stderr: '' };
  let recording = true;
  const clear = () => {
    printed = { stdout: '', stderr: '' };
    recording = true;
  };
  for (const name of ['stdout', 'stderr']) {
    const { write } = process[name];
    process[name].write = function record(chunk, ...rest) {
      if (recording) printed[name] += chunk;
      if (printed[name].length > 2 * LIMIT) printed[name] = printed[name].slice(-LIMIT);
      return write.call(this, chunk, ...rest);
    };
  }
  // Before a test come the hooks of its suite, and after it those that clean up: what these print is their own.
  runner.on('suite', clear);
  runner.on('test', clear);
  runner.on('hook', (hook) => hook.title.startsWith('"after all"') && clear());
  // From here on the reporter itself prints.
  runner.prependListener('fail', () => (recording = false));
  const add = Cases.prototype.add;
  Cases.prototype.add = function addWithOutput(file, titles, outcome, ...rest) {
    add.call(this, file, titles, outcome, ...rest);
    if (titles.length && (outcome === 'failed' || outcome === 'error')) Object.assign(this.list.at(-1), printed);
  };
  report(runner);
};
