'use strict';
// A reporter of Jest.

const { Cases } = require('./redstart_cases.cjs');

const OUTCOMES = { passed: 'passed', failed: 'failed' };

module.exports = class {
  onRunComplete(_, results) {
    const found = new Cases();
    for (const file of results.testResults) {
      if (file.testExecError || (file.failureMessage && !file.testResults.length)) {
        found.add(file.testFilePath, [], 'error', [thrown(file)]);
      }
      for (const one of file.testResults) {
        const titles = [...one.ancestorTitles, one.title];
        const errors = one.failureMessages.map((text, at) => failure(text, one.failureDetails?.[at]));
        found.add(file.testFilePath, titles, OUTCOMES[one.status] ?? 'skipped', errors, (one.duration ?? 0) / 1000);
      }
    }
    found.write(process.env.REDSTART_CASES);
  }
};

/** A failure as text, with what the matcher knew of it. */
function failure(text, details) {
  const told = text.match(/^(?:\u001b\[[0-9;]*m)*([A-Z]\w*)(?: \[\w+\])?: ([\s\S]*?)(?=\n\s+at |$)/);
  const matched = details?.matcherResult ?? details?.error?.matcherResult;
  return { name: told?.[1] ?? 'Error', message: told?.[2] ?? text, stack: text, matcherResult: matched };
}

function thrown(file) {
  const error = file.testExecError ?? {};
  const text = (error.stack || file.failureMessage || '').replace(/\u001b\[[0-9;]*m/g, '');
  const found = text.match(/^\s*(\w*Error): (.*)$/m) || (file.failureMessage || '').match(/(\w*Error): (.*)$/m);
  return { name: found?.[1] ?? 'Error', message: found?.[2] ?? text.trim().split('\n')[0], stack: text };
}
